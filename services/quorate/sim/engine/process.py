"""One simulated controller process: the production driver and its transport.

This module implements the driver's interfaces: the transport to peers, the callers of its requests,
and its observers. A process may crash before any effect leaves it or reaches its disk.
"""

from __future__ import annotations

import sys
from functools import partial
from typing import TYPE_CHECKING

from quorate.raft import api
from quorate.raft.messages import (
    FetchRequest,
    FetchResponse,
    FetchSnapshotRequest,
    FetchSnapshotResponse,
    MembershipRequest,
    MembershipResponse,
    PeerResponse,
    ReadResponse,
    SnapshotRange,
    VoteRequest,
    VoteResponse,
)
from quorate.records.control import KRaftVoters
from quorate.records.errors import ErrorCode
from quorate.server.driver.observers import Observers
from quorate.server.driver.raft_driver import ExitReason, RaftDriver
from quorate.sim.checkers.oracle import Violation
from quorate.sim.engine.application import Application
from quorate.sim.engine.host import SimulatedHost
from quorate.sim.fuzz.peer_responses import maybe_corrupt

if TYPE_CHECKING:
    import asyncio

    from quorate.raft.messages import Request, Response
    from quorate.records.ids import Millis, ReplyToken
    from quorate.sim.interfaces import MachineInterface


class ObservedDriver(RaftDriver):
    """The production driver. The cluster assigns its tokens: they are unique in a transcript."""

    node: MachineInterface
    token: ReplyToken | None = None

    @property
    def wake_at_ms(self) -> Millis | None:
        """The wake-up time that the core has requested."""
        return self._wakeup_timer.deadline_ms

    @property
    def is_at_rest(self) -> bool:
        """True if all effects of the core are done, and it has got all events."""
        is_busy = self._barriers.is_active or self._is_pumping
        return not (is_busy or self._effects or self._inbox or self.exit_reason)

    def next_token(self) -> ReplyToken:
        token, self.token = self.token, None
        return self.node.world.next_token() if token is None else token

    def _reply(self, token: ReplyToken, response: Response) -> None:
        if isinstance(response, MembershipResponse):
            # Now: in the iteration that sends it, the next change may have begun already.
            self.node.world.watch.answering(self.node, token, response)
        super()._reply(token, response)


class DriverObserver(Observers):
    """Reports a driver's steps to transcript and invariants; unlike in production it may raise."""

    def __init__(self, node: MachineInterface) -> None:
        super().__init__()
        self._node = node
        self._saving: api.SaveElection | None = None
        self._wake_at_ms: Millis | None = None

    def submitted(self, token: ReplyToken, request: Request) -> None:
        """Do nothing: the step of the request is recorded."""

    def stepped(self, event: api.Event | None, update: api.Update) -> None:
        node, world = self._node, self._node.world
        watch = world.watch
        is_due = self._wake_at_ms is not None and self._wake_at_ms <= node.local_ms
        self._wake_at_ms = update.wake_at_ms
        for note in update.trace:
            watch.noted(node, note)
        if isinstance(event, api.RequestReceived):
            request = event.request
            watch.handled(node, event, update, is_due=is_due)
            if isinstance(request, FetchRequest | FetchSnapshotRequest):
                watch.fetching(node, request)
            elif isinstance(request, MembershipRequest):
                watch.asked(node, event.token, request)
        elif isinstance(event, api.ReadRequested):
            watch.reading(node, event.token)
        elif isinstance(event, api.SnapshotChecked):
            node.checked.add(event.snapshot_id)
        world.transcript.add(world.now_us, node.node_id, event or "start", update)
        if isinstance(event, api.ResponseReceived | api.TruncationRefused):
            watch.heard_leader(node)
        if any(map(_changes_voters, update.effects)):
            watch.changing(node)
            world.maybe_crash(node)
        for effect in update.effects:
            if isinstance(effect, api.SendReply):
                self._replying(effect)

    def _replying(self, effect: api.SendReply) -> None:
        node = self._node
        watch = node.world.watch
        match effect.response:
            case FetchResponse(read_round=read_round):
                if read_round:
                    watch.sending_round(node, read_round)
            case FetchSnapshotResponse(chunk=SnapshotRange() as part):
                watch.sending(node, part)
            case ReadResponse(error=ErrorCode.NONE):
                watch.confirming(node, effect.token)

    def saving(self, effect: api.SaveElection) -> None:
        self._node.world.maybe_crash(self._node)
        self._node.world.watch.saving(self._node, effect.state)
        self._saving = effect

    def saved(self, saving: asyncio.Future[None]) -> None:
        node, effect = self._node, self._saving
        if effect is None or saving.cancelled() or saving.exception() is not None:
            return
        if effect.state.voted == node.key:
            node.world.watch.voted(node, effect.state.epoch, node.key)

    def ended(self) -> None:
        """Do nothing: the process reports its end."""


