"""Elections on the command line: the partitions that it requests, and the report of them."""

from __future__ import annotations

import argparse
import asyncio
import json
from typing import TYPE_CHECKING, cast

import pytest

from quorate.cli import elect_leaders
from quorate.cli.main import main
from quorate.cli.output import CommandError
from quorate.client.controller_calls import OutcomeUnknownError
from quorate.controller.replication.messages import (
    ElectedLeader,
    ElectionType,
    ElectLeaders,
    ElectLeadersReply,
    LeaderElection,
)
from quorate.controller.topics.messages import (
    DescribedPartition,
    DescribedTopic,
    DescribeTopics,
    DescribeTopicsReply,
)
from quorate.records.errors import ErrorCode
from quorate.records.ids import Offset

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from quorate.client.controller_client import ControllerClient

PREFERRED = ("--election-type", "preferred")
AWAY = "The first replica, broker 7, is not active."


def parsed(*arguments: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser(exit_on_error=False)
    elect_leaders.register(parser.add_subparsers())
    return parser.parse_args(["elect-leaders", *arguments])


class FakeQuorum:
    """Partitions by topic: leaders and first replicas; broker 7 is never in sync."""

    def __init__(self, **topics: list[tuple[int, int]]) -> None:
        self.topics = topics
        self.lost = 0
        self.asked: list[ElectLeaders] = []

    async def write(self, request: ElectLeaders) -> ElectLeadersReply:
        self.asked.append(request)
        if len(request.partitions) > 10:
            return ElectLeadersReply(ErrorCode.POLICY_VIOLATION, "too many")
        results = tuple(self._elect(each) for each in request.partitions)
        if self.lost:
            self.lost -= 1
            raise OutcomeUnknownError("lost")
        return ElectLeadersReply(partitions=results)

    def _elect(self, each: LeaderElection) -> ElectedLeader:
        leader, first = self.topics[each.topic][each.partition]
        error, message = ErrorCode.NONE, ""
        if leader == first:
            error, message = ErrorCode.ELECTION_NOT_NEEDED, f"Broker {first} leads."
        elif first == 7:
            error, message = ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE, AWAY
        else:
            self.topics[each.topic][each.partition] = (first, first)
            leader = first
        return ElectedLeader(each.topic, each.partition, error, message, leader)

    async def read_pages(
        self, request: DescribeTopics, *, current: bool
    ) -> AsyncIterator[DescribeTopicsReply]:
        assert (request, current) == (DescribeTopics(), True)
        for name, partitions in self.topics.items():
            described = tuple(
                DescribedPartition(i, leader, 0, 0, (first, 9), ())
                for i, (leader, first) in enumerate(partitions)
            )
            yield DescribeTopicsReply(Offset(5), (DescribedTopic(name, partitions=described),))

    def elect(self, *arguments: str) -> int:
        client = cast("ControllerClient", self)
        flags = parsed(*arguments)
        flags.partitions = elect_leaders.named_partitions(flags)
        return asyncio.run(elect_leaders._elect(client, flags))


@pytest.mark.parametrize("text", ["preferred", "PREFERRED", "Preferred"])
def test_a_type_is_taken_in_any_case(text: str) -> None:
    arguments = parsed("--election-type", text, "--all-topic-partitions")
    assert arguments.election_type is ElectionType.PREFERRED


@pytest.mark.parametrize(
    "flags",
    [
        ("--all-topic-partitions",),
        (*PREFERRED,),
        ("--election-type", "best", "--all-topic-partitions"),
        (*PREFERRED, "--topic", "a", "--all-topic-partitions"),
        (*PREFERRED, "--topic", "a", "--partition", "-1"),
    ],
)
def test_flags_that_are_no_election_are_refused(
    flags: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["elect-leaders", *flags])
    assert ended.value.code == 1
    assert "quorate elect-leaders: " in capsys.readouterr().err


def test_the_help_says_that_records_are_lost(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["elect-leaders", "--help"])
    assert "RECORDS THAT IT LACKS ARE LOST" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(
    "flags", [("--topic", "a"), ("--all-topic-partitions", "--partition", "1")]
)
def test_a_partition_and_its_topic_come_together(flags: tuple[str, ...]) -> None:
    with pytest.raises(CommandError, match=r"^--partition: give it together with --topic"):
        elect_leaders.named_partitions(parsed(*PREFERRED, *flags))


def test_one_partition_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    quorum = FakeQuorum(a=[(1, 1), (1, 2)])
    assert quorum.elect(*PREFERRED, "--topic", "a", "--partition", "1") == 0
    assert quorum.asked == [ElectLeaders(ElectionType.PREFERRED, (LeaderElection("a", 1),))]
    assert capsys.readouterr().out == (
        "Successfully completed leader election (PREFERRED) for partitions a-1\n"
    )


def test_a_file_names_partitions(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "f.json"
    entries = [{"topic": "a", "partition": place} for place in (3, 0, 1, 2)]
    file.write_text(json.dumps({"partitions": entries}), encoding="utf-8")
    quorum = FakeQuorum(a=[(1, 1), (1, 2), (2, 7), (1, 7)])
    assert quorum.elect(*PREFERRED, "--path-to-json-file", str(file)) == 1
    said = capsys.readouterr()
    assert said.out.splitlines() == [
        "Valid replica already elected for partitions a-0",
        "Successfully completed leader election (PREFERRED) for partitions a-1",
    ]
    assert said.err == f"error: a-3, a-2: PREFERRED_LEADER_NOT_AVAILABLE: {AWAY}\n"


@pytest.mark.parametrize(
    ("text", "finding"),
    [
        ("", "Expecting value"),
        ("[" * 100_000, "it is nested too deeply"),
        ("[]", "a list of partitions is needed"),
        ('{"partitions": []}', "a list of partitions is needed"),
        ('{"partitions": ["a-1"]}', r"partitions\[0\]: 'a-1' is no map of topic and partition"),
        ('{"partitions": [{"topic": "a"}]}', r"partitions\[0\]: .* is no map of topic and"),
        ('{"partitions": [{"topic": 1, "partition": 1}]}', r"partitions\[0\]\.topic: 1 is no str"),
        (
            '{"partitions": [{"topic": "a", "partition": true}]}',
            r"partitions\[0\]\.partition: True is no whole number from 0 to 2147483647",
        ),
        ('{"partitions": [{"topic": "a", "partition": -1}]}', r"\.partition: -1 is no whole"),
        (
            '{"partitions": [{"topic": "a", "partition": 1}, {"topic": "a", "partition": 1}]}',
            r"partitions\[1\]: the partition stands there twice",
        ),
        ('{"partitions": [' + ",".join(["1"] * 25) + "]}", "and 5 more$"),
    ],
)
def test_a_file_that_is_no_list_of_partitions_is_refused(
    text: str, finding: str, tmp_path: Path
) -> None:
    file = tmp_path / "f.json"
    file.write_text(text, encoding="utf-8")
    flags = parsed(*PREFERRED, "--path-to-json-file", str(file))
    with pytest.raises(CommandError, match=rf"(?s)^--path-to-json-file: .*f\.json: .*{finding}"):
        elect_leaders.named_partitions(flags)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    flags = parsed(*PREFERRED, "--path-to-json-file", str(tmp_path / "absent"))
    with pytest.raises(CommandError, match=r"^--path-to-json-file: .*absent: No such file"):
        elect_leaders.named_partitions(flags)


@pytest.mark.parametrize(
    ("election_type", "expected"),
    [("preferred", [("a", 1), ("b", 0), ("b", 1)]), ("unclean", [("b", 1)])],
)
def test_all_partitions_that_need_it_are_found_and_asked_for_in_parts(
    election_type: str, expected: list[tuple[str, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(elect_leaders, "PARTITIONS_MAX", 2)
    quorum = FakeQuorum(a=[(1, 1), (1, 2)], b=[(2, 1), (-1, 1)], c=[(1, 1)])
    assert quorum.elect("--election-type", election_type, "--all-topic-partitions") == 0
    asked = [[(p.topic, p.partition) for p in request.partitions] for request in quorum.asked]
    assert asked == [expected[start : start + 2] for start in range(0, len(expected), 2)]
    assert {request.election_type.name for request in quorum.asked} == {election_type.upper()}


def test_nothing_to_do_is_fine(capsys: pytest.CaptureFixture[str]) -> None:
    quorum = FakeQuorum(a=[(1, 1)])
    assert quorum.elect(*PREFERRED, "--all-topic-partitions") == 0
    assert (quorum.asked, capsys.readouterr().out) == ([], "")


def test_an_election_that_may_have_been_made_is_asked_for_again(
    capsys: pytest.CaptureFixture[str],
) -> None:
    quorum = FakeQuorum(a=[(1, 2)])
    quorum.lost = 1
    assert quorum.elect(*PREFERRED, "--topic", "a", "--partition", "0") == 0
    assert len(quorum.asked) == 2
    assert capsys.readouterr().out == "Valid replica already elected for partitions a-0\n"


def test_json_has_every_result(capsys: pytest.CaptureFixture[str]) -> None:
    quorum = FakeQuorum(a=[(1, 2)], b=[(1, 7)])
    assert quorum.elect(*PREFERRED, "--all-topic-partitions", "-o", "json") == 1
    fields = ("topic", "partition", "leader", "error", "message")
    rows = [("a", 0, 2, "NONE", ""), ("b", 0, 1, "PREFERRED_LEADER_NOT_AVAILABLE", AWAY)]
    assert json.loads(capsys.readouterr().out) == {
        "electionType": "PREFERRED",
        "partitions": [dict(zip(fields, row, strict=True)) for row in rows],
    }


def test_a_request_that_is_refused_as_a_whole_ends_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(elect_leaders, "PARTITIONS_MAX", 20)
    quorum = FakeQuorum(a=[(1, 2)] * 11)
    with pytest.raises(CommandError, match="POLICY_VIOLATION: too many"):
        quorum.elect(*PREFERRED, "--all-topic-partitions", "-o", "json")
    assert json.loads(capsys.readouterr().out)["partitions"] == []
