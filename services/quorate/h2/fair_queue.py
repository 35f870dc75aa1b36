"""One budget of the event loop's time per iteration, shared fairly by client addresses.

All work that clients cause runs under it: parsed bytes, messages passed to handlers, and every step
of a call's task. Addresses take turns, and so do the connections of one address
(h2/start_time_fair_queue.py). An address that used little recently may overdraw the budget, so that
a light client does not wait behind a heavy one. Connections of voters have a budget of their own,
which takes precedence. Everything runs on one event loop. Addresses are named by `client_of` in
h2/peer_name.py.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Coroutine
from contextvars import Context, ContextVar
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias, TypeVar
from weakref import WeakKeyDictionary

from quorate.h2.start_time_fair_queue import StartTimeFairQueue

if TYPE_CHECKING:
    from collections.abc import Generator

# Seconds. A commit takes a dozen iterations, so a budget delays it by a dozen budgets at most.
BUDGET_S: Final = 0.001
# In budgets, for addresses that used less than LIGHT_SHARE of the last WINDOW_S.
_OVERDRAFT: Final = 3
_WINDOW_S: Final = 0.1
_LIGHT_SHARE: Final = 0.1
# In budgets: how far one long step may delay the following iterations, and its address's next
# turns.
_DEBT_MAX: Final = 20
# Seconds for the connections of voters, before the budget of the others. Their use beyond it counts
# like a client's: without an authorizer any caller may claim to be a voter.
_PREFERRED_S: Final = 0.004
# Seconds for which an address without connections is remembered, and the most of those.
_FORGET_S: Final = 10 * _WINDOW_S
_FORGOTTEN_MAX: Final = 4096
# Seconds: the assumed cost of a task's step until steps were measured; the weight of the newest
# one.
_STEP_S: Final = 0.0001
_STEP_WEIGHT: Final = 0.05

T = TypeVar("T")
# Works until a time of the queue's clock; returns whether it has more to do.
Step: TypeAlias = Callable[[float], bool]


class Scheduler(Protocol):
    """Runs the steps of one connection."""

    def submit(self, step: Step) -> None:
        """Run a step in one of the following iterations of the event loop."""
        ...

    def run(self, step: Step) -> bool:
        """Run a step now if it may; return whether nothing of it is left for later."""
        ...


class _Unshared:
    """The scheduler of a client, whose connections cannot delay each other."""

    def submit(self, step: Step) -> None:
        asyncio.get_running_loop().call_soon(self.run, step)

    def run(self, step: Step) -> bool:
        has_more = step(math.inf)
        if has_more:
            self.submit(step)
        return not has_more


UNSHARED: Final = _Unshared()


class _Client:
    """One address, and the time that its connections used."""

    __slots__ = (
        "flow_count",
        "is_waiting",
        "recent_s",
        "since_s",
        "start_time_fair_queue",
        "used_s",
    )

    def __init__(self) -> None:
        self.used_s = 0.0
        self.start_time_fair_queue: StartTimeFairQueue[Flow] = StartTimeFairQueue()
        self.is_waiting = False
        self.flow_count = 0
        # Seconds used since then, plus earlier use, which is halved per window.
        self.recent_s = 0.0
        self.since_s = 0.0

    def note(self, seconds: float, now_s: float) -> None:
        self._age(now_s)
        self.recent_s += seconds

    def is_light(self, now_s: float) -> bool:
        self._age(now_s)
        return self.recent_s < _WINDOW_S * _LIGHT_SHARE

    def _age(self, now_s: float) -> None:
        windows = (now_s - self.since_s) / _WINDOW_S
        if windows >= 1:
            self.recent_s *= 0.5 ** min(windows, 60.0)
            self.since_s = now_s


class FairQueue:
    """The work of all clients of one event loop."""

    def __init__(
        self, *, budget_s: float = BUDGET_S, clock: Callable[[], float] = time.perf_counter
    ) -> None:
        self._budget_s = budget_s
        self.clock = clock
        self._clients: dict[str, _Client] = {}
        self._start_time_fair_queue: StartTimeFairQueue[_Client] = StartTimeFairQueue()
        self._preferred: deque[tuple[Flow, Step]] = deque()
        self._left_s = budget_s
        self._preferred_left_s = _PREFERRED_S
        # Addresses without connections, with the time of the last one's end.
        self._gone: OrderedDict[str, float] = OrderedDict()
        # The iteration runs in an empty context, so that the tasks it creates inherit no caller.
        self._context = Context()
        self._is_armed = False
        self.step_s = _STEP_S

    def flow(self, client: str) -> Flow:
        """Open a flow for a new connection of this address. Its owner closes it."""
        self._forget_gone()
        found = self._clients.get(client)
        if found is None:
            found = self._clients[client] = _Client()
        found.flow_count += 1
        self._gone.pop(client, None)
        return Flow(self, client, found)

    def leave(self, name: str, client: _Client) -> None:
        """Note that one connection of an address is closed.

        The address is remembered for a while, so that reconnecting does not give it a new share.
        """
        client.flow_count -= 1
        if not client.flow_count:
            self._gone[name] = self.clock()
            self._forget_gone()

    def _forget_gone(self) -> None:
        gone, now_s = self._gone, self.clock()
        while gone:
            name, since_s = next(iter(gone.items()))
            if now_s - since_s < _FORGET_S and len(gone) <= _FORGOTTEN_MAX:
                return
            del gone[name], self._clients[name]

    def _is_first(self, flow: Flow) -> bool:
        return flow.is_preferred and self._preferred_left_s > 0

    def admits(self, flow: Flow) -> bool:
        """True if this connection may still work in this iteration."""
        if self._left_s > 0 or self._is_first(flow):
            return True
        return self._left_s > -_OVERDRAFT * self._budget_s and flow.client.is_light(self.clock())

    def until_s(self, flow: Flow) -> float:
        """The time until which a step of this connection may work."""
        is_first = self._is_first(flow)
        slice_s = self._preferred_left_s if is_first else min(self._left_s, self._budget_s)
        # A light client that overdraws gets a slice as well.
        return self.clock() + (slice_s if slice_s > 0 else self._budget_s)

    def charge(self, flow: Flow, seconds: float) -> None:
        """Charge time that a connection's work took outside of `_run`."""
        self._arm()
        if self._is_first(flow):
            self._preferred_left_s -= seconds
            return
        debt_max_s = _DEBT_MAX * self._budget_s
        self._left_s = max(self._left_s - seconds, -debt_max_s)
        client = flow.client
        client.note(seconds, self.clock())
        self._start_time_fair_queue.charge(client, seconds, debt_max_s)
        client.start_time_fair_queue.charge(flow, seconds, debt_max_s)

    def wait(self, flow: Flow, step: Step) -> None:
        """Run a step as soon as it is this connection's turn."""
        if self._is_first(flow):
            self._preferred.append((flow, step))
        else:
            flow.steps.append(step)
            self._line_up(flow)
        self._arm()

    def _line_up(self, flow: Flow) -> None:
        client = flow.client
        if flow.steps and not flow.is_waiting:
            flow.is_waiting = True
            client.start_time_fair_queue.add(flow)
        if client.start_time_fair_queue and not client.is_waiting:
            client.is_waiting = True
            self._start_time_fair_queue.add(client)

    def _arm(self) -> None:
        if not self._is_armed:
            self._is_armed = True
            asyncio.get_running_loop().call_soon(self._run, context=self._context)

    def _run(self) -> None:
        """Do one iteration's work: preferred connections, then others while the budget lasts."""
        self._is_armed = False
        self._left_s = min(self._left_s + self._budget_s, self._budget_s)
        self._preferred_left_s = _PREFERRED_S
        for _ in range(len(self._preferred)):
            flow, step = self._preferred.popleft()
            if not self._is_first(flow) or self._work(flow, step):
                # The rest waits like a client's work.
                self.wait(flow, step)
        while self._start_time_fair_queue:
            client = self._start_time_fair_queue.first()
            flow = client.start_time_fair_queue.first()
            if not self.admits(flow):
                break
            self._start_time_fair_queue.take(client)
            client.start_time_fair_queue.take(flow)
            client.is_waiting = flow.is_waiting = False
            step = flow.steps.popleft()
            try:
                if self._work(flow, step):
                    flow.steps.append(step)
            finally:
                self._line_up(flow)
        if self._start_time_fair_queue or self._preferred or self._left_s < 0:
            self._arm()

    def _work(self, flow: Flow, step: Step) -> bool:
        begun_s = self.clock()
        try:
            return step(self.until_s(flow))
        except Exception as error:
            asyncio.get_running_loop().call_exception_handler(
                {"message": f"a step of {flow.name} failed", "exception": error}
            )
            return False
        finally:
            self.charge(flow, self.clock() - begun_s)


