"""Requests that wait for their decisions: clients take turns, and heartbeats go their own way.

A client is an address (h2/peer_name.py). Of those that wait, the one whose decisions used the least
time is next (h2/start_time_fair_queue.py), so that one who creates topics by the million delays
another by one decision. The requests of one client stay in their order, but for heartbeats: these
are a client of their own, since brokers may share an address with a client that creates topics.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from typing import TYPE_CHECKING, Final, TypeAlias

from quorate.h2.start_time_fair_queue import Turns
from quorate.records.value_types import value

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Container

    from quorate.controller.authorization.authorizer import Caller
    from quorate.controller.replies import WriteReply
    from quorate.controller.request_types import Sender, WriteRequest

# Those on streams are fewer (rpc/controller/write_window.py). One client may have half of the
# places.
WAITING_MAX: Final = 65_536
CLIENT_WAITING_MAX: Final = WAITING_MAX // 2
# What a client's decisions may cost its next turns: a few of the largest.
_DEBT_MAX_S: Final = 1.0
# So many clients are remembered that used time of late and have nothing that waits.
_REMEMBERED_MAX: Final = 4096
# Clients whose callers all gave up leave when they are half of those that take turns, or fewer.
_EMPTY_MAX: Final = 1024

_Key: TypeAlias = "tuple[str, bool]"


@value
class Undecided:
    """A request that waits for its decision, who for, and since when by the host's clocks.

    `sender` is the broker that is alive by sending it, for a heartbeat.
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
        self.asked: OrderedDict[asyncio.Future[WriteReply], Undecided] = OrderedDict()
        # Whether it is among those that take turns.
        self.is_waiting = False
        self.used_s = 0.0


class DecisionQueue:
    """Requests that wait for one leader's decisions.

    A caller that gives up takes its request along.
    """

    def __init__(self) -> None:
        self._turns: Turns[_Lane] = Turns()
        # Those that take turns; some are empty since their callers gave up, and so many are.
        self._lanes: dict[_Key, _Lane] = {}
        self._empty = 0
        # Those with nothing that waits are remembered for what they used, the oldest first.
        self._resting: OrderedDict[_Key, _Lane] = OrderedDict()
        # By what its caller waits for, the lane of each request.
        self._waiting: dict[asyncio.Future[WriteReply], _Lane] = {}
        # How many heartbeats of a broker wait.
        self._senders: Counter[Sender] = Counter()

    @property
    def senders(self) -> Container[Sender]:
        """The brokers whose heartbeats wait."""
        return self._senders

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, asked: Undecided) -> bool:
        """Have it wait; False where there is no place for it."""
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
            self._turns.add(lane)
        return True

    def _lane_of(self, asked: Undecided) -> _Lane:
        key = asked.caller.client, asked.sender is not None
        return self._lanes.get(key) or self._resting.get(key) or _Lane(key)

    def _leave(self, future: asyncio.Future[WriteReply]) -> None:
        """A caller gave up, whose request may have been taken in the same turn of the loop."""
        lane = self._waiting.pop(future, None)
        if lane is not None:
            self._leaves(lane.asked.pop(future))
            if not lane.asked:
                self._empty += 1
                if self._empty > max(_EMPTY_MAX, len(self._lanes) // 2):
                    self._drop_empty()

    def _leaves(self, asked: Undecided) -> None:
        sender = asked.sender
        if sender is not None:
            self._senders[sender] -= 1
            if not self._senders[sender]:
                del self._senders[sender]

    def _drop_empty(self) -> None:
        lanes, self._lanes, self._empty = self._lanes, {}, 0
        self._turns.clear()
        for lane in lanes.values():
            if lane.asked:
                self._lanes[lane.key] = lane
                self._turns.add(lane)
            else:
                lane.is_waiting = False
                self._rest(lane)

    def take(self) -> Undecided | None:
        """The request whose turn it is, which waits no more; None where none does."""
        while self._turns:
            lane = self._turns.first()
            self._turns.take(lane)
            if not lane.asked:
                self._empty -= 1
            asked = self._first_of(lane)
            if lane.asked:
                self._turns.add(lane)
            else:
                lane.is_waiting = False
                del self._lanes[lane.key]
                self._rest(lane)
            if asked is not None:
                return asked
        return None

    def _first_of(self, lane: _Lane) -> Undecided | None:
        while lane.asked:
            future, asked = lane.asked.popitem(last=False)
            del self._waiting[future]
            self._leaves(asked)
            # A caller that gave up in this turn of the loop is heard of in the next one.
            if not future.done():
                future.remove_done_callback(self._leave)
                return asked
        return None

    def charge(self, asked: Undecided, seconds: float) -> None:
        """Count the time that a decision took."""
        lane = self._lane_of(asked)
        self._turns.charge(lane, seconds, _DEBT_MAX_S)
        if not lane.is_waiting:
            self._rest(lane)

    def clear(self) -> tuple[Undecided, ...]:
        """Everything that waits, each client's in its order; from now on nothing does."""
        left = tuple([asked for lane in self._lanes.values() for asked in lane.asked.values()])
        self._lanes.clear()
        self._resting.clear()
        self._empty = 0
        self._waiting.clear()
        self._senders.clear()
        self._turns = Turns()
        return left

    def _rest(self, lane: _Lane) -> None:
        """Remember a client with nothing that waits, for as long as that tells anything."""
        self._resting.pop(lane.key, None)
        if lane.used_s > self._turns.now_s:
            self._resting[lane.key] = lane
            while len(self._resting) > _REMEMBERED_MAX:
                self._resting.popitem(last=False)
