"""`quorate metadata-quorum describe`: the leader, the lag of its replicas, and status warnings.

The actions that change the voters and the leader are in `cli.metadata_quorum_changes`.

The output has the format of kafka-metadata-quorum. Below the status are the remarks of every
controller that answers: healing voters and rejected votes, which only the controller itself knows.
"""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Final

from quorate.cli import metadata_quorum_changes
from quorate.cli.connection import add_connection_arguments, run_command, servers_of
from quorate.cli.output import CommandError, print_json
from quorate.client.fan_out import ask_all
from quorate.client.server_addresses import format_server
from quorate.records.ids import format_uuid
from quorate.records.value_types import value_type

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from quorate.client.controller_calls import Address
    from quorate.client.controller_client import ControllerClient
    from quorate.raft.messages import DescribeQuorumResponse, ReplicaState
    from quorate.records.ids import ReplicaKey

REMARKS_TIMEOUT_S: Final = 2.0
_KEY_WIDTH: Final = 24
_COLUMNS: Final = (
    "NodeId",
    "DirectoryId",
    "LogEndOffset",
    "Lag",
    "LastFetchTimestamp",
    "LastCaughtUpTimestamp",
    "Status",
)


@value_type
class StatusWarning:
    """A status warning of a controller, or the reason for which it does not answer."""

    server: str
    text: str


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    parser = subparsers.add_parser("metadata-quorum", help="describe the quorum, change its voters")
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    describe = actions.add_parser("describe", help="the leader's view of all replicas")
    describe.add_argument("--status", action="store_true", help="a summary")
    describe.add_argument("--replication", action="store_true", help="a row for each replica")
    describe.add_argument(
        "--human-readable", action="store_true", help="ages instead of timestamps"
    )
    others = metadata_quorum_changes.register(actions)
    add_connection_arguments(parser, [describe, *others])
    describe.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Entry of the command line."""
    return run_command(_describe, arguments)


async def _describe(client: ControllerClient, arguments: argparse.Namespace) -> int:
    if arguments.status == arguments.replication:
        raise CommandError("describe: give exactly one of --status and --replication")
    if arguments.human_readable and not arguments.replication:
        raise CommandError("describe: --human-readable goes with --replication only")
    quorum = await client.describe_quorum()
    wall_ms = time.time_ns() // 1_000_000
    if arguments.replication:
        rows = replication_rows(quorum, wall_ms)
        if arguments.output == "json":
            print_json(rows)
        else:
            print(format_replication(rows, wall_ms if arguments.human_readable else None))
        return 0
    identity = await client.api_versions()
    remarks = await collect_warnings(client, servers_of(arguments), quorum)
    remarks += observer_remarks(quorum)
    status = status_fields(identity.cluster_id, quorum)
    if arguments.output == "json":
        said = [{"server": remark.server, "remark": remark.text} for remark in remarks]
        observers = [observer_fields(state) for state in quorum.observers]
        decommissioned = [_who(key) for key in quorum.decommissioned]
        print_json(
            status
            | {"CurrentObservers": observers, "Decommissioned": decommissioned, "Remarks": said}
        )
    else:
        print(format_status(status, remarks))
    return 0


async def collect_warnings(
    client: ControllerClient, servers: Sequence[Address], quorum: DescribeQuorumResponse
) -> list[StatusWarning]:
    """Ask all known controllers in parallel; a missing answer is a remark too."""
    asked = {server: format_server(server) for server in servers}
    for state in (*quorum.voters, *quorum.observers):
        if state.endpoints:
            endpoint = state.endpoints[0]
            server = (endpoint.host, endpoint.port)
            asked[server] = f"node {state.key.node_id} ({format_server(server)})"
    answers = await ask_all(asked, lambda s: client.try_describe_at(s, REMARKS_TIMEOUT_S))
    remarks = []
    for server, answer in answers.items():
        name = asked[server]
        texts = (f"does not answer: {answer}",) if isinstance(answer, str) else answer.remarks
        remarks += [StatusWarning(name, text) for text in texts]
    return remarks


# --- status ---------------------------------------------------------------------------------------


def status_fields(cluster_id: str, quorum: DescribeQuorumResponse) -> dict[str, object]:
    """The lines of `--status`, in Kafka's order; -1 stands for unknown."""
    leader_end = _leader_end(quorum)
    ends = [state.log_end_offset or 0 for state in quorum.voters]
    caught_up = [state.last_caught_up_ms for state in quorum.voters]
    lag_ms = -1
    if all(moment is not None for moment in caught_up):
        lag_ms = max(quorum.now_ms - moment for moment in caught_up if moment is not None)
    status: dict[str, object] = {
        "ClusterId": cluster_id,
        "LeaderId": -1 if quorum.leader.leader_id is None else quorum.leader.leader_id,
        "LeaderEpoch": quorum.leader.epoch,
        "HighWatermark": -1 if quorum.high_watermark is None else quorum.high_watermark,
        "MaxFollowerLag": leader_end - min(ends, default=leader_end),
        "MaxFollowerLagTimeMs": lag_ms,
        "CurrentVoters": [_member(state) for state in quorum.voters],
        "CurrentObservers": [_member(state) for state in quorum.observers],
    }
    change = quorum.uncommitted_voter_change
    if change is not None:
        status["UncommittedVoterChange"] = {
            "kind": change.kind.value,
            **_who(change.voter.key),
            "endpoints": [str(endpoint) for endpoint in change.voter.endpoints],
        }
    return status


