"""A simulated node: a machine and one process after another on it.

A process runs the production driver and storage code (`sim/engine/process.py`). This module has the
faults of a node and the simulator's own view of its log.
"""

from __future__ import annotations

from enum import Enum
from functools import partial
from random import Random
from typing import TYPE_CHECKING

from quorate.raft.core import RaftCore
from quorate.raft.messages import LogRange
from quorate.server.component_config import raft_config
from quorate.sim.checkers.log_view import LogView
from quorate.sim.engine.disk import Survival
from quorate.sim.engine.host import ProcessDied
from quorate.sim.engine.machine import ROTTEN, SimulatedMachine
from quorate.sim.engine.node_config import controller_config
from quorate.sim.engine.process import Process
from quorate.sim.engine.storage import LOG_DIR, open_storage
from quorate.sim.faults.lost_votes import is_in_dispute, report_forgotten
from quorate.storage.errors import StorageError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from quorate.controller.image import MetadataImage
    from quorate.raft.api import AppendToLog, Event, PublishProgress, RecoveredState
    from quorate.raft.messages import MembershipRequest, Request
    from quorate.records.ids import DirectoryId, Epoch, Millis, NodeId, OffsetAndEpoch, ReplyToken
    from quorate.server.config import ControllerConfig
    from quorate.server.driver.raft_driver import RaftDriver
    from quorate.sim.engine.application import Application
    from quorate.sim.engine.host import SimulatedHost
    from quorate.sim.engine.network import PeerCaller
    from quorate.sim.engine.storage import ObservedStore
    from quorate.sim.interfaces import ClusterInterface
    from quorate.sim.views import NodeView
    from quorate.sim.workload.pending_requests import WaitingRequest
    from quorate.storage.meta_properties import MetaProperties


class Status(Enum):
    """The state of a node: its machine, its process, its disk."""

    RUNNING = "running"
    STOPPED = "the machine runs, the process does not"
    OFF = "without power"
    FAILED = "the process runs, but its disk has failed"


