"""A directory that would found a quorum is not formatted where there is one."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from typing import TYPE_CHECKING, NoReturn

import pytest

from quorate.cli import leader_probe
from quorate.cli.main import main
from quorate.h2.name_resolver import NameResolver
from tests.integration.client.scripted import ScriptedQuorum
from tests.ports import HOST
from tests.unit.raft.cores import CLUSTER

if TYPE_CHECKING:
    from pathlib import Path

OTHER = "Cluster-of-another-Own"


class Node:
    """A controller that is not formatted yet, whose bootstrap servers are these."""

    def __init__(self, root: Path, *servers: tuple[str, int]) -> None:
        self.directory = root / "data"
        self.properties = root / "c.properties"
        bootstrap = ",".join(f"{host}:{port}" for host, port in servers)
        lines = (
            "node.id=9",
            "process.roles=controller",
            f"listeners=GRPC://{HOST}:1",
            f"controller.quorum.bootstrap.servers={bootstrap}",
            f"metadata.log.dir={self.directory}",
        )
        self.properties.write_text("\n".join(lines))

    async def format(self, *flags: str, cluster_id: str = CLUSTER) -> int:
        command = ["storage", "format", "-c", str(self.properties), "-t", cluster_id, *flags]
        return await asyncio.to_thread(main, command)

    @property
    def is_formatted(self) -> bool:
        return (self.directory / "meta.properties").exists()


async def test_a_live_quorum_gets_no_rival(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with ScriptedQuorum(1) as quorum:
        node = Node(tmp_path, (HOST, 1), quorum.addresses[1])
        assert await node.format("--standalone") == 1
        err = capsys.readouterr().err
        assert f"--standalone: {HOST}:{quorum.addresses[1][1]} is node 1, which leads" in err
        assert "--no-initial-controllers" in err
        assert not node.directory.exists()
        assert await node.format("--no-initial-controllers") == 0
        # Who has been here before is not asked about.
        assert await node.format("--standalone", "--ignore-formatted") == 0


async def test_a_quorum_that_has_no_leader_at_the_moment_gets_none_either(tmp_path: Path) -> None:
    async with ScriptedQuorum(1) as quorum:
        quorum.lead(None)
        node = Node(tmp_path, quorum.addresses[1])
        assert await node.format("-s") == 1
        assert not node.is_formatted


async def test_who_waits_for_a_first_leader_may_be_a_voter(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with ScriptedQuorum(1) as quorum:
        quorum.leader, quorum.epoch = None, 0
        node = Node(tmp_path, quorum.addresses[1])
        assert await node.format("-s") == 1
        assert "--ignore-server" in capsys.readouterr().err
        assert not node.is_formatted


async def test_a_host_that_cannot_be_reached_may_have_a_quorum(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A suspended leader is one, once its queue of connections is full."""
    monkeypatch.setattr(leader_probe, "PROBE_TIMEOUT_S", 0.2)
    with socket.socket() as full, contextlib.ExitStack() as waiting:
        full.bind((HOST, 0))
        full.listen(0)
        host, port = full.getsockname()
        for _ in range(4):
            caller = waiting.enter_context(socket.socket())
            caller.settimeout(0)
            caller.connect_ex((host, port))
        node = Node(tmp_path, (host, port))
        assert await node.format("-s") == 1
        assert f"--ignore-server {host}:{port}" in capsys.readouterr().err
        assert await node.format("-s", "--ignore-server", f"{host}:{port}") == 0


async def test_a_name_that_cannot_be_looked_up_may_be_that_of_a_quorum(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: str) -> NoReturn:
        raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")

    monkeypatch.setattr(leader_probe, "RESOLVER", NameResolver(fail))
    node = Node(tmp_path, ("one", 9093))
    assert await node.format("-s") == 1
    err = capsys.readouterr().err
    assert "one cannot be resolved: Temporary failure in name resolution" in err
    assert "--ignore-server one:9093" in err
    assert not node.is_formatted


@pytest.mark.parametrize("flags", [(), ("--ignore-server",)])
async def test_another_cluster_is_none_of_its_business(
    tmp_path: Path, flags: tuple[str, ...]
) -> None:
    async with ScriptedQuorum(1) as quorum:
        host, port = quorum.addresses[1]
        node = Node(tmp_path, (host, port))
        ignored = [*flags, f"{host}:{port}"] if flags else []
        cluster_id = CLUSTER if flags else OTHER
        assert await node.format("-s", *ignored, cluster_id=cluster_id) == 0
        assert node.is_formatted


async def test_nobody_listens_and_it_founds_the_quorum(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def know_no_name(_: str) -> NoReturn:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(leader_probe, "RESOLVER", NameResolver(know_no_name))
    node = Node(tmp_path, (HOST, 1), ("no-such-host.invalid", 9093))
    assert await node.format("-s") == 0
    assert node.is_formatted


async def test_who_cannot_be_judged_is_named_with_the_remedy(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def hang_up(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    server = await asyncio.start_server(hang_up, HOST, 0)
    async with server:
        host, port = server.sockets[0].getsockname()
        node = Node(tmp_path, (host, port))
        assert await node.format("-s") == 1
        assert f"--ignore-server {host}:{port}" in capsys.readouterr().err
        assert not node.is_formatted
