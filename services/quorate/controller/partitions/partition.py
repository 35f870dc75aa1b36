"""State of one partition, and counts of offline and imbalanced partitions."""

from __future__ import annotations

from dataclasses import field
from typing import Final

from quorate.records.ids import ZERO_UUID, DirectoryId
from quorate.records.value_types import keyword_value_type, value_type

NO_LEADER: Final = -1
RECOVERED: Final = 0
RECOVERING: Final = 1

# Directory ids for: not reported yet, to be chosen by the broker, lost.
MIGRATING_DIR: Final = DirectoryId(ZERO_UUID)
UNASSIGNED_DIR: Final = DirectoryId(bytes(15) + b"\x01")
LOST_DIR: Final = DirectoryId(bytes(15) + b"\x02")
# Kafka reserves ids below this one (the second half as a signed number) for later such ids.
_RESERVED_MAX: Final = 100


def is_reserved(uuid: bytes) -> bool:
    """True for an id that is not a directory of a disk, in this or a later release of Kafka."""
    half = len(uuid) // 2
    return not any(uuid[:half]) and int.from_bytes(uuid[half:], signed=True) < _RESERVED_MAX


@keyword_value_type
class Partition:
    """One partition's state, as in PartitionRecord; `directories` are parallel to `replicas`."""

    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    leader: int
    leader_epoch: int = 0
    partition_epoch: int = 0
    leader_recovery_state: int = RECOVERED
    directories: tuple[DirectoryId, ...] = ()
    removing_replicas: tuple[int, ...] = ()
    adding_replicas: tuple[int, ...] = ()
    eligible_leader_replicas: tuple[int, ...] = ()
    last_known_elr: tuple[int, ...] = ()

    def directory_of(self, broker_id: int) -> DirectoryId | None:
        """The log directory of the broker's replica; None if it has no replica."""
        for replica, directory in zip(self.replicas, self.directories, strict=True):
            if replica == broker_id:
                return directory
        return None

    @property
    def is_offline(self) -> bool:
        return self.leader == NO_LEADER

    @property
    def is_imbalanced(self) -> bool:
        """True if the first replica does not lead."""
        return self.replicas[:1] != (self.leader,)


@value_type
class PartitionCounts:
    """Counts of partitions by state, updated as they change.

    `offline` have no leader; `imbalanced` are not led by their first replica, which includes the
    offline ones. Elections are counted since this process began to replay: `unclean` ones may lose
    data, `eligible` ones are won by a replica of the ELR, which lacks nothing. `replaced` counts
    the topics, configs and parts of all partitions that were replaced or removed: only earlier
    images hold them.
    """

    offline: int = 0
    imbalanced: int = 0
    unclean: int = field(default=0, compare=False)
    eligible: int = field(default=0, compare=False)
    replaced: int = field(default=0, compare=False)


@value_type
class RareFields:
    """The fields of a partition that are nearly always empty."""

    removing_replicas: tuple[int, ...] = ()
    adding_replicas: tuple[int, ...] = ()
    eligible_leader_replicas: tuple[int, ...] = ()
    last_known_elr: tuple[int, ...] = ()


NO_SELDOM: Final = RareFields()


def rare_fields_of(partition: Partition) -> RareFields:
    """Those fields of a partition."""
    return RareFields(
        partition.removing_replicas,
        partition.adding_replicas,
        partition.eligible_leader_replicas,
        partition.last_known_elr,
    )
