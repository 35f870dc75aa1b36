"""The commands of membership against real controllers, from the new one's own files."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tests.integration.quorum import OBSERVER_ID, STEADY, Controllers, Quorum, free_quorum

if TYPE_CHECKING:
    from pathlib import Path


async def refused(quorum: Controllers, *arguments: str) -> str:
    """Run a command that has to fail; its stderr."""
    status, _, stderr = await quorum.try_cli(*arguments)
    assert status == 1
    return stderr


async def test_a_controller_is_added_and_the_leader_removed_by_hand(tmp_path: Path) -> None:
    async with Quorum(tmp_path / "quorum", STEADY) as quorum:
        await quorum.add_observer()
        observer = quorum.nodes[OBSERVER_ID]
        add = ("metadata-quorum", "add-controller", "--config", str(observer.properties_path))

        async def may_be_added() -> bool:
            described = await quorum.cli("metadata-quorum", "describe", "--status", "-o", "json")
            status = json.loads(described)
            obstacles = [(one["id"], one["obstacle"]) for one in status["CurrentObservers"]]
            return obstacles == [(OBSERVER_ID, None)]

        await quorum.eventually("the observer may be added", may_be_added)
        dry = (await quorum.cli(*add, "--dry-run")).splitlines()
        assert dry[0].startswith(f"DRY RUN of adding controller {OBSERVER_ID} with directory id ")
        assert len((await quorum.leader()).voters) == 3
        added = await quorum.cli(*add)
        assert added == dry[0].replace("DRY RUN of adding", "Added") + "\n"
        assert "DUPLICATE_VOTER: node 50 is a voter already" in await refused(quorum, *add)

        leader_id = await quorum.leader_id()
        remove = ("metadata-quorum", "remove-controller", "--controller-id", str(leader_id))
        removed = await quorum.cli(*remove)
        assert removed.startswith(f"Removed KRaft controller {leader_id} with directory id ")
        assert f"{leader_id} is no voter" in await refused(quorum, *remove)
        # Once it has committed a record of its own epoch the next leader knows that this one is.
        assert await quorum.leader_id() != leader_id
        status = await quorum.cli("metadata-quorum", "describe", "--status")
        assert "UncommittedVoterChange" not in status


async def test_leadership_goes_where_it_is_sent(tmp_path: Path) -> None:
    async with Quorum(tmp_path / "quorum", STEADY) as quorum:
        leader_id = await quorum.leader_id()
        other = next(node_id for node_id in quorum.nodes if node_id != leader_id)
        said = await quorum.cli("metadata-quorum", "transfer-leader", "--to", str(other))
        assert said == f"Transferred leadership to controller {other}\n"
        assert await quorum.leader_id() == other


async def test_kraft_version_does_not_go_back(tmp_path: Path) -> None:
    async with Quorum(tmp_path / "quorum", STEADY) as quorum:
        described = await quorum.cli("features", "describe")
        assert described.startswith("Feature: kraft.version ")
        downgrade = ("features", "downgrade", "--feature", "kraft.version=0")
        stderr = await refused(quorum, *downgrade)
        assert stderr.startswith("error: Could not downgrade kraft.version to 0. ")
        assert "INVALID_UPDATE_VERSION: kraft.version is 1 and does not go back to 0" in stderr
        again = await quorum.cli("features", "upgrade", "--feature", "kraft.version=1")
        assert again == "kraft.version was upgraded to 1.\n"


async def test_static_voters_are_moved_into_the_log(tmp_path: Path) -> None:
    plan = free_quorum(tmp_path / "quorum")
    quorum = Controllers(plan.nodes)
    static = ",".join(f"{node.node_id}@{node.host}:{node.port}" for node in plan.nodes)
    for node in plan.nodes:
        node.directory.mkdir(parents=True)
        properties = node.properties(plan.bootstrap_servers) | STEADY
        properties["controller.quorum.voters"] = static
        lines = "".join(f"{key}={value}\n" for key, value in properties.items())
        node.properties_path.write_text(lines, encoding="utf-8")
        await quorum.cli_offline(
            *("storage", "format", "--cluster-id", plan.cluster_id, "--first-bootstrap"),
            *("--config", str(node.properties_path)),
        )
    async with quorum:
        remove = ("metadata-quorum", "remove-controller", "--controller-id", "3")
        stderr = await refused(quorum, *remove, "--dry-run")
        assert "UNSUPPORTED_VERSION (KRAFT_VERSION_TOO_OLD): kraft.version is 0" in stderr
        assert "UNSUPPORTED_VERSION (KRAFT_VERSION_TOO_OLD): kraft.version is 0" in await refused(
            quorum, *remove
        )

        async def all_have_told_their_directories() -> bool:
            upgrade = ("features", "upgrade", "--feature", "kraft.version=1", "--dry-run")
            process = await quorum.spawn_cli(*upgrade)
            await process.communicate()
            return process.returncode == 0

        await quorum.eventually("kraft.version can be upgraded", all_have_told_their_directories)
        said = await quorum.cli("features", "upgrade", "--feature", "kraft.version=1")
        assert said == "kraft.version was upgraded to 1.\n"
        assert all(voter.key.directory_id for voter in (await quorum.leader()).voters)
        assert (await quorum.cli(*remove)).startswith("Removed KRaft controller 3 with directory ")