class Flow:
    """The work of one connection."""

    __slots__ = (
        "_is_closed",
        "client",
        "is_preferred",
        "is_waiting",
        "name",
        "queue",
        "steps",
        "used_s",
    )

    def __init__(self, queue: FairQueue, name: str, client: _Client) -> None:
        self.queue = queue
        self.name = name
        self.client = client
        self.steps: deque[Step] = deque()
        self.is_waiting = False
        self.used_s = 0.0
        # A voter's connection does not wait for other work.
        self.is_preferred = False
        self._is_closed = False

    def submit(self, step: Step) -> None:
        """Run a step when it is this connection's turn."""
        self.queue.wait(self, step)

    def run(self, step: Step) -> bool:
        """Run a step now if the budget allows; return whether nothing of it is left for later."""
        queue = self.queue
        if not queue.admits(self):
            queue.wait(self, step)
            return False
        begun_s = queue.clock()
        try:
            has_more = step(queue.until_s(self))
        finally:
            queue.charge(self, queue.clock() - begun_s)
        if has_more:
            queue.wait(self, step)
        return not has_more

    def expect_steps(self, count: int) -> None:
        """Charge for steps of tasks that cannot wait for their turns."""
        self.queue.charge(self, count * self.queue.step_s)

    def close(self) -> None:
        """Close the flow: the connection is closed, and all of its work is done."""
        if not self._is_closed:
            self._is_closed = True
            self.queue.leave(self.name, self.client)

    def meter(self, work: Coroutine[Any, Any, T]) -> Coroutine[Any, Any, T]:
        """Wrap a task's coroutine so that each step waits for its turn and is charged."""
        return _Metered(work, self, self.queue)


