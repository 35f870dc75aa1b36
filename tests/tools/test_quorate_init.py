"""deploy/images/quorate/quorate-init: a signal to the container reaches its command immediately."""

from __future__ import annotations

import asyncio
import os
import signal
from asyncio.subprocess import PIPE
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from tests.integration.process.started import WAIT_S, status_of
from tests.lacking import lack

if TYPE_CHECKING:
    from asyncio.subprocess import Process

INIT: Final = Path(__file__).resolve().parents[2] / "deploy/images/quorate/quorate-init"
# The shell waits for its command, as that of the init container does.
WITHOUT_HANDLER: Final = "echo started; sleep 3600; echo over"
WITH_HANDLER: Final = "trap 'echo in order; exit 3' TERM; echo started; sleep 3600 & wait"


async def contained(script: str) -> Process:
    """A shell below the first process of a PID namespace."""
    if os.geteuid() != 0:
        lack("a PID namespace needs root: sudo make test")
    return await asyncio.create_subprocess_exec(
        *("unshare", "--fork", "--pid", "--kill-child", str(INIT), "sh", "-c", script),
        stdin=PIPE,
        stdout=PIPE,
    )


def first_process(namespace: Process) -> int:
    """The process that is number 1 in there, by its number out here."""
    (child,) = Path(f"/proc/{namespace.pid}/task/{namespace.pid}/children").read_text().split()
    return int(child)


async def stopped(script: str, number: signal.Signals) -> tuple[int, str]:
    """The status and the output of a script that is stopped once it has started."""
    process = await contained(script)
    assert process.stdout is not None
    try:
        async with asyncio.timeout(WAIT_S):
            said = (await process.stdout.readline()).decode()
            assert said == "started\n"
            os.kill(first_process(process), number)
            said += (await process.stdout.read()).decode()
    finally:
        status = await status_of(process)
    return status, said


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
async def test_a_command_that_cannot_hear_yet_ends_at_once(number: signal.Signals) -> None:
    assert await stopped(WITHOUT_HANDLER, number) == (128 + signal.SIGTERM, "started\n")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
async def test_a_command_that_hears_stops_in_order(number: signal.Signals) -> None:
    assert await stopped(WITH_HANDLER, number) == (3, "started\nin order\n")


async def test_a_command_has_its_input_and_its_status_is_the_containers() -> None:
    process = await contained("cat; exit 7")
    async with asyncio.timeout(WAIT_S):
        out, _ = await process.communicate(b"words")
    assert (process.returncode, out) == (7, b"words")


async def test_beside_other_processes_the_command_takes_its_place() -> None:
    process = await asyncio.create_subprocess_exec(str(INIT), "sh", "-c", "echo $$", stdout=PIPE)
    out, _ = await process.communicate()
    assert int(out) == process.pid
