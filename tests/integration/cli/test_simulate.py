"""`quorate simulate` in a terminal: Ctrl-C reaches all of its processes."""

from __future__ import annotations

import asyncio
import os
import signal
import sys

from tests.integration.quorum import DEADLINE_S


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
