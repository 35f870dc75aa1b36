"""A controller whose descriptors are all taken by connections survives, and recovers.

See rule `disk_error_classes`.
"""

from __future__ import annotations

import asyncio
import resource
import signal
import socket
import time
from contextlib import ExitStack, suppress
from pathlib import Path

from quorate.client.controller_client import ControllerClient
from quorate.controller.configs.messages import (
    AlterOperation,
    ConfigAlteration,
    ConfigChange,
    ConfigResource,
    IncrementalAlterConfigs,
    ResourceType,
)
from tests.integration.server.test_service import WAIT_S, spawn, write
from tests.integration.transports import chosen
from tests.ports import HOST

LIMIT = 160


def change(number: int) -> IncrementalAlterConfigs:
    """About a kilobyte of log, so that every write or two begins a segment."""
    resource_ = ConfigResource(ResourceType.BROKER, "")
    change_ = ConfigChange(f"name-{number}", AlterOperation.SET, "v" * 1000)
    return IncrementalAlterConfigs((ConfigAlteration(resource_, (change_,)),))


def until_full(pid: int, limit: int) -> None:
    """Wait until no descriptor is free, by the process's own list: nothing else shows it."""
    end = time.monotonic() + WAIT_S
    while len(list(Path(f"/proc/{pid}/fd").iterdir())) < limit:
        assert time.monotonic() < end, "connections do not take all descriptors"
        time.sleep(0.01)


def segments(directory: str) -> int:
    return len(list(Path(directory).rglob("*.log")))


async def test_segments_and_snapshots_go_on_when_connections_take_every_descriptor(
    tmp_path: Path, properties: dict[str, str]
) -> None:
    small = {"metadata.log.segment.bytes": "1024"}
    small["metadata.log.max.record.bytes.between.snapshots"] = "4096"
    process = await spawn(write(tmp_path, {**properties, **small}))
    resource.prlimit(process.pid, resource.RLIMIT_NOFILE, (LIMIT, LIMIT))
    assert process.stderr is not None
    port = int(properties["listeners"].rpartition(":")[2])
    try:
        async with asyncio.timeout(WAIT_S):
            while b"the controller is active" not in await process.stderr.readline():
                assert process.returncode is None
        soft, _ = resource.prlimit(process.pid, resource.RLIMIT_NOFILE)
        async with ControllerClient(
            [(HOST, port)], timeout_ms=WAIT_S * 1000, transport=chosen()
        ) as client:
            await client.write(change(0))
            with ExitStack() as connections:
                for _ in range(LIMIT):
                    connections.enter_context(socket.create_connection((HOST, port)))
                await asyncio.to_thread(until_full, process.pid, soft)
                for number in range(1, 21):
                    await client.write(change(number))
                assert segments(properties["metadata.log.dir"]) > 5
        async with ControllerClient(
            [(HOST, port)], timeout_ms=WAIT_S * 1000, transport=chosen()
        ) as client:
            await client.write(change(99))
        process.send_signal(signal.SIGTERM)
        rest = (await process.communicate())[1]
    finally:
        with suppress(ProcessLookupError):
            process.kill()
    assert process.returncode == 0
    assert b"the disk failed" not in rest
