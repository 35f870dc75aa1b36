"""Real processes whose majority is lost: what is left refuses, until a human makes a new quorum."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import io
import json
import shutil
import signal
import sys
from typing import TYPE_CHECKING

import pytest

from quorate.cli.main import main
from quorate.client.controller_calls import QuorumUnavailableError
from quorate.client.controller_client import ControllerClient
from quorate.controller.topics.messages import CreateTopics, NewTopic
from quorate.records.ids import NodeId, ReplicaKey, format_uuid
from quorate.storage.file_system import OsFileSystem
from quorate.storage.meta_properties import MetaProperties, read_meta
from tests.integration.disks import log_end, segments, snapshots
from tests.integration.quorum import DEADLINE_S, Quorum
from tests.integration.transports import chosen

if TYPE_CHECKING:
    from pathlib import Path

    from quorate.cli.local_quorum import NodePlan


def topics(*names: str) -> tuple[NewTopic, ...]:
    return tuple(NewTopic(name, partitions=2, replication_factor=3) for name in names)


async def storage(*arguments: str) -> tuple[int, str, str]:
    """Run `quorate storage` in a process of its own; status, stdout and stderr."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "quorate.cli.main", "storage", *arguments),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    async with asyncio.timeout(DEADLINE_S):
        out, err = await process.communicate()
    assert process.returncode is not None
    return process.returncode, out.decode(), err.decode()


def recover(node: NodePlan, *flags: str) -> tuple[str, ...]:
    config = ("--config", str(node.properties_path))
    return ("recover", "--unsafe-new-quorum", *config, *flags)


def identity(node: NodePlan) -> MetaProperties:
    meta = read_meta(OsFileSystem(), str(node.metadata_dir / "meta.properties"))
    assert meta is not None
    return meta


def files(node: NodePlan) -> dict[str, bytes]:
    return {
        str(path.relative_to(node.metadata_dir)): path.read_bytes()
        for path in sorted(node.metadata_dir.rglob("*"))
        if path.is_file()
    }


async def wipe_and_format(quorum: Quorum, node_id: int) -> None:
    """A new disk, and what an init container does at every start."""
    node = quorum.nodes[node_id]
    before = identity(node).directory_id
    shutil.rmtree(node.metadata_dir)
    command = ("format", "--config", str(node.properties_path), "--cluster-id")
    flags = ("--no-initial-controllers", "--ignore-formatted")
    assert (await storage(*command, quorum.plan.cluster_id, *flags))[0] == 0
    assert identity(node).directory_id != before
    formatted = files(node)
    status, out, _ = await storage(*command, quorum.plan.cluster_id, *flags)
    assert (status, out) == (0, "All of the log directories are already formatted.\n")
    assert files(node) == formatted


@pytest.mark.parametrize("joins", [False, True], ids=["observers", "auto-join"])
async def test_a_quorum_that_lost_its_majority_is_recovered_from_the_disk_that_is_left(
    tmp_path: Path, *, joins: bool
) -> None:
    overrides = {"controller.quorum.auto.join.enable": str(joins).lower()}
    async with Quorum(tmp_path / "quorum", overrides) as quorum:
        await quorum.register_brokers()
        await loses_its_majority(quorum)

        async def all_are_back() -> bool:
            """The wiped ones vote again where they may join by themselves, else they follow."""
            leader = await quorum.leader()
            voters = {state.key.node_id for state in leader.voters}
            observers = {state.key.node_id for state in leader.observers}
            return (voters, observers) == (({1, 2, 3}, set()) if joins else ({1}, {2, 3}))

        await quorum.eventually("the wiped controllers are back", all_are_back)
        await quorum.create(*topics("e"))
        await quorum.assert_logs_agree()
        after = await quorum.leader()
        assert [key.node_id for key in after.decommissioned] == [1, 2, 3]
        assert {voter.key for voter in after.voters}.isdisjoint(after.decommissioned)


