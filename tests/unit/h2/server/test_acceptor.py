"""Connections that are taken from a socket in batches, and those that end before they begin."""

from __future__ import annotations

import asyncio
import errno
import socket
import ssl
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest

from quorate.h2.fair_queue import FairQueue
from quorate.h2.protocol.limits import Limits, ListenerMemory
from quorate.h2.server.acceptor import BATCH_MAX, Acceptor
from quorate.h2.server.connection_limiter import AddressSlots, ConnectionStats, PendingHandshakes
from quorate.h2.server.protocol import ServerProtocol
from quorate.telemetry.logs import REPEATS
from tests.unit.h2.by_hand import TransportByHand

if TYPE_CHECKING:
    from collections.abc import Callable

PEER = "ipv4:127.0.0.1:4711"


class Listening:
    """A listening socket by hand: the connections that wait, and the error when none does."""

    def __init__(self, waiting: int, then: OSError | None = None) -> None:
        self.waiting = waiting
        self.then = then or BlockingIOError()
        self.accepted: list[Accepted] = []

    def accept(self) -> tuple[Accepted, tuple[str, int]]:
        if not self.waiting:
            raise self.then
        self.waiting -= 1
        self.accepted.append(Accepted())
        return self.accepted[-1], ("127.0.0.1", 4711)


class Accepted:
    """A connection's socket by hand."""

    def __init__(self) -> None:
        self.sent = b""
        self.is_closed = False

    def setblocking(self, _: bool) -> None: ...  # noqa: FBT001

    def send(self, data: bytes) -> int:
        self.sent += data
        return len(data)

    def close(self) -> None:
        self.is_closed = True


class Door:
    """An acceptor with all that it needs."""

    def __init__(self, listening: Any, *, slots_max: int = 1000, is_tls: bool = False) -> None:  # noqa: ANN401
        self.slots = AddressSlots(slots_max)
        self.handshakes = PendingHandshakes(AddressSlots(1000))
        self.stats = ConnectionStats()
        self.links: list[ServerProtocol] = []
        self.acceptor = Acceptor(
            listening,
            ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER) if is_tls else None,
            make_link=self.make_link,
            established=self.slots,
            handshakes=self.handshakes,
            stats=self.stats,
        )

    def make_link(self) -> ServerProtocol:
        async def find(_: object) -> None: ...

        link = ServerProtocol(
            Limits(),
            message_bytes_max=1000,
            memory=ListenerMemory(),
            read_buffer=memoryview(bytearray(1024)),
            queue=FairQueue(budget_s=60.0),
            find=find,
            admit=lambda _: True,
            gone=self.links.remove,
        )
        self.links.append(link)
        return link


@pytest.fixture
def connect(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Set what becomes of a connection that the loop is given."""

    def of(become: Any) -> None:  # noqa: ANN401
        monkeypatch.setattr(asyncio.get_running_loop(), "connect_accepted_socket", become)

    return of


async def test_connections_are_taken_in_batches(connect: Callable[..., None]) -> None:
    async def hold(*_: Any, **__: Any) -> None:  # noqa: ANN401
        await asyncio.Event().wait()

    connect(hold)
    listening = Listening(BATCH_MAX + 1)
    door = Door(listening)
    door.acceptor._accept()
    assert len(door.handshakes.tasks) == BATCH_MAX
    door.acceptor._accept()
    assert len(door.handshakes.tasks) == BATCH_MAX + 1
    for task in door.handshakes.tasks:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


@pytest.mark.parametrize("is_tls", [False, True])
async def test_one_too_many_is_refused_counted_and_told_once_a_minute(
    caplog: pytest.LogCaptureFixture,
    is_tls: bool,  # noqa: FBT001
) -> None:
    listening = Listening(3)
    door = Door(listening, slots_max=2, is_tls=is_tls)
    door.slots.take("ipv4:127.0.0.1")
    door.acceptor._accept()
    assert door.handshakes.tasks == []
    assert [one.is_closed for one in listening.accepted] == [True] * 3
    assert [b"too many" in one.sent for one in listening.accepted] == [not is_tls] * 3
    assert door.stats.refused_connections == 3
    assert len({getattr(record, REPEATS) for record in caplog.records}) == 1


async def test_a_shortage_is_waited_for(caplog: pytest.LogCaptureFixture) -> None:
    door = Door(Listening(1, OSError(errno.EMFILE, "Too many open files")), slots_max=1)
    door.slots.take("ipv4:127.0.0.1")
    door.acceptor._accept()
    assert door.stats.refused_connections == 1
    assert door.acceptor._pause is not None
    door.acceptor.stop()
    assert door.acceptor._pause.cancelled()
    assert "Too many open files" in caplog.text


@pytest.mark.parametrize(
    ("error", "cause"),
    [
        (ssl.SSLError(1, "[SSL: NO_SHARED_CIPHER] no shared cipher"), "SSLError"),
        (ConnectionAbortedError("SSL handshake is taking longer"), "it took too long"),
        (ConnectionResetError("gone"), None),
    ],
)
async def test_failed_handshakes_are_told_by_their_cause_and_counted(
    error: Exception,
    cause: str | None,
    connect: Callable[..., None],
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def fail(*_: Any, **__: Any) -> None:  # noqa: ANN401
        raise error

    caplog.set_level("INFO")
    connect(fail)
    door, accepted = Door(None, is_tls=True), Accepted()
    await door.acceptor._establish(accepted, PEER)  # type: ignore[arg-type]
    assert accepted.is_closed
    assert door.stats.failed_handshakes == len(caplog.records) == (0 if cause is None else 1)
    if cause is not None:
        assert f"a TLS handshake of {PEER} has failed: " in caplog.text
        assert cause.lower() in caplog.text
        (record,) = caplog.records
        assert "4711" not in str(getattr(record, REPEATS))


async def test_a_connection_that_the_stop_finds_at_its_beginning_is_forgotten(
    connect: Callable[..., None],
) -> None:
    """Its end is not reported if its beginning was cut short."""
    transport, has_begun = TransportByHand(), asyncio.Event()

    async def begin(make: Callable[[], ServerProtocol], *_: Any, **__: Any) -> None:  # noqa: ANN401
        make().connection_made(transport)
        has_begun.set()
        await asyncio.Event().wait()

    connect(begin)
    door = Door(None)
    with socket.socket() as accepted:
        arriving = asyncio.ensure_future(door.acceptor._establish(accepted, PEER))
        await has_begun.wait()
        assert len(door.links) == 1
        arriving.cancel()
        with pytest.raises(asyncio.CancelledError):
            await arriving
    assert transport.is_aborted
    assert not door.links