def _member(state: ReplicaState) -> dict[str, object]:
    member = _who(state.key)
    if state.endpoints:
        member["endpoints"] = [str(endpoint) for endpoint in state.endpoints]
    return member


def _who(key: ReplicaKey) -> dict[str, object]:
    who: dict[str, object] = {"id": key.node_id}
    if key.directory_id is not None and any(key.directory_id):
        who["directoryId"] = format_uuid(key.directory_id)
    return who


def observer_fields(state: ReplicaState) -> dict[str, object]:
    """An observer as JSON fields: with the reason against adding it to the voters, or null."""
    obstacle = None if state.obstacle is None else state.obstacle.value
    return _member(state) | {"obstacle": obstacle, "obstacleText": state.obstacle_text}


def observer_remarks(quorum: DescribeQuorumResponse) -> list[StatusWarning]:
    """The same as text, in addition to the output of Kafka's tool."""
    return [
        StatusWarning(f"observer {state.key}", f"may not be added now: {state.obstacle_text}")
        for state in quorum.observers
        if state.obstacle is not None
    ]


def format_status(status: dict[str, object], remarks: Sequence[StatusWarning]) -> str:
    """Keys and values in two columns; lists as JSON on one line; a line for each remark."""
    lines = [
        f"{key + ':':<{_KEY_WIDTH}}{json.dumps(value) if isinstance(value, list | dict) else value}"
        for key, value in status.items()
    ]
    lines += [f"{'Remark:':<{_KEY_WIDTH}}{remark.server}: {remark.text}" for remark in remarks]
    return "\n".join(lines)


# --- replication ----------------------------------------------------------------------------------


def replication_rows(quorum: DescribeQuorumResponse, wall_ms: int) -> list[dict[str, object]]:
    """A row for each replica: the leader, followers, observers.

    The leader's clock is monotonic; `wall_ms`, the local time, turns its ages into timestamps.
    """
    leader_id, leader_end = quorum.leader.leader_id, _leader_end(quorum)

    def timestamp(moment: int | None) -> int:
        return -1 if moment is None else wall_ms - (quorum.now_ms - moment)

    def row(state: ReplicaState, status: str) -> dict[str, object]:
        end = state.log_end_offset
        directory = state.key.directory_id or bytes(16)
        return {
            "NodeId": state.key.node_id,
            "DirectoryId": format_uuid(directory),
            "LogEndOffset": -1 if end is None else end,
            "Lag": -1 if end is None else leader_end - end,
            "LastFetchTimestamp": timestamp(state.last_fetch_ms),
            "LastCaughtUpTimestamp": timestamp(state.last_caught_up_ms),
            "Status": status,
        }

    leaders = [row(s, "Leader") for s in quorum.voters if s.key.node_id == leader_id]
    followers = [row(s, "Follower") for s in quorum.voters if s.key.node_id != leader_id]
    observers = [row(s, "Observer") for s in quorum.observers]
    # Second processes of voters: not in Kafka, which does not tell the two apart.
    return leaders + followers + observers + [row(s, "Refused") for s in quorum.refused]


def _leader_end(quorum: DescribeQuorumResponse) -> int:
    for state in quorum.voters:
        if state.key.node_id == quorum.leader.leader_id and state.log_end_offset is not None:
            return state.log_end_offset
    return quorum.high_watermark or 0


def format_replication(rows: Sequence[dict[str, object]], wall_ms: int | None) -> str:
    """A table of tab-ended columns; with `wall_ms`, timestamps become ages such as `12 ms ago`."""
    table = [list(_COLUMNS)]
    for row in rows:
        cells = []
        for column in _COLUMNS:
            value = row[column]
            if wall_ms is not None and column.endswith("Timestamp") and value != -1:
                assert isinstance(value, int)
                cells.append(f"{wall_ms - value} ms ago")
            else:
                cells.append(str(value))
        table.append(cells)
    widths = [max(len(line[index]) for line in table) for index in range(len(_COLUMNS))]
    return "\n".join(
        "\t".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in table
    )
