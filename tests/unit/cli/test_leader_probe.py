"""Conclusions from servers' answers about a new quorum; rescue tests probe real servers."""

from __future__ import annotations

import argparse
import asyncio
import errno
import socket
from typing import NoReturn

import pytest

from quorate.cli import leader_probe
from quorate.cli.leader_probe import (
    Answer,
    LeaderStatus,
    ask_for_leader,
    check_no_leader,
    classify_answer,
    kind_for,
)
from quorate.cli.output import CommandError
from quorate.h2.name_resolver import NameResolver
from quorate.raft.last_message import Heard
from quorate.raft.messages import DescribeQuorumResponse, LeaderInfo
from quorate.records.errors import ErrorCode
from quorate.records.ids import Epoch, Millis, NodeId, Offset
from quorate.rpc.channels import ChannelKind
from quorate.server.config import read_config
from quorate.settings.transport import Transport

ONE, TWO = ("one", 9094), ("two", 9094)


def said(leader: int | None, *, heard_ms: int | None = None) -> DescribeQuorumResponse:
    """The answer of a server that does not lead, 100 seconds after its start."""
    return DescribeQuorumResponse(
        error=ErrorCode.NOT_LEADER_OR_FOLLOWER,
        leader=LeaderInfo(None if leader is None else NodeId(leader), Epoch(5)),
        now_ms=Millis(100_000),
        heard=() if heard_ms is None else (Heard(NodeId(leader or 0), Millis(heard_ms)),),
    )


def test_without_a_file_for_the_command_servers_are_asked_as_a_controller_asks_its_peers() -> None:
    arguments = argparse.Namespace(command_config=None)
    directory = {"node.id": "1", "metadata.log.dir": "log"}
    known = {**directory, "controller.quorum.bootstrap.servers": "one:9094"}
    own = read_config({**known, "grpc.transport": "h2"}, {})
    assert kind_for(arguments, [own]) == ChannelKind(transport=Transport.H2)
    assert kind_for(arguments, []) == ChannelKind()


def test_who_answers_as_leader_leads_also_before_it_knows_what_is_committed() -> None:
    for high_watermark in (None, Offset(7)):
        info = LeaderInfo(NodeId(1), Epoch(5))
        answer = DescribeQuorumResponse(
            error=ErrorCode.NONE, leader=info, high_watermark=high_watermark
        )
        assert classify_answer(answer, 1) == (
            LeaderStatus.LEADS,
            "is node 1, which leads in epoch 5",
        )


def test_a_follower_that_heard_its_leader_lately_vouches_for_it() -> None:
    standing, words = classify_answer(said(2, heard_ms=90_000), 1)
    assert (standing, words) == (
        LeaderStatus.LEADS,
        "is node 1, which heard its leader 2 10000 ms ago",
    )


def test_who_only_remembers_a_leader_is_without_one() -> None:
    for answer in (said(2), said(2, heard_ms=89_999)):
        assert classify_answer(answer, 1) == (
            LeaderStatus.LEADERLESS,
            "is node 1, which followed node 2 in epoch 5",
        )
    without = (LeaderStatus.LEADERLESS, "is node 1, without a leader in epoch 5")
    assert classify_answer(said(None), 1) == without
    assert classify_answer(said(1), 1) == without


def test_silence_another_cluster_and_the_leaderless_stand_against_nothing() -> None:
    answers = [
        Answer(ONE, standing, "")
        for standing in (
            *(LeaderStatus.REFUSED, LeaderStatus.ABSENT, LeaderStatus.UNREACHABLE),
            *(LeaderStatus.FOREIGN, LeaderStatus.NEW, LeaderStatus.LEADERLESS),
        )
    ]
    check_no_leader(answers, ignored=[])


def test_a_leader_is_named_before_what_is_unclear() -> None:
    answers = [Answer(ONE, LeaderStatus.UNCLEAR, "hangs"), Answer(TWO, LeaderStatus.LEADS, "leads")]
    with pytest.raises(CommandError, match=r"^two:9094 leads: the quorum is alive"):
        check_no_leader(answers, ignored=[])
    both = [*answers, Answer(ONE, LeaderStatus.LEADS, "leads")]
    with pytest.raises(CommandError, match=r"^two:9094 leads; one:9094 leads: "):
        check_no_leader(both, ignored=[])
    with pytest.raises(CommandError, match=r"^one:9094 hangs: .* --ignore-server one:9094$"):
        check_no_leader(answers, ignored=[TWO])
    check_no_leader(answers, ignored=[ONE, TWO])


def test_who_has_never_known_a_leader_is_new() -> None:
    info = LeaderInfo(None, Epoch(0))
    answer = DescribeQuorumResponse(error=ErrorCode.NOT_LEADER_OR_FOLLOWER, leader=info)
    assert classify_answer(answer, 1)[0] is LeaderStatus.NEW
    # A voter in its first epoch campaigns, and has a leader in a moment.
    for leader, epoch in ((None, 1), (1, 0), (2, 0)):
        info = LeaderInfo(None if leader is None else NodeId(leader), Epoch(epoch))
        answer = DescribeQuorumResponse(error=ErrorCode.NOT_LEADER_OR_FOLLOWER, leader=info)
        assert classify_answer(answer, 1)[0] is LeaderStatus.LEADERLESS


@pytest.mark.parametrize(
    ("error", "leader_status"),
    [
        (socket.gaierror(socket.EAI_NONAME, "Name or service not known"), LeaderStatus.ABSENT),
        (socket.gaierror(socket.EAI_NODATA, "No address"), LeaderStatus.UNREACHABLE),
        (socket.gaierror(socket.EAI_AGAIN, "Temporary failure"), LeaderStatus.UNREACHABLE),
        (socket.gaierror(socket.EAI_FAIL, "Non-recoverable failure"), LeaderStatus.UNREACHABLE),
        (ConnectionRefusedError(errno.ECONNREFUSED, "refused"), LeaderStatus.REFUSED),
        (ConnectionResetError(errno.ECONNRESET, "reset"), LeaderStatus.UNREACHABLE),
        (OSError(errno.EHOSTUNREACH, "No route to host"), LeaderStatus.UNREACHABLE),
        (OSError(errno.ENETUNREACH, "Network is unreachable"), LeaderStatus.UNREACHABLE),
        (PermissionError(errno.EPERM, "Operation not permitted"), LeaderStatus.UNREACHABLE),
        (TimeoutError(), LeaderStatus.UNREACHABLE),
    ],
    ids=lambda case: str(case),
)
def test_only_a_refusal_and_a_name_that_does_not_exist_are_silence(
    error: OSError, leader_status: LeaderStatus, monkeypatch: pytest.MonkeyPatch
) -> None:
    def look_up(host: str) -> tuple[str, ...]:
        if isinstance(error, socket.gaierror):
            raise error
        return (host,)

    async def open_connection(address: str, port: int) -> NoReturn:
        del address, port
        raise error

    monkeypatch.setattr(leader_probe, "RESOLVER", NameResolver(look_up))
    monkeypatch.setattr(asyncio, "open_connection", open_connection)

    (answer,) = ask_for_leader([ONE], "cluster", ChannelKind())

    assert answer.leader_status is leader_status
    assert str(answer).startswith("one:9094 ")
