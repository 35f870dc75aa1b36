"""An abusive client is not noticed by others, and its cost is bounded."""

from __future__ import annotations

import asyncio
import ssl
from contextlib import AsyncExitStack, suppress
from typing import TYPE_CHECKING, Any, Final

import pytest

from tests.conformance.attacks import ATTACKS, Attack
from tests.conformance.served import ANSWER_S, Served, ask
from tests.conformance.transports import GRPCIO, OURS
from tests.integration.raw_http2 import (
    END_HEADERS,
    END_STREAM,
    HEADERS,
    PREFACE,
    RawConnection,
    frame,
    headers_of,
)
from tests.ports import HOST

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

ABUSER: Final = "127.0.0.2"
# Of everything that one abuser makes a listener hold, above what it held before.
GROWTH_MIB: Final = 64.0
CONNECTIONS: Final = 200


def context_of(folder: Path | None) -> ssl.SSLContext | None:
    """The TLS context of a raw client."""
    if folder is None:
        return None
    context = ssl.create_default_context(cafile=folder / "ca.pem")
    context.set_alpn_protocols(["h2"])
    return context


async def call_until(over: asyncio.Event, channel: Any) -> int:  # noqa: ANN401 - of any transport
    """Good calls, one after another, all of which have to be answered; how many."""
    calls = 0
    while not over.is_set():
        await ask(channel)
        calls += 1
    return calls


async def until(is_so: Callable[[], bool], within_s: float = ANSWER_S) -> None:
    """It has come about, or will not."""
    with suppress(TimeoutError):
        async with asyncio.timeout(within_s):
            while not is_so():  # noqa: ASYNC110 - it happens in another process
                await asyncio.sleep(0.01)


async def settled(connection: RawConnection) -> None:
    """The listener has ended the connection, or says no more."""
    await until(lambda: connection.is_closed, within_s=1)


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.name)
async def test_an_attack_disturbs_nobody_and_is_bounded(
    attack: Attack, served: Served, transport: str, folder: Path | None
) -> None:
    over = asyncio.Event()
    async with served.address.connect(transport) as channel:
        await ask(channel)
        before = served.mib
        served.forget_peak()
        calls = asyncio.create_task(call_until(over, channel))
        async with RawConnection(
            (HOST, served.address.port),
            source=ABUSER,
            reads_nothing=attack.reads_nothing,
            tls=context_of(folder),
        ) as abuser:
            # A client that is cut off cannot continue.
            with suppress(ConnectionError):
                async with asyncio.timeout(ANSWER_S):
                    await attack.run(abuser)
            if transport in OURS and attack.codes:
                # What the sockets hold of it may take a busy listener a while.
                await until(lambda: _is_ended(attack, abuser))
            else:
                await settled(abuser)
            over.set()
            assert await calls
            await ask(channel)
            assert served.is_alive
            # What grpcio holds and ends differs from run to run, and is not ours to say.
            if transport in OURS:
                assert served.peak_mib - before < GROWTH_MIB
                _judge(attack, abuser)


def _is_ended(attack: Attack, abuser: RawConnection) -> bool:
    """The connection has ended, or the stream alone."""
    return abuser.is_closed or not attack.codes.isdisjoint(abuser.resets)


def _judge(attack: Attack, abuser: RawConnection) -> None:
    """Check how the listener has ended it."""
    if attack.codes:
        assert _is_ended(attack, abuser), abuser.resets
        # The word that it is over may be lost where more comes than is read.
        assert abuser.gone is None or abuser.gone in attack.codes


async def test_a_path_that_is_no_text_ends_one_call_at_most(
    transport: str, certificates: Path
) -> None:
    """grpcio ends its listener: a client that may connect can take a controller from all others."""
    with Served(transport, certificates) as own:
        async with RawConnection(
            (HOST, own.address.port), source=ABUSER, tls=context_of(certificates)
        ) as abuser:
            block = headers_of("/").replace(b"\1/", b"\1\xff")
            await abuser.send(frame(HEADERS, END_HEADERS | END_STREAM, 1, block))
            await settled(abuser)
        assert own.is_alive
        if transport == GRPCIO:
            # It says so when it likes, whatever has become of the connection.
            fault = "in _server_main_loop\nUnicodeDecodeError"
            await until(lambda: fault in own.log)
            assert fault in own.log
        else:
            async with own.address.connect(transport) as channel:
                await ask(channel)


async def test_connections_that_say_nothing_or_half_of_it_are_closed(
    served: Served, transport: str
) -> None:
    async with served.address.connect(transport) as channel, AsyncExitStack() as stack:
        before = served.mib
        readers = []
        for number in range(CONNECTIONS):
            reader, writer = await asyncio.open_connection(
                HOST, served.address.port, local_addr=(ABUSER, 0)
            )
            stack.callback(writer.close)
            writer.write(PREFACE[: number % len(PREFACE)])
            readers.append(reader)
        await ask(channel)
        async with asyncio.timeout(ANSWER_S):
            for reader in readers:
                with suppress(ConnectionError):
                    await reader.read()
        await ask(channel)
        assert served.mib - before < GROWTH_MIB


async def test_idle_connections_disturb_nobody(
    served: Served, transport: str, folder: Path | None
) -> None:
    async with served.address.connect(transport) as channel, AsyncExitStack() as stack:
        before = served.mib
        for _ in range(CONNECTIONS):
            idle = RawConnection((HOST, served.address.port), source=ABUSER, tls=context_of(folder))
            await stack.enter_async_context(idle)
        await ask(channel)
        assert served.mib - before < GROWTH_MIB
