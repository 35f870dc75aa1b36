"""`quorate simulate` on several processes: Ctrl-C reaches all, other signals the first one only."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

import pytest

from tests.integration.quorum import DEADLINE_S

SCRIPT = """
import sys
from quorate.cli.main import main
if __name__ == "__main__":
    sys.exit(main())
"""


async def test_ctrl_c_ends_all_processes_and_leaves_a_summary() -> None:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "quorate.cli.main", "simulate", "--jobs", "2"),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,
    )
    assert process.stdout is not None
    async with asyncio.timeout(DEADLINE_S):
        told = await process.stdout.readline()
        seed = await process.stdout.readline()
        os.killpg(process.pid, signal.SIGINT)
        rest, errors = await process.communicate()
    assert told.startswith(b"from a seed that the clock chose; repeat: quorate simulate --seeds ")
    assert seed.startswith(b"seed ")
    assert b" run, 0 failed\n" in rest.splitlines(keepends=True)[-1]
    assert errors == b""
    assert process.returncode == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
async def test_no_process_outlives_the_first_one(number: signal.Signals) -> None:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "quorate.cli.main", "simulate", "--jobs", "2"),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    assert process.stdout is not None
    async with asyncio.timeout(DEADLINE_S):
        await process.stdout.readline()
        await process.stdout.readline()
        ends = [os.pidfd_open(pid) for pid in children(process.pid)]
        # One of them is multiprocessing's own.
        assert len(ends) >= 2
        process.send_signal(number)
        await process.communicate()
        await asyncio.gather(*map(ended, ends))


def children(pid: int) -> list[int]:
    lists = Path(f"/proc/{pid}/task").glob("*/children")
    return [int(child) for each in lists for child in each.read_text(encoding="ascii").split()]


async def ended(pidfd: int) -> None:
    """Until that process is gone: then its descriptor can be read."""
    over = asyncio.Event()
    asyncio.get_running_loop().add_reader(pidfd, over.set)
    try:
        await over.wait()
    finally:
        asyncio.get_running_loop().remove_reader(pidfd)
        os.close(pidfd)


async def test_modules_of_the_working_directory_are_not_imported(tmp_path: Path) -> None:
    # As installed: the path of this process has the folder of the script instead.
    script = tmp_path / "bin" / "quorate"
    script.parent.mkdir()
    script.write_text(SCRIPT)
    (tmp_path / "socket.py").write_text("raise SystemExit('imported from the working directory')")
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, str(script), "simulate", "--jobs", "2", "--seeds", "1-2"),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        cwd=tmp_path,
    )
    async with asyncio.timeout(DEADLINE_S):
        output, errors = await process.communicate()
    assert (process.returncode, errors) == (0, b"")
    assert b" run, 0 failed\n" in output
