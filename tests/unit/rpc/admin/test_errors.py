"""Status of each error of the admin API; every row is reached in tests/integration/admin."""

from __future__ import annotations

import re
from pathlib import Path

import grpc
import pytest

from quorate.api.admin_api import AdminError
from quorate.raft.messages import LeaderInfo, MembershipResponse, Reason
from quorate.records.errors import ErrorCode
from quorate.records.ids import Epoch
from quorate.rpc.admin.errors import STATUS_BY_REASON, status_of

ROOT = Path(__file__).parents[4]


def test_a_leaders_reason_decides() -> None:
    answer = MembershipResponse(
        ErrorCode.REQUEST_TIMED_OUT, "", LeaderInfo(None, Epoch(5)), Reason.VOTER_LAGGING
    )
    assert status_of(AdminError.of(answer)) is grpc.StatusCode.FAILED_PRECONDITION


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
    assert status_of(AdminError.of(answer)) is code


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
