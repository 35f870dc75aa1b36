"""`metadata-quorum describe` in the shapes of Kafka's tool."""

from __future__ import annotations

import argparse
from dataclasses import replace

import pytest

from quorate.cli import metadata_quorum
from quorate.cli.metadata_quorum import StatusWarning
from quorate.raft.messages import (
    ChangeKind,
    DescribeQuorumResponse,
    LeaderInfo,
    Reason,
    ReplicaState,
    VoterChange,
)
from quorate.records.errors import ErrorCode
from quorate.records.ids import DirectoryId, Epoch, Millis, NodeId, Offset, ReplicaKey
from quorate.records.voters import Endpoint, Voter

GRPC = Endpoint("GRPC", "127.0.0.1", 9094)


def state(
    node_id: int, end: int | None, age_ms: int | None = 0, *, known: bool = True
) -> ReplicaState:
    directory = DirectoryId(bytes([node_id]) * 16) if known else None
    moment = None if age_ms is None else Millis(1_000 - age_ms)
    return ReplicaState(
        key=ReplicaKey(NodeId(node_id), directory),
        log_end_offset=None if end is None else Offset(end),
        last_fetch_ms=moment,
        last_caught_up_ms=moment,
        endpoints=(GRPC,) if known else (),
    )


DESCRIBED = DescribeQuorumResponse(
    error=ErrorCode.NONE,
    leader=LeaderInfo(NodeId(2), Epoch(5)),
    high_watermark=Offset(10),
    voters=(state(1, 8, 30), state(2, 12)),
    observers=(state(4, None, None, known=False),),
    now_ms=Millis(1_000),
)


def test_the_status_is_two_columns_and_json_on_one_line() -> None:
    status = metadata_quorum.status_fields("cluster", DESCRIBED)
    lines = metadata_quorum.format_status(status, [StatusWarning("h:1", "healing")]).splitlines()
    assert lines[:6] == [
        "ClusterId:              cluster",
        "LeaderId:               2",
        "LeaderEpoch:            5",
        "HighWatermark:          10",
        "MaxFollowerLag:         4",
        "MaxFollowerLagTimeMs:   30",
    ]
    assert lines[6] == (
        'CurrentVoters:          [{"id": 1, "directoryId": "AQEBAQEBAQEBAQEBAQEBAQ",'
        ' "endpoints": ["GRPC://127.0.0.1:9094"]}, {"id": 2, "directoryId":'
        ' "AgICAgICAgICAgICAgICAg", "endpoints": ["GRPC://127.0.0.1:9094"]}]'
    )
    assert lines[7:] == [
        'CurrentObservers:       [{"id": 4}]',
        "Remark:                 h:1: healing",
    ]


def test_a_pending_change_stands_after_the_observers() -> None:
    change = VoterChange(ChangeKind.ADD, Voter(state(4, 1).key, (GRPC,)))
    status = metadata_quorum.status_fields(
        "cluster", replace(DESCRIBED, uncommitted_voter_change=change)
    )
    assert metadata_quorum.format_status(status, []).splitlines()[7:] == [
        'CurrentObservers:       [{"id": 4}]',
        'UncommittedVoterChange: {"kind": "add", "id": 4, "directoryId": "BAQEBAQEBAQEBAQEBAQEBA",'
        ' "endpoints": ["GRPC://127.0.0.1:9094"]}',
    ]


def test_an_observer_that_may_not_be_added_is_a_remark_and_a_field() -> None:
    lagging = replace(
        state(4, 1), obstacle=Reason.VOTER_LAGGING, obstacle_text="node 4 is 9 records behind"
    )
    described = replace(DESCRIBED, observers=(lagging, state(5, 12)))
    assert metadata_quorum.observer_remarks(described) == [
        StatusWarning(
            "observer 4:BAQEBAQEBAQEBAQEBAQEBA", "may not be added now: node 4 is 9 records behind"
        )
    ]
    shown = [metadata_quorum.observer_fields(one) for one in described.observers]
    assert [(one["id"], one["obstacle"], one["obstacleText"]) for one in shown] == [
        (4, "VOTER_LAGGING", "node 4 is 9 records behind"),
        (5, None, ""),
    ]


def test_a_lag_in_time_that_nobody_knows_is_minus_one() -> None:
    voters = (state(1, 8, None), state(2, 12))
    described = DescribeQuorumResponse(
        error=ErrorCode.NONE, leader=DESCRIBED.leader, high_watermark=Offset(10), voters=voters
    )
    assert metadata_quorum.status_fields("cluster", described)["MaxFollowerLagTimeMs"] == -1


def test_replication_lists_leader_followers_observers() -> None:
    rows = metadata_quorum.replication_rows(DESCRIBED, wall_ms=50_000)
    assert [tuple(row.values()) for row in rows] == [
        (2, "AgICAgICAgICAgICAgICAg", 12, 0, 50_000, 50_000, "Leader"),
        (1, "AQEBAQEBAQEBAQEBAQEBAQ", 8, 4, 49_970, 49_970, "Follower"),
        (4, "AAAAAAAAAAAAAAAAAAAAAA", -1, -1, -1, -1, "Observer"),
    ]
    table = metadata_quorum.format_replication(rows, None).splitlines()
    assert [line.split() for line in table][1] == [
        *("2", "AgICAgICAgICAgICAgICAg", "12", "0", "50000", "50000", "Leader")
    ]


def test_ages_are_readable_and_what_is_missing_stays_minus_one() -> None:
    rows = metadata_quorum.replication_rows(DESCRIBED, wall_ms=50_000)
    table = metadata_quorum.format_replication(rows, 50_000).splitlines()
    assert [cell.strip() for cell in table[2].split("\t")][4:] == [
        "30 ms ago",
        "30 ms ago",
        "Follower",
    ]
    assert [cell.strip() for cell in table[3].split("\t")][4:] == ["-1", "-1", "Observer"]


@pytest.mark.parametrize(
    "flags", [(), ("--status", "--replication"), ("--status", "--human-readable")]
)
def test_flags_that_do_not_go_together_are_refused(
    flags: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    parser = argparse.ArgumentParser()
    metadata_quorum.register(parser.add_subparsers())
    connection = ("--bootstrap-controller", "127.0.0.1:1")
    arguments = parser.parse_args(["metadata-quorum", *connection, "describe", *flags])
    assert arguments.run(arguments) == 1
    assert capsys.readouterr().err.startswith("error: describe: ")


def test_a_second_process_of_a_voter_is_a_row_of_its_own() -> None:
    described = replace(DESCRIBED, refused=(state(1, None),))
    rows = metadata_quorum.replication_rows(described, wall_ms=50_000)
    assert [(row["NodeId"], row["Status"]) for row in rows] == [
        (2, "Leader"),
        (1, "Follower"),
        (4, "Observer"),
        (1, "Refused"),
    ]
