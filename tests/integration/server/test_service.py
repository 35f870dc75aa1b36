"""The controller as a process: its exit status, what it refuses, how it stops."""

from __future__ import annotations

import asyncio
import errno
import fcntl
import gc
import os
import signal
import socket
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from quorate.client.controller_client import ControllerClient
from quorate.controller.topics.messages import ListTopics
from quorate.h2.name_resolver import RESOLVER
from quorate.rpc.health import READINESS
from quorate.server import advertised_host
from quorate.server.config import read_config
from quorate.server.listeners import ListenerCertificates
from quorate.server.restart_backoff import RestartBackoff
from quorate.server.service import _serve, main_controller
from quorate.server.state_machine import make_metadata_state_machine
from quorate.storage.directory_lock import DirectoryLock
from tests.integration.lookups import hanging_lookups
from tests.integration.server.test_node import is_serving, until
from tests.integration.transports import EACH, chosen
from tests.ports import HOST, free_ports
from tests.unit.server.conftest import eventually

if TYPE_CHECKING:
    from collections.abc import Iterator

    from quorate.server.config import ControllerConfig

WAIT_S = 60


def write(folder: Path, properties: dict[str, str]) -> str:
    path = folder / "controller.properties"
    path.write_text("".join(f"{key}={value}\n" for key, value in properties.items()))
    return str(path)


async def spawn(path: str) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "quorate.server", "--config", path),
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": "services"},
    )


async def said_at_its_end(process: asyncio.subprocess.Process) -> str:
    """Its output; the process ends without a signal, or the test fails."""
    try:
        async with asyncio.timeout(WAIT_S):
            return (await process.communicate())[1].decode()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


@EACH
async def test_sigterm_stops_it_gracefully(tmp_path: Path, properties: dict[str, str]) -> None:
    process = await spawn(write(tmp_path, properties))
    assert process.stderr is not None
    try:
        async with asyncio.timeout(WAIT_S):
            while b"the controller is active" not in await process.stderr.readline():
                assert process.returncode is None
            process.send_signal(signal.SIGTERM)
            rest = (await process.communicate())[1]
    finally:
        if process.returncode is None:
            process.kill()
    assert process.returncode == 0
    assert b"ending=STOPPED" in rest


async def test_a_second_process_on_the_directory_is_refused(
    tmp_path: Path, properties: dict[str, str]
) -> None:
    with DirectoryLock(properties["metadata.log.dir"]):
        process = await spawn(write(tmp_path, properties))
        error = await said_at_its_end(process)
    assert process.returncode == 1
    assert "is held by process" in error


