"""The commands that change voters, leader and kraft.version, against scripted controllers."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from quorate.cli.main import main
from quorate.raft import messages as m
from quorate.raft.messages import Reason
from quorate.records.errors import ErrorCode
from quorate.records.ids import format_uuid
from tests.integration.client.scripted import observer, refusal
from tests.unit.raft import cores

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.integration.client.scripted import ScriptedQuorum

TIMEOUT_MS = "20000"
UUID = format_uuid(cores.key(4).directory_id or b"")


class Commands:
    """Runs the command line in parallel with the loop that serves the quorum."""

    def __init__(self, quorum: ScriptedQuorum, capsys: pytest.CaptureFixture[str]) -> None:
        self._quorum = quorum
        self._capsys = capsys

    async def __call__(self, *words: str, timeout_ms: str = TIMEOUT_MS) -> tuple[int, str, str]:
        """Exit status, stdout, stderr."""
        host, port = self._quorum.addresses[2]
        command, *rest = words
        arguments: Sequence[str] = (
            *(command, "--bootstrap-controller", f"{host}:{port}"),
            *("--timeout-ms", timeout_ms, *rest),
        )
        status = await asyncio.to_thread(main, arguments)
        shown = self._capsys.readouterr()
        return status, shown.out, shown.err


@pytest.fixture
def run(quorum: ScriptedQuorum, capsys: pytest.CaptureFixture[str]) -> Commands:
    return Commands(quorum, capsys)


async def test_a_controller_is_added_by_its_id_and_removed_again(
    quorum: ScriptedQuorum, run: Commands
) -> None:
    quorum.observers = (observer(4),)
    said = await run("metadata-quorum", "add-controller", "--controller-id", "4", "--force")
    added = f"Added controller 4 with directory id {UUID} and endpoints: GRPC://node-4:9094\n"
    assert said == (0, added, "")
    request = quorum.asked[-1][1]
    assert isinstance(request, m.AddRaftVoterRequest)
    assert request.force
    said = await run("metadata-quorum", "remove-controller", "--controller-id", "4")
    assert said == (0, f"Removed KRaft controller 4 with directory id {UUID}\n", "")
    assert sorted(quorum.voters) == [1, 2, 3]


async def test_leadership_is_transferred(quorum: ScriptedQuorum, run: Commands) -> None:
    said = await run("metadata-quorum", "transfer-leader", "--to", "3", "-o", "json")
    assert said[::2] == (0, "")
    shown = {"id": 3, "directoryId": format_uuid(cores.key(3).directory_id or b"")}
    assert json.loads(said[1]) == shown | {"leaderId": 3, "leaderEpoch": 6}
    assert quorum.leader == 3


async def test_a_refusal_is_kafkas_error_the_reason_and_the_remedy(
    quorum: ScriptedQuorum, run: Commands
) -> None:
    quorum.answers.append(
        refusal(ErrorCode.REQUEST_TIMED_OUT, Reason.NO_LIVE_MAJORITY, "too few fetch: wait")
    )
    said = await run("metadata-quorum", "remove-controller", "-i", "3")
    assert said == (
        1,
        "",
        "error: REQUEST_TIMED_OUT (NO_LIVE_MAJORITY): too few fetch: wait\n",
    )


async def test_without_a_leader_the_command_ends_in_time(
    quorum: ScriptedQuorum, run: Commands
) -> None:
    quorum.lead(None)
    said = await run("metadata-quorum", "transfer-leader", "--to", "3", timeout_ms="3000")
    assert said[0] == 1
    assert said[2].startswith("error: LEADER_NOT_AVAILABLE (NO_LEADER): 127.0.0.1:")


@pytest.mark.parametrize("output", ["text", "json"])
async def test_a_dry_run_changes_nothing_and_says_what_would_be(
    output: str, quorum: ScriptedQuorum, run: Commands
) -> None:
    lagging = replace(
        observer(5), obstacle=Reason.VOTER_LAGGING, obstacle_text="9 behind: wait until it is not"
    )
    quorum.observers = (observer(4), lagging)
    words = ("metadata-quorum", "add-controller", "--dry-run", "-o", output, "--controller-id")
    fine, refused = await run(*words, "4"), await run(*words, "5")
    assert (fine[0], refused[0]) == (0, 1)
    assert quorum.asked == []
    if output == "json":
        shown = json.loads(fine[1])
        assert (shown["dryRun"], shown["reason"], shown["message"]) == (True, None, None)
        assert json.loads(refused[1])["reason"] == "VOTER_LAGGING"
    else:
        assert fine[1].splitlines() == [
            f"DRY RUN of adding controller 4 with directory id {UUID} and endpoints: "
            "GRPC://node-4:9094",
            "Nothing stands against it in what the leader says of the quorum.",
        ]
        assert refused[2] == (
            "error: it would be refused: REQUEST_TIMED_OUT (VOTER_LAGGING): 9 behind: wait until "
            "it is not\n"
        )


async def test_kraft_version_is_described_and_upgraded(
    quorum: ScriptedQuorum, run: Commands
) -> None:
    quorum.kraft_version = 0
    dry = await run("features", "upgrade", "--feature", "kraft.version=1", "--dry-run")
    assert dry == (0, "kraft.version can be upgraded to 1.\n", "")
    assert quorum.kraft_version == 0
    done = await run("features", "upgrade", "--feature", "kraft.version=1")
    assert done == (0, "kraft.version was upgraded to 1.\n", "")
    described = await run("features", "describe", "-o", "json")
    (row,) = json.loads(described[1])
    assert (row["Feature"], row["FinalizedVersionLevel"]) == ("kraft.version", 1)


async def test_a_downgrade_is_refused_in_the_leaders_words(
    quorum: ScriptedQuorum, run: Commands
) -> None:
    quorum.answers.append(
        refusal(
            ErrorCode.INVALID_UPDATE_VERSION, Reason.INVALID_UPDATE_VERSION, "it does not go back"
        )
    )
    said = await run("features", "downgrade", "--feature", "kraft.version=0")
    assert said == (
        1,
        "",
        "error: Could not downgrade kraft.version to 0. INVALID_UPDATE_VERSION: it does not go "
        "back\n1 out of 1 operation(s) failed.\n",
    )
    same = await run("features", "downgrade", "--feature", "kraft.version=1")
    assert same[2] == "error: Could not downgrade kraft.version to 1. The finalised level is 1\n"


async def test_other_features_are_not_built_yet(quorum: ScriptedQuorum, run: Commands) -> None:
    said = await run("features", "upgrade", "--feature", "metadata.version=30")
    assert said[0] == 1
    assert said[2].startswith("error: metadata.version cannot be changed in this release")
    assert quorum.asked == []
