"""Reasons for the rejection of a voter change, as they are answered."""

from __future__ import annotations

from quorate.raft import messages as m
from quorate.raft.membership.rejection import Rejection
from quorate.records.errors import ErrorCode
from tests.unit.raft import cores


def test_an_obstacle_is_answered_whole() -> None:
    error, reason = ErrorCode.REQUEST_TIMED_OUT, m.Reason.VOTER_LAGGING
    obstacle = Rejection(error, reason, "9 records behind", (("lag", "9"),))
    assert obstacle.response(cores.LEADER) == m.MembershipResponse(
        error, "9 records behind", cores.LEADER, reason, (("lag", "9"),)
    )
