"""Processes of this package whose stderr and stdout are pipes that the test reads, or does not."""

from __future__ import annotations

import asyncio
import os
import sys
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from asyncio.subprocess import Process
    from collections.abc import AsyncIterator

WAIT_S: Final = 60
CONTROLLER: Final = ("-m", "quorate.server")
COMMAND: Final = ("-m", "quorate.cli.main")


def full_pipe() -> tuple[int, int]:
    """A pipe that has no space for another byte: its reader, and its blocking writer."""
    reader, writer = os.pipe()
    # Written through a descriptor of its own, so that the one for the process stays blocking.
    filling = os.open(f"/proc/self/fd/{writer}", os.O_WRONLY | os.O_NONBLOCK)
    try:
        for size in (4096, 1):
            while True:
                try:
                    os.write(filling, b"x" * (size - 1) + b"\n")
                except BlockingIOError:
                    break
    finally:
        os.close(filling)
    return reader, writer


async def start(*arguments: str, stdout: int | None = None, stderr: int | None = None) -> Process:
    """Python with these arguments; the caller ends the process."""
    environment = {**os.environ, "PYTHONPATH": "services"}
    return await asyncio.create_subprocess_exec(
        sys.executable, *arguments, env=environment, stdout=stdout, stderr=stderr
    )


async def status_of(process: Process) -> int:
    """The exit status; a process that does not end fails the test, and is killed."""
    try:
        async with asyncio.timeout(WAIT_S):
            return await process.wait()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def lines_of(reader: int) -> AsyncIterator[str]:
    """The lines that come out of a pipe, which this closes."""
    stream = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    transport, _ = await loop.connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(stream), os.fdopen(reader, "rb")
    )
    try:
        async with asyncio.timeout(WAIT_S):
            async for line in stream:
                yield line.decode().rstrip("\n")
    finally:
        transport.close()
