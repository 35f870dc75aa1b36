"""A dead controller is started again in time, and its end is reported in plain text.

The processes themselves are in the integration tests of `up`.
"""

from __future__ import annotations

import asyncio
import errno
from typing import TYPE_CHECKING

import pytest

from quorate.cli import log_files, supervisor
from quorate.cli.local_quorum import NodePlan
from quorate.cli.log_files import older_log
from quorate.cli.supervisor import (
    BACKOFF_MAX_S,
    BACKOFF_MIN_S,
    Supervisor,
    describe_exit,
    next_backoff_s,
)

if TYPE_CHECKING:
    from pathlib import Path


def test_the_backoff_doubles_up_to_a_limit_while_a_process_dies_young() -> None:
    waits = [BACKOFF_MIN_S]
    for _ in range(6):
        waits.append(next_backoff_s(waits[-1], lived_s=0.1))
    assert waits == [1, 2, 4, 8, 16, 30, BACKOFF_MAX_S]


def test_a_process_that_lived_for_a_while_starts_from_the_shortest_wait() -> None:
    assert next_backoff_s(BACKOFF_MAX_S, lived_s=60) == BACKOFF_MIN_S


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (0, "exit status 0"),
        (1, "exit status 1"),
        (-9, "killed by SIGKILL"),
        (-99, "killed by signal 99"),
    ],
)
def test_an_exit_is_put_into_words(status: int, words: str) -> None:
    assert describe_exit(status) == words


class Running:
    """A process that runs until it is stopped."""

    def __init__(self, pid: int = 4711) -> None:
        self.pid = pid
        self._is_over = asyncio.Event()

    async def wait(self) -> int:
        await self._is_over.wait()
        return 0

    def terminate(self) -> None:
        self._is_over.set()


async def test_the_log_of_a_controller_that_runs_is_shortened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def spawn(_: NodePlan) -> Running:
        return Running()

    monkeypatch.setattr(supervisor, "_spawn", spawn)
    monkeypatch.setattr(supervisor, "LOOK_EVERY_S", 0.0)
    monkeypatch.setattr(log_files, "LOG_BYTES_MAX", 10)
    said: asyncio.Queue[str] = asyncio.Queue()
    node = NodePlan(1, 9094, tmp_path)
    supervised = Supervisor([node], said.put_nowait)
    # The first problem is reported once, not at each look.
    older_log(node.output_path).mkdir()
    node.output_path.write_bytes(b"more than ten bytes")
    supervised.start()
    assert await said.get() == "controller 1: started, pid 4711"
    problem = f"{node.output_path} cannot be shortened: Is a directory"
    assert await said.get() == problem
    older_log(node.output_path).rmdir()
    async with asyncio.timeout(60):
        while node.output_path.read_bytes():  # noqa: ASYNC110 - it has no event to await
            await asyncio.sleep(0)
    await supervised.stop()
    assert older_log(node.output_path).read_bytes() == b"more than ten bytes"
    assert said.empty()


async def test_a_controller_that_cannot_be_started_is_told_of_with_its_file(tmp_path: Path) -> None:
    node = NodePlan(1, 9094, tmp_path)
    node.output_path.mkdir()
    said: asyncio.Queue[str] = asyncio.Queue()
    keeper = Supervisor([node], said.put_nowait)
    keeper.start()
    try:
        async with asyncio.timeout(10):
            line = await said.get()
            again = await said.get()
    finally:
        await keeper.stop()
    assert line.startswith("controller 1: cannot be started: ")
    assert str(node.output_path) in line
    assert keeper.children[0].note in again


@pytest.mark.parametrize(
    ("problem", "told"),
    [
        (RuntimeError("can't start new thread"), "can't start new thread"),
        (
            OSError(errno.EMFILE, "Too many open files"),
            "its process: Too many open files: raise the limit of open files (ulimit -n)",
        ),
    ],
)
async def test_what_the_machine_lacks_delays_a_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, problem: Exception, told: str
) -> None:
    problems = [problem]

    async def spawn(_: NodePlan) -> Running:
        if problems:
            raise problems.pop()
        return Running()

    monkeypatch.setattr(supervisor, "_spawn", spawn)
    monkeypatch.setattr(supervisor, "BACKOFF_MIN_S", 0.0)
    said: asyncio.Queue[str] = asyncio.Queue()
    supervised = Supervisor([NodePlan(1, 9094, tmp_path)], said.put_nowait)
    supervised.start()
    async with asyncio.timeout(10):
        first, second = await said.get(), await said.get()
    await supervised.stop()
    assert first == f"controller 1: cannot be started: {told}; tries again in 0 s"
    assert second == "controller 1: started, pid 4711"


async def test_a_keeper_that_fails_is_told_and_the_others_are_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = Running()
    has_failed = asyncio.Event()

    async def spawn(node: NodePlan) -> Running:
        if node.node_id == 1:
            has_failed.set()
            raise AssertionError("a bug")
        return other

    monkeypatch.setattr(supervisor, "_spawn", spawn)
    said: asyncio.Queue[str] = asyncio.Queue()
    nodes = [NodePlan(1, 9094, tmp_path), NodePlan(2, 9095, tmp_path)]
    supervised = Supervisor(nodes, said.put_nowait)
    supervised.start()
    supervised.check()
    assert await said.get() == "controller 2: started, pid 4711"
    assert has_failed.is_set()
    with pytest.raises(AssertionError, match="a bug"):
        supervised.check()
    await supervised.stop()
    assert await other.wait() == 0


class JustEnded(Running):
    """A process that has ended when its signal comes."""

    def terminate(self) -> None:
        super().terminate()
        raise ProcessLookupError


async def test_a_controller_that_ends_by_itself_meanwhile_does_not_keep_others_from_their_stop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    processes = {1: JustEnded(pid=1), 2: Running(pid=2)}

    async def spawn(node: NodePlan) -> Running:
        return processes[node.node_id]

    monkeypatch.setattr(supervisor, "_spawn", spawn)
    said: asyncio.Queue[str] = asyncio.Queue()
    nodes = [NodePlan(1, 9094, tmp_path), NodePlan(2, 9095, tmp_path)]
    supervised = Supervisor(nodes, said.put_nowait)
    supervised.start()
    assert {await said.get(), await said.get()} == {
        "controller 1: started, pid 1",
        "controller 2: started, pid 2",
    }
    await supervised.stop()
    assert await processes[2].wait() == 0
