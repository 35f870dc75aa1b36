"""Options of a simulated cluster, grouped by concern; field names are part of the case format.

Field names are unique across the groups: the name alone is used in the first line of a transcript,
in a case, and where settings are replaced (`sim/cases/field_codec.py`).

`*_every_ms` are mean intervals of a fault over the whole quorum, 0 for never.
"""

from __future__ import annotations

from dataclasses import field, fields

from quorate.records.value_types import keyword_value_type
from quorate.sim.cases.field_codec import flat
from quorate.sim.engine.disk import Survival
from quorate.sim.engine.network import NetworkOptions, PartitionShape


@keyword_value_type
class ReachOptions:
    """Discovery and reachability: partitions, address changes, foreign clusters, late messages.

    `moves_together` is the rate at which several nodes move at the same time. They do so only if
    bootstrap servers are names that stay valid when a node moves (`has_bootstrap_names`).
    """

    has_bootstrap_names: bool = True
    partition_every_ms: int = 0
    partition_ms: int = 3000
    partition_shapes: tuple[PartitionShape, ...] = tuple(PartitionShape)
    move_every_ms: int = 0
    moves_together: float = 0.0
    strangers_every_ms: int = 0
    late_every_ms: int = 0
    late_ms: int = 3000


@keyword_value_type
class PeerOptions:
    """Peers and clients that are faulty, malicious, or of another cluster.

    `spoilt_answer_rate` is the fraction of peer responses that are corrupt.
    """

    in_vain_every_ms: int = 0
    spoilt_answer_rate: float = 0.0


@keyword_value_type
class TimeoutOptions:
    """The timeouts of all controllers; 0 for the default, which derives from the others."""

    election_timeout_ms: int = 1000
    fetch_timeout_ms: int = 2000
    request_timeout_ms: int = 0
    election_backoff_max_ms: int = 0
    retry_backoff_ms: int = 20
    session_timeout_ms: int = 9000

    @property
    def check_quorum_timeout_ms(self) -> int:
        """1.5 fetch timeouts, computed independently of the core: invariants check the core."""
        return self.fetch_timeout_ms * 3 // 2


@keyword_value_type
class DiskOptions:
    """Disk latency, disk faults, and the data that survives a power loss.

    `between_rate` is the probability that a runnable thread runs between two disk steps of another.
    """

    fsync_us: int = 500
    slow_fsync_rate: float = 0.0
    slow_fsync_us: int = 0
    survivals: tuple[Survival, ...] = tuple(Survival)
    rot_every_ms: int = 0
    small_rot_every_ms: int = 0
    put_back_every_ms: int = 0
    unreadable_every_ms: int = 0
    short_every_ms: int = 0
    disk_fault_every_ms: int = 0
    hang_every_ms: int = 0
    hang_ms: int = 4000
    between_rate: float = 0.0
    wipe_every_ms: int = 0


@keyword_value_type
class ProcessOptions:
    """Process and machine exits, pauses and slowness.

    `drift_ppm` is the maximum error of a node's clock rate. `crash_every_effects` is the mean
    number of effects and file-system calls after which a process crashes. `crash_at_vote_rate` is
    the probability that a process that votes, is elected or changes the voters crashes within the
    next few of them.
    """

    drift_ppm: int = 0
    kill_every_ms: int = 0
    power_every_ms: int = 0
    blackout_every_ms: int = 0
    restart_ms: int = 1500
    crash_every_effects: int = 0
    crash_at_vote_rate: float = 0.0
    pause_every_ms: int = 0
    pause_ms: int = 3000
    shutdown_every_ms: int = 0
    turns_every_ms: int = 0
    unready_every_ms: int = 0


@keyword_value_type
class MembershipOptions:
    """The rates at which operators change the quorum.

    `bold_voters_every_ms` is for changes requested without force and without a check beforehand.
    """

    voters_every_ms: int = 0
    bold_voters_every_ms: int = 0
    hand_over_every_ms: int = 0
    upgrade_every_ms: int = 0
    scale_every_ms: int = 0


@keyword_value_type
class FleetOptions:
    """The brokers, their topics and partitions, and the rates of their requests and faults."""

    brokers: int = 0
    topics: int = 0
    partitions: int = 0
    silence_every_ms: int = 0
    topics_every_ms: int = 0
    oddities_every_ms: int = 0


@keyword_value_type
class ClientOptions:
    """The rates of client writes and reads."""

    write_every_ms: int = 60
    read_every_ms: int = 150
    follower_read_every_ms: int = 150
    record_bytes: int = 40
    records_max: int = 3


@keyword_value_type
class QueueOptions:
    """The load that makes requests wait for their decisions.

    A decision takes `decision_us` of CPU time. The next one waits while `ahead_max` records are
    decided but not committed; 0 for production's bound. Clients and brokers have `client_addresses`
    addresses, and most of them share one; 0 if all share it.
    """

    decision_us: int = 0
    ahead_max: int = 0
    client_addresses: int = 0


@keyword_value_type
class LogOptions:
    """The sizes in which the log is written, fetched and retained, and faults of its snapshots.

    `linger_ms` is how long a batch waits for more records. `spoiled_snapshot_rate` is the fraction
    of fetched snapshots that are corrupted, `aimed_snapshot_rate` the fraction of epoch starts and
    voter changes at which a snapshot is taken.
    """

    linger_ms: int = 0
    fetch_max_bytes: int = 4096
    chunk_bytes: int = 256
    segment_bytes: int = 4096
    snapshot_every_records: int = 0
    snapshot_interval_ms: int = 0
    retention_bytes: int = 4096
    retention_ms: int = -1
    spoiled_snapshot_rate: float = 0.0
    aimed_snapshot_rate: float = 0.0


@keyword_value_type
class WorldOptions:
    """The members of the quorum, the length of the fault phase, and all groups of options."""

    voters: int = 3
    observers: int = 0
    kraft_version: int = 1
    auto_join: bool = False
    duration_ms: int = 30_000
    network: NetworkOptions = field(default_factory=NetworkOptions)
    reach: ReachOptions = field(default_factory=ReachOptions)
    peers: PeerOptions = field(default_factory=PeerOptions)
    timeouts: TimeoutOptions = field(default_factory=TimeoutOptions)
    disks: DiskOptions = field(default_factory=DiskOptions)
    processes: ProcessOptions = field(default_factory=ProcessOptions)
    membership: MembershipOptions = field(default_factory=MembershipOptions)
    fleet: FleetOptions = field(default_factory=FleetOptions)
    clients: ClientOptions = field(default_factory=ClientOptions)
    queue: QueueOptions = field(default_factory=QueueOptions)
    log: LogOptions = field(default_factory=LogOptions)

    def __str__(self) -> str:
        return " ".join(
            f"{name}={_shown(value)}"
            for name, value in flat(self)
            if value not in (0, 0.0) or name in _ALWAYS_SHOWN
        )


_ALWAYS_SHOWN = {"kraft_version", *(item.name for item in fields(NetworkOptions))}


def _shown(value: object) -> str:
    if isinstance(value, tuple):
        return "/".join(member.name.lower() for member in value)
    return str(value)
