"""Stop signals of real processes, from the moment in which they load their service."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path
from subprocess import PIPE
from typing import TYPE_CHECKING

import pytest

from tests.integration.process.started import CONTROLLER, WAIT_S, start, status_of
from tests.integration.quorum import free_quorum
from tests.integration.server.conftest import properties
from tests.lacking import lack
from tests.ports import HOST, free_ports

if TYPE_CHECKING:
    from asyncio.subprocess import Process

__all__ = ["properties"]

# Sends itself a signal in the middle of its imports.
HIT = """
import os, signal, sys
number, module = int(sys.argv.pop(1)), sys.argv.pop(1)
class Hit:
    def find_spec(self, name, path=None, target=None):
        if name == module:
            os.kill(os.getpid(), number)
sys.meta_path.insert(0, Hit())
from quorate.cli.main import main
sys.exit(main())
"""


def written(folder: Path, settings: dict[str, str]) -> str:
    path = folder / "service.properties"
    path.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
    return str(path)


async def hit(number: signal.Signals, module: str, *command: str) -> tuple[int, str, str]:
    """The status, stdout and stderr of a command that gets the signal while it loads this."""
    process = await start("-c", HIT, str(int(number)), module, *command, stdout=PIPE, stderr=PIPE)
    try:
        async with asyncio.timeout(WAIT_S):
            out, error = await process.communicate()
    finally:
        status = await status_of(process)
    return status, out.decode(), error.decode()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
async def test_a_signal_while_the_controller_loads_stops_it_in_order(
    tmp_path: Path, properties: dict[str, str], number: signal.Signals
) -> None:
    path = written(tmp_path, properties)
    status, _, log = await hit(number, "quorate.server.service", "controller", "--config", path)
    assert status == 0
    assert "ending=STOPPED" in log
    assert "serving" not in log


async def test_a_signal_while_the_sidecar_loads_stops_it_in_order(tmp_path: Path) -> None:
    admin, health, metrics = free_ports(3)
    settings = {
        "node.id": "1",
        "admin.listener": f"{HOST}:{admin}",
        "health.port": str(health),
        "metrics.port": str(metrics),
    }
    path = written(tmp_path, settings)
    status, _, log = await hit(signal.SIGTERM, "quorate.admin.service", "admin", "--config", path)
    assert status == 0
    assert "message=stopped" in log
    assert "listens" not in log


async def test_a_signal_while_the_operator_loads_stops_it_in_order(tmp_path: Path) -> None:
    pytest.importorskip("kopf", reason="needs the operator: make install")
    settings = {"autojoin.statefulset": "quorate", "autojoin.namespace": "test"}
    path = written(tmp_path, settings)
    status, _, log = await hit(
        signal.SIGTERM, "quorate.autojoin.service", "autojoin", "--config", path
    )
    assert status == 0
    assert "message=stopped" in log


async def test_a_signal_while_up_loads_starts_no_controller(tmp_path: Path) -> None:
    root = tmp_path / "quorum"
    base_port = str(free_quorum(root).base_port)
    flags = ("--base-port", base_port, "--data-dir", str(root))
    status, out, _ = await hit(signal.SIGTERM, "quorate.cli.supervisor", "up", *flags)
    assert status == 0
    assert "started" not in out


async def until_active(process: Process) -> None:
    assert process.stderr is not None
    async with asyncio.timeout(WAIT_S):
        while b"the controller is active" not in await process.stderr.readline():
            assert process.returncode is None


def ignored_by(pid: int) -> int:
    """The signals that a process ignores, a bit for each."""
    lines = Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1], 16) for line in lines if line.startswith("SigIgn:"))


async def test_sighup_stops_a_controller_in_order(
    tmp_path: Path, properties: dict[str, str]
) -> None:
    process = await start(*CONTROLLER, "--config", written(tmp_path, properties), stderr=PIPE)
    try:
        await until_active(process)
        process.send_signal(signal.SIGHUP)
        assert process.stderr is not None
        async with asyncio.timeout(WAIT_S):
            rest = await process.stderr.read()
    finally:
        status = await status_of(process)
    assert status == 0
    assert b"shutting down" in rest
    assert b"ending=STOPPED" in rest


async def test_a_controller_below_nohup_ignores_sighup(
    tmp_path: Path, properties: dict[str, str]
) -> None:
    path = written(tmp_path, properties)
    process = await asyncio.create_subprocess_exec(
        *("sh", "-c", 'trap "" HUP; exec "$0" "$@"', sys.executable, *CONTROLLER),
        *("--config", path),
        stderr=PIPE,
    )
    try:
        await until_active(process)
        assert ignored_by(process.pid) & (1 << (signal.SIGHUP - 1))
        process.send_signal(signal.SIGTERM)
        assert process.stderr is not None
        await process.stderr.read()
    finally:
        status = await status_of(process)
    assert status == 0


@pytest.fixture
def root() -> None:
    """The rights of root, which a PID namespace needs; without them the test fails in CI."""
    if os.geteuid() != 0:
        lack("a PID namespace needs root: sudo make test")


@pytest.mark.usefixtures("root")
async def test_the_first_process_of_a_container_hears_a_signal_while_it_loads(
    tmp_path: Path, properties: dict[str, str]
) -> None:
    path = written(tmp_path, properties)
    command = ("controller", "--config", path)
    process = await asyncio.create_subprocess_exec(
        *("unshare", "--fork", "--pid", "--kill-child", sys.executable, "-c", HIT),
        *(str(int(signal.SIGTERM)), "quorate.server.service", *command),
        stderr=PIPE,
    )
    assert process.stderr is not None
    try:
        async with asyncio.timeout(WAIT_S):
            log = await process.stderr.read()
    finally:
        status = await status_of(process)
    assert status == 0
    assert b"serving" not in log
