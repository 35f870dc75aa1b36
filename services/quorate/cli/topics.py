"""`quorate topics`: create, list, describe and delete, with the flags of kafka-topics.

Lists and descriptions come from one controller's committed image; the offset that they reflect is
in the JSON, and for text on stderr.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from quorate.cli.argument_types import number, text_of_file
from quorate.cli.connection import (
    add_connection_arguments,
    ask,
    extend_deadline,
    run_command,
)
from quorate.cli.output import (
    CommandError,
    fail,
    parse_setting,
    print_json,
    print_offset,
    report_errors,
)
from quorate.cli.topics_apply import AppliedTopic, apply_topics
from quorate.cli.topics_file import read_topics
from quorate.controller.topics.messages import (
    USE_DEFAULT,
    DeleteTopics,
    DescribeTopics,
    ListTopics,
    NewTopic,
)
from quorate.records.errors import ErrorCode
from quorate.records.ids import format_uuid
from quorate.settings.integers import INT16_MAX, INT32_MAX, whole_number

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from quorate.client.controller_client import ControllerClient
    from quorate.controller.topics.messages import DescribedPartition, DescribedTopic

# Bytes for a hundred thousand topics with some configs each.
_FILE_BYTES_MAX: Final = 64 * 1024 * 1024


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    parser = subparsers.add_parser("topics", help="create, list, describe and delete topics")
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    create = actions.add_parser("create", help="create one topic, or all topics of a file")
    what = create.add_mutually_exclusive_group(required=True)
    what.add_argument("--topic", metavar="NAME")
    what.add_argument(
        "--file", metavar="F.yaml", help="definitions of many topics; - for standard input"
    )
    create.add_argument("--partitions", type=number(1, INT32_MAX), default=USE_DEFAULT, metavar="N")
    create.add_argument(
        "--replication-factor", type=number(1, INT16_MAX), default=USE_DEFAULT, metavar="N"
    )
    create.add_argument(
        "--replica-assignment",
        metavar="ID:ID,ID:ID",
        help="brokers of partition 0, 1, ..., the preferred leader first",
    )
    create.add_argument("--config", action="append", default=[], metavar="KEY=VALUE")
    create.add_argument(
        "--if-not-exists",
        action="store_true",
        help="a topic that exists is fine, even where it is defined differently",
    )
    listing = actions.add_parser("list", help="all names")
    describe = actions.add_parser("describe", help="partitions and configs")
    describe.add_argument("--topic", action="append", default=[], metavar="NAME")
    describe.add_argument(
        "--under-replicated-partitions",
        action="store_true",
        help="only partitions with a replica that is not in sync",
    )
    describe.add_argument(
        "--unavailable-partitions", action="store_true", help="only partitions without a leader"
    )
    delete = actions.add_parser("delete", help="delete topics")
    delete.add_argument("--topic", action="append", required=True, metavar="NAME")
    for action in (describe, delete):
        action.add_argument(
            "--if-exists", action="store_true", help="a topic that does not exist is no error"
        )
    add_connection_arguments(parser, [create, listing, describe, delete], has_pin=True)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Entry of the command line."""
    commands = {"create": _create, "list": _list, "describe": _describe, "delete": _delete}
    if arguments.action == "create":
        try:
            arguments.topics = topics_to_create(arguments)
        except CommandError as error:
            return fail(str(error))
    return run_command(commands[arguments.action], arguments)


# --- create ---------------------------------------------------------------------------------------


def topics_to_create(arguments: argparse.Namespace) -> tuple[NewTopic, ...]:
    """The topics to create. Raises CommandError that names the flag or the entry."""
    if arguments.file is not None:
        given = (arguments.partitions, arguments.replication_factor, arguments.replica_assignment)
        if given != (USE_DEFAULT, USE_DEFAULT, None) or arguments.config:
            raise CommandError("--file: partitions, replicas and configs stand in the file")
        text = text_of_file("--file", arguments.file, _FILE_BYTES_MAX)
        return read_topics(text, arguments.file)
    assignments = parse_assignment(arguments.replica_assignment)
    counts = (arguments.partitions, arguments.replication_factor)
    if assignments and counts != (USE_DEFAULT, USE_DEFAULT):
        raise CommandError(
            "--replica-assignment: stands in place of --partitions and --replication-factor"
        )
    configs = tuple(parse_setting("--config", setting) for setting in arguments.config)
    return (NewTopic(arguments.topic, *counts, assignments, configs),)


def parse_assignment(text: str | None) -> tuple[tuple[int, ...], ...]:
    """Parse `1:2,2:3`: partitions by commas, replicas by colons. Raises CommandError."""
    if text is None:
        return ()
    try:
        return tuple(
            tuple(whole_number(i, maximum=INT32_MAX) for i in part.split(":"))
            for part in text.split(",")
        )
    except ValueError as error:
        raise CommandError(
            f"--replica-assignment: {text!r} is no list such as 1:2,2:3 of broker ids: {error}"
        ) from None


async def _create(client: ControllerClient, arguments: argparse.Namespace) -> int:
    topics: tuple[NewTopic, ...] = arguments.topics
    applied: list[AppliedTopic] = []
    is_text = arguments.output == "text"
    may_differ: bool = arguments.if_not_exists

    def on_applied(topic: AppliedTopic) -> None:
        extend_deadline()
        applied.append(topic)
        if topic.error is not ErrorCode.NONE:
            report_errors([(topic.name, topic.error, topic.message)])
        elif is_text:
            how = "" if may_differ else ", as defined"
            existed = f"Topic {topic.name} exists already{how}."
            # Flushed, so that acknowledged topics are known even if this process is killed.
            print(existed if topic.existed else f"Created topic {topic.name}.", flush=True)

    try:
        await apply_topics(client, topics, on_applied, may_differ=may_differ)
    finally:
        refused = sum(topic.error is not ErrorCode.NONE for topic in applied)
        if len(topics) > 1 and len(applied) - refused < len(topics):
            done = len(applied) - refused
            print(f"{done} of {len(topics)} topics are there, {refused} refused", file=sys.stderr)
        if not is_text:
            print_json({"topics": [_applied_json(topic) for topic in applied]})
    return 1 if refused else 0


