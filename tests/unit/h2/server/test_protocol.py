"""One connection of a server: what it does with bytes, silence and ends."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest

from quorate.h2.fair_queue import FairQueue
from quorate.h2.protocol import frames
from quorate.h2.protocol.frames import H2ErrorCode, frame
from quorate.h2.protocol.header_codec import block_of
from quorate.h2.protocol.limits import (
    IDLE_S,
    PING_EVERY_S,
    PING_PATIENCE_S,
    PREFACE_S,
    UNREAD_S,
    Limits,
)
from quorate.telemetry.logs import REPEATS
from tests.unit.h2 import peers
from tests.unit.h2.by_hand import Wire, streaming, unary
from tests.unit.h2.peers import word

if TYPE_CHECKING:
    from collections.abc import Callable


async def echo(request: bytes, _: Any) -> bytes:  # noqa: ANN401
    return request


async def test_a_call_is_answered() -> None:
    wire = Wire(unary(echo))
    wire.greet()
    wire.call(b"abc")
    await wire.settle()
    answers = wire.answers()
    assert [one.payload for one in answers if one.kind == frames.DATA] == [b"\0\0\0\0\x03abc"]
    assert answers[-1].flags & frames.END_STREAM
    assert wire.link.tasks == []


@pytest.mark.parametrize("budget_s", [1e-9, 60.0])
async def test_many_bytes_are_taken_in_slices_and_in_order(budget_s: float) -> None:
    wire = Wire(unary(echo), queue=FairQueue(budget_s=budget_s))
    wire.greet()
    calls = b"".join(
        peers.headers(2 * number + 1, flags=peers.WHOLE)
        + peers.data(bytes(5), 2 * number + 1, flags=peers.END)
        for number in range(500)
    )
    wire.send(calls[:60_000], calls[60_000:])
    # What takes no time is not deferred.
    assert wire.transport.reads is (budget_s > 1)
    ended: list[int] = []
    while len(ended) < 500:
        await wire.settle()
        ended += [
            one.stream_id
            for one in wire.answers()
            if one.stream_id and one.flags & frames.END_STREAM
        ]
    assert ended == [2 * number + 1 for number in range(500)]
    assert wire.transport.reads


async def test_bytes_that_came_with_the_end_of_a_handshake_are_taken_when_it_is_made() -> None:
    wire = Wire(unary(echo), is_made=False)
    wire.greet()
    await wire.settle()
    assert not wire.transport.written
    wire.link.connection_made(wire.transport)
    wire.call(b"abc")
    await wire.settle()
    assert [one.payload for one in wire.answers() if one.kind == frames.DATA] == [
        b"\0\0\0\0\x03abc"
    ]


async def test_one_connection_too_many_is_closed() -> None:
    assert Wire(admits=False).transport.is_aborted


class _Session:
    def __init__(self, protocol: str | None) -> None:
        self._protocol = protocol

    def selected_alpn_protocol(self) -> str | None:
        return self._protocol

    def getpeercert(self, *, binary_form: bool) -> bytes | None:
        return b"certificate" if binary_form else None


async def test_tls_without_h2_is_ended() -> None:
    wire = Wire(ssl_object=_Session(None))
    assert wire.transport.is_closed


async def test_the_clients_certificate_is_known_to_calls() -> None:
    wire = Wire(ssl_object=_Session("h2"))
    assert not wire.transport.is_closed
    (pem,) = wire.link.auth_context()["x509_pem_cert"]
    assert pem.startswith(b"-----BEGIN CERTIFICATE-----")
    assert dict(Wire().link.auth_context()) == {}


async def test_a_breach_is_told_and_logged_and_ends_the_connection(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO")
    wire = Wire()
    wire.send(b"GET / HTTP/1.1\r\n\r\n------")
    assert wire.transport.is_closed
    assert wire.answers()[-1].kind == frames.GOAWAY
    assert "ipv4:127.0.0.1:4711 ends with PROTOCOL_ERROR" in caplog.text


@pytest.mark.parametrize(
    "attack",
    [
        # Numbers, bytes and blocks that differ from connection to connection.
        lambda n: frame(frames.WINDOW_UPDATE, 0, 2 * n + 101, word(1)),
        lambda n: frame(frames.PING, 0, 0, bytes(9 + n)),
        lambda n: frame(frames.HEADERS, peers.WHOLE, 1, b"\x00\x7f" + bytes([n]) * 99),
        lambda n: peers.headers(block=block_of([(b":%d" % n * 200, b"")])),
        lambda n: peers.headers() + peers.window(0, 1) + peers.headers(3, block=b"\x82"),
    ],
)
async def test_the_faults_of_many_connections_are_one_line_a_minute(
    attack: Callable[[int], bytes], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    for number in range(20):
        wire = Wire()
        wire.greet()
        wire.send(attack(number))
        await wire.settle()
        wire.link.connection_lost(None)
    told = [record for record in caplog.records if record.name == "quorate.h2.server.protocol"]
    assert len(told) >= 20
    assert len({getattr(record, REPEATS) for record in told}) <= 2
    assert all(len(record.getMessage()) < 300 for record in told)


async def test_who_says_nothing_is_asked_to_leave() -> None:
    wire = Wire()
    now_s = time.monotonic()
    wire.link.check_timeouts(now_s + PREFACE_S - 1)
    assert not wire.transport.is_closed
    wire.link.check_timeouts(now_s + PREFACE_S + 1)
    assert wire.transport.is_closed


async def test_who_does_not_answer_a_ping_is_gone() -> None:
    wire = Wire(streaming(_forever))
    wire.greet()
    wire.send(peers.headers())
    await wire.settle()
    now_s = time.monotonic() + PING_EVERY_S + 1
    wire.link.check_timeouts(now_s)
    await wire.settle()
    assert wire.answers()[-1].kind == frames.PING
    wire.link.check_timeouts(now_s + PING_PATIENCE_S - 1)
    assert not wire.transport.is_aborted
    wire.link.check_timeouts(now_s + PING_PATIENCE_S + 1)
    assert wire.transport.is_aborted
    wire.link.connection_lost(None)
    await wire.settle()


async def test_who_answers_pings_stays() -> None:
    wire = Wire()
    wire.greet()
    now_s = time.monotonic() + PING_EVERY_S + 1
    wire.link.check_timeouts(now_s)
    wire.send(frame(frames.PING, frames.ACK, 0, bytes(8)))
    wire.link.check_timeouts(now_s + PING_PATIENCE_S + 1)
    assert not wire.transport.is_aborted


async def test_a_connection_without_calls_is_closed_in_the_end() -> None:
    wire = Wire()
    wire.greet()
    await wire.settle()
    wire.link.check_timeouts(time.monotonic() + IDLE_S + 1)
    await wire.settle()
    assert wire.answers()[-1].kind == frames.GOAWAY
    assert wire.transport.is_closed


async def test_whoever_says_much_and_reads_nothing_is_gone_in_the_end() -> None:
    wire = Wire(streaming(_forever))
    wire.greet()
    wire.send(peers.headers())
    await wire.settle()
    wire.link.pause_writing()
    now_s = time.monotonic()
    for second in range(int(UNREAD_S)):
        wire.link._liveness._heard_s = now_s + second
        wire.link.check_timeouts(now_s + second)
    assert not wire.transport.is_aborted
    wire.link._liveness._heard_s = now_s + UNREAD_S + 1
    wire.link.check_timeouts(now_s + UNREAD_S + 1)
    assert wire.transport.is_aborted
    wire.link.connection_lost(None)
    await wire.settle()


async def test_a_connection_that_is_to_leave_is_told_so_once() -> None:
    wire = Wire()
    wire.greet()
    wire.link.pause_writing()
    wire.link._liveness.blocked_s = now_s = time.monotonic() + IDLE_S + 1
    for second in range(3):
        wire.link._liveness._heard_s = now_s + second
        wire.link.check_timeouts(now_s + second)
        await wire.settle()
    assert [one.kind for one in wire.answers()].count(frames.GOAWAY) == 1
    assert not wire.transport.is_closed
    wire.link.resume_writing()
    await wire.settle()
    assert wire.transport.is_closed


async def test_calls_whose_handlers_go_on_count_after_they_were_reset() -> None:
    over = asyncio.Event()

    async def stubborn(request: bytes, _: Any) -> bytes:  # noqa: ANN401
        while not over.is_set():
            with suppress(asyncio.CancelledError):
                await over.wait()
        return request

    wire = Wire(unary(stubborn), limits=Limits(streams_max=2))
    wire.greet()
    for stream_id in (1, 3, 5):
        wire.call(b"", stream_id=stream_id)
        await wire.settle()
        wire.send(frame(frames.RST_STREAM, 0, stream_id, word(H2ErrorCode.CANCEL)))
    assert len(wire.link.tasks) == 2
    refused = [one for one in wire.answers() if one.kind == frames.RST_STREAM]
    assert [(one.stream_id, one.payload) for one in refused] == [
        (5, word(H2ErrorCode.REFUSED_STREAM))
    ]
    over.set()
    await wire.settle()
    wire.call(b"again", stream_id=7)
    await wire.settle()
    assert wire.status()[b"grpc-status"] == b"0"


async def _forever(requests: Any, context: Any) -> Any:  # noqa: ANN401
    await asyncio.Event().wait()
    yield b""


async def test_calls_end_with_their_connection() -> None:
    wire = Wire(streaming(_forever))
    wire.greet()
    wire.send(peers.headers())
    await wire.settle()
    (task,) = wire.link.tasks
    wire.link.connection_lost(None)
    await wire.settle()
    assert task.done()
    assert wire.gone == [wire.link]


async def test_who_leaves_takes_no_new_call_and_closes_behind_the_last() -> None:
    wire = Wire(streaming(_forever))
    wire.greet()
    wire.send(peers.headers())
    await wire.settle()
    wire.link.go_away()
    wire.send(peers.headers(3))
    await wire.settle()
    refused = [one.stream_id for one in wire.answers() if one.kind == frames.RST_STREAM]
    assert refused == [3]
    assert not wire.transport.is_closed
    await asyncio.gather(*wire.link.cancel_calls(), return_exceptions=True)
    await wire.settle()
    assert wire.transport.is_closed


async def test_who_reads_nothing_and_makes_us_write_is_cut_off() -> None:
    wire = Wire()
    wire.greet()
    wire.transport.unsent = 1 << 30
    wire.send(frame(frames.PING, 0, 0, bytes(8)))
    await wire.settle()
    assert wire.transport.is_aborted


async def test_bodies_wait_while_the_socket_is_full() -> None:
    wire = Wire(unary(echo))
    wire.greet()
    wire.link.pause_writing()
    wire.call(b"abc")
    await wire.settle()
    assert frames.DATA not in [one.kind for one in wire.answers()]
    wire.link.resume_writing()
    await wire.settle()
    assert frames.DATA in [one.kind for one in wire.answers()]


async def test_a_reset_cancels_its_call() -> None:
    wire = Wire(streaming(_forever))
    wire.greet()
    wire.send(peers.headers())
    await wire.settle()
    (task,) = wire.link.tasks
    wire.send(frame(frames.RST_STREAM, 0, 1, word(8)))
    await wire.settle()
    assert task.done()
    wire.link.close()
    wire.link.abort()
    assert wire.transport.is_aborted


async def test_bytes_are_taken_out_of_the_buffer_that_connections_share() -> None:
    wire = Wire(unary(echo))
    for data in (peers.GREETING, peers.headers(flags=peers.WHOLE), peers.data(b"\0\0\0\0\x01a")):
        for part in (data[:5], data[5:]):
            buffer = wire.link.get_buffer(-1)
            buffer[: len(part)] = part
            wire.link.buffer_updated(len(part))
            # The next connection reads into the same bytes.
            buffer[:] = bytes(len(buffer))
    wire.send(peers.data(b"", flags=peers.END))
    await wire.settle()
    assert [one.payload for one in wire.answers() if one.kind == frames.DATA] == [b"\0\0\0\0\x01a"]


class Places:
    """A gate with so many places, and the methods that asked for one."""

    def __init__(self, count: int) -> None:
        self.left = count
        self.asked: list[tuple[str, str]] = []

    def admit(self, method: str, peer: str) -> Places | bytes:
        self.asked.append((method, peer))
        if not self.left:
            return block_of([(b":status", b"200"), (b"grpc-status", b"8")])
        self.left -= 1
        return self

    def release(self, _: Any = None) -> None:  # noqa: ANN401
        self.left += 1


async def test_a_call_without_a_place_is_refused_before_anything_is_made_for_it() -> None:
    places = Places(0)
    wire = Wire(unary(echo), gate=places)
    wire.greet()
    wire.call(b"a")
    assert wire.link.tasks == []
    assert wire.link.connection.stream_count == 0
    await wire.settle()
    assert wire.status() == {b"grpc-status": b"8"}
    assert len(places.asked) == 1
    # The connection stays open.
    places.left = 1
    wire.call(b"b", stream_id=3)
    await wire.settle()
    assert wire.status()[b"grpc-status"] == b"0"
    assert places.left == 1


@pytest.mark.parametrize("has_begun", [False, True])
async def test_a_place_is_given_back_when_the_client_is_gone(has_begun: bool) -> None:  # noqa: FBT001
    places = Places(2)
    wire = Wire(streaming(_forever), gate=places)
    wire.greet()
    for stream_id in (1, 3):
        wire.send(peers.headers(stream_id, flags=peers.WHOLE))
    assert places.left == 0
    if has_begun:
        await wire.settle()
    wire.link.connection_lost(None)
    await wire.settle()
    assert places.left == 2
    assert wire.gone == [wire.link]


async def test_many_calls_of_a_lost_connection_end_in_several_iterations() -> None:
    wire = Wire(streaming(_forever), queue=FairQueue(budget_s=1e-9))
    wire.greet()
    for number in range(40):
        wire.send(peers.headers(2 * number + 1, flags=peers.WHOLE))
    tasks: list[asyncio.Task[None]] = []
    while len(tasks) < 40:
        await asyncio.sleep(0)
        tasks = wire.link.tasks
    wire.link.connection_lost(None)
    cancelled = 0
    while not wire.gone:
        await asyncio.sleep(0)
        now = sum(task.cancelling() > 0 for task in tasks)
        assert now - cancelled <= 8
        cancelled = now
    await asyncio.wait(tasks)
