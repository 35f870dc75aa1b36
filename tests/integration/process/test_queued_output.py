"""Services whose output stands in a full pipe: they start, serve and stop all the same."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from subprocess import DEVNULL
from typing import TYPE_CHECKING

import pytest

from quorate.client.controller_client import ControllerClient
from quorate.controller.topics.messages import ListTopics
from tests.integration.process.started import (
    COMMAND,
    CONTROLLER,
    WAIT_S,
    full_pipe,
    lines_of,
    start,
    status_of,
)
from tests.integration.quorum import free_quorum
from tests.integration.server.conftest import properties
from tests.integration.transports import EACH, chosen
from tests.ports import HOST

if TYPE_CHECKING:
    from asyncio.subprocess import Process
    from pathlib import Path

__all__ = ["properties"]


def written(folder: Path, settings: dict[str, str]) -> str:
    path = folder / "controller.properties"
    path.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
    return str(path)


async def answers(port: int) -> None:
    server = (HOST, port)
    async with ControllerClient([server], timeout_ms=WAIT_S * 1000, transport=chosen()) as client:
        await client.read(ListTopics())


@EACH
async def test_a_controller_serves_and_stops_while_its_log_is_not_read(
    tmp_path: Path, properties: dict[str, str]
) -> None:
    reader, writer = full_pipe()
    port = int(properties["listeners"].rpartition(":")[2])
    process = await start(*CONTROLLER, "--config", written(tmp_path, properties), stderr=writer)
    os.close(writer)
    try:
        await answers(port)
        process.send_signal(signal.SIGTERM)
    finally:
        status = await status_of(process)
    assert status == 0
    os.close(reader)


async def test_the_log_is_whole_and_in_order_once_it_is_read(
    tmp_path: Path, properties: dict[str, str]
) -> None:
    reader, writer = full_pipe()
    port = int(properties["listeners"].rpartition(":")[2])
    process = await start(*CONTROLLER, "--config", written(tmp_path, properties), stderr=writer)
    os.close(writer)
    try:
        await answers(port)
        process.send_signal(signal.SIGTERM)
        told = [line async for line in lines_of(reader) if line.strip("x")]
    finally:
        status = await status_of(process)
    assert status == 0
    marks = ["settings: ", "the controller is active", "shutting down", "ending=STOPPED"]
    places = [next(i for i, line in enumerate(told) if mark in line) for mark in marks]
    assert places == sorted(places)
    assert places[0] == 0
    assert places[-1] == len(told) - 1


@pytest.mark.parametrize("service", ["controller", "admin"])
async def test_a_refusal_ends_the_process_whose_stderr_is_not_read(
    tmp_path: Path, service: str
) -> None:
    reader, writer = full_pipe()
    missing = str(tmp_path / "missing.properties")
    process = await start(*COMMAND, service, "--config", missing, stderr=writer)
    os.close(writer)
    assert await status_of(process) == 1
    os.close(reader)


async def test_a_refusal_is_the_last_line_of_a_stderr_that_is_read(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    missing = str(tmp_path / "missing.properties")
    process = await start(*COMMAND, "controller", "--config", missing, stderr=writer)
    os.close(writer)
    told = [line async for line in lines_of(reader)]
    assert await status_of(process) == 1
    assert told[-1].startswith(f"quorate controller: {missing}: No such file or directory")


async def test_up_serves_and_stops_while_its_output_is_not_read(tmp_path: Path) -> None:
    root = tmp_path / "quorum"
    quorum = free_quorum(root, 1)
    reader, writer = full_pipe()
    flags = ("--controllers", "1", "--base-port", str(quorum.base_port), "--data-dir", str(root))
    process = await start(*COMMAND, "up", *flags, stdout=writer)
    os.close(writer)
    try:
        await answers(quorum.base_port)
        process.send_signal(signal.SIGTERM)
    finally:
        status = await status_of(process)
    assert status == 0
    assert "ending=STOPPED" in (root / "1" / "controller.log").read_text()
    os.close(reader)


CRASH = """
import sys
from quorate.process.queued_output import queue_standard_streams
queue_standard_streams()
raise RuntimeError("the last words")
"""
FORK = """
import os, sys, warnings
from quorate.process.queued_output import queue_standard_streams
warnings.simplefilter("ignore")
queue_standard_streams()
print("before", flush=True)
child = os.fork()
if child:
    os.waitpid(child, 0)
    print("parent")
else:
    print("child")
"""


async def output_of(program: str, stream: str) -> tuple[int, list[str]]:
    reader, writer = os.pipe()
    process: Process = await start("-c", program, **{stream: writer})
    os.close(writer)
    told = [line async for line in lines_of(reader)]
    return await status_of(process), told


async def test_a_traceback_is_written_before_the_end() -> None:
    status, told = await output_of(CRASH, "stderr")
    assert status == 1
    assert told[0] == "Traceback (most recent call last):"
    assert told[-1] == "RuntimeError: the last words"


async def test_a_traceback_does_not_keep_a_process_whose_stderr_is_not_read() -> None:
    reader, writer = full_pipe()
    process = await start("-c", CRASH, stderr=writer)
    os.close(writer)
    assert await status_of(process) == 1
    os.close(reader)


async def test_a_forked_child_writes_its_own_lines_once() -> None:
    assert await output_of(FORK, "stdout") == (0, ["before", "child", "parent"])


async def test_a_stream_that_was_closed_before_the_start_is_left_out(tmp_path: Path) -> None:
    command = f'exec "$0" -m quorate.cli.main controller --config {tmp_path}/missing 2>&-'
    process = await asyncio.create_subprocess_exec(
        "sh", "-c", command, sys.executable, stdout=DEVNULL, env={**os.environ}
    )
    assert await status_of(process) == 1


async def test_a_controller_whose_standard_descriptors_were_closed_stops_in_order(
    tmp_path: Path, properties: dict[str, str]
) -> None:
    port = int(properties["listeners"].rpartition(":")[2])
    command = 'exec "$0" -m quorate.cli.main controller --config "$1" <&- >&- 2>&-'
    process = await asyncio.create_subprocess_exec(
        "sh", "-c", command, sys.executable, written(tmp_path, properties), env={**os.environ}
    )
    try:
        await answers(port)
        opened = [os.readlink(f"/proc/{process.pid}/fd/{number}") for number in range(3)]
        process.send_signal(signal.SIGTERM)
    finally:
        status = await status_of(process)
    assert opened == [os.devnull] * 3
    assert status == 0
