"""`quorate elect-leaders`: elect leaders of partitions, with the flags of kafka-leader-election.

Many partitions are requested in parts, and the results of each part are reported immediately. An
election with an unknown outcome is requested again: a second one finds that none is needed.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import reprlib
from typing import TYPE_CHECKING, Any, Final

from quorate.cli.argument_types import number, text_of_file
from quorate.cli.connection import add_connection_arguments, extend_deadline, run_command
from quorate.cli.output import CommandError, fail, item_error, report_errors
from quorate.client.backoff import wait_s
from quorate.client.controller_calls import OutcomeUnknownError
from quorate.controller.partitions.partition import NO_LEADER
from quorate.controller.replication.messages import ElectionType, ElectLeaders, LeaderElection
from quorate.controller.topics.messages import DescribeTopics
from quorate.process.output_encoding import json_for_stdout
from quorate.records.errors import ErrorCode
from quorate.records.escaping import escape_unprintable
from quorate.settings.integers import INT32_MAX

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from quorate.client.controller_client import ControllerClient
    from quorate.controller.replication.messages import ElectedLeader
    from quorate.controller.topics.messages import DescribedPartition

# Partitions in one request.
PARTITIONS_MAX: Final = 1_000
# Bytes for some hundred thousand partitions.
_FILE_BYTES_MAX: Final = 64 * 1024 * 1024
_FINDINGS_SHOWN_MAX: Final = 20
_FINE: Final = (ErrorCode.NONE, ErrorCode.ELECTION_NOT_NEEDED)
_FLAG: Final = "--path-to-json-file"
_SHAPE: Final = '{"partitions": [{"topic": "orders", "partition": 0}]}'


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    parser = subparsers.add_parser("elect-leaders", help="elect leaders of partitions")
    parser.add_argument(
        "--election-type",
        type=_election_type,
        required=True,
        metavar="preferred|unclean",
        help="preferred: the first replica leads again, if it is in sync; unclean: any replica"
        " leads where none that is in sync is left, and RECORDS THAT IT LACKS ARE LOST",
    )
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--topic", metavar="NAME", help="with --partition, one partition of it")
    which.add_argument(
        "--all-topic-partitions",
        action="store_true",
        help="all partitions that need it: those that another than the first replica leads, or for"
        " an unclean election those without a leader",
    )
    which.add_argument(
        _FLAG, metavar="F.json", help=f"the partitions: {_SHAPE}; - for standard input"
    )
    parser.add_argument(
        "--partition", type=number(0, INT32_MAX), metavar="N", help="the partition, for --topic"
    )
    add_connection_arguments(parser, [])
    parser.set_defaults(run=run)


def _election_type(text: str) -> ElectionType:
    try:
        return ElectionType[text.upper()]
    except KeyError:
        raise argparse.ArgumentTypeError(f"{text!r} is neither preferred nor unclean") from None


def run(arguments: argparse.Namespace) -> int:
    """Entry of the command line."""
    try:
        arguments.partitions = named_partitions(arguments)
    except CommandError as error:
        return fail(str(error))
    return run_command(_elect, arguments)


async def _elect(client: ControllerClient, arguments: argparse.Namespace) -> int:
    election_type: ElectionType = arguments.election_type
    parts = parts_of(arguments.partitions)
    if arguments.all_topic_partitions:
        parts = needed_parts(client, election_type)
    report = (_JsonReport if arguments.output == "json" else _TextReport)(election_type)
    status = 0
    try:
        async for part in parts:
            results = await _elect_part(client, ElectLeaders(election_type, part))
            extend_deadline()
            report.add(results)
            if any(result.error not in _FINE for result in results):
                status = 1
    finally:
        report.end()
    return status


async def _elect_part(client: ControllerClient, request: ElectLeaders) -> Sequence[ElectedLeader]:
    unknown = 0
    while True:
        try:
            reply = await client.write(request)
        except OutcomeUnknownError:
            unknown += 1
            await asyncio.sleep(wait_s(unknown))
            continue
        if reply.error is not ErrorCode.NONE:
            raise CommandError(item_error(reply.error, reply.message))
        return reply.partitions


# --- which partitions -----------------------------------------------------------------------------


def named_partitions(arguments: argparse.Namespace) -> tuple[LeaderElection, ...]:
    """The partitions that the flags name. Raises CommandError."""
    if (arguments.topic is None) != (arguments.partition is None):
        raise CommandError("--partition: give it together with --topic, and with nothing else")
    if arguments.topic is not None:
        return (LeaderElection(arguments.topic, arguments.partition),)
    path: str | None = arguments.path_to_json_file
    if path is None:
        return ()
    try:
        return read_partitions(text_of_file(_FLAG, path, _FILE_BYTES_MAX))
    except ValueError as error:
        raise CommandError(f"{_FLAG}: {path}: {error}") from error


def read_partitions(text: str) -> tuple[LeaderElection, ...]:
    """The partitions of a JSON file, in its order. Raises ValueError, one line per finding."""
    try:
        document = json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply for a list of partitions") from None
    entries = document.get("partitions") if isinstance(document, dict) else None
    if not isinstance(entries, list) or not entries:
        raise ValueError(f"a list of partitions is needed, such as {_SHAPE}")
    found: dict[LeaderElection, None] = {}
    findings = []
    for place, entry in enumerate(entries):
        problem = _entry_problem(entry)
        if problem is None:
            partition = LeaderElection(entry["topic"], entry["partition"])
            if partition not in found:
                found[partition] = None
                continue
            problem = ": the partition stands there twice"
        findings.append(f"partitions[{place}]{problem}")
    if findings:
        shown = findings[:_FINDINGS_SHOWN_MAX]
        if len(findings) > len(shown):
            shown.append(f"and {len(findings) - len(shown)} more")
        raise ValueError("\n".join(shown))
    return tuple(found)


def _entry_problem(entry: Any) -> str | None:  # noqa: ANN401 - whatever JSON has
    if not isinstance(entry, dict) or entry.keys() != {"topic", "partition"}:
        return f": {reprlib.repr(entry)} is no map of topic and partition alone"
    if not isinstance(entry["topic"], str):
        return f".topic: {reprlib.repr(entry['topic'])} is no string"
    partition = entry["partition"]
    if type(partition) is not int or not 0 <= partition <= INT32_MAX:
        return f".partition: {reprlib.repr(partition)} is no whole number from 0 to {INT32_MAX}"
    return None


async def parts_of(
    partitions: Sequence[LeaderElection],
) -> AsyncIterator[tuple[LeaderElection, ...]]:
    """Split the partitions into parts that fit into one request each."""
    for start in range(0, len(partitions), PARTITIONS_MAX):
        yield tuple(partitions[start : start + PARTITIONS_MAX])


async def needed_parts(
    client: ControllerClient, election_type: ElectionType
) -> AsyncIterator[tuple[LeaderElection, ...]]:
    """All partitions that need such an election, found page after page."""
    found: list[LeaderElection] = []
    async for page in client.read_pages(DescribeTopics(), current=True):
        extend_deadline()
        found += [
            LeaderElection(topic.name, partition.partition)
            for topic in page.topics
            for partition in topic.partitions
            if _needs(partition, election_type)
        ]
        while len(found) >= PARTITIONS_MAX:
            yield tuple(found[:PARTITIONS_MAX])
            del found[:PARTITIONS_MAX]
    if found:
        yield tuple(found)


def _needs(partition: DescribedPartition, election_type: ElectionType) -> bool:
    if partition.leader == NO_LEADER:
        return True
    return election_type is ElectionType.PREFERRED and partition.replicas[:1] != (partition.leader,)


# --- what is reported -----------------------------------------------------------------------------


class _TextReport:
    """Prints the lines of Kafka's tool: one for all partitions of a part with the same outcome."""

    def __init__(self, election_type: ElectionType) -> None:
        self._type = election_type.name

    def add(self, results: Sequence[ElectedLeader]) -> None:
        """Report the results of a part; failures on stderr."""
        groups: dict[tuple[ErrorCode, str], list[str]] = {}
        for result in results:
            message = "" if result.error in _FINE else result.message
            name = f"{escape_unprintable(result.topic)}-{result.partition}"
            groups.setdefault((result.error, message), []).append(name)
        elected = f"Successfully completed leader election ({self._type}) for partitions"
        words = {
            ErrorCode.NONE: elected,
            ErrorCode.ELECTION_NOT_NEEDED: "Valid replica already elected for partitions",
        }
        for (error, message), names in groups.items():
            if error in _FINE:
                print(f"{words[error]} {', '.join(names)}", flush=True)
            else:
                report_errors([(", ".join(names), error, message)])

    def end(self) -> None:
        """Do nothing: a text has no end."""


class _JsonReport:
    """One document with all results, written as they come."""

    def __init__(self, election_type: ElectionType) -> None:
        print(f'{{"electionType": "{election_type.name}", "partitions": [', end="")
        self._before = ""

    def add(self, results: Sequence[ElectedLeader]) -> None:
        """Write the results of a part."""
        for result in results:
            shown = {
                "topic": result.topic,
                "partition": result.partition,
                "leader": result.leader_id,
                "error": result.error.name,
                "message": result.message,
            }
            print(self._before + json_for_stdout(shown), end="")
            self._before = ", "

    def end(self) -> None:
        """Close the document, also if the command fails half-way."""
        print("]}", flush=True)
