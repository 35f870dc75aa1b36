"""Which status an error of the admin API has; every row is reached in tests/integration/admin."""

from __future__ import annotations

import re
from pathlib import Path

import grpc
import pytest

from quorate.raft.messages import LeaderInfo, MembershipResponse, Reason
from quorate.records.errors import ErrorCode
from quorate.records.ids import Epoch, NodeId
from quorate.rpc.admin_errors import STATUS_BY_REASON, AdminError

ROOT = Path(__file__).parents[3]


def test_a_leaders_answer_keeps_its_reason_and_metadata() -> None:
    leader = LeaderInfo(NodeId(1), Epoch(5))
    answer = MembershipResponse(
        ErrorCode.REQUEST_TIMED_OUT, "behind", leader, Reason.VOTER_LAGGING, (("lag", "7"),)
    )
    error = AdminError.of(answer)
    assert (error.reason, str(error)) == ("VOTER_LAGGING", "behind")
    assert error.metadata == {"lag": "7", "leader_id": "1", "leader_epoch": "5"}
    assert error.code is grpc.StatusCode.FAILED_PRECONDITION


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ErrorCode.UNSUPPORTED_VERSION, grpc.StatusCode.FAILED_PRECONDITION),
        (ErrorCode.REQUEST_TIMED_OUT, grpc.StatusCode.DEADLINE_EXCEEDED),
        (ErrorCode.CLUSTER_AUTHORIZATION_FAILED, grpc.StatusCode.PERMISSION_DENIED),
        (ErrorCode.UNKNOWN_SERVER_ERROR, grpc.StatusCode.INTERNAL),
    ],
)
def test_without_a_reason_kafkas_error_decides(error: ErrorCode, code: grpc.StatusCode) -> None:
    answer = MembershipResponse(error, "", LeaderInfo(None, Epoch(5)))
    said = AdminError.of(answer)
    assert (said.reason, said.code) == (error.name, code)
    assert said.metadata == {"leader_epoch": "5"}


def test_the_table_of_the_documents_has_the_same_rows() -> None:
    documented = {}
    for line in (ROOT / "docs" / "admin.md").read_text(encoding="utf-8").splitlines():
        row = re.match(r"\| `([A-Z_]+)` \| ([A-Z_]+) \|", line)
        if row is not None:
            documented[row[1]] = row[2]
    assert documented == {reason: code.name for reason, code in STATUS_BY_REASON.items()}


def test_every_reason_of_a_leader_has_its_row() -> None:
    assert {reason.value for reason in Reason} <= set(STATUS_BY_REASON)
    assert grpc.StatusCode.OK not in STATUS_BY_REASON.values()
