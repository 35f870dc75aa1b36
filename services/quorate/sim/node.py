"""One simulated machine: its disk, its clock, its addresses, and one process after another on it.

What runs in a process is production's driver and storage code (`sim/process.py`). This is what
befalls it, and what the simulator itself knows of its log.
"""

from __future__ import annotations

import errno
from enum import Enum
from functools import partial
from typing import TYPE_CHECKING, Final

from quorate.raft.core import RaftCore
from quorate.raft.messages import LogRange
from quorate.records.ids import (
    DirectoryId,
    Epoch,
    Millis,
    NodeId,
    Offset,
    OffsetAndEpoch,
    ReplicaKey,
)
from quorate.sim.configuring import endpoint, raft_config
from quorate.sim.disk import SimulatedDisk
from quorate.sim.host import ProcessDied
from quorate.sim.logview import LogView
from quorate.sim.loop import MILLION
from quorate.sim.process import Process
from quorate.sim.storage import LOG_DIR, open_storage
from quorate.storage.errors import StorageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from quorate.consensus.driver import RaftDriver
    from quorate.raft.api import AppendToLog, Event, PublishProgress, Random, RecoveredState
    from quorate.raft.messages import MembershipRequest, Request
    from quorate.records.ids import ReplyToken
    from quorate.records.voters import Endpoint, Voter
    from quorate.sim.application import Application
    from quorate.sim.host import SimulatedHost
    from quorate.sim.network import Caller
    from quorate.sim.sides import WorldAround
    from quorate.sim.storage import WatchedStore

_FAILING: Final = {
    "full": (errno.ENOSPC, ("write_at",)),
    "failing": (errno.EIO, ("fdatasync", "sync_dir")),
}


class Status(Enum):
    """What there is of a node: its machine, its process, its disk."""

    RUNNING = "running"
    STOPPED = "the machine runs, the process does not"
    OFF = "without power"
    FAILED = "the process runs, but its disk has failed"


