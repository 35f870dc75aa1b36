"""Every error of the admin API over real gRPC: status, reason, message and metadata."""

from __future__ import annotations

from typing import TYPE_CHECKING

import grpc
import grpc.aio
import pytest

from quorate.api import admin_api, permissions
from quorate.raft import messages as m
from quorate.raft.last_message import Heard
from quorate.raft.messages import Reason
from quorate.records.errors import ErrorCode
from quorate.records.ids import Epoch, Millis, NodeId
from quorate.rpc.admin.errors import STATUS_BY_REASON, admin_error
from quorate.rpc.gen.admin.v1 import admin_pb2 as pb
from quorate.rpc.gen.raft.v1 import raft_pb2
from tests.integration.client.conftest import TIMEOUT_MS, sidecar
from tests.integration.client.scripted import observer, refusal

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from quorate.api.admin_api import AdminError
    from quorate.client.membership_client import MembershipClient
    from tests.integration.client.conftest import Beside
    from tests.integration.client.scripted import ScriptedQuorum

LOOK_MS = 3_000
REMOVAL = pb.RemoveRaftVoterRequest(voter_id=3)
OWN = [
    admin_api.NO_LEADER,
    admin_api.OUTCOME_UNKNOWN,
    admin_api.INVALID_REQUEST,
    admin_api.AMBIGUOUS_OBSERVER,
    admin_api.OBSERVER_NOT_FOUND,
    admin_api.FEATURE_UNSUPPORTED,
    # Reached in tests/integration/security.
    permissions.NOT_AUTHORIZED,
    permissions.FORWARDING_NOT_ALLOWED,
    permissions.SUBJECT_UNREADABLE,
]


async def refused(call: Awaitable[object]) -> tuple[grpc.StatusCode, AdminError]:
    """The status of a call that has to fail, and what its details say."""
    with pytest.raises(grpc.aio.AioRpcError) as raised:
        await call
    said = admin_error(raised.value)
    assert said is not None
    assert raised.value.details() == said.message
    return raised.value.code(), said


@pytest.mark.parametrize("reason", list(Reason))
async def test_a_leaders_reason_becomes_the_status_of_its_row(
    reason: Reason, quorum: ScriptedQuorum, beside: Beside, monkeypatch: pytest.MonkeyPatch
) -> None:
    # What passes by itself is asked for once, however much time there is.
    monkeypatch.setattr("quorate.client.membership_client.ATTEMPT_MIN_S", TIMEOUT_MS / 1000)
    said = refusal(ErrorCode.REQUEST_TIMED_OUT, reason, "wait until it is", lag="12")
    quorum.answers.append(said)
    code, error = await refused(beside.stub.RemoveRaftVoter(REMOVAL))
    assert (code, error.reason) == (STATUS_BY_REASON[reason.value], reason.value)
    assert (error.error, error.message) == (ErrorCode.REQUEST_TIMED_OUT, "wait until it is")
    assert error.metadata == {"lag": "12", "leader_id": "1", "leader_epoch": "5"}


def test_the_rows_are_the_leaders_reasons_and_the_sidecars() -> None:
    assert set(STATUS_BY_REASON) == {reason.value for reason in Reason} | set(OWN)


async def test_an_error_without_a_reason_is_its_own(quorum: ScriptedQuorum, beside: Beside) -> None:
    quorum.answers.append(refusal(ErrorCode.UNSUPPORTED_VERSION, None, "not in this release"))
    code, error = await refused(beside.stub.RemoveRaftVoter(REMOVAL))
    assert code is grpc.StatusCode.FAILED_PRECONDITION
    assert (error.reason, error.message) == ("UNSUPPORTED_VERSION", "not in this release")