def _applied_json(topic: AppliedTopic) -> dict[str, object]:
    return {
        "name": topic.name,
        "existed": topic.existed,
        "error": topic.error.name,
        "message": topic.message,
    }


# --- list, describe, delete -----------------------------------------------------------------------


async def _list(client: ControllerClient, arguments: argparse.Namespace) -> int:
    reply = await ask(client, arguments, ListTopics())
    if arguments.output == "json":
        topics = [
            {"name": t.name, "topicId": format_uuid(t.topic_id), "partitions": t.partitions}
            for t in reply.topics
        ]
        print_json({"offset": reply.offset, "topics": topics})
        return 0
    for topic in reply.topics:
        print(topic.name)
    print_offset(reply.offset)
    return 0


async def _describe(client: ControllerClient, arguments: argparse.Namespace) -> int:
    reply = await ask(client, arguments, DescribeTopics(tuple(arguments.topic)))
    wanted = partition_filter(arguments)
    found = [t for t in reply.topics if not (arguments.if_exists and _is_unknown(t.error))]
    if wanted is not None:
        found = list(filtered(found, wanted))
    if arguments.output == "json":
        print_json({"offset": reply.offset, "topics": [topic_json(topic) for topic in found]})
    else:
        for topic in found:
            if topic.error is ErrorCode.NONE:
                # As in kafka-topics: the summary of a topic is shown only with all of its
                # partitions.
                print("\n".join(topic_lines(topic)[0 if wanted is None else 1 :]))
        print_offset(reply.offset)
    return report_errors([(t.name, t.error, t.message) for t in found])


def _is_unknown(error: ErrorCode) -> bool:
    return error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def partition_filter(arguments: argparse.Namespace) -> Callable[[DescribedPartition], bool] | None:
    """The filter for partitions, None for all. Raises CommandError."""
    if arguments.under_replicated_partitions and arguments.unavailable_partitions:
        raise CommandError(
            "--unavailable-partitions: give it or --under-replicated-partitions, not both"
        )
    if arguments.under_replicated_partitions:
        return lambda partition: len(partition.isr) < len(partition.replicas)
    if arguments.unavailable_partitions:
        return lambda partition: partition.leader < 0
    return None


def filtered(
    topics: Iterable[DescribedTopic], wanted: Callable[[DescribedPartition], bool]
) -> Iterator[DescribedTopic]:
    """Topics with their wanted partitions only; those without any are left out, errors stay."""
    for topic in topics:
        partitions = tuple(partition for partition in topic.partitions if wanted(partition))
        if partitions or topic.error is not ErrorCode.NONE:
            yield replace(topic, partitions=partitions)


def topic_lines(topic: DescribedTopic) -> list[str]:
    """One topic in the format of kafka-topics --describe: a summary, then its partitions."""
    assert topic.topic_id is not None
    factor = len(topic.partitions[0].replicas) if topic.partitions else 0
    configs = ",".join(f"{key}={value}" for key, value in topic.configs)
    lines = [
        f"Topic: {topic.name}\tTopicId: {format_uuid(topic.topic_id)}\t"
        f"PartitionCount: {len(topic.partitions)}\tReplicationFactor: {factor}\tConfigs: {configs}"
    ]
    for partition in topic.partitions:
        leader = "none" if partition.leader < 0 else str(partition.leader)
        lines.append(
            f"\tTopic: {topic.name}\tPartition: {partition.partition}\tLeader: {leader}\t"
            f"Replicas: {_ids(partition.replicas)}\tIsr: {_ids(partition.isr)}\t"
            f"Elr: {_ids(partition.eligible_leader_replicas)}\t"
            f"LastKnownElr: {_ids(partition.last_known_elr)}"
        )
    return lines


def _ids(ids: Sequence[int]) -> str:
    return ",".join(str(i) for i in ids)


def topic_json(topic: DescribedTopic) -> dict[str, object]:
    """One topic as `describe -o json` shows it."""
    if topic.error is not ErrorCode.NONE:
        return {"name": topic.name, "error": topic.error.name, "message": topic.message}
    assert topic.topic_id is not None
    return {
        "name": topic.name,
        "topicId": format_uuid(topic.topic_id),
        "configs": dict(topic.configs),
        "partitions": [
            {
                "partition": p.partition,
                "leader": p.leader,
                "leaderEpoch": p.leader_epoch,
                "partitionEpoch": p.partition_epoch,
                "replicas": list(p.replicas),
                "isr": list(p.isr),
                "elr": list(p.eligible_leader_replicas),
                "lastKnownElr": list(p.last_known_elr),
            }
            for p in topic.partitions
        ],
    }


async def _delete(client: ControllerClient, arguments: argparse.Namespace) -> int:
    reply = await client.write(DeleteTopics(tuple(arguments.topic)))
    found = [t for t in reply.topics if not (arguments.if_exists and _is_unknown(t.error))]
    if arguments.output == "json":
        topics = [{"name": t.name, "error": t.error.name, "message": t.message} for t in found]
        print_json({"topics": topics})
    else:
        for topic in found:
            if topic.error is ErrorCode.NONE:
                print(f"Deleted topic {topic.name}.")
    return report_errors([(t.name, t.error, t.message) for t in found])
