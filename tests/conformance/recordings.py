"""Recorded bytes of good clients to a listener, and their mutations."""

from __future__ import annotations

import asyncio
import ssl
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from tests.conformance.cases import CASES
from tests.conformance.served import Address
from tests.conformance.serving import HOST
from tests.integration.raw_http2 import PREFACE

if TYPE_CHECKING:
    from pathlib import Path
    from random import Random

    from tests.conformance.served import Served

_HEAD_BYTES: Final = 9
_RECORDED: Final = (
    "empty_unary",
    "client_streaming",
    "server_streaming",
    "ping_pong",
    "cancel_after_first_response",
    "custom_metadata",
    "status_code_and_message",
    "unimplemented_method",
)


async def record(served: Served) -> list[list[bytes]]:
    """The frames of each conversation, without the preface; of a listener without TLS."""
    return [await _record_case(served, name) for name in _RECORDED]


async def _record_case(served: Served, name: str) -> list[bytes]:
    heard = bytearray()
    passing: list[asyncio.Task[None]] = []

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        passing.append(asyncio.create_task(_pass_on(served, reader, writer, heard)))

    async with await asyncio.start_server(accept, HOST, 0) as recorder:
        port = recorder.sockets[0].getsockname()[1]
        async with Address(port, None).connect() as channel:
            await CASES[name](channel)
    # A channel that is closed may keep its connection for a while.
    for task in passing:
        task.cancel()
    await asyncio.gather(*passing, return_exceptions=True)
    return split(bytes(heard).removeprefix(PREFACE))


async def _pass_on(
    served: Served, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, heard: bytearray
) -> None:
    """Record the client's bytes; pass the bytes of both sides on."""
    back, onward = await asyncio.open_connection(HOST, served.address.port)
    answering = asyncio.create_task(_copy(back, writer, bytearray()))
    try:
        await _copy(reader, onward, heard)
    finally:
        answering.cancel()
        onward.close()
        writer.close()


async def _copy(source: asyncio.StreamReader, sink: asyncio.StreamWriter, kept: bytearray) -> None:
    with suppress(ConnectionError):
        while data := await source.read(65536):
            kept += data
            sink.write(data)
            await sink.drain()


def split(data: bytes) -> list[bytes]:
    """Whole frames, one after another."""
    made = []
    at = 0
    while at + _HEAD_BYTES <= len(data):
        end = at + _HEAD_BYTES + int.from_bytes(data[at : at + 3], "big")
        made.append(data[at:end])
        at = end
    return made


def mutate(frames: list[bytes], random: Random) -> list[bytes]:
    """One to four changes: frames left out, twice, elsewhere, cut, joined with others' bytes."""
    made = list(frames)
    for _ in range(random.randrange(1, 5)):
        if not made:
            break
        at = random.randrange(len(made))
        match random.randrange(6):
            case 0:
                del made[at]
            case 1:
                made.insert(random.randrange(len(made)), made[at])
            case 2:
                other = random.randrange(len(made))
                made[at], made[other] = made[other], made[at]
            case 3:
                made[at] = made[at][: random.randrange(1, len(made[at]) + 1)]
            case 4:
                made[at] += random.randbytes(random.randrange(1, 16))
            case _:
                changed = bytearray(made[at])
                # Mostly the head: it decides what the rest is taken for.
                limit = min(_HEAD_BYTES if random.randrange(3) else 1 << 24, len(changed))
                changed[random.randrange(limit)] ^= 1 << random.randrange(8)
                made[at] = bytes(changed)
    return made


def client_hello(folder: Path) -> bytes:
    """The first bytes that a client with TLS sends."""
    context = ssl.create_default_context(cafile=folder / "ca.pem")
    context.set_alpn_protocols(["h2"])
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = context.wrap_bio(incoming, outgoing, server_hostname=HOST)
    try:
        client.do_handshake()
    except ssl.SSLWantReadError:
        return outgoing.read()
    raise AssertionError("a handshake takes two")
