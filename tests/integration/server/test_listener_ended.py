"""A request that ends grpcio's server does not end the controller: it listens again.

Our own transport refuses it, and continues.
"""

from __future__ import annotations

import asyncio
import signal
from contextlib import suppress
from typing import TYPE_CHECKING

from quorate.client.controller_client import ControllerClient
from quorate.settings.transport import Transport
from tests.integration.raw_http2 import (
    END_HEADERS,
    END_STREAM,
    HEADERS,
    RawConnection,
    frame,
    headers_of,
)
from tests.integration.server.test_service import WAIT_S, spawn, write
from tests.integration.server.test_shortage import change
from tests.integration.transports import chosen
from tests.ports import HOST
from tests.unit.server.conftest import eventually

if TYPE_CHECKING:
    from pathlib import Path


async def test_a_controller_whose_listener_ends_begins_anew(
    tmp_path: Path, properties: dict[str, str]
) -> None:
    process = await spawn(write(tmp_path, properties))
    assert process.stderr is not None
    port = int(properties["listeners"].rpartition(":")[2])
    try:
        async with asyncio.timeout(WAIT_S):
            while b"the controller is active" not in await process.stderr.readline():
                assert process.returncode is None
        async with ControllerClient(
            [(HOST, port)], timeout_ms=WAIT_S * 1000, transport=chosen()
        ) as client:
            await client.write(change(0))
        no_text = headers_of("/").replace(b"\1/", b"\1\xff")
        async with RawConnection((HOST, port), source=HOST) as abuser:
            await abuser.send(frame(HEADERS, END_HEADERS | END_STREAM, 1, no_text))
            async with asyncio.timeout(WAIT_S):
                if chosen() is Transport.H2:
                    await eventually(lambda: bool(abuser.trailers or abuser.resets))
                else:
                    while b"the listener ended" not in await process.stderr.readline():
                        assert process.returncode is None
        async with ControllerClient(
            [(HOST, port)], timeout_ms=WAIT_S * 1000, transport=chosen()
        ) as client:
            await client.write(change(1))
        process.send_signal(signal.SIGTERM)
        await process.communicate()
    finally:
        with suppress(ProcessLookupError):
            process.kill()
            await process.wait()
    assert process.returncode == 0