class SimulatedNode:
    """A machine with a disk, and on it one process after another."""

    def __init__(self, world: WorldAround, node_id: NodeId, directory_id: DirectoryId) -> None:
        self.world = world
        self.random: Random = world.random
        self.node_id = node_id
        self.directory_id = directory_id
        self.endpoints: tuple[Endpoint, ...] = (endpoint(node_id),)
        self.moves = 0
        self.disk = SimulatedDisk(self._before_disk_call)
        self.status = Status.STOPPED
        self.incarnation = 0
        self.is_paused = False
        self.disk_fault: str | None = None
        self.was_damaged = self.was_harmed = self.is_rotten = False
        self.is_healing = False
        self.led_epoch: Epoch | None = None
        self.drift_ppm = 0
        self.base_ms = 0
        self.log = LogView()
        self.progress: PublishProgress | None = None
        self.callers: dict[ReplyToken, Caller] = {}
        self.newest_snapshot: OffsetAndEpoch | None = None
        self.checked: set[OffsetAndEpoch] = set()
        self.core: RaftCore
        self.store: WatchedStore
        self.process: Process

    @property
    def key(self) -> ReplicaKey:
        return ReplicaKey(self.node_id, self.directory_id)

    def is_voter(self, voter: Voter) -> bool:
        """Whether `voter` means this very disk; without directory ids any of this node."""
        key = voter.key
        return key.node_id == self.node_id and key.directory_id in (None, self.directory_id)

    @property
    def is_listening(self) -> bool:
        return self.status is Status.RUNNING

    @property
    def refuses_connections(self) -> bool:
        return self.status in (Status.STOPPED, Status.FAILED)

    @property
    def now_us(self) -> int:
        """The node's own monotonic clock, which runs a little fast or slow."""
        now = self.world.now_us
        return self.base_ms * 1000 + now + now * self.drift_ppm // MILLION

    @property
    def local_ms(self) -> Millis:
        return Millis(self.now_us // 1000)

    def at(self, when_us: int, action: Callable[[], None]) -> None:
        """Have something done when that clock has come so far."""
        world, since_us = self.world, when_us - self.base_ms * 1000
        if self.drift_ppm:
            since_us = since_us * MILLION // (MILLION + self.drift_ppm) + 1
        world.schedule(since_us - world.now_us, action)

    def safe_end(self) -> Offset:
        """Where the log would end if the power went now."""
        return self.log.safe_end(self.disk.first_unsafe(LOG_DIR, ".log"))

    # --- life -------------------------------------------------------------------------------------

    def start(self) -> None:
        """Start a process: recover the disk, then the core."""
        if self.status not in (Status.STOPPED, Status.OFF):
            return
        self.incarnation += 1
        self.process = Process(self)
        try:
            recovered = self._recover()
        except ProcessDied:
            self.world.process_died(self)
            return
        except (OSError, StorageError) as error:
            self.status = Status.STOPPED
            self.world.remark(f"node {self.node_id} does not start: {error}")
            return
        self.status = Status.RUNNING
        self.world.remark(f"node {self.node_id} starts: log end {recovered.end}")
        self.world.watch.started(self, recovered)
        self.core = RaftCore(raft_config(self.world, self), recovered, self.random)
        self.process.begin()

    def _recover(self) -> RecoveredState:
        self.store, found = open_storage(
            self.disk, self.node_id, self.world.options, self.world.static_voters
        )
        self.store.node = self
        recovered, self.was_harmed = found.state, self.was_damaged
        for finding in found.findings:
            self.world.remark(f"node {self.node_id} finds: {finding}")
        self.is_healing = recovered.remembered_end is not None
        self.is_rotten = False
        self.was_damaged = self.was_damaged or self.is_healing
        self._view_log(recovered)
        snapshots = recovered.snapshots
        self.newest_snapshot = snapshots[-1].snapshot_id if snapshots else None
        self.checked = set()
        return recovered

    def _view_log(self, recovered: RecoveredState) -> None:
        """Read the log anew; batches keep the disk writes that they were known to come from."""
        known = {(entry.end, entry.epoch): entry.sequence for entry in self.log.entries}
        start = recovered.log_start
        chain = self.log.chain_up_to(self.store.start)
        if chain is None:
            chain = self.world.oracle.chains.get(start, 0)
        view = LogView(self.store.start, chain, self.world.oracle.voters_at(start))
        data = self.store.read_range(LogRange(start, recovered.end.offset, 1 << 30))
        for index, entry in enumerate(view.append(data, self.disk.sequence)):
            sequence = known.get((entry.end, entry.epoch))
            if sequence is not None:
                view.entries[index] = entry._replace(sequence=sequence)
        self.log = view

    def kill(self) -> None:
        """The process ends on the spot; what it wrote stays in the page cache."""
        if self.status in (Status.RUNNING, Status.FAILED):
            callers = self._end(Status.STOPPED)
            self.world.process_ended(self, callers)

    def power_off(self) -> None:
        """The machine loses power: its disk keeps what was flushed, its peers hear nothing."""
        if self.status is Status.OFF:
            return
        self.log.cut(self.safe_end())
        self._end(Status.OFF)
        self.disk.lose_power(self.world.random, self.world.draw_survival())

    def rot(self, name: str, position: int, mask: int) -> None:
        """Bits of one byte of a file of the log flip, and nobody has noticed yet."""
        self.disk.rot(f"{LOG_DIR}/{name}", position, mask)
        self.is_rotten = self.was_damaged = True

    def replace_disk(self, directory_id: DirectoryId) -> None:
        """A new, empty disk; whoever formats it next is another replica."""
        self.disk.wipe()
        self.directory_id = directory_id
        self.log = LogView()
        self.was_damaged = self.is_rotten = self.is_healing = False

    def fail(self, message: str) -> None:
        """The disk failed (rule 17): the core is never stepped again, the listener closes."""
        self.world.remark(f"node {self.node_id}: {message}")
        callers = self._end(Status.FAILED)
        self.world.process_ended(self, callers)

    def _end(self, status: Status) -> dict[ReplyToken, Caller]:
        was_running = self.status is Status.RUNNING
        self.status = status
        self.is_paused = False
        callers, self.callers = self.callers, {}
        if was_running:
            self.process.end()
            self.application.process_ended()
            self.world.watch.stopped(self)
        self.progress = self.led_epoch = None
        return callers

    def pause(self) -> None:
        """SIGSTOP: connections stay, nothing moves."""
        self.is_paused = True
        self.host.loop.pause()

    def resume(self) -> None:
        self.is_paused = False
        self.host.loop.resume()
        if not self.host.is_hanging:
            self.host.go_on()

    # --- events -----------------------------------------------------------------------------------

    @property
    def driver(self) -> RaftDriver:
        return self.process.driver

    @property
    def application(self) -> Application:
        return self.process.application

    @property
    def host(self) -> SimulatedHost:
        """The machine below the process of now."""
        return self.process.host

    def deliver(self, event: Event) -> None:
        """Hand an event to a process that may be busy or paused just now."""
        if self.status is Status.RUNNING:
            self.process.deliver(event)

    def receive(self, token: ReplyToken, request: Request) -> None:
        """The same with a request, which is answered."""
        if self.status is Status.RUNNING:
            self.process.receive(token, request)

    def hung_up(self, token: ReplyToken) -> None:
        """Whoever called does not wait any more."""
        if self.callers.pop(token, None) is not None and self.is_listening:
            self.process.hung_up(token)

    def ask(self, request: MembershipRequest) -> ReplyToken:
        """Ask this process for a change as an operator would; the answer is in `World.answers`."""
        token = self.world.next_token()
        self.receive(token, request)
        return token

    # --- what the simulator knows of the log ------------------------------------------------------

    def appended(self, effect: AppendToLog) -> None:
        """Batches were written at the log's end."""
        data = self.store.read_range(LogRange(effect.base_offset, effect.end.offset, 1 << 30))
        for entry in self.log.append(data, self.disk.sequence):
            self.world.watch.appended(self, entry)

    def published(self, progress: PublishProgress) -> None:
        """The core tells how far it is."""
        self.may_die()
        self.world.watch.published(self, progress)
        if progress.is_leader:
            self.led_epoch = progress.epoch
        self.progress = progress

    def begin_log_at(self, snapshot_id: OffsetAndEpoch) -> None:
        """A fetched snapshot has taken the place of the log."""
        chain = self.world.oracle.chains.get(snapshot_id.offset, 0)
        voters = self.world.oracle.voters_at(snapshot_id.offset)
        self.log = LogView(snapshot_id, chain, voters)
        self.world.watch.snapshot(self, snapshot_id)

    def healed(self) -> None:
        """The log has reached what it once was; bits that rotted meanwhile are still unnoticed."""
        self.is_healing, self.was_damaged = False, self.is_rotten
        self.world.remark(f"node {self.node_id} is whole again")

    # --- dying ------------------------------------------------------------------------------------

    def _before_disk_call(self, operation: str, path: str) -> None:
        self.may_die()
        if self.status is Status.RUNNING:
            self.host.stepped()
        if self.disk_fault is not None:
            number, operations = _FAILING[self.disk_fault]
            if operation in operations:
                raise OSError(number, f"the simulated disk is {self.disk_fault}", path)

    def may_die(self) -> None:
        """One effect or one call to the disk is about to come."""
        if not self.world.is_time_to_die(self):
            return
        if self.status is Status.RUNNING:
            # Whatever is on the stack unwinds first.
            self.world.ticks_to_death = None
            self.process.end()
            self.world.schedule(0, partial(self._died, self.incarnation))
        raise ProcessDied

    def _died(self, incarnation: int) -> None:
        if self.incarnation == incarnation and self.status is Status.RUNNING:
            self.world.process_died(self)
