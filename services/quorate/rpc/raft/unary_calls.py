"""Table of the unary Raft calls, used by client and servicer.

It has one row per request. A Fetch is not among them: it has a stream, and its response contains
the bytes of the log.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeAlias, get_args

from google.protobuf.message_factory import GetMessageClass

from quorate.raft import messages as m
from quorate.records.value_types import value_type
from quorate.rpc.convert import describe, membership, raft
from quorate.rpc.gen.raft.v1 import raft_pb2 as pb
from quorate.rpc.method_table import RAFT

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

# Converts between a dataclass and its message; each row has those of one request.
_Convert: TypeAlias = "Callable[[Any], Any]"


@value_type
class RaftCall:
    """The method of a request, and the conversions of request and response."""

    method: str
    read: _Convert
    write: _Convert
    read_answer: _Convert
    write_answer: _Convert


def _change(shape: type[m.MembershipRequest]) -> RaftCall:
    name = shape.__name__.removesuffix("Request")
    answer_type = GetMessageClass(RAFT.methods_by_name[name].output_type)
    return RaftCall(
        name,
        membership.request_of,
        partial(membership.message_of, service=RAFT),
        membership.answer_of,
        lambda answer: answer_type(**membership.answer_fields(answer)),
    )


RAFT_CALLS: Final[Mapping[type, RaftCall]] = {
    m.VoteRequest: RaftCall(
        "Vote",
        raft.vote_request,
        raft.pb_vote_request,
        raft.vote_response,
        raft.pb_vote_response,
    ),
    m.BeginQuorumEpochRequest: RaftCall(
        "BeginQuorumEpoch",
        raft.begin_request,
        raft.pb_begin_request,
        raft.begin_response,
        raft.pb_begin_response,
    ),
    m.EndQuorumEpochRequest: RaftCall(
        "EndQuorumEpoch",
        raft.end_request,
        raft.pb_end_request,
        raft.end_response,
        raft.pb_end_response,
    ),
    m.FetchSnapshotRequest: RaftCall(
        "FetchSnapshot",
        raft.fetch_snapshot_request,
        raft.pb_fetch_snapshot_request,
        raft.fetch_snapshot_response,
        raft.pb_fetch_snapshot_response,
    ),
    m.ApiVersionsRequest: RaftCall(
        "ApiVersions",
        lambda _: m.ApiVersionsRequest(),
        lambda _: pb.ApiVersionsRequest(),
        describe.api_versions_response,
        # The server adds its software release.
        partial(describe.pb_api_versions_response, software_version=""),
    ),
    m.DescribeQuorumRequest: RaftCall(
        "DescribeQuorum",
        lambda _: m.DescribeQuorumRequest(),
        lambda _: pb.DescribeQuorumRequest(),
        describe.describe_response,
        describe.pb_describe_response,
    ),
    **{shape: _change(shape) for shape in get_args(m.MembershipRequest)},
}
CALLS_BY_METHOD: Final = {call.method: call for call in RAFT_CALLS.values()}