async def loses_its_majority(quorum: Quorum) -> None:
    """Two of three disks are wiped, the third is recovered, and has all that it had."""
    await quorum.create(*topics("a", "b", "c"))
    before = await quorum.leader()
    described = await quorum.topics_at(1, await quorum.assert_logs_agree())
    assert {topic.name for topic in described} == {"a", "b", "c"}
    await quorum.kill(1, 2, 3)
    left, lost = quorum.nodes[1], (2, 3)
    for node_id in lost:
        await wipe_and_format(quorum, node_id)
        await quorum.start(node_id)
    await quorum.start(1)

    async def all_answer() -> bool:
        addresses = [node.address for node in quorum.nodes.values()]
        said = await asyncio.gather(*map(quorum.client.try_describe_at, addresses))
        return not any(isinstance(answer, str) for answer in said)

    await quorum.eventually("what is left answers, and what was wiped", all_answer)
    # What is left has no majority: it neither leads nor takes a write, and says so.
    async with ControllerClient(
        [node.address for node in quorum.nodes.values()], timeout_ms=6000, transport=chosen()
    ) as client:
        with pytest.raises(QuorumUnavailableError, match="knows no leader"):
            await client.write(CreateTopics(topics("d")))
    said = await quorum.client.try_describe_at(left.address)
    assert not isinstance(said, str)
    assert said.leader.leader_id != 1
    status, _, err = await storage(*recover(left))
    assert status == 1
    assert f"is held by process {quorum.processes[1].pid}" in err

    await quorum.kill(1)
    untouched = files(left)
    status, out, err = await storage(*recover(left))
    assert (status, err) == (0, "")
    assert "DRY RUN: nothing has been changed" in out
    assert files(left) == untouched
    old, end = identity(left), log_end(left)
    status, out, err = await storage(*recover(left, "--execute", "-o", "json"))
    assert (status, err) == (0, "")
    report = json.loads(out)
    assert report["isExecuted"]
    new = identity(left)
    assert new == MetaProperties(old.node_id, old.cluster_id, new.directory_id) != old
    assert report["newQuorum"]["epoch"] >= before.leader.epoch + 1000
    assert report["newQuorum"]["directoryId"] == format_uuid(new.directory_id)
    assert log_end(left) == end + 3

    await quorum.start(1)
    after = await quorum.leader(above_epoch=report["newQuorum"]["epoch"])
    assert after.voters[0].key == ReplicaKey(new.node_id, new.directory_id)
    await quorum.create(*topics("d"))
    high_watermark = await quorum.assert_logs_agree()
    for node_id in quorum.nodes:
        found = {topic.name: topic for topic in await quorum.topics_at(node_id, high_watermark)}
        assert found.keys() == {"a", "b", "c", "d"}
        for topic in described:
            assert found[topic.name].topic_id == topic.topic_id


