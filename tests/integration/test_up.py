"""`quorate up` as a user has it: ready, a death that is healed, a graceful end, a second start.

Its output goes to a pipe, a terminal that knows no cursor, a full disk, or a reader that is gone.
"""

from __future__ import annotations

import asyncio
import os
import pty
import re
import signal
import socket
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from quorate.client.controller_client import ControllerClient
from tests.integration.quorum import DEADLINE_S, POLL_S, free_quorum

if TYPE_CHECKING:
    from asyncio.subprocess import Process

STARTED = re.compile(r"controller (\d+): started, pid (\d+)")


async def up(
    root: Path,
    *flags: str,
    directory: Path | None = None,
    stdout: int = asyncio.subprocess.PIPE,
    **variables: str,
) -> Process:
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-m", "quorate.cli.main", "up", "--data-dir", str(root), *flags),
        cwd=directory,
        stdout=stdout,
        stderr=asyncio.subprocess.PIPE,
        env=os.environ | variables,
    )


async def end(process: Process) -> None:
    """Leave no process behind where a test fails."""
    if process.returncode is None:
        process.terminate()
        await process.communicate()


async def read_until(process: Process, pattern: str) -> list[str]:
    """The lines up to the first that matches."""
    assert process.stdout is not None
    lines: list[str] = []
    async with asyncio.timeout(DEADLINE_S):
        while not (lines and re.search(pattern, lines[-1])):
            line = (await process.stdout.readline()).decode()
            assert line, f"{pattern!r} never came: {lines}"
            lines.append(line.rstrip("\n"))
    return lines


async def stop(process: Process, number: signal.Signals) -> None:
    process.send_signal(number)
    async with asyncio.timeout(DEADLINE_S):
        await process.communicate()
    assert process.returncode == 0


def pids(lines: list[str]) -> dict[int, int]:
    return {int(m[1]): int(m[2]) for m in map(STARTED.fullmatch, lines) if m}


def files_of(pid: int) -> list[str]:
    """The files that a process has open."""
    return [os.readlink(path) for path in Path(f"/proc/{pid}/fd").iterdir()]


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


async def test_up_is_ready_heals_a_death_stops_and_resumes(tmp_path: Path) -> None:
    root = tmp_path / "quorum"
    base_port = free_quorum(root).base_port
    process = await up(root, "--base-port", str(base_port))
    try:
        lines = await read_until(process, "^ready$")
        started = pids(lines)
        assert sorted(started) == [1, 2, 3]
        os.kill(started[2], signal.SIGKILL)
        await read_until(process, "^controller 2: down, killed by SIGKILL")
        started |= pids(await read_until(process, "^controller 2: started"))
        await read_until(process, "^controller 2: (Leader|Follower)")
        await stop(process, signal.SIGTERM)
        assert [pid for pid in started.values() if is_alive(pid)] == []
        process = await up(root)
        started = pids(await read_until(process, "^ready$"))
        await stop(process, signal.SIGINT)
        assert [pid for pid in started.values() if is_alive(pid)] == []
    finally:
        await end(process)


async def ended(pid: int) -> None:
    """Wait for the end of a process that is not a child of this one."""
    loop = asyncio.get_running_loop()
    over = asyncio.Event()
    descriptor = os.pidfd_open(pid)
    try:
        loop.add_reader(descriptor, over.set)
        async with asyncio.timeout(DEADLINE_S):
            await over.wait()
    finally:
        loop.remove_reader(descriptor)
        os.close(descriptor)


async def test_controllers_end_with_up_even_where_it_is_killed(tmp_path: Path) -> None:
    root = tmp_path / "quorum"
    process = await up(root, "--base-port", str(free_quorum(root).base_port))
    started: dict[int, int] = {}
    try:
        started = pids(await read_until(process, "^ready$"))
        process.kill()
        await asyncio.gather(*(ended(pid) for pid in started.values()))
        logs = [(root / str(node) / "controller.log").read_text() for node in started]
        assert [log for log in logs if "ending=STOPPED" not in log] == []
    finally:
        for pid in filter(is_alive, started.values()):
            os.kill(pid, signal.SIGKILL)
        await process.communicate()


async def test_a_busy_port_is_an_error_that_names_it(tmp_path: Path) -> None:
    root = tmp_path / "quorum"
    base_port = free_quorum(root).base_port
    # As a server does it, to whom a port that was in use a moment ago is free.
    with socket.create_server(("127.0.0.1", base_port + 101)):
        process = await up(root, "--base-port", str(base_port))
        _, stderr = await process.communicate()
    assert process.returncode == 1
    assert f"port {base_port + 101} (health of controller 2) is busy" in stderr.decode()
    assert not root.exists()


