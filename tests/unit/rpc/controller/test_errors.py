"""The end of a call with one request that has no reply."""

from __future__ import annotations

import grpc
import pytest

from quorate.api.handlers import ControllerApiError
from quorate.raft.messages import LeaderInfo
from quorate.records.errors import ErrorCode
from quorate.records.ids import Epoch, NodeId
from quorate.records.voters import Endpoint
from quorate.rpc.controller.errors import refusal_for
from quorate.rpc.error_status import ErrorStatus

TLS, LOCAL = Endpoint("TLS", "two", 1), Endpoint("LOCAL", "127.0.0.1", 2)
LEADER = LeaderInfo(NodeId(2), Epoch(5), (TLS, LOCAL))


def test_who_does_not_lead_says_where_the_leader_is_on_that_listener() -> None:
    error = ControllerApiError(ErrorCode.NOT_CONTROLLER, "ask the leader", leader=LEADER)
    assert refusal_for(error, "LOCAL") == ErrorStatus(
        grpc.StatusCode.UNAVAILABLE,
        "NOT_CONTROLLER",
        "ask the leader",
        {
            "kafka_error": "NOT_CONTROLLER",
            "kafka_error_code": "41",
            "leader_epoch": "5",
            "leader_id": "2",
            "leader_host": "127.0.0.1",
            "leader_port": "2",
        },
    )
    assert refusal_for(error, "").metadata["leader_host"] == "two"


def test_nobody_is_named_where_nobody_leads() -> None:
    nobody = LeaderInfo(None, Epoch(5))
    error = ControllerApiError(ErrorCode.NOT_CONTROLLER, "wait", leader=nobody)
    assert refusal_for(error, "").metadata.keys() == {
        "kafka_error",
        "kafka_error_code",
        "leader_epoch",
    }


def test_what_may_have_been_done_is_a_reason_of_its_own() -> None:
    error = ControllerApiError(ErrorCode.REQUEST_TIMED_OUT, "look", outcome_unknown=True)
    refusal = refusal_for(error, "")
    assert (refusal.code, refusal.reason) == (
        grpc.StatusCode.DEADLINE_EXCEEDED,
        "OUTCOME_UNKNOWN",
    )


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ErrorCode.REQUEST_TIMED_OUT, grpc.StatusCode.DEADLINE_EXCEEDED),
        (ErrorCode.INVALID_REQUEST, grpc.StatusCode.INVALID_ARGUMENT),
        (ErrorCode.POLICY_VIOLATION, grpc.StatusCode.FAILED_PRECONDITION),
        (ErrorCode.UNKNOWN_SERVER_ERROR, grpc.StatusCode.INTERNAL),
    ],
)
def test_each_error_has_its_status(error: ErrorCode, code: grpc.StatusCode) -> None:
    refusal = refusal_for(ControllerApiError(error, "no"), "")
    assert (refusal.code, refusal.reason) == (code, error.name)