class _Metered(Coroutine[Any, Any, T]):
    """A coroutine whose steps are charged to a connection."""

    __slots__ = ("_flow", "_prepaid_s", "_queue", "_work")

    def __init__(self, work: Coroutine[Any, Any, T], flow: Flow, queue: FairQueue) -> None:
        self._work = work
        self._flow = flow
        self._queue = queue
        # Seconds charged in advance for the next step when its turn was granted.
        self._prepaid_s = 0.0

    def send(self, value: Any) -> Any:  # noqa: ANN401 - as the protocol of coroutines has it
        if not self._prepaid_s and not self._queue.admits(self._flow):
            return self._wait()
        begun_s = self._queue.clock()
        try:
            return self._work.send(value)
        finally:
            self._charge(begun_s)

    def throw(self, *error: Any) -> Any:  # noqa: ANN401
        begun_s = self._queue.clock()
        try:
            return self._work.throw(*error)
        finally:
            # An error holds this frame, which must not hold the error.
            del error
            self._charge(begun_s)

    def _wait(self) -> Any:  # noqa: ANN401 - what a task waits for
        """Let the task wait for a turn; its next step then continues the work."""
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        queue, flow = self._queue, self._flow

        def grant(_: float) -> bool:
            if not turn.done():
                # The task runs after this iteration's work, so its step is charged in advance.
                self._prepaid_s = queue.step_s
                queue.charge(flow, self._prepaid_s)
                turn.set_result(None)
            return False

        queue.wait(flow, grant)
        return next(turn.__await__())

    def _charge(self, begun_s: float) -> None:
        queue = self._queue
        took_s = queue.clock() - begun_s
        queue.step_s += (took_s - queue.step_s) * _STEP_WEIGHT
        queue.charge(self._flow, took_s - self._prepaid_s)
        self._prepaid_s = 0.0

    def close(self) -> None:
        self._work.close()

    def __await__(self) -> Generator[Any, Any, T]:
        return self._work.__await__()


_QUEUES: Final[WeakKeyDictionary[asyncio.AbstractEventLoop, FairQueue]] = WeakKeyDictionary()


def queue_of_running_loop() -> FairQueue:
    """Return the queue of this event loop, which all its listeners share."""
    loop = asyncio.get_running_loop()
    queue = _QUEUES.get(loop)
    if queue is None:
        queue = _QUEUES[loop] = FairQueue()
    return queue


# The connection whose call a task serves, for work that adapts its pace to it.
CURRENT_FLOW: ContextVar[Flow | None] = ContextVar("current_flow", default=None)
