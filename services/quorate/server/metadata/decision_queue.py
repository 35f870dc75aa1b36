"""Queue of requests that wait for a decision: clients take turns, heartbeats have their own lane.

A client is an address (h2/peer_name.py). The waiting client whose decisions used the least time is
next (h2/start_time_fair_queue.py), so a client that creates topics by the million delays another
one by one decision. The requests of one client stay in their order, except for heartbeats.
Heartbeats count as a client of their own, since brokers may share an address with a client that
creates topics.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from typing import TYPE_CHECKING, Final, TypeAlias

from quorate.h2.start_time_fair_queue import StartTimeFairQueue
from quorate.records.value_types import value_type

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Container

    from quorate.controller.authorization.authorizer import Caller
    from quorate.controller.request_types import Sender, WriteReply, WriteRequest

# Requests on streams are fewer (rpc/controller/write_window.py). One client may use half of the
# capacity.
WAITING_MAX: Final = 65_536
CLIENT_WAITING_MAX: Final = WAITING_MAX // 2
# Seconds by which a client's decisions may delay its next turn: a few of the largest decisions.
_DEBT_MAX_S: Final = 1.0
# The most clients to remember that used time recently and have no waiting request.
_REMEMBERED_MAX: Final = 4096
# Lanes whose callers all gave up are dropped once they exceed this number and half of all lanes.
_EMPTY_MAX: Final = 1024

_Key: TypeAlias = "tuple[str, bool]"


@value_type
class QueuedRequest:
    """A request that waits for its decision, with its caller and arrival time (host's clock).

    For a heartbeat, `sender` is the broker that proves to be alive by sending it.
    """

    request: WriteRequest
    caller: Caller
    future: asyncio.Future[WriteReply]
    came_s: float = 0.0
    sender: Sender | None = None


class _Lane:
    """The requests of one client, or its heartbeats."""

    __slots__ = ("asked", "is_waiting", "key", "used_s")

    def __init__(self, key: _Key) -> None:
        self.key = key
        self.asked: OrderedDict[asyncio.Future[WriteReply], QueuedRequest] = OrderedDict()
        # Whether the lane is among those that take turns.
        self.is_waiting = False
        self.used_s = 0.0


class DecisionQueue:
    """Requests that wait for one leader's decisions.

    The request of a caller that gives up is removed.
    """

    def __init__(self) -> None:
        self._start_time_fair_queue: StartTimeFairQueue[_Lane] = StartTimeFairQueue()
        # Lanes that take turns, and how many of them are empty because their callers gave up.
        self._lanes: dict[_Key, _Lane] = {}
        self._empty = 0
        # Lanes without a waiting request, kept for the time they used, the oldest first.
        self._resting: OrderedDict[_Key, _Lane] = OrderedDict()
        # The lane of each request, by the future of its reply.
        self._waiting: dict[asyncio.Future[WriteReply], _Lane] = {}
        # The number of waiting heartbeats by broker.
        self._senders: Counter[Sender] = Counter()

    @property
    def senders(self) -> Container[Sender]:
        """The brokers whose heartbeats wait."""
        return self._senders

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, asked: QueuedRequest) -> bool:
        """Queue a request; False if the queue or the client's share of it is full."""
        lane = self._lane_of(asked)
        if len(self._waiting) >= WAITING_MAX or len(lane.asked) >= CLIENT_WAITING_MAX:
            return False
        if lane.is_waiting and not lane.asked:
            self._empty -= 1
        lane.asked[asked.future] = asked
        self._waiting[asked.future] = lane
        if asked.sender is not None:
            self._senders[asked.sender] += 1
        asked.future.add_done_callback(self._leave)
        if not lane.is_waiting:
            lane.is_waiting = True
            self._resting.pop(lane.key, None)
            self._lanes[lane.key] = lane
            self._start_time_fair_queue.add(lane)
        return True

    def _lane_of(self, asked: QueuedRequest) -> _Lane:
        key = asked.caller.client, asked.sender is not None
        return self._lanes.get(key) or self._resting.get(key) or _Lane(key)

    def _leave(self, future: asyncio.Future[WriteReply]) -> None:
        """Remove the request of a caller that gave up, unless it was already taken."""
        lane = self._waiting.pop(future, None)
        if lane is not None:
            self._leaves(lane.asked.pop(future))
            if not lane.asked:
                self._empty += 1
                if self._empty > max(_EMPTY_MAX, len(self._lanes) // 2):
                    self._drop_empty()

    def _leaves(self, asked: QueuedRequest) -> None:
        sender = asked.sender
        if sender is not None:
            self._senders[sender] -= 1
            if not self._senders[sender]:
                del self._senders[sender]

    def _drop_empty(self) -> None:
        lanes, self._lanes, self._empty = self._lanes, {}, 0
        self._start_time_fair_queue.clear()
        for lane in lanes.values():
            if lane.asked:
                self._lanes[lane.key] = lane
                self._start_time_fair_queue.add(lane)
            else:
                lane.is_waiting = False
                self._rest(lane)

    def take(self) -> QueuedRequest | None:
        """Remove and return the next request; None if none waits."""
        while self._start_time_fair_queue:
            lane = self._start_time_fair_queue.first()
            self._start_time_fair_queue.take(lane)
            if not lane.asked:
                self._empty -= 1
            asked = self._first_of(lane)
            if lane.asked:
                self._start_time_fair_queue.add(lane)
            else:
                lane.is_waiting = False
                del self._lanes[lane.key]
                self._rest(lane)
            if asked is not None:
                return asked
        return None

    def _first_of(self, lane: _Lane) -> QueuedRequest | None:
        while lane.asked:
            future, asked = lane.asked.popitem(last=False)
            del self._waiting[future]
            self._leaves(asked)
            # The done callback of a caller that gave up in this iteration runs in the next one.
            if not future.done():
                future.remove_done_callback(self._leave)
                return asked
        return None

    def charge(self, asked: QueuedRequest, seconds: float) -> None:
        """Charge the time that a decision took to its client."""
        lane = self._lane_of(asked)
        self._start_time_fair_queue.charge(lane, seconds, _DEBT_MAX_S)
        if not lane.is_waiting:
            self._rest(lane)

    def clear(self) -> tuple[QueuedRequest, ...]:
        """Remove and return all waiting requests, those of each client in order."""
        left = tuple([asked for lane in self._lanes.values() for asked in lane.asked.values()])
        self._lanes.clear()
        self._resting.clear()
        self._empty = 0
        self._waiting.clear()
        self._senders.clear()
        self._start_time_fair_queue = StartTimeFairQueue()
        return left

    def _rest(self, lane: _Lane) -> None:
        """Remember a client without waiting requests, as long as its used time still matters."""
        self._resting.pop(lane.key, None)
        if lane.used_s > self._start_time_fair_queue.now_s:
            self._resting[lane.key] = lane
            while len(self._resting) > _REMEMBERED_MAX:
                self._resting.popitem(last=False)
