"""One simulated process: the real storage code and the real core, performed effect by effect.

A process may die before any effect and before any call to its disk. Saving, cutting and installing
take the time of a flush, during which events wait; appends are flushed beside the rest, as in
production.
"""

from __future__ import annotations

import errno
from collections import deque
from dataclasses import replace
from enum import Enum
from functools import partial
from typing import TYPE_CHECKING, Final

from quorate.raft import api
from quorate.raft.batches import batch_infos
from quorate.raft.core import RaftCore
from quorate.raft.messages import (
    FetchRequest,
    FetchResponse,
    FetchSnapshotRequest,
    FetchSnapshotResponse,
    LogRange,
    MembershipRequest,
    MembershipResponse,
    PeerResponse,
    ProposalResponse,
    ReadResponse,
    SnapshotRange,
    VoteRequest,
    VoteResponse,
)
from quorate.records.control import KRaftVoters
from quorate.records.ids import (
    DirectoryId,
    Millis,
    NodeId,
    Offset,
    OffsetAndEpoch,
    ReplicaKey,
    ReplyToken,
)
from quorate.sim.application import Application
from quorate.sim.configuring import endpoint, raft_config
from quorate.sim.disk import SimulatedDisk
from quorate.sim.flushing import Flushing
from quorate.sim.logview import LogView
from quorate.sim.storage import LOG_DIR, open_storage
from quorate.storage.errors import DamagedLogError, StorageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from quorate.raft.api import Effect, Event, PublishProgress, Random, Update
    from quorate.raft.messages import Request, Response
    from quorate.records.voters import Endpoint, Voter
    from quorate.sim.world import Caller, World
    from quorate.storage.store import LogStore

    Work = Event | Callable[[], Event | None]

_MILLION: Final = 1_000_000
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


class ProcessDied(BaseException):
    """Raised between two effects or two calls to the disk; no code of ours may catch it."""


