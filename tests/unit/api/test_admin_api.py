"""Errors that the admin API reports."""

from __future__ import annotations

from quorate.api.admin_api import AdminError
from quorate.raft.messages import LeaderInfo, MembershipResponse, Reason
from quorate.records.errors import ErrorCode
from quorate.records.ids import Epoch, NodeId


def test_a_leaders_answer_keeps_its_reason_and_metadata() -> None:
    leader = LeaderInfo(NodeId(1), Epoch(5))
    answer = MembershipResponse(
        ErrorCode.REQUEST_TIMED_OUT, "behind", leader, Reason.VOTER_LAGGING, (("lag", "7"),)
    )
    error = AdminError.of(answer)
    assert (error.reason, error.error, str(error)) == (
        "VOTER_LAGGING",
        ErrorCode.REQUEST_TIMED_OUT,
        "behind",
    )
    assert error.metadata == {"lag": "7", "leader_id": "1", "leader_epoch": "5"}


def test_without_a_reason_kafkas_error_is_one() -> None:
    answer = MembershipResponse(ErrorCode.INVALID_REQUEST, "", LeaderInfo(None, Epoch(5)))
    error = AdminError.of(answer)
    assert error.reason == "INVALID_REQUEST"
    assert error.metadata == {"leader_epoch": "5"}
