"""The bytes of a handshake are computed with when it is the client's turn, in order and once."""

from __future__ import annotations

import asyncio

from quorate.h2.fair_queue import FairQueue
from quorate.h2.tls_handshake import HandshakeProtocol
from tests.unit.h2.by_hand import TransportByHand
from tests.unit.h2.servers_by_hand import settle

STEP_S = 0.005
CLIENT = "ipv4:127.0.0.1"


class Clock:
    """Time passes only while a handshake computes."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


class Link(asyncio.BufferedProtocol):
    """Lends the buffer that connections share."""

    def __init__(self, size: int = 100) -> None:
        self.buffer = bytearray(size)

    def get_buffer(self, sizehint: int) -> memoryview:
        return memoryview(self.buffer)


class Tls(asyncio.BufferedProtocol):
    """A TLS protocol by hand, with little room; each of its steps takes STEP_S."""

    def __init__(self, clock: Clock) -> None:
        self.received = b""
        self.steps = 0
        self.events: list[str] = []
        self._clock = clock
        self._room = bytearray(4)

    def get_buffer(self, sizehint: int) -> memoryview:
        return memoryview(self._room)

    def buffer_updated(self, nbytes: int) -> None:
        self.received += self._room[:nbytes]
        self.steps += 1
        self._clock.now_s += STEP_S

    def eof_received(self) -> bool | None:
        self.events.append("eof")
        return None

    def connection_lost(self, exc: Exception | None) -> None:
        self.events.append("lost")

    def pause_writing(self) -> None:
        self.events.append("pause")

    def resume_writing(self) -> None:
        self.events.append("resume")


class Transport(TransportByHand):
    """Has a protocol, as a transport of the event loop does."""

    protocol: asyncio.BaseProtocol

    def get_protocol(self) -> asyncio.BaseProtocol:
        return self.protocol

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        self.protocol = protocol


class Wire:
    """One connection whose handshake is in progress."""

    def __init__(self, queue: FairQueue, clock: Clock, link: Link | None = None) -> None:
        self.link = link or Link()
        self.handshake = HandshakeProtocol(self.link, queue.flow(CLIENT))
        self.transport = Transport()
        self.transport.protocol = self.handshake
        self.tls = Tls(clock)
        self.handshake.connection_made(self.transport)

    def begin(self) -> None:
        """Do what start_tls does."""
        self.transport.set_protocol(self.tls)
        self.handshake.stand_in_front()
        self.transport.resume_reading()

    def send(self, data: bytes) -> None:
        assert isinstance(self.transport.protocol, asyncio.BufferedProtocol)
        room = memoryview(self.transport.protocol.get_buffer(-1))
        room[: len(data)] = data
        self.transport.protocol.buffer_updated(len(data))


def wires(count: int) -> list[Wire]:
    clock = Clock()
    queue = FairQueue(clock=clock)
    # As those of one listener, they read into one buffer.
    link = Link()
    made = [Wire(queue, clock, link) for _ in range(count)]
    for wire in made:
        wire.begin()
    return made


async def test_messages_that_come_at_one_moment_are_computed_with_in_turns() -> None:
    made = wires(9)
    for number, wire in enumerate(made):
        wire.send(b"hi %d" % number)
    assert [wire.tls.steps > 0 for wire in made] == [True] + [False] * 8
    assert [wire.transport.reads for wire in made] == [True] + [False] * 8
    before = 1
    while before < 9:
        await asyncio.sleep(0)
        done = sum(wire.tls.steps > 0 for wire in made)
        assert done <= before + 1
        before = done
    assert [wire.tls.received for wire in made] == [b"hi %d" % number for number in range(9)]
    assert all(wire.transport.reads for wire in made)


async def test_bytes_that_come_before_the_tls_protocol_are_kept_for_it() -> None:
    clock = Clock()
    wire = Wire(FairQueue(clock=clock), clock)
    assert not wire.transport.reads
    # uvloop reads all the same.
    wire.send(b"good ")
    wire.begin()
    wire.send(b"day")
    assert wire.tls.received == b""
    await settle()
    assert wire.tls.received == b"good day"
    assert wire.transport.reads


async def test_the_tls_protocol_receives_by_itself_after_the_handshake() -> None:
    first, second = wires(2)
    first.send(b"hi")
    second.send(b"hello")
    assert second.tls.received == b""
    for wire in (first, second):
        wire.handshake.step_aside()
        assert wire.transport.protocol is wire.tls
        assert wire.transport.reads
    assert second.tls.received == b"hello"
    # The turn that it waited for finds nothing to do.
    second.transport.pause_reading()
    await settle()
    assert not second.transport.reads
    assert second.tls.received == b"hello"


async def test_events_of_the_connection_reach_the_tls_protocol_once_it_is_there() -> None:
    clock = Clock()
    wire = Wire(FairQueue(clock=clock), clock)
    wire.handshake.pause_writing()
    wire.handshake.resume_writing()
    assert not wire.handshake.eof_received()
    wire.begin()
    wire.handshake.pause_writing()
    wire.handshake.resume_writing()
    assert not wire.handshake.eof_received()
    wire.handshake.connection_lost(None)
    assert wire.tls.events == ["pause", "resume", "eof", "lost"]


async def test_a_connection_that_is_lost_is_computed_with_no_more() -> None:
    first, second = wires(2)
    first.send(b"hi")
    second.send(b"hi")
    second.handshake.connection_lost(None)
    await settle()
    assert (second.tls.received, second.tls.events) == (b"", ["lost"])


async def test_a_connection_that_closes_before_its_handshake_stays_as_it_is() -> None:
    clock = Clock()
    wire = Wire(FairQueue(clock=clock), clock)
    wire.transport.abort()
    wire.begin()
    assert wire.transport.protocol is wire.tls
    wire.handshake.step_aside()
    wire.handshake.connection_lost(None)
    assert wire.tls.events == []
