"""State of one partition, and counts of offline and imbalanced partitions."""

from __future__ import annotations

from dataclasses import field
from typing import Final

from quorate.records.ids import ZERO_UUID, DirectoryId
from quorate.records.value_types import keyword_value_type, value_type

NO_LEADER: Final = -1
RECOVERED: Final = 0
RECOVERING: Final = 1

# Directories of a replica that is not reported yet, that its broker has to choose, or that is lost.
MIGRATING_DIR: Final = DirectoryId(ZERO_UUID)
UNASSIGNED_DIR: Final = DirectoryId(bytes(15) + b"\x01")
LOST_DIR: Final = DirectoryId(bytes(15) + b"\x02")
# Kafka keeps ids below this one, as signed numbers in the second half, for more of them.
_RESERVED_MAX: Final = 100


def is_reserved(uuid: bytes) -> bool:
    """True for an id that names no directory of a disk, in this Kafka or a later one."""
    half = len(uuid) // 2
    return not any(uuid[:half]) and int.from_bytes(uuid[half:], signed=True) < _RESERVED_MAX


@keyword_value_type
class Partition:
    """One partition's state, as PartitionRecord has it; `directories` go with `replicas`."""

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
        """The log directory of the broker's replica, None where it has none."""
        for replica, directory in zip(self.replicas, self.directories, strict=True):
            if replica == broker_id:
                return directory
        return None

    @property
    def is_offline(self) -> bool:
        return self.leader == NO_LEADER

    @property
    def is_imbalanced(self) -> bool:
        """True if another replica than the first leads, or none."""
        return self.replicas[:1] != (self.leader,)


@value_type
class PartitionCounts:
    """Counts of partitions by state, updated as they change.

    `offline` have no leader; `imbalanced` are those and others that their first replica does not
    lead. Elections are those since this process began to replay: `unclean` ones may lose data,
    `eligible` ones are won by a replica that was out of sync and lacks nothing. `replaced` counts
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
    """The fields of a partition that are empty nearly always."""

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