class SimulatedNode(SimulatedMachine):
    """A machine with a disk, and on it one process after another."""

    def __init__(self, world: ClusterInterface, node_id: NodeId, directory_id: DirectoryId) -> None:
        super().__init__(world, node_id, directory_id)
        self.status = Status.STOPPED
        self.incarnation = 0
        self.is_paused = False
        self.was_harmed = self.is_healing = False
        self.led_epoch: Epoch | None = None
        self.progress: PublishProgress | None = None
        self.callers: dict[ReplyToken, PeerCaller] = {}
        self.newest_snapshot: OffsetAndEpoch | None = None
        self.checked: set[OffsetAndEpoch] = set()
        self.config: ControllerConfig
        self.meta: MetaProperties
        self.core: RaftCore
        self.store: ObservedStore
        self.process: Process

    @property
    def is_listening(self) -> bool:
        return self.status is Status.RUNNING

    @property
    def refuses_connections(self) -> bool:
        return self.status in (Status.STOPPED, Status.FAILED)

    @property
    def is_stepped(self) -> bool:
        return self.is_listening and not self.is_paused and not self.host.is_blocked_on_disk

    @property
    def is_at_rest(self) -> bool:
        return self.is_stepped and self.process.has_begun and self.process.driver.is_at_rest

    @property
    def wake_at_ms(self) -> Millis | None:
        return self.process.driver.wake_at_ms

    @property
    def is_hanging(self) -> bool:
        return self.is_listening and self.host.is_hanging

    @property
    def is_healthy(self) -> bool:
        if not self.is_listening or self.is_paused or self.host.is_hanging:
            return False
        is_bound, is_there = self.core.replica.is_bound, not self.world.is_hijacked(self)
        return not is_bound and is_there and self.disk_fault is None and not self.is_corrupt

    @property
    def is_intact(self) -> bool:
        """True if its log is complete and has no undetected damage.

        An interrupted recovery may have quarantined the damage: then no file shows it.
        """
        return not (
            self.is_corrupt or self.is_healing or self.is_harmed or self.file_tampering.paths
        )

    def is_found_by(self, other: NodeView) -> bool:
        voter = other.log.voters.by_id(self.node_id)
        return voter is None or voter.endpoints == self.endpoints

    @property
    def is_stopping(self) -> bool:
        return self.core.replica.is_stopping

    @property
    def image(self) -> MetadataImage:
        return self.application.controller.image

    @property
    def active_epoch(self) -> Epoch | None:
        return self.application.controller.epoch

    @property
    def waiting(self) -> Iterable[WaitingRequest]:
        return self.application.waiting

    @property
    def oldest_read_ms(self) -> int | None:
        return self.application.oldest_read_ms

    # --- lifecycle --------------------------------------------------------------------------------

    def start(self) -> None:
        """Start a process: recover the disk, then the core."""
        if self.status not in (Status.STOPPED, Status.OFF):
            return
        self.incarnation += 1
        self.process = Process(self)
        try:
            recovered = self._recover()
        except ProcessDied:
            self.world.process_exits.died(self)
            return
        except (OSError, StorageError) as error:
            self.status = Status.STOPPED
            self.world.log(f"node {self.node_id} does not start: {error}")
            self.world.watch.refused(self, error)
            self.world.process_exits.refused(self, error)
            return
        self.status = Status.RUNNING
        self.world.log(f"node {self.node_id} starts: log end {recovered.end}")
        self.world.watch.started(self, recovered)
        settings = raft_config(self.config, self.meta)
        self.core = RaftCore(settings, recovered, self.random, self.incarnation)
        self.process.begin()

    def _recover(self) -> RecoveredState:
        self.faults_met.clear()
        is_in_doubt = is_in_dispute(self)
        self.is_harmed |= self.is_corrupt or is_in_doubt or self.has_lost_flushed_end
        if self.is_harmed or self.file_tampering.paths:
            self.faults_met[ROTTEN] = None
        # An interrupted recovery may have removed the damage, so that the next one finds none.
        self.is_harmed |= self.is_healing
        if self.is_corrupt or is_in_doubt:
            # Flushed writes after the damage are lost with it, although their offset was reported.
            self.forget_durable_log()
        report_forgotten(self, self.world.watch)
        self.config = controller_config(self.world, self, self.world.static_voters)
        self.store, found = open_storage(self.disk, self.config)
        self.store.node = self
        self.meta = found.meta
        recovered = found.state
        self.was_harmed, self.is_harmed = self.is_harmed, False
        self.file_tampering.forget()
        for finding in found.findings:
            self.world.log(f"node {self.node_id} finds: {finding}")
        self.is_healing = recovered.remembered_end is not None or recovered.abstains
        self._view_log(recovered)
        snapshots = recovered.snapshots
        self.newest_snapshot = snapshots[-1].snapshot_id if snapshots else None
        self.checked = set()
        return recovered

    def _view_log(self, recovered: RecoveredState) -> None:
        """Rebuild the view of the log; known batches keep the sequence of their disk write."""
        known = {(entry.end, entry.epoch): entry.sequence for entry in self.log.entries}
        start = recovered.log_start
        chain = self.log.chain_up_to(self.store.start)
        if chain is None:
            chain = self.world.oracle.chains.get(start, 0)
        view = LogView(self.store.start, chain, self.world.oracle.voters_at(start))
        span = LogRange(start=start, end=recovered.end.offset, bytes_max=1 << 30)
        data = self.disk.aside(partial(self.store.read_range, span))
        for index, entry in enumerate(view.append(data, self.disk.sequence)):
            sequence = known.get((entry.end, entry.epoch))
            if sequence is not None:
                view.entries[index] = entry._replace(sequence=sequence)
        self.log = view

    def kill(self) -> None:
        """Kill the process; its writes stay in the page cache."""
        if self.status in (Status.RUNNING, Status.FAILED):
            callers = self._end(Status.STOPPED)
            self.world.process_ended(self, callers)

    def power_off(self, survival: Survival = Survival.NOTHING, salt: int = 0) -> None:
        """Cut the power: the disk keeps flushed writes, and peers get no notice.

        `survival` and the random stream of `salt` decide which unflushed writes survive.
        """
        if self.status is Status.OFF:
            return
        self.log.cut(self.safe_end())
        self._end(Status.OFF)
        self.disk.lose_power(Random(salt), survival)

    def rot(self, name: str, position: int, mask: int) -> None:
        """Flip bits of one byte of a log file, undetected so far."""
        self.forget_durable_log()
        self.faults_met[ROTTEN] = None
        self.disk.rot(f"{LOG_DIR}/{name}", position, mask)

    def replace_disk(self, directory_id: DirectoryId) -> None:
        """Install an empty disk: a new replica, or without directory ids the same one."""
        self.forget_durable_log()
        self.disk.wipe()
        self.directory_id = directory_id
        self.log, self.is_harmed = LogView(), False
        self.is_healing = self.world.options.kraft_version == 0
        self.file_tampering.forget()

    def fail(self, message: str) -> None:
        """The disk has failed: the core gets no more events, the listener closes.

        See rule `disk_fail_stop`.
        """
        self.world.log(f"node {self.node_id}: {message}")
        callers = self._end(Status.FAILED)
        self.world.process_ended(self, callers)

    def _end(self, status: Status) -> dict[ReplyToken, PeerCaller]:
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
        """Suspend the process, as by SIGSTOP: connections stay, nothing runs."""
        self.is_paused = True
        self.troubles += 1
        self.host.loop.pause()

    def resume(self) -> None:
        self.is_paused = False
        self.host.loop.resume()
        if not self.host.is_hanging:
            self.host.resume()

    # --- events -----------------------------------------------------------------------------------

    @property
    def driver(self) -> RaftDriver:
        return self.process.driver

    @property
    def application(self) -> Application:
        return self.process.application

    @property
    def host(self) -> SimulatedHost:
        return self.process.host

    def deliver(self, event: Event) -> None:
        if self.status is Status.RUNNING:
            self.process.deliver(event)

    def receive(self, token: ReplyToken, request: Request) -> None:
        """Deliver a request, which gets a response."""
        if self.status is Status.RUNNING:
            self.process.receive(token, request)

    def hung_up(self, token: ReplyToken) -> None:
        """The caller has disconnected."""
        if self.callers.pop(token, None) is not None and self.is_listening:
            self.process.hung_up(token)

    def ask(self, request: MembershipRequest) -> ReplyToken:
        """Send a membership request to this process; the response is in `Cluster.answers`."""
        token = self.world.next_token()
        self.receive(token, request)
        return token

    # --- the simulator's view of the log ----------------------------------------------------------

    def appended(self, effect: AppendToLog) -> None:
        """Batches were written at the log's end."""
        span = LogRange(start=effect.base_offset, end=effect.end.offset, bytes_max=1 << 30)
        data = self.disk.aside(partial(self.store.read_range, span))
        for entry in self.log.append(data, self.disk.sequence):
            self.world.watch.appended(self, entry)

    def published(self, progress: PublishProgress) -> None:
        """The core has reported its progress."""
        self.may_die()
        self.world.watch.published(self, progress)
        if progress.is_leader:
            self.led_epoch = progress.epoch
        self.progress = progress

    def begin_log_at(self, snapshot_id: OffsetAndEpoch) -> None:
        """A fetched snapshot has replaced the log."""
        chain = self.world.oracle.chains.get(snapshot_id.offset, 0)
        voters = self.world.oracle.voters_at(snapshot_id.offset)
        self.log = LogView(snapshot_id, chain, voters)
        self.world.watch.snapshot(self, snapshot_id)

    def healed(self) -> None:
        """The log has reached its healing target; later bit rot is still undetected."""
        self.is_healing = False
        self.world.log(f"node {self.node_id} is whole again")

    # --- crashes ----------------------------------------------------------------------------------

    def _before_disk_call(self, operation: str, path: str) -> None:
        self.may_die()
        if self.status is Status.RUNNING:
            self.host.stepped()
        super()._before_disk_call(operation, path)

    def may_die(self) -> None:
        """Crash if it is due, before an effect or a disk call."""
        if not self.world.process_exits.should_crash(self):
            return
        if self.status is Status.RUNNING:
            # The stack unwinds first.
            self.process.end()
            self.world.schedule(0, partial(self._died, self.incarnation))
        raise ProcessDied

    def _died(self, incarnation: int) -> None:
        if self.incarnation == incarnation and self.status is Status.RUNNING:
            self.world.process_exits.died(self)