@pytest.mark.parametrize("setting", ["listeners", "health.port", "metrics.port"])
async def test_a_port_that_is_taken_is_named_with_its_setting(
    tmp_path: Path, properties: dict[str, str], setting: str
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        value = f"GRPC://127.0.0.1:{port}" if setting == "listeners" else str(port)
        process = await spawn(write(tmp_path, {**properties, setting: value}))
        error = await said_at_its_end(process)
    assert process.returncode == 1
    refusal = next(line for line in error.splitlines() if line.startswith("quorate controller: "))
    assert refusal == (
        f"quorate controller: {setting}: 127.0.0.1:{port} cannot be listened on: Address already "
        "in use: stop what listens there, or choose another address"
    )


def test_a_malformed_setting_ends_the_process(
    tmp_path: Path, properties: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(tmp_path, {**properties, "node.id": "one"})
    assert main_controller(path) == 1
    assert "node.id is 'one': a whole number is needed" in capsys.readouterr().err


def test_a_refusal_of_the_file_system_names_the_file_and_the_remedy(
    tmp_path: Path,
    properties: dict[str, str],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(descriptor: int, kind: int) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", refuse)
    assert main_controller(write(tmp_path, properties)) == 1
    last = capsys.readouterr().err.splitlines()[-1]
    path = f"{properties['metadata.log.dir']}/.lock"
    assert last.startswith(f"quorate controller: {path}: No locks available: this file system has")


def test_a_directory_that_others_may_read_is_warned_about(
    tmp_path: Path, properties: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(tmp_path, properties)
    Path(properties["metadata.log.dir"]).chmod(0o700)
    with DirectoryLock(properties["metadata.log.dir"]):
        assert main_controller(path) == 1
        assert "level=warning" not in capsys.readouterr().err
        Path(properties["metadata.log.dir"]).chmod(0o755)
        assert main_controller(path) == 1
    assert "has mode 0755: other users" in capsys.readouterr().err


async def test_a_shortage_while_it_begins_is_waited_out(
    properties: dict[str, str], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Each life lacks another thread (rule `disk_error_classes`); the last one has all of them."""
    lacking = ["recovery", "disk", "read", "flush", "snapshot", "metrics"]
    start, before = threading.Thread.start, set(threading.enumerate())

    def start_or_not(thread: threading.Thread) -> None:
        if lacking and thread.name == lacking[0]:
            del lacking[0]
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", start_or_not)
    monkeypatch.setattr(RestartBackoff, "shortage_wait_s", lambda _: 0.0)
    config = read_config(properties, {})
    work = _serve(
        config,
        ListenerCertificates(()),
        state_machine_factory=make_metadata_state_machine,
        stops_with_stdin=False,
    )
    serving = asyncio.ensure_future(work)
    try:
        await asyncio.wait_for(active(config, serving), WAIT_S)
    finally:
        os.kill(os.getpid(), signal.SIGTERM)
        status = await asyncio.wait_for(serving, WAIT_S)
    assert status == 0
    assert lacking == []
    assert caplog.text.count("could not begin: the machine is short of") == 6
    assert files_in(properties["metadata.log.dir"]) == []
    gc.collect()
    names = {"recovery", "disk", "read", "flush", "snapshot", "metrics"}

    def left() -> list[str]:
        return [t.name for t in threading.enumerate() if t not in before and t.name in names]

    await eventually(lambda: not left())


@pytest.fixture
def own_host() -> Iterator[str]:
    """A name without a last good address, which the process's resolver would keep for the next."""
    yield "own.example"
    RESOLVER.forget("own.example")


async def test_the_hosts_of_listeners_are_resolved_beside_the_event_loop(
    properties: dict[str, str], own_host: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    system, threads = socket.getaddrinfo, []

    def look_up(host: Any, *args: Any, **options: Any) -> Any:  # noqa: ANN401
        if host == own_host:
            threads.append(threading.current_thread())
            host = HOST
        return system(host, *args, **options)

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    port = properties["listeners"].rpartition(":")[2]
    config = read_config(properties | {"listeners": f"GRPC://{own_host}:{port}"}, {})
    work = _serve(
        config,
        ListenerCertificates(()),
        state_machine_factory=make_metadata_state_machine,
        stops_with_stdin=False,
    )
    serving = asyncio.ensure_future(work)
    try:
        await asyncio.wait_for(active(config, serving), WAIT_S)
    finally:
        os.kill(os.getpid(), signal.SIGTERM)
        assert await asyncio.wait_for(serving, WAIT_S) == 0
    assert threads
    assert threading.main_thread() not in threads


async def test_a_controller_is_not_ready_before_its_advertised_host_resolves(
    properties: dict[str, str],
    own_host: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """It leads in that time; and once the name was right, a failure of DNS changes nothing."""
    monkeypatch.setattr(advertised_host, "WARNED_AFTER_S", 0.0)
    system, known = socket.getaddrinfo, list[str]()

    def look_up(host: Any, *args: Any, **options: Any) -> Any:  # noqa: ANN401
        if host == own_host and host not in known:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return system(HOST if host == own_host else host, *args, **options)

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    port = properties["listeners"].rpartition(":")[2]
    own = {"advertised.listeners": f"GRPC://{own_host}:{port}"}
    config = read_config(properties | own, {})
    work = _serve(
        config,
        ListenerCertificates(()),
        state_machine_factory=make_metadata_state_machine,
        stops_with_stdin=False,
    )
    serving = asyncio.ensure_future(work)
    try:
        await asyncio.wait_for(active(config, serving), WAIT_S)
        await eventually(lambda: "is this host right" in caplog.text)
        assert not await is_serving(config, READINESS)
        known.append(own_host)
        await asyncio.wait_for(until(config, READINESS), WAIT_S)
        known.clear()
        assert await is_serving(config, READINESS)
    finally:
        os.kill(os.getpid(), signal.SIGTERM)
        assert await asyncio.wait_for(serving, WAIT_S) == 0
    assert f"advertised.listeners: {own_host} cannot be resolved" in caplog.text


async def test_health_and_metrics_are_on_both_families_where_no_host_is_given(
    properties: dict[str, str],
) -> None:
    """The kubelet asks the first address of a pod, which may be one of IPv6."""
    port = properties["listeners"].rpartition(":")[2]
    (metrics_port,) = free_ports(1)
    own = {
        "listeners": f"GRPC://:{port}",
        "advertised.listeners": f"GRPC://{HOST}:{port}",
        "metrics.port": str(metrics_port),
    }
    config = read_config(properties | own, {})
    work = _serve(
        config,
        ListenerCertificates(()),
        state_machine_factory=make_metadata_state_machine,
        stops_with_stdin=False,
    )
    serving = asyncio.ensure_future(work)
    try:
        await asyncio.wait_for(active(config, serving, host=HOST), WAIT_S)
        for host in (HOST, "::1"):
            for asked in (config.health_port, metrics_port):
                _, writer = await asyncio.open_connection(host, asked)
                writer.close()
    finally:
        os.kill(os.getpid(), signal.SIGTERM)
        assert await asyncio.wait_for(serving, WAIT_S) == 0


async def test_a_stop_does_not_wait_for_the_lookup_of_a_listeners_host(
    properties: dict[str, str], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    config = read_config(properties | {"listeners": "GRPC://dead.example:9094"}, {})
    work = _serve(
        config,
        ListenerCertificates(()),
        state_machine_factory=make_metadata_state_machine,
        stops_with_stdin=False,
    )
    with hanging_lookups(monkeypatch) as has_begun:
        serving = asyncio.ensure_future(work)
        await asyncio.to_thread(has_begun.wait, WAIT_S)
        os.kill(os.getpid(), signal.SIGTERM)
        assert await asyncio.wait_for(serving, WAIT_S) == 0
    assert caplog.records[-1].getMessage() == "stopped"


def files_in(directory: str) -> list[str]:
    """The files that this process has open there."""
    found = []
    for descriptor in os.listdir("/proc/self/fd"):
        with suppress(FileNotFoundError):
            found.append(os.readlink(f"/proc/self/fd/{descriptor}"))
    return [path for path in found if path.startswith(directory)]


async def active(
    config: ControllerConfig, serving: asyncio.Future[int], *, host: str | None = None
) -> None:
    server = (host or config.peers.bound.host, config.peers.bound.port)
    async with ControllerClient([server], timeout_ms=WAIT_S * 1000, transport=chosen()) as client:
        await client.read(ListTopics())
    assert not serving.done()
