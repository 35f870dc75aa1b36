"""The production metadata controller in a simulated process, with its clients.

Clients write and read as they would over the network, and the oracle gets their answers.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from quorate.api.handlers import ControllerApiError
from quorate.controller.authorization.authorizer import Caller
from quorate.controller.configs.messages import DescribeConfigs
from quorate.controller.controller import Controller
from quorate.records.ids import Offset
from quorate.server.component_config import controller_settings, pause_ms
from quorate.server.metadata.application import MetadataApplication
from quorate.server.metadata.decision_executor import AHEAD_MAX
from quorate.sim.checkers.oracle import Violation
from quorate.sim.faults.targeted_snapshots import TargetedSnapshotter
from quorate.sim.workload.kv_model import EVERYBODY, KvModel, operation_in, request_of
from quorate.sim.workload.pending_requests import WaitingRequest

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Container, Iterable, Iterator

    from quorate.controller.decision import ControllerSettings, Decision
    from quorate.controller.request_types import (
        ReadReply,
        ReadRequest,
        Sender,
        WriteReply,
        WriteRequest,
    )
    from quorate.controller.slices import Slices
    from quorate.raft.api import AppendToLog, PublishProgress
    from quorate.raft.messages import ProposalResponse, ReadResponse
    from quorate.records.ids import ReplyToken
    from quorate.sim.engine.host import SimulatedHost
    from quorate.sim.interfaces import MachineInterface
    from quorate.sim.sim_options import WorldOptions
    from quorate.sim.workload.pending_requests import Told

CLIENT: Final = "User:client"
TICK_S: Final = 1.0


def caller_of(principal: str, number: int, options: WorldOptions) -> Caller:
    """The caller for a number, at one of the possible addresses; most share one."""
    addresses = options.queue.client_addresses
    address = number % (2 * addresses) if addresses else 0
    return Caller(principal, client=str(address) if address < addresses else "")


class _WatchedController(Controller):
    """The production controller, which notifies its application of each decision."""

    def __init__(
        self, application: Application, settings: ControllerSettings, *, gathers: bool
    ) -> None:
        super().__init__(settings, gathers=gathers)
        self._application = application

    def decide_in_slices(
        self, request: WriteRequest, caller: Caller, now_ms: int
    ) -> Slices[Decision]:
        decision = yield from super().decide_in_slices(request, caller, now_ms)
        self._application.decided(request, decision)
        return decision

    def expire(self, now_ms: int, waiting: Container[Sender] = ()) -> Decision | None:
        decision = super().expire(now_ms, waiting)
        if decision is not None:
            self._application.expired(decision)
        return decision


class Application(MetadataApplication):
    """One process's controller; a process may crash before it gets a call."""

    def __init__(self, node: MachineInterface, host: SimulatedHost) -> None:
        config = node.config
        decides = controller_settings(config, node.meta, node.world.new_topic_id)
        super().__init__(
            node.driver,
            _WatchedController(self, decides, gathers=True),
            TargetedSnapshotter(node, config.log),
            linger_ms=config.quorum.append_linger_ms,
            pause_ms=pause_ms(config),
            ahead_max=node.world.options.queue.ahead_max or AHEAD_MAX,
        )
        self._node = node
        self._host = host
        self._oracle = node.world.oracle
        self._clients: dict[WaitingRequest, None] = {}
        self._waiting: dict[asyncio.Future[WriteReply], WaitingRequest] = {}
        # Reads in progress, each with its start.
        self._reads: dict[asyncio.Task[None], int] = {}
        # By the id() of the request, which lives as long as its client waits.
        self._asked: dict[int, WaitingRequest] = {}

    def run_housekeeping(self) -> None:
        """Run housekeeping once a second, as long as the process lives."""
        self.tick()
        self._loop.call_later(TICK_S, self.run_housekeeping)

    # --- calls of the driver ----------------------------------------------------------------------

    def on_appended(self, effect: AppendToLog, timestamp_ms: int) -> None:
        self._node.appended(effect)
        super().on_appended(effect, timestamp_ms)

    def on_progress(self, progress: PublishProgress) -> None:
        self._node.published(progress)
        super().on_progress(progress)

    def on_response(self, token: ReplyToken, response: ProposalResponse | ReadResponse) -> None:
        self._node.may_die()
        super().on_response(token, response)

    # --- what a client sees -----------------------------------------------------------------------

    @property
    def is_active(self) -> bool:
        """True if this process accepts writes."""
        return self._write_handler.accepts_writes

    @property
    def applied(self) -> Offset:
        """The end offset of the applied metadata."""
        return self.controller.image.position.end_offset

    @property
    def machine(self) -> KvModel:
        """The committed metadata, as the reference model."""
        return KvModel.of(self.controller.image)

    @property
    def waiting(self) -> Iterable[WaitingRequest]:
        """The writes that have no answer yet."""
        return self._clients

    @property
    def oldest_read_ms(self) -> int | None:
        """The start of the oldest read in progress, by the node's clock."""
        return min(self._reads.values(), default=None)

    # --- writes -----------------------------------------------------------------------------------

    def ask(self, request: WriteRequest, caller: Caller, told: Told) -> None:
        """Receive a request as it comes over the network, whether or not this process leads."""
        waiting = WaitingRequest(request, caller.client, told)
        self._clients[waiting] = None
        self._host.loop.run(self._ask, request, caller, waiting)

    def _ask(self, request: WriteRequest, caller: Caller, waiting: WaitingRequest) -> None:
        waiting.since_ms, waiting.epoch = self._node.local_ms, self.controller.epoch
        self._asked[id(request)] = waiting
        future = self.write(request, caller)
        self._waiting[future] = waiting
        future.add_done_callback(self._answered)

    def decided(self, request: WriteRequest, decision: Decision) -> None:
        """The controller has decided on a request."""
        self._host.loop.work(self._node.world.options.queue.decision_us)
        waiting = self._asked.get(id(request))
        if waiting is not None:
            waiting.end, waiting.is_written = decision.end_offset, bool(decision.records)
        for index, record in enumerate(decision.records):
            operation = operation_in(record)
            if operation is not None:
                self._oracle.was_decided(operation, Offset(decision.base_offset + index))
        with self._telling():
            self._node.world.watch.decided(self._node, request, decision)

    def expired(self, decision: Decision) -> None:
        """The controller has made a periodic decision."""
        with self._telling():
            self._node.world.watch.expired(self._node, decision)

    @contextmanager
    def _telling(self) -> Iterator[None]:
        """Pass violations to the loop: production would treat them as a failed decision."""
        try:
            yield
        except Violation as violation:
            self._host.loop.fail(violation)

    def _answered(self, future: asyncio.Future[WriteReply]) -> None:
        self._node.may_die()
        waiting = self._waiting.pop(future)
        del self._clients[waiting], self._asked[id(waiting.request)]
        error = None if future.cancelled() else future.exception()
        if future.cancelled():
            waiting.told(None)
        elif error is None:
            waiting.told(future.result())
        elif isinstance(error, ControllerApiError):
            waiting.told(error)
        else:
            raise error

    def propose(self, operations: tuple[int, ...], size_bytes: int) -> bool:
        """Accept a client's write; False if this process is not the active controller."""
        if not self.is_active:
            return False

        def told(answer: WriteReply | ControllerApiError | None) -> None:
            self._on_reply(operations, answer)

        caller = caller_of(CLIENT, operations[0], self._node.world.options)
        self.ask(request_of(operations, size_bytes), caller, told)
        return True

    def _on_reply(
        self, operations: tuple[int, ...], answer: WriteReply | ControllerApiError | None
    ) -> None:
        if answer is None or (isinstance(answer, ControllerApiError) and answer.outcome_unknown):
            for operation in operations:
                self._oracle.was_left_open(operation)
        elif isinstance(answer, ControllerApiError):
            for operation in operations:
                self._oracle.was_refused(operation)
        else:
            last = max(self._oracle.committed_at.get(number, Offset(-1)) for number in operations)
            self._node.world.watch.acknowledging(self._node, Offset(last + 1))
            for operation in operations:
                self._oracle.was_acknowledged(operation)

    def process_ended(self) -> None:
        """Break connections: clients do not learn the outcome of requests in flight."""
        clients, self._clients = self._clients, {}
        for waiting in clients:
            waiting.told(None)
        self._reads.clear()

    # --- reads ------------------------------------------------------------------------------------

    def read_current(self) -> None:
        """Start a linearizable read: it must reflect all that was reported to clients before it."""
        floor = self._oracle.read_floor
        self._begin_read(
            DescribeConfigs((EVERYBODY,)),
            lambda reply: self._oracle.current_read_answered(KvModel.told(reply), floor),
            current=True,
        )

    def read_stale(self, seen: Offset, then: Callable[[Offset], None]) -> None:
        """Start a stale read by a client that has `seen` an offset; `then` gets the offset read."""

        def told(reply: ReadReply) -> None:
            machine = KvModel.told(reply)
            self._oracle.read_answered(machine, seen)
            then(Offset(machine.applied))

        self._begin_read(DescribeConfigs((EVERYBODY,)), told, min_offset=seen)

    def _begin_read(
        self,
        request: ReadRequest,
        told: Callable[[ReadReply], None],
        *,
        min_offset: int = 0,
        current: bool = False,
    ) -> None:
        async def read() -> None:
            try:
                reply = await self.read(
                    request, Caller(CLIENT), min_offset=min_offset, current=current, timeout_ms=0
                )
            except ControllerApiError:
                return
            told(reply)

        def begin() -> None:
            task = self._loop.create_task(read())
            self._reads[task] = self._node.local_ms
            task.add_done_callback(self._was_read)

        self._host.loop.run(begin)

    def _was_read(self, task: asyncio.Task[None]) -> None:
        self._reads.pop(task, None)
        error = None if task.cancelled() else task.exception()
        if error is not None:
            self._host.loop.fail(error)