async def test_recover_refuses_while_somebody_leads(
    quorum: Quorum, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    await quorum.create(*topics("a"))
    leader_id = await quorum.leader_id()
    copy = tmp_path / "copy"
    shutil.copytree(quorum.nodes[leader_id].metadata_dir, copy)
    arguments = ["storage", "recover", "--unsafe-new-quorum", "--directory", str(copy)]
    assert await asyncio.to_thread(main, arguments) == 1
    err = capsys.readouterr().err
    host, port = quorum.nodes[leader_id].address
    assert f"{host}:{port} is node {leader_id}, which leads in epoch" in err
    assert "the quorum is alive" in err


async def backup_while_writing(quorum: Quorum, node_id: int, output: Path) -> tuple[set[str], str]:
    """Take a backup under writes; the topics acknowledged before it began, and what it said."""
    acknowledged: set[str] = set()
    is_over = asyncio.Event()

    async def write() -> None:
        number = 0
        while not is_over.is_set():
            names = [f"t-{number + i:05d}" for i in range(5)]
            await quorum.create(*topics(*names))
            acknowledged.update(names)
            number += 5

    writer = asyncio.create_task(write())

    async def has_snapshots() -> bool:
        return writer.done() or len(snapshots(quorum.nodes[node_id])) > 0

    await quorum.eventually("a snapshot", has_snapshots)
    before = set(acknowledged)
    config = ("--config", str(quorum.nodes[node_id].properties_path))
    status, out, err = await storage("backup", *config, "--output", str(output))
    is_over.set()
    await writer
    assert (status, err) == (0, "")
    return before, out


@pytest.mark.parametrize("of_leader", [True, False], ids=["leader", "follower"])
async def test_a_backup_under_writes_is_restored_to_a_quorum_that_has_what_was_committed(
    small_log_quorum: Quorum, tmp_path: Path, *, of_leader: bool
) -> None:
    quorum = small_log_quorum
    leader_id = await quorum.leader_id()
    node_id = leader_id if of_leader else next(i for i in quorum.nodes if i != leader_id)
    output = tmp_path / "backup.tar"
    before, said = await backup_while_writing(quorum, node_id, output)
    assert "all of it committed" in said
    assert len(before) > 20
    node = quorum.nodes[node_id]
    restoring = ("restore", "--config", str(node.properties_path), "--input", str(output))
    status, _, err = await storage(*restoring)
    assert (status, "is not empty" in err) == (1, True)

    await quorum.kill(1, 2, 3)
    for lost in quorum.nodes.values():
        shutil.rmtree(lost.metadata_dir)
    status, restored, err = await storage(*restoring)
    assert (status, err) == (0, "")
    digest = hashlib.sha256(output.read_bytes()).hexdigest()
    assert f"SHA256:     {digest}" in said
    assert f"SHA256:       {digest}" in restored
    assert f"ClusterId:    {quorum.plan.cluster_id}" in restored
    await quorum.start(node_id)
    quorum.nodes = {node_id: node}
    after = await quorum.leader(above_epoch=1000)
    assert [voter.key for voter in after.voters] == [
        ReplicaKey(NodeId(node_id), identity(node).directory_id)
    ]
    await quorum.create(*topics("afterwards"))
    high_watermark = await quorum.assert_logs_agree()
    found = {topic.name for topic in await quorum.topics_at(node_id, high_watermark)}
    assert before | {"afterwards"} <= found


async def test_a_quorum_of_one_comes_back_from_its_backup_as_it_was(tmp_path: Path) -> None:
    async with Quorum(tmp_path / "quorum", controllers=1) as quorum:
        await quorum.register_brokers()
        await quorum.create(*topics("a", "b"))
        before = await quorum.topics_at(1, await quorum.assert_logs_agree())
        await quorum.stop(1)
        node, output = quorum.nodes[1], tmp_path / "backup.tar"
        config = ("--config", str(node.properties_path))
        status, out, err = await storage("backup", *config, "--output", str(output))
        assert (status, err) == (0, "")
        assert "committed or not: no leader answered" in out
        dumped = dump(node)
        node.metadata_dir.rename(tmp_path / "lost")
        assert (await storage("restore", *config, "--input", str(output)))[0] == 0
        assert dump(node)[: len(dumped)] == dumped
        await quorum.start(1)
        await quorum.leader(above_epoch=1000)
        assert await quorum.topics_at(1, await quorum.assert_logs_agree()) == before


def dump(node: NodePlan) -> list[str]:
    """The output of dump-log for the log, without the names of files."""
    out = io.StringIO()
    files = ",".join(str(path) for path in segments(node))
    with contextlib.redirect_stdout(out):
        assert main(["dump-log", "--cluster-metadata-decoder", "--files", files]) == 0
    return [line for line in out.getvalue().splitlines() if not line.startswith("Dumping")]


async def test_silence_of_a_listener_is_not_taken_for_nobody(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A leader that is stopped accepts connections, as long as its kernel does."""

    async with Quorum(tmp_path / "quorum", controllers=1) as quorum:
        await quorum.register_brokers()
        await quorum.create(*topics("a"))
        copy = tmp_path / "copy"
        shutil.copytree(quorum.nodes[1].metadata_dir, copy)
        arguments = ["storage", "recover", "--unsafe-new-quorum", "--directory", str(copy)]
        quorum.signal(1, signal.SIGSTOP)
        assert await asyncio.to_thread(main, arguments) == 1
        host, port = quorum.nodes[1].address
        err = capsys.readouterr().err
        assert f"{host}:{port} accepts connections, but: no answer in time" in err
        assert "cannot be judged" in err
        assert await asyncio.to_thread(main, [*arguments, "--ignore-server", f"{host}:{port}"]) == 0
        await quorum.kill(1)
        assert await asyncio.to_thread(main, arguments) == 0
        assert f"{host}:{port} does not answer" in capsys.readouterr().out
