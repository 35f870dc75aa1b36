"""`quorate topics`: what the flags ask for, and topics as they are shown."""

from __future__ import annotations

import argparse
import os
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from quorate.cli import topics
from quorate.cli.main import main
from quorate.cli.output import CommandError
from quorate.controller.topics.messages import DescribedPartition, DescribedTopic, NewTopic
from quorate.records.errors import ErrorCode
from quorate.records.ids import TopicId

if TYPE_CHECKING:
    from pathlib import Path

DESCRIBED = DescribedTopic(
    "t",
    topic_id=TopicId(bytes(16)),
    partitions=(
        DescribedPartition(0, 1, 4, 5, (1, 2), (1, 2)),
        DescribedPartition(1, -1, 4, 5, (2, 3), (), (2,), (3,)),
    ),
    configs=(("a", "1"), ("b", "2")),
)


def created(*arguments: str) -> tuple[NewTopic, ...]:
    parser = argparse.ArgumentParser()
    topics.register(parser.add_subparsers())
    return topics.topics_to_create(parser.parse_args(["topics", "create", *arguments]))


def test_flags_describe_one_topic() -> None:
    flags = ("--partitions", "3", "--replication-factor", "2", "--config", "a=1", "--config", "b=2")
    assert created("--topic", "t", *flags) == (NewTopic("t", 3, 2, (), (("a", "1"), ("b", "2"))),)
    assert created("--topic", "t") == (NewTopic("t"),)
    assert created("--topic", "t", "--replica-assignment", "1:2,2:3") == (
        NewTopic("t", assignments=((1, 2), (2, 3))),
    )


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (("--topic", "t", "--config", "a"), "--config: 'a' is no KEY=VALUE"),
        (("--topic", "t", "--replica-assignment", "1:x"), "--replica-assignment: '1:x'"),
        (
            ("--topic", "t", "--replica-assignment", "1", "--partitions", "1"),
            "--replica-assignment: stands in place",
        ),
        (("--file", "f.yaml", "--partitions", "1"), "--file: partitions"),
        (("--file", "does-not-exist.yaml"), "--file: .*does-not-exist.yaml"),
    ],
)
def test_flags_that_do_not_fit_are_named(flags: tuple[str, ...], words: str) -> None:
    with pytest.raises(CommandError, match=words):
        created(*flags)


def test_a_file_describes_many_topics(tmp_path: Path) -> None:
    file = tmp_path / "f.yaml"
    file.write_text("topics: {a: {partitions: 1}, b: {partitions: 2}}")
    assert created("--file", str(file)) == (NewTopic("a", 1), NewTopic("b", 2))


def test_a_list_of_topics_that_is_neither_file_nor_pipe_is_named(tmp_path: Path) -> None:
    path = tmp_path / "topics.yaml"
    path.symlink_to("/dev/zero")
    with pytest.raises(CommandError, match=r"--file: .*topics\.yaml: it is a device"):
        created("--file", str(path))


def test_a_program_may_write_the_list_of_topics(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    os.write(writer, b"topics: {a: {partitions: 1}}")
    os.close(writer)
    try:
        assert created("--file", f"/dev/fd/{reader}") == (NewTopic("a", 1),)
    finally:
        os.close(reader)


def test_a_file_that_cannot_be_read_ends_before_a_server_is_asked(
    capsys: pytest.CaptureFixture[str],
) -> None:
    where = ["--bootstrap-controller", "127.0.0.1:1", "--file", "/no/file"]
    assert main(["topics", "create", *where]) == 1
    assert capsys.readouterr().err == "error: --file: /no/file: No such file or directory\n"


def test_a_topic_is_shown_as_kafka_shows_it() -> None:
    assert topics.topic_lines(DESCRIBED) == [
        "Topic: t\tTopicId: AAAAAAAAAAAAAAAAAAAAAA\tPartitionCount: 2\tReplicationFactor: 2\t"
        "Configs: a=1,b=2",
        "\tTopic: t\tPartition: 0\tLeader: 1\tReplicas: 1,2\tIsr: 1,2\tElr: \tLastKnownElr: ",
        "\tTopic: t\tPartition: 1\tLeader: none\tReplicas: 2,3\tIsr: \tElr: 2\tLastKnownElr: 3",
    ]


def test_only_the_partitions_that_are_asked_for_are_shown() -> None:
    def shown(*flags: str) -> list[tuple[str, list[int]]]:
        parser = argparse.ArgumentParser()
        topics.register(parser.add_subparsers())
        wanted = topics.partition_filter(parser.parse_args(["topics", "describe", *flags]))
        assert wanted is not None
        whole = replace(DESCRIBED, name="whole", partitions=DESCRIBED.partitions[:1])
        missing = DescribedTopic("u", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "no such topic")
        found = topics.filtered([whole, DESCRIBED, missing], wanted)
        return [(t.name, [p.partition for p in t.partitions]) for t in found]

    assert shown("--under-replicated-partitions") == [("t", [1]), ("u", [])]
    assert shown("--unavailable-partitions") == [("t", [1]), ("u", [])]
    with pytest.raises(CommandError, match="not both"):
        shown("--under-replicated-partitions", "--unavailable-partitions")


def test_a_topic_as_json() -> None:
    shown = topics.topic_json(DESCRIBED)
    assert shown["configs"] == {"a": "1", "b": "2"}
    partitions = shown["partitions"]
    assert isinstance(partitions, list)
    assert partitions[1] == {
        "partition": 1,
        "leader": -1,
        "leaderEpoch": 4,
        "partitionEpoch": 5,
        "replicas": [2, 3],
        "isr": [],
        "elr": [2],
        "lastKnownElr": [3],
    }
    missing = DescribedTopic("u", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "no such topic")
    assert topics.topic_json(missing) == {
        "name": "u",
        "error": "UNKNOWN_TOPIC_OR_PARTITION",
        "message": "no such topic",
    }
