"""Runs and restarts the controller processes of a local quorum, each by its own pid.

A controller that dies is restarted after one second, after twice as long each time it dies again,
up to half a minute; one that lived for a while starts from one second again. Each has a session of
its own, so that Ctrl-C reaches only the supervisor, which stops them in order. Their standard input
is a pipe without a writer: it ends with the supervisor, however that ends, and the controllers stop
with it.
"""

from __future__ import annotations

import asyncio
import signal
import sys
from asyncio.subprocess import PIPE
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from quorate.cli.log_files import LOOK_EVERY_S, open_log, shorten_log
from quorate.storage.errors import problem_of

if TYPE_CHECKING:
    from asyncio.subprocess import Process
    from collections.abc import Callable, Sequence

    from quorate.cli.local_quorum import NodePlan

BACKOFF_MIN_S: Final = 1.0
BACKOFF_MAX_S: Final = 30.0
LIVED_LONG_S: Final = 10.0
STOP_TIMEOUT_S: Final = 15.0


def next_backoff_s(backoff_s: float, lived_s: float) -> float:
    """The wait in seconds before the start after this one."""
    if lived_s >= LIVED_LONG_S:
        return BACKOFF_MIN_S
    return min(backoff_s * 2, BACKOFF_MAX_S)


def describe_exit(status: int) -> str:
    """The end of a process, as text."""
    if status >= 0:
        return f"exit status {status}"
    try:
        return f"killed by {signal.Signals(-status).name}"
    except ValueError:
        return f"killed by signal {-status}"


@dataclass(slots=True)
class Child:
    """One controller process; `pid` is None while it is down, and `note` then gives the reason."""

    node: NodePlan
    pid: int | None = None
    note: str = "starting"


class Supervisor:
    """Starts, restarts and stops the controllers."""

    def __init__(self, nodes: Sequence[NodePlan], say: Callable[[str], None]) -> None:
        """`say` gets a line for each start and each death."""
        self.children = [Child(node) for node in nodes]
        self._say = say
        self._processes: dict[int, Process] = {}
        self._stopping = asyncio.Event()
        self._keepers: list[asyncio.Task[None]] = []
        self._log_keeper: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Start all; returns without waiting for them."""
        loop = asyncio.get_running_loop()
        self._keepers = [loop.create_task(self._keep(child)) for child in self.children]
        self._log_keeper = loop.create_task(self._keep_logs_short())

    async def _keep(self, child: Child) -> None:
        loop = asyncio.get_running_loop()
        backoff_s = BACKOFF_MIN_S
        while not self._stopping.is_set():
            started = loop.time()
            try:
                process = await _spawn(child.node)
            except (OSError, RuntimeError) as error:
                # The log cannot be opened, or the machine has no more processes, descriptors or
                # threads.
                why = problem_of(error, "its process") if isinstance(error, OSError) else error
                again = f"cannot be started: {why}; tries again in {backoff_s:g} s"
                child.note = again
                self._say(f"controller {child.node.node_id}: {again}")
                await self._pause(backoff_s)
                backoff_s = next_backoff_s(backoff_s, 0.0)
                continue
            self._processes[process.pid] = process
            child.pid, child.note = process.pid, ""
            self._say(f"controller {child.node.node_id}: started, pid {process.pid}")
            if self._stopping.is_set():
                process.terminate()
            status = await process.wait()
            del self._processes[process.pid]
            child.pid, child.note = None, describe_exit(status)
            if self._stopping.is_set():
                return
            lived_s = loop.time() - started
            if lived_s >= LIVED_LONG_S:
                backoff_s = BACKOFF_MIN_S
            child.note += f", starts again in {backoff_s:g} s; see {child.node.output_path}"
            self._say(f"controller {child.node.node_id}: down, {child.note}")
            await self._pause(backoff_s)
            backoff_s = next_backoff_s(backoff_s, lived_s)

    async def _keep_logs_short(self) -> None:
        problem = ""
        while True:
            await asyncio.sleep(LOOK_EVERY_S)
            before, problem = problem, ""
            for child in self.children:
                path = child.node.output_path
                try:
                    await asyncio.to_thread(shorten_log, path)
                except (OSError, RuntimeError) as error:
                    what = error.strerror if isinstance(error, OSError) else error
                    problem = f"{path} cannot be shortened: {what}"
            if problem and problem != before:
                self._say(problem)

    def check(self) -> None:
        """Raise the error that ended a task for a controller or its log; that is a bug."""
        tasks = [*self._keepers, *filter(None, [self._log_keeper])]
        for task in tasks:
            if task.done():
                task.result()

    async def _pause(self, backoff_s: float) -> None:
        """Wait so long, or until the supervisor stops."""
        with suppress(TimeoutError):
            async with asyncio.timeout(backoff_s):
                await self._stopping.wait()

    async def stop(self) -> None:
        """SIGTERM to all, by their pids; what has not ended after a while is killed."""
        self._stopping.set()
        if self._log_keeper is not None:
            self._log_keeper.cancel()
        for process in list(self._processes.values()):
            # A process that has exited in the meantime needs no signal.
            with suppress(ProcessLookupError):
                process.terminate()
        _, late = await asyncio.wait(self._keepers, timeout=STOP_TIMEOUT_S)
        for process in list(self._processes.values()):
            self._say(f"pid {process.pid} has not stopped in {STOP_TIMEOUT_S:g} s, is killed")
            with suppress(ProcessLookupError):
                process.kill()
        if late:
            await asyncio.wait(late)


async def _spawn(node: NodePlan) -> Process:
    with open_log(node.output_path) as output:
        return await asyncio.create_subprocess_exec(
            sys.executable,
            # Without it a module in the working directory takes precedence over Python's own.
            "-P",
            "-m",
            "quorate.server",
            "--config",
            str(node.properties_path),
            "--stop-with-stdin",
            stdin=PIPE,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