async def test_no_leader(quorum: ScriptedQuorum, membership: MembershipClient) -> None:
    quorum.lead(None)
    quorum.last_leader = m.LeaderInfo(NodeId(2), Epoch(5))
    quorum.heard = (Heard(NodeId(2), Millis(4_000)),)
    # Only the sidecar's time is short: its answer may take as long as it likes.
    async with sidecar(membership, LOOK_MS) as beside:
        code, error = await refused(beside.stub.DescribeQuorum(raft_pb2.DescribeQuorumRequest()))
    assert code is grpc.StatusCode.UNAVAILABLE
    assert (error.reason, error.error) == ("NO_LEADER", ErrorCode.LEADER_NOT_AVAILABLE)
    assert error.metadata.items() >= {
        ("last_leader_id", "2"),
        ("last_leader_epoch", "5"),
        ("heard_2_ms_ago", "6000"),
    }


async def test_outcome_unknown(quorum: ScriptedQuorum, beside: Beside) -> None:
    async def vanish(_: m.MembershipRequest) -> m.MembershipResponse:
        quorum.lead(None)
        return refusal(ErrorCode.NOT_LEADER_OR_FOLLOWER, Reason.LEADERSHIP_LOST)

    quorum.answers.append(vanish)
    # Connections are there before the time begins to run.
    await beside.stub.DescribeQuorum(raft_pb2.DescribeQuorumRequest())
    request = pb.RemoveRaftVoterRequest(voter_id=3, timeout_ms=LOOK_MS)
    code, error = await refused(beside.stub.RemoveRaftVoter(request))
    assert code is grpc.StatusCode.DEADLINE_EXCEEDED
    assert error.reason == "OUTCOME_UNKNOWN"
    assert error.message.startswith("the change may have been made, or may still be")


async def test_invalid_request(quorum: ScriptedQuorum, beside: Beside) -> None:
    stub = beside.stub
    short = stub.RemoveRaftVoter(pb.RemoveRaftVoterRequest(voter_id=3, voter_directory_id=b"3"))
    late = stub.RemoveRaftVoter(pb.RemoveRaftVoterRequest(voter_id=3, timeout_ms=-1))
    for call, field in ((short, "voter_directory_id: 1 bytes"), (late, "timeout_ms: -1")):
        code, error = await refused(call)
        assert code is grpc.StatusCode.INVALID_ARGUMENT
        assert (error.reason, error.error) == ("INVALID_REQUEST", ErrorCode.INVALID_REQUEST)
        assert error.message.startswith(field)
    assert quorum.asked == []


async def test_observers_that_cannot_be_told_apart_or_are_not_there(
    quorum: ScriptedQuorum, beside: Beside
) -> None:
    quorum.observers = (observer(4), observer(4, directory=9))
    code, error = await refused(beside.stub.AddRaftVoter(pb.AddRaftVoterRequest(voter_id=4)))
    assert (code, error.reason) == (grpc.StatusCode.FAILED_PRECONDITION, "AMBIGUOUS_OBSERVER")
    code, error = await refused(beside.stub.AddRaftVoter(pb.AddRaftVoterRequest(voter_id=5)))
    assert (code, error.reason) == (grpc.StatusCode.NOT_FOUND, "OBSERVER_NOT_FOUND")


async def test_features_of_later_releases(quorum: ScriptedQuorum, beside: Beside) -> None:
    update = raft_pb2.FeatureUpdate(feature="metadata.version", max_version_level=30)
    request = pb.UpdateFeaturesRequest(feature_updates=[update])
    code, error = await refused(beside.stub.UpdateFeatures(request))
    assert (code, error.reason) == (grpc.StatusCode.UNIMPLEMENTED, "FEATURE_UNSUPPORTED")
    assert error.message.startswith("metadata.version cannot be changed in this release")
    assert quorum.asked == []


async def test_a_lagging_voter_is_refused_leadership_with_its_lag(
    quorum: ScriptedQuorum, beside: Beside
) -> None:
    lagging = refusal(ErrorCode.REQUEST_TIMED_OUT, Reason.VOTER_LAGGING, "far behind", lag="70000")
    quorum.answers.append(lagging)
    request = pb.TransferLeadershipRequest(voter_id=3)
    code, error = await refused(beside.stub.TransferLeadership(request))
    assert (code, error.reason) == (grpc.StatusCode.FAILED_PRECONDITION, "VOTER_LAGGING")
    assert error.metadata["lag"] == "70000"
    assert quorum.leader == 1
