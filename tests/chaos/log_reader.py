"""Reads the stdout and stderr of a controller through a pipe, and can be suspended.

The reader is a process of its own that copies to a file, because a controller whose test process is
busy must not wait for it.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import signal
from contextlib import suppress
from typing import TYPE_CHECKING, Final, Self

if TYPE_CHECKING:
    from asyncio.subprocess import Process
    from pathlib import Path

# The smallest pipe that Linux has: a few lines fill it.
PIPE_BYTES: Final = 4096
_END_S: Final = 5.0


class LogReader:
    """A pipe with a reader. `output` is the end to write to, until `start` has handed it on."""

    def __init__(self, process: Process, output: int) -> None:
        self.output = output
        self._process = process
        self._stands_still = False

    @classmethod
    async def start(cls, path: Path) -> Self:
        """A reader that appends to a file. It ends with this process, or with its last writer."""
        source, output = os.pipe()
        with path.open("ab") as file:
            process = await asyncio.create_subprocess_exec(
                *("setpriv", "--pdeathsig", "KILL", "cat"), stdin=source, stdout=file
            )
        os.close(source)
        fcntl.fcntl(output, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
        return cls(process, output)

    def handed_on(self) -> None:
        """The writer has its end of the pipe."""
        os.close(self.output)

    def stand_still(self, writer: int) -> None:
        """Read no more, and leave no room in the pipe of the process with that id."""
        self._stands_still = True
        self._process.send_signal(signal.SIGSTOP)
        # A reader that the signal has not reached yet would take what fills the pipe.
        os.waitid(os.P_PID, self._process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
        output = os.open(f"/proc/{writer}/fd/2", os.O_WRONLY | os.O_NONBLOCK)
        try:
            with suppress(BlockingIOError):
                while True:
                    os.write(output, b"\n")
        finally:
            os.close(output)

    def go_on(self) -> None:
        """Read again."""
        # A signal to a reader that has ended would take its status from asyncio.
        if self._stands_still:
            self._stands_still = False
            self._process.send_signal(signal.SIGCONT)

    async def end(self) -> None:
        """Wait until everything is copied; the writer has ended."""
        self.go_on()
        try:
            await asyncio.wait_for(self._process.wait(), _END_S)
        except TimeoutError:
            self._process.kill()
            await self._process.wait()