async def test_modules_of_the_working_directory_are_not_imported(tmp_path: Path) -> None:
    (tmp_path / "random.py").write_text("raise SystemExit('imported from the working directory')")
    base_port = free_quorum(tmp_path / "data").base_port
    flags = ("--base-port", str(base_port), "--controllers", "1")
    # A relative path stays one of the directory in which the command was given.
    process = await up(Path("data"), *flags, directory=tmp_path)
    try:
        await read_until(process, "^ready$")
        assert (tmp_path / "data/1/controller.log").exists()
    finally:
        process.terminate()
        await process.communicate()


async def test_a_second_up_on_the_directory_names_the_first(tmp_path: Path) -> None:
    root = tmp_path / "quorum"
    flags = ("--controllers", "1", "--base-port", str(free_quorum(root).base_port))
    both = await asyncio.gather(up(root, *flags), up(root, *flags))
    try:
        async with asyncio.timeout(DEADLINE_S):
            done, _ = await asyncio.wait(
                [asyncio.create_task(process.wait(), name=str(process.pid)) for process in both],
                return_when=asyncio.FIRST_COMPLETED,
            )
        (refused,) = (
            process for process in both if str(process.pid) in {t.get_name() for t in done}
        )
        (first,) = (process for process in both if process is not refused)
        _, stderr = await refused.communicate()
        assert refused.returncode == 1
        assert f"/.lock is held by process {first.pid}: " in stderr.decode()
        ready = pids(await read_until(first, "^ready$"))
        # A controller that outlives `up` holds no lock of it.
        opened = files_of(ready[1])
        assert str(root / "1" / "controller.log") in opened
        assert str(root / ".lock") not in opened
        await stop(first, signal.SIGTERM)
    finally:
        for process in both:
            await end(process)


async def test_a_terminal_without_a_cursor_gets_each_change_as_a_line(tmp_path: Path) -> None:
    root = tmp_path / "quorum"
    flags = ("--controllers", "1", "--base-port", str(free_quorum(root).base_port))
    terminal, other = pty.openpty()
    reader = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    transport, _ = await loop.connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(terminal, "rb", 0)
    )
    process = await up(root, *flags, stdout=other, TERM="dumb")
    os.close(other)
    lines: list[str] = []

    async def seen(pattern: str) -> None:
        async with asyncio.timeout(DEADLINE_S):
            while not (lines and re.search(pattern, lines[-1])):
                lines.append((await reader.readuntil(b"\r\n")).decode().rstrip("\r\n"))

    try:
        await seen("^ready$")
        os.kill(pids(lines)[1], signal.SIGKILL)
        await seen("^controller 1: down, killed by SIGKILL")
        await stop(process, signal.SIGTERM)
        assert "\x1b" not in "".join(lines)
    finally:
        transport.close()
        await end(process)


async def test_a_pipe_gets_lines_even_where_colors_are_forced(tmp_path: Path) -> None:
    root = tmp_path / "quorum"
    flags = ("--controllers", "1", "--base-port", str(free_quorum(root).base_port))
    process = await up(root, *flags, FORCE_COLOR="1")
    try:
        lines = await read_until(process, "^ready$")
        assert pids(lines).keys() == {1}
        assert "\x1b" not in "".join(lines)
        await stop(process, signal.SIGTERM)
    finally:
        await end(process)


@pytest.mark.parametrize("place", ["full disk", "gone reader"])
async def test_a_quorum_runs_and_stops_without_a_reader_of_its_output(
    tmp_path: Path, place: str
) -> None:
    root = tmp_path / "quorum"
    quorum = free_quorum(root)
    if place == "full disk":
        output = os.open("/dev/full", os.O_WRONLY)
    else:
        reader, output = os.pipe()
        os.close(reader)
    flags = ("--controllers", "1", "--base-port", str(quorum.base_port))
    process = await up(root, *flags, stdout=output)
    os.close(output)
    try:
        address = quorum.nodes[0].address
        async with ControllerClient([address]) as client, asyncio.timeout(DEADLINE_S):
            while isinstance(await client.try_describe_at(address, 1.0), str):  # noqa: ASYNC110
                await asyncio.sleep(POLL_S)
        await stop(process, signal.SIGTERM)
        assert "ending=STOPPED" in (root / "1" / "controller.log").read_text()
    finally:
        await end(process)


async def test_a_directory_with_a_backslash_and_a_line_break_is_as_good_as_others(
    tmp_path: Path,
) -> None:
    root = tmp_path / "a\\tb\nc"
    base_port = free_quorum(tmp_path / "other").base_port
    process = await up(root, "--controllers", "1", "--base-port", str(base_port))
    try:
        await read_until(process, "^ready$")
        await stop(process, signal.SIGTERM)
    finally:
        await end(process)