class Process:
    """The lifetime of one process, from the start of its core."""

    def __init__(self, node: MachineInterface) -> None:
        self._node = node
        self.host = SimulatedHost(node)
        self.driver: ObservedDriver
        self.application: Application
        self.has_begun = False

    def begin(self) -> None:
        """Start the driver and its application in the role recorded on disk."""
        self.host.loop.run(self._begin)

    def _begin(self) -> None:
        node = self._node
        witness = DriverObserver(node)
        self.driver = ObservedDriver(node.core, node.store, self._ended, witness, self.host)
        self.driver.node = node
        self.has_begun = True
        self.application = application = Application(node, self.host)
        self.driver.start(self, application)
        application.begin(node.newest_snapshot)
        application.run_housekeeping()

    def deliver(self, work: api.Event) -> None:
        """Deliver an event in the next iteration of the loop."""
        self.host.loop.run(self.driver.deliver, work)

    def shut_down(self, timeout_ms: Millis) -> None:
        """Request a stop in the next iteration of the loop."""
        self.host.loop.run(self.driver.shut_down, timeout_ms)

    # --- callers ----------------------------------------------------------------------------------

    def receive(self, token: ReplyToken, request: Request) -> None:
        """Receive a request; `callers` of the node has the caller that waits for the response."""
        self.host.loop.run(self._submit, token, request)

    def _submit(self, token: ReplyToken, request: Request) -> None:
        self.driver.token = token
        _, answer = self.driver.submit(request)
        answer.add_done_callback(partial(self._answered, token, request))

    def hung_up(self, token: ReplyToken) -> None:
        """The caller does not wait for that response any more."""
        self.host.loop.run(self.driver.caller_disconnected, token)

    def _answered(
        self, token: ReplyToken, request: Request, answer: asyncio.Future[Response]
    ) -> None:
        node = self._node
        world = node.world
        node.may_die()
        caller = node.callers.pop(token, None)
        if answer.cancelled():
            if caller is not None:
                world.send_response(node, caller, api.RequestFailure.DISCONNECTED)
            return
        response = answer.result()
        world.watch.answered(node, token, request, response)
        is_granted = isinstance(response, VoteResponse) and response.vote_granted
        if isinstance(request, VoteRequest) and is_granted:
            tell = world.watch.on_pre_vote_granted if request.pre_vote else world.watch.voted
            tell(node, request.replica_epoch, request.replica)
        if isinstance(response, MembershipResponse) and caller is None:
            world.answers[token] = response
        if caller is not None:
            assert isinstance(response, PeerResponse), "peers are sent nothing else"
            arriving = maybe_corrupt(world, response, node.node_id, caller.node_id)
            world.send_response(node, caller, arriving)

    # --- peers ------------------------------------------------------------------------------------

    def send(self, effect: api.SendRequest) -> None:
        """Send a request to a peer."""
        self._node.may_die()
        self._node.world.send_request(self._node, effect)

    def probe(self, effect: api.ProbeLeader) -> None:
        """Open a connection to a leader, to find out whether its process runs."""
        self._node.may_die()
        self._node.world.send_probe(self._node, effect.call, effect.to)

    # --- the end ----------------------------------------------------------------------------------

    def end(self) -> None:
        """End the process: none of its code runs any more, not even coroutines being disposed."""
        if self.has_begun and self.driver.exit_reason is None:
            self.driver.exit_reason = ExitReason.STOPPED
        self.host.loop.close()

    def _ended(self, exit_reason: ExitReason, message: str) -> None:
        node = self._node
        try:
            node.world.watch.ended(node, exit_reason, message)
        except Violation as error:
            # Code on the stack would treat it as a disk failure.
            self.host.loop.fail(error)
            return
        match exit_reason:
            case ExitReason.STOPPED | ExitReason.LATE:
                node.world.process_exits.stopped(node)
            case ExitReason.DAMAGED:
                node.world.log(f"node {node.node_id}: {message}")
                node.world.process_exits.stopped(node)
            case ExitReason.DISK_FAILED:
                node.fail(message)
            case ExitReason.SHORT:
                node.world.log(f"node {node.node_id}: {message}")
                node.world.process_exits.on_resource_shortage(node)
            case _:
                crash = sys.exc_info()[1]
                self.host.loop.fail(Violation(message) if crash is None else crash)


def _changes_voters(effect: api.Effect) -> bool:
    match effect:
        case api.AppendToLog(payload=api.ControlBatch(records=records)):
            return any(isinstance(record, KRaftVoters) for record in records)
    return False
