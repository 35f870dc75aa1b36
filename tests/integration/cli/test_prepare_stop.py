"""The hook before a stop, as a command against a real sidecar."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING

import pytest

from quorate.api.admin_api import PrepareStopResult
from quorate.cli.main import main
from quorate.cli.prepare_stop import describe_result
from quorate.raft import messages as m
from quorate.records.ids import Epoch
from tests.ports import HOST, free_ports

if TYPE_CHECKING:
    from tests.integration.client.conftest import Beside
    from tests.integration.client.scripted import ScriptedQuorum


async def prepare(port: int, *words: str) -> int:
    """Return the exit status; the sidecar is served while the command runs."""
    arguments = ("prepare-stop", "--admin", f"{HOST}:{port}", "--timeout-ms", "30000", *words)
    return await asyncio.to_thread(main, arguments)


async def test_a_leader_hands_over_and_is_removed_only_when_it_leaves(
    quorum: ScriptedQuorum, beside: Beside, capsys: pytest.CaptureFixture[str]
) -> None:
    assert await prepare(beside.address[1]) == 0
    said = "Ready to stop: leave taken, leadership handed over; node 2 leads (epoch 6)\n"
    assert capsys.readouterr().out == said
    assert sorted(quorum.voters) == [1, 2, 3]
    assert await prepare(beside.address[1], "--leave", "-o", "json") == 0
    assert json.loads(capsys.readouterr().out) == {
        "handedOver": False,
        "removed": True,
        "isVoter": False,
        "leaderId": 2,
        "leaderEpoch": 6,
        "hasLeave": False,
        "withoutLeave": "",
    }
    assert sorted(quorum.voters) == [2, 3]


async def test_the_last_voter_may_not_leave(
    quorum: ScriptedQuorum, beside: Beside, capsys: pytest.CaptureFixture[str]
) -> None:
    quorum.voters = {1: quorum.voters[1]}
    assert await prepare(beside.address[1], "--leave") == 1
    assert capsys.readouterr().err == (
        "error: INVALID_REQUEST (LAST_VOTER): node 1 is the last voter: add another voter first\n"
    )


async def test_without_a_sidecar_it_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    port = free_ports(1)[0]
    assert await prepare(port) == 1
    assert capsys.readouterr().err == (
        "error: LEADER_NOT_AVAILABLE (NO_ANSWER): no sidecar answers: "
        f"{HOST}:{port}: connection refused\n"
    )


def test_where_nobody_leads_there_is_nothing_to_do() -> None:
    prepared = PrepareStopResult(
        handed_over=False, removed=False, is_voter=None, leader=m.LeaderInfo(None, Epoch(7))
    )
    said = "Ready to stop: nothing had to be done; nobody leads (epoch 7)"
    assert describe_result(prepared) == said


def test_a_stop_without_leave_says_why() -> None:
    prepared = PrepareStopResult(
        handed_over=False,
        removed=False,
        is_voter=None,
        leader=m.NOTHING_KNOWN,
        without_leave="all pods of its StatefulSet stop",
    )
    said = "Ready to stop: nothing had to be done; without leave: all pods of its StatefulSet stop"
    assert describe_result(prepared) == said


def test_a_bad_address_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="1"):
        main(["prepare-stop", "--admin", "9095"])
    assert "argument --admin: '9095' is no HOST:PORT" in capsys.readouterr().err
