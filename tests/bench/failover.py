"""Time without writes: the leader is killed, suspended or resigns; a member comes back.

A write is offered to each survivor every ten milliseconds; the time is that from the signal to the
first answer which says that a write was committed. Connections are open before the signal.
"""

from __future__ import annotations

import select
import signal
import time
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias

from tests.bench import payloads
from tests.bench.http2_client import Connection, header_block, message
from tests.bench.quorate_cluster import QuorateMembers, is_listening

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable

    from tests.bench.etcd_cluster import EtcdMembers
    from tests.bench.processes import Members

OFFER_S: Final = 0.01
LIMIT_S: Final = 30.0
_POLL_S: Final = 0.002


class Offers(Protocol):
    """Writes to one member, of which the first that is committed is looked for."""

    has_committed: bool

    @property
    def socket(self) -> socket.socket: ...

    def offer(self) -> None: ...

    def take(self) -> None: ...

    def close(self) -> None: ...


class CallOffers:
    """Unary gRPC calls; `is_committed` looks at an answer, without its five bytes of framing."""

    def __init__(
        self,
        address: tuple[str, int],
        path: str,
        payload: bytes,
        is_committed: Callable[[bytes], bool] = lambda _: True,
    ) -> None:
        self.has_committed = False
        self._connection = Connection(*address)
        self._connection.calls = self
        self._block = header_block(path, self._connection.authority)
        self._message = message(payload)
        self._is_committed = is_committed

    @property
    def socket(self) -> socket.socket:
        return self._connection.socket

    def offer(self) -> None:
        stream_id = self._connection.begin(self._block)
        self._connection.send(stream_id, self._message, is_last=True)
        self._connection.flush()

    def take(self) -> None:
        self._connection.receive()
        self._connection.flush()

    def close(self) -> None:
        self._connection.close()

    def received(self, stream_id: int, data: bytes) -> None:
        self.has_committed |= self._is_committed(data[5:])

    def ended(self, stream_id: int, *, had_data: bool) -> None:
        """Ignore a refusal without data."""


Open: TypeAlias = "Callable[[tuple[str, int]], Offers]"


def open_puts(address: tuple[str, int]) -> Offers:
    """etcd's: a member without a leader keeps the call."""
    return CallOffers(address, payloads.PUT_PATH, payloads.puts()())


def open_appends(address: tuple[str, int]) -> Offers:
    """Opaque records: a controller that does not lead refuses."""
    return CallOffers(address, payloads.APPEND_ONCE_PATH, payloads.append_once(1)())


def time_to_commit(
    members: Members, open_: Open, leader: int, disturb: Callable[[], None]
) -> float:
    """Seconds from the disturbance of the leader to the next commit at a survivor."""
    survivors = [member for member in range(members.count) if member != leader]
    offers = [open_(members.address(member)) for member in survivors]
    by_socket = {one.socket: one for one in offers}
    try:
        disturb()
        began = next_offer = time.perf_counter()
        while (now := time.perf_counter()) - began < LIMIT_S:
            if now >= next_offer:
                next_offer += OFFER_S
                for one in offers:
                    one.offer()
            wait_s = max(0.0, next_offer - time.perf_counter())
            for ready in select.select(list(by_socket), [], [], wait_s)[0]:
                one = by_socket[ready]
                one.take()
                if one.has_committed:
                    return time.perf_counter() - began
    finally:
        for one in offers:
            one.close()
    raise TimeoutError(f"{members.name}: no commit within {LIMIT_S} s")


def kills(members: Members, open_: Open, count: int) -> list[float]:
    """kill -9 of the leader, which is started again after each."""
    return [_end_leader(members, open_, signal.SIGKILL) for _ in range(count)]


def hand_overs(members: Members, open_: Open, count: int) -> list[float]:
    """SIGTERM of the leader, which is started again after each."""
    return [_end_leader(members, open_, signal.SIGTERM) for _ in range(count)]


def _end_leader(members: Members, open_: Open, number: signal.Signals) -> float:
    leader = settled(members)
    elapsed_s = time_to_commit(members, open_, leader, partial(members.end, leader, number))
    members.wait(leader)
    members.start(leader)
    return elapsed_s


def stops(members: Members, open_: Open, count: int) -> list[float]:
    """SIGSTOP of the leader, which is continued after each."""
    times = []
    for _ in range(count):
        leader = settled(members)
        times.append(time_to_commit(members, open_, leader, partial(members.pause, leader)))
        members.resume(leader)
    return times


def settled(members: Members) -> int:
    """The leader, once every member is back and follows it."""
    deadline = time.monotonic() + LIMIT_S
    while not all(is_listening(members.address(member)) for member in range(members.count)):
        _pass(deadline, members)
    # A member that has just come back reads its log for a while, and does not say when it has.
    time.sleep(members.settles_s)
    if not isinstance(members, QuorateMembers):
        return members.leader()
    leader = members.leader()
    since_ms = members.clock_ms(leader)
    followers = [member for member in range(members.count) if member != leader]
    while not all(_has_fetched(members, leader, follower, since_ms) for follower in followers):
        _pass(deadline, members)
    return leader


def _pass(deadline: float, members: Members) -> None:
    if time.monotonic() > deadline:
        raise TimeoutError(f"{members.name} has not settled within {LIMIT_S} s; see {members.root}")
    time.sleep(_POLL_S)


# --- a member comes back --------------------------------------------------------------------------


def _one_down(members: Members, down_s: float) -> tuple[int, int]:
    """The leader, and a follower that has been down for so long."""
    leader = settled(members)
    follower = (leader + 1) % members.count
    members.end(follower)
    members.wait(follower)
    time.sleep(down_s)
    return leader, follower


def restarts(members: QuorateMembers, count: int, down_s: float) -> tuple[list[float], list[float]]:
    """Seconds from the start of a follower's process to its port, and from there to its fetch."""
    to_listen, to_fetch = [], []
    for _ in range(count):
        leader, follower = _one_down(members, down_s)
        since_ms = members.clock_ms(leader)
        began = time.perf_counter()
        members.start(follower)
        while not is_listening(members.address(follower)):
            time.sleep(_POLL_S)
        listened = time.perf_counter()
        while not _has_fetched(members, leader, follower, since_ms):
            time.sleep(_POLL_S)
        to_listen.append(listened - began)
        to_fetch.append(time.perf_counter() - listened)
    return to_listen, to_fetch


def _has_fetched(members: QuorateMembers, leader: int, follower: int, since_ms: int) -> bool:
    described = members.describe(leader)
    return described is not None and any(
        voter.replica_id == follower + 1 and voter.last_fetch_ms > since_ms
        for voter in described.current_voters
    )


def etcd_restarts(members: EtcdMembers, count: int, down_s: float) -> list[float]:
    """Seconds from the start of a follower's process until it knows its leader and its index."""
    times = []
    for _ in range(count):
        _, follower = _one_down(members, down_s)
        began = time.perf_counter()
        members.start(follower)
        while not (members.status(follower) or {}).get("leader"):
            time.sleep(_POLL_S)
        times.append(time.perf_counter() - began)
    return times
