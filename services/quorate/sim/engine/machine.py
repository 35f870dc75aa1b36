"""A simulated machine: disk, clock, addresses, disk faults.

It also keeps the simulator's own view of the log on its disk, across processes.
"""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING, Final

from quorate.records.ids import Millis, ReplicaKey
from quorate.sim.checkers.log_view import LogView
from quorate.sim.engine.disk import SimulatedDisk
from quorate.sim.engine.event_loop import MILLION
from quorate.sim.engine.node_config import DATA_DIR, endpoint
from quorate.sim.engine.storage import LOG_DIR
from quorate.sim.faults.file_tampering import FileTampering
from quorate.sim.faults.lost_logs import LostLogs
from quorate.storage.flushed_end import newest_slot
from quorate.storage.layout import CHECKPOINT_SUFFIX, FLUSHED_END, LOG_SUFFIX, checkpoint_name

if TYPE_CHECKING:
    from collections.abc import Callable

    from quorate.raft.api import Random
    from quorate.records.ids import DirectoryId, NodeId, Offset, OffsetAndEpoch
    from quorate.records.voters import Endpoint, Voter
    from quorate.sim.interfaces import ClusterInterface

# Suffixes of the files that hold records and are read at a start.
_WITH_RECORDS: Final = (LOG_SUFFIX, CHECKPOINT_SUFFIX)
_OPENING: Final = ("open", "read", "list_dir", "sync_dir")
# Faults of a disk or of the process's resources: the error number and the failing operations.
FAULTS: Final = {
    "full": (errno.ENOSPC, ("write_at",)),
    "failing": (errno.EIO, ("fdatasync", "sync_dir")),
    "unreadable": (errno.EIO, ("read", "read_at")),
    "short of descriptors": (errno.EMFILE, _OPENING),
}
UNREADABLE: Final = "unreadable"
SHORT: Final = "short of descriptors"
ROTTEN: Final = "rotten"


class SimulatedMachine:
    """One machine of the cluster."""

    def __init__(self, world: ClusterInterface, node_id: NodeId, directory_id: DirectoryId) -> None:
        self.world = world
        self.random: Random = world.random_streams.stream("core", node_id)
        self.node_id = node_id
        self.directory_id = directory_id
        self.endpoints: tuple[Endpoint, ...] = (endpoint(node_id),)
        self.moves = 0
        self.disk = SimulatedDisk(self._before_disk_call)
        self.disk_fault: str | None = None
        # The faults, including bit rot, that the current process has met.
        self.faults_met: dict[str, None] = {}
        self.log = LogView()
        self.lost_logs = LostLogs()
        self.file_tampering = FileTampering(self.disk)
        # True if the next start finds damage, or an interrupted start has found some.
        self.is_harmed = False
        self.drift_ppm = 0
        self.base_ms = 0
        # The number of faults so far, so that an invariant notices those between two checks.
        self.troubles = 0

    @property
    def key(self) -> ReplicaKey:
        return ReplicaKey(self.node_id, self.directory_id)

    def is_voter(self, voter: Voter) -> bool:
        """True if `voter` has this directory id; without directory ids, this node id."""
        key = voter.key
        return key.node_id == self.node_id and key.directory_id in (None, self.directory_id)

    # --- clock ------------------------------------------------------------------------------------

    @property
    def now_us(self) -> int:
        """The node's own monotonic clock, which may run slightly fast or slow."""
        now = self.world.now_us
        return self.base_ms * 1000 + now + now * self.drift_ppm // MILLION

    @property
    def local_ms(self) -> Millis:
        return Millis(self.now_us // 1000)

    def at(self, when_us: int, action: Callable[[], None]) -> None:
        """Schedule `action` for the time `when_us` of this clock."""
        world, since_us = self.world, when_us - self.base_ms * 1000
        if self.drift_ppm:
            since_us = since_us * MILLION // (MILLION + self.drift_ppm) + 1
        world.schedule(since_us - world.now_us, action)

    # --- disk -------------------------------------------------------------------------------------

    def _before_disk_call(self, operation: str, path: str) -> None:
        if self.disk_fault is not None:
            number, operations = FAULTS[self.disk_fault]
            if operation in operations:
                self.faults_met[self.disk_fault] = None
                raise OSError(number, f"the simulated disk is {self.disk_fault}", path)

    @property
    def is_corrupt(self) -> bool:
        """True if bits have flipped in the log or in a snapshot, and the next start reads them."""
        return any(name.endswith(_WITH_RECORDS) for name in self.disk.rotten_files(LOG_DIR))

    @property
    def has_lost_flushed_end(self) -> bool:
        """True if bits have flipped in flushed-end and none of its slots is valid."""
        if FLUSHED_END not in self.disk.rotten_files(DATA_DIR):
            return False
        return newest_slot(self.file_tampering.content(f"{DATA_DIR}/{FLUSHED_END}") or b"") is None

    @property
    def flushed_end_on_platter(self) -> Offset | None:
        """The flushed end that a power loss leaves; None if the file was tampered with."""
        if self.file_tampering.paths or FLUSHED_END in self.disk.rotten_files(DATA_DIR):
            return None
        newest = newest_slot(self.disk.on_platter(f"{DATA_DIR}/{FLUSHED_END}"))
        return None if newest is None else newest[2].end.offset

    def restore_stale(self, path: str, data: bytes | None, *, harms: bool) -> None:
        """Restore an older copy of a file; with `harms` the log counts as lost and damaged."""
        if harms:
            self.forget_durable_log()
            self.is_harmed = True
        self.file_tampering.restore_stale(path, data)

    def is_on_platter(self, snapshot_id: OffsetAndEpoch) -> bool:
        """True if that snapshot survives any power loss."""
        return self.disk.is_safe(f"{LOG_DIR}/{checkpoint_name(snapshot_id)}")

    def safe_end(self) -> Offset:
        """The log end after a power loss now."""
        return self.log.safe_end(self.disk.first_unsafe(LOG_DIR, ".log"))

    def holds(self, voter: Voter, offset: Offset, chain: int | None) -> bool:
        """True if this voter holds the log with that chain value durably, or once did."""
        log = self.log
        if self.is_voter(voter):
            if offset <= log.start.offset:
                return True
            if self.safe_end() >= offset and log.chain_at(offset) == chain:
                return True
        return self.lost_logs.once_held(voter.key.directory_id, offset, chain)

    def held_committed(self, voter: Voter, offset: Offset) -> bool:
        """The same for the committed log below `offset`."""
        return self.holds(voter, offset, self.world.oracle.chains.get(offset))

    def forget_durable_log(self) -> None:
        """Record that the log flushed here is lost: invariants must not rely on it any more."""
        self.lost_logs.note(self.directory_id, self.log, self.safe_end())