class SimulatedNode:
    """A machine with a disk, and on it one process after another."""

    def __init__(self, world: World, node_id: NodeId, directory_id: DirectoryId) -> None:
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
        self.was_damaged = self.is_rotten = False
        self.is_healing = False
        self.led_epoch: int | None = None
        self.drift_ppm = 0
        self.base_ms = 0
        self.log = LogView()
        self.progress: PublishProgress | None = None
        self.callers: dict[ReplyToken, Caller] = {}
        self.core: RaftCore
        self.store: LogStore
        self.application: Application
        self._votes: dict[ReplyToken, VoteRequest] = {}
        self._inbox: deque[Work] = deque()
        self._effects: deque[Effect] = deque()
        self.is_busy = False
        self._is_pumping = False
        self.flushing: Flushing
        self._waits_for_flush = False
        self._wake_us: int | None = None
        self._timer_us: int | None = None

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
    def local_ms(self) -> Millis:
        """The node's own monotonic clock, which runs a little fast or slow."""
        now = self.world.now_us
        return Millis(self.base_ms + (now + now * self.drift_ppm // _MILLION) // 1000)

    def safe_end(self) -> Offset:
        """Where the log would end if the power went now."""
        return self.log.safe_end(self.disk.first_unsafe(LOG_DIR, ".log"))

    # --- life -------------------------------------------------------------------------------------

    def start(self) -> None:
        """Start a process: recover the disk, then the core."""
        if self.status not in (Status.STOPPED, Status.OFF):
            return
        self.incarnation += 1
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
        self.core = RaftCore(raft_config(self), recovered, self.random)
        self._take("start", self.core.start(self.local_ms))
        self.pump()

    def _recover(self) -> api.RecoveredState:
        self.store, found = open_storage(
            self.disk, self.node_id, self.world.options, self.world.static_voters
        )
        recovered = found.state
        for finding in found.findings:
            self.world.remark(f"node {self.node_id} finds: {finding}")
        self.is_healing = recovered.remembered_end is not None
        self.is_rotten = False
        self.was_damaged = self.was_damaged or self.is_healing
        self._view_log(recovered)
        self.flushing = Flushing(self)
        self.application = Application(self, recovered)
        return recovered

    def _view_log(self, recovered: api.RecoveredState) -> None:
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

    def replace_disk(self, directory_id: DirectoryId) -> None:
        """A new, empty disk; whoever formats it next is another replica."""
        self.disk.wipe()
        self.directory_id = directory_id
        self.log = LogView()
        self.was_damaged = self.is_rotten = self.is_healing = False

    def fail(self, error: Exception) -> None:
        """The disk failed (rule 17): the core is never stepped again, the listener closes."""
        self.world.remark(f"node {self.node_id}: {error}")
        callers = self._end(Status.FAILED)
        self.world.process_ended(self, callers)

    def _end(self, status: Status) -> dict[ReplyToken, Caller]:
        was_running = self.status is Status.RUNNING
        self.status = status
        self.is_paused = self.is_busy = self._waits_for_flush = False
        self._inbox.clear()
        self._effects.clear()
        self._votes.clear()
        self._wake_us = self._timer_us = None
        callers, self.callers = self.callers, {}
        if was_running:
            self.application.process_ended()
            self.world.watch.stopped(self)
        self.progress = self.led_epoch = None
        return callers

    def pause(self) -> None:
        """SIGSTOP: connections stay, nothing moves."""
        self.is_paused = True

    def resume(self) -> None:
        self.is_paused = False
        self.flushing.resumed()
        self.pump()

    # --- events -----------------------------------------------------------------------------------

    def deliver(self, event: Work) -> None:
        """Hand an event, or what gives one, to a process that may be busy or paused just now."""
        if self.status is not Status.RUNNING:
            return
        self._inbox.append(event)
        self.pump()

    def pump(self) -> None:
        """Perform effects, then take events, until nothing is left or there is a wait."""
        if self._is_pumping:
            return
        self._is_pumping = True
        try:
            self.guarded(self._work)
        finally:
            self._is_pumping = False

    def _work(self) -> None:
        while self.status is Status.RUNNING and not self.is_busy and not self.is_paused:
            if self._effects:
                self._perform(self._effects.popleft())
            elif self._inbox:
                self._handle(self._inbox.popleft())
            else:
                break

    def _handle(self, work: Work) -> None:
        event = work() if callable(work) else work
        if event is None:
            return
        if isinstance(event, api.RequestReceived):
            self._received(event.token, event.request)
        self._take(event, self.core.step(event, self.local_ms))
        if isinstance(event, api.ResponseReceived) and isinstance(event.response, FetchResponse):
            self.world.watch.heard_leader(self)

    def _received(self, token: ReplyToken, request: Request) -> None:
        """What is remembered, and told, of a request that the core is about to handle."""
        if isinstance(request, VoteRequest):
            self._votes[token] = request
        elif isinstance(request, FetchRequest | FetchSnapshotRequest):
            self.world.watch.fetching(self, request)
        elif isinstance(request, MembershipRequest):
            self.world.watch.asked(self, token, request)

    def ask(self, request: MembershipRequest) -> ReplyToken:
        """Ask this process for a change as an operator would; the answer is in `World.answers`."""
        token = self.world.next_token()
        self.deliver(api.RequestReceived(token, request))
        return token

    def _take(self, event: Event | str, update: Update) -> None:
        self.world.transcript.add(self.world.now_us, self.node_id, event, update)
        for effect in update.effects:
            if isinstance(effect, api.AppendToLog) and _changes_voters(effect):
                self.world.tempt_fate()
                break
        self._effects.extend(update.effects)
        self._wake_us = None
        if update.wake_at_ms is not None:
            local_us = (update.wake_at_ms - self.base_ms) * 1000
            self._wake_us = local_us * _MILLION // (_MILLION + self.drift_ppm) + 1
            self._set_timer()

    def _set_timer(self) -> None:
        """One entry on the heap is enough as long as it is not later than the wake-up."""
        wake = self._wake_us
        if wake is None or (self._timer_us is not None and self._timer_us <= wake):
            return
        self._timer_us = max(wake, self.world.now_us)
        delay = self._timer_us - self.world.now_us
        self.world.schedule(delay, partial(self._wake, self.incarnation, self._timer_us))

    def _wake(self, incarnation: int, timer_us: int) -> None:
        if incarnation != self.incarnation or timer_us != self._timer_us:
            return
        self._timer_us = None
        if self._wake_us is None:
            return
        if self._wake_us > self.world.now_us:
            self._set_timer()
        else:
            self._wake_us = None
            self.deliver(api.TimerFired())

    # --- effects ----------------------------------------------------------------------------------

    def _perform(self, effect: Effect) -> None:
        self._may_die()
        match effect:
            case api.SendRequest():
                self.world.send_request(self, effect)
            case api.SendReply(token=token, response=response):
                self._reply(token, response)
            case api.AppendToLog():
                self.append(effect)
            case api.PublishProgress():
                self._publish(effect)
            case api.SaveElection():
                self._save_election(effect)
            case api.TruncateLog() | api.InstallSnapshot() if self.flushing.is_under_way:
                self._effects.appendleft(effect)
                self._waits_for_flush = self.is_busy = True
            case api.TruncateLog(to=to):
                self.world.watch.truncating(self, to)
                if isinstance(event := self.store.truncate(effect), api.LogTruncated):
                    self.log.cut(to.offset)
                self._inbox.appendleft(event)
                self._wait_for_disk()
            case api.InstallSnapshot():
                self._install(effect)
            case api.WriteSnapshotChunk():
                self.store.write_chunk(effect)
            case api.CheckSnapshot():
                self.application.check_snapshot(effect)
            case api.ForgetRememberedEnd():
                self.store.forget_remembered_end()
                self.is_healing = self.was_damaged = False
                self.world.remark(f"node {self.node_id} is whole again")
            case api.ProbeLeader(call=call, to=peer):
                self.world.send_probe(self, call, peer)
            case api.ShutdownComplete():
                self.world.process_stopped(self)

    def append(self, effect: api.AppendToLog) -> None:
        """Write at the log's end and have it flushed beside everything else."""
        self.store.append(effect, timestamp_ms=self.world.now_ms)
        data = self.store.read_range(LogRange(effect.base_offset, effect.end.offset, 1 << 30))
        for entry in self.log.append(data, self.disk.sequence):
            self.world.watch.appended(self, entry)
        self.flushing.begin()

    def _save_election(self, effect: api.SaveElection) -> None:
        state = effect.state
        self.world.tempt_fate()
        self.save(effect)
        if state.voted == self.key:
            self.world.watch.voted(self, state.epoch, self.key)
        self._wait_for_disk()

    def save(self, effect: api.SaveElection) -> None:
        self.store.save_election(effect)

    def _install(self, effect: api.InstallSnapshot) -> None:
        self.world.spoil(self, effect.snapshot_id)
        event = self.store.install(effect)
        if isinstance(event, api.SnapshotInstalled):
            snapshot_id = event.snapshot.snapshot_id
            chain = self.world.oracle.chains.get(snapshot_id.offset, 0)
            voters = self.world.oracle.voters_at(snapshot_id.offset)
            self.log = LogView(snapshot_id, chain, voters)
            self.world.watch.snapshot(self, snapshot_id)
            self.application.load_snapshot(snapshot_id)
        self._inbox.appendleft(event)
        self._wait_for_disk()

    def _publish(self, progress: PublishProgress) -> None:
        self.world.watch.published(self, progress)
        if progress.is_leader:
            self.led_epoch = progress.epoch
        before, self.progress = self.progress, progress
        self.application.progressed(before, progress)

    def _reply(self, token: ReplyToken, response: Response) -> None:
        if isinstance(response, ProposalResponse | ReadResponse):
            self.application.answered(token, response)
            return
        vote = self._votes.pop(token, None)
        is_granted = isinstance(response, VoteResponse) and response.vote_granted
        if vote is not None and not vote.pre_vote and is_granted:
            self.world.watch.voted(self, vote.replica_epoch, vote.replica)
        caller = self.callers.pop(token, None)
        if isinstance(response, MembershipResponse):
            self.world.watch.answering(self, token, response)
            if caller is None:
                self.world.answers[token] = response
        if caller is not None:
            self.world.send_response(self, caller, self._filled(response))

    def _filled(self, response: Response) -> PeerResponse:
        """Put the bytes where the core only named a range of the log or of a snapshot."""
        match response:
            case FetchResponse(records=LogRange() as span):
                return replace(response, records=batch_infos(self.store.read_range(span)))
            case FetchSnapshotResponse(chunk=SnapshotRange() as part):
                self.world.watch.sending(self, part)
                return replace(response, chunk=self.store.read_chunk(part))
        assert isinstance(response, PeerResponse), "peers are sent nothing else"
        return response

    # --- the disk ---------------------------------------------------------------------------------

    def _before_disk_call(self, operation: str, path: str) -> None:
        self._may_die()
        if self.disk_fault is not None:
            number, operations = _FAILING[self.disk_fault]
            if operation in operations:
                raise OSError(number, f"the simulated disk is {self.disk_fault}", path)

    def _may_die(self) -> None:
        if self.world.is_time_to_die(self):
            raise ProcessDied

    def _wait_for_disk(self) -> None:
        """A flush that the process waits for: nothing else happens in it meanwhile."""
        self.is_busy = True
        self.flushing.wait()

    def waited(self) -> None:
        """That flush is over."""
        self.is_busy = False
        self.pump()

    def flush_ended(self, end: OffsetAndEpoch, generation: int) -> None:
        """A flush of the log is over: tell the core, go on with what waited for it."""
        self._inbox.append(api.LogFlushed(end, generation))
        if self._waits_for_flush:
            self._waits_for_flush = self.is_busy = False
        self.application.maybe_snapshot()

    def _found_damage(self, error: DamagedLogError) -> None:
        """Rule 17: whoever reads damage in its own log resigns and starts anew, to heal."""
        self.world.remark(f"node {self.node_id}: {error}")
        event = api.ResignRequested(str(error))
        update = self.core.step(event, self.local_ms)
        self.world.transcript.add(self.world.now_us, self.node_id, event, update)
        for effect in update.effects:
            if isinstance(effect, api.SendRequest):
                self.world.send_request(self, effect)
        self.world.process_stopped(self)

    def guarded(self, action: Callable[[], None]) -> None:
        """Do what may end the process: it may die on the way, or its disk may fail."""
        try:
            action()
        except ProcessDied:
            self.world.process_died(self)
        except DamagedLogError as error:
            self._found_damage(error)
        except (OSError, StorageError) as error:
            self.fail(error)


def _changes_voters(effect: api.AppendToLog) -> bool:
    match effect.payload:
        case api.ControlBatch(records=records):
            return any(isinstance(record, KRaftVoters) for record in records)
    return False
