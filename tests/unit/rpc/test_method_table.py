"""Properties of each method that are known before it is served."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from quorate.api.permissions import (
    ALTER,
    OBSERVER,
    OBSERVER_OR_READ,
    PEER,
    PEER_OR_ALTER,
    RequiredOperation,
)
from quorate.controller.authorization.authorizer import Operation
from quorate.rpc.gen.admin.v1 import admin_pb2
from quorate.rpc.gen.controller.v1 import controller_pb2
from quorate.rpc.gen.raft.v1 import raft_pb2
from quorate.rpc.method_table import CONTROLLER as CONTROLLER_SERVICE
from quorate.rpc.method_table import (
    METHODS,
    REQUEST_BYTES_MAX,
    SMALL_BYTES_MAX,
    UNKNOWN,
    Sampling,
    every_id,
    is_write,
    path,
    takes_any,
)

if TYPE_CHECKING:
    from google.protobuf.descriptor import ServiceDescriptor

RAFT = "/quorate.raft.v1.Raft/"
CONTROLLER = "/quorate.controller.v1.Controller/"
ADMIN = "/quorate.admin.v1.Admin/"


def services() -> list[ServiceDescriptor]:
    files: list[Any] = [raft_pb2, controller_pb2, admin_pb2]
    return [service for module in files for service in module.DESCRIPTOR.services_by_name.values()]


def test_every_method_of_every_service_has_its_row() -> None:
    methods = {
        f"/{service.full_name}/{method.name}"
        for service in services()
        for method in service.methods
    }
    assert METHODS.keys() - methods == {
        "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"
    }
    assert methods <= METHODS.keys()


@pytest.mark.parametrize("request_type", [controller_pb2.WriteRequest, controller_pb2.ReadRequest])
def test_every_kind_of_request_has_its_need(request_type: Any) -> None:  # noqa: ANN401
    kinds = {field.name for field in request_type.DESCRIPTOR.oneofs_by_name["request"].fields}
    method = request_type.DESCRIPTOR.name.removesuffix("Request")
    assert METHODS[CONTROLLER + method].needs.keys() == kinds


@pytest.mark.parametrize("method", ["AddRaftVoter", "RemoveRaftVoter"])
def test_a_replica_that_asks_for_itself_needs_less(method: str) -> None:
    request = getattr(raft_pb2, f"{method}Request")
    row = METHODS[RAFT + method]
    assert row.required_permissions(request(auto_join=True), every_id) == PEER_OR_ALTER
    assert row.required_permissions(request(), every_id) == ALTER
    assert not METHODS[ADMIN + method].needs_request_authorization


@pytest.mark.parametrize("method", ["Fetch", "FetchOnce", "FetchSnapshot"])
def test_a_caller_that_names_no_voter_or_no_replica_needs_less(method: str) -> None:
    row = METHODS[RAFT + method]
    request: Any = raft_pb2.FetchSnapshotRequest if "Snap" in method else raft_pb2.FetchRequest
    voters = {0}
    for directory in ({}, {"replica_directory_id": b"d" * 16}):
        assert (
            row.required_permissions(request(**directory), voters.__contains__) == OBSERVER_OR_READ
        )
        # Id 0 names a replica like any other id. A voter's permission depends on its id alone,
        # whatever its directory id is.
        assert (
            row.required_permissions(request(replica_id=0, **directory), voters.__contains__)
            == PEER
        )
        assert (
            row.required_permissions(request(replica_id=9, **directory), voters.__contains__)
            == OBSERVER
        )
        # A later change of the voters changes the permission.
        assert row.required_permissions(request(replica_id=9, **directory), every_id) == PEER
    assert row.needs_request_authorization
    assert row.can_reject_before_request


def test_a_request_is_of_the_kind_that_is_set() -> None:
    row = METHODS[CONTROLLER + "WriteStream"]
    beat = controller_pb2.WriteRequest(broker_heartbeat=controller_pb2.BrokerHeartbeat())
    assert row.kind_of(beat, every_id) == "broker_heartbeat"
    assert row.required_permissions(beat, every_id) == (
        RequiredOperation((Operation.CLUSTER_ACTION,)),
    )
    # The service refuses a message without a kind; a caller without the right is refused first.
    assert row.required_permissions(controller_pb2.WriteRequest(), every_id) == ALTER


def test_an_unknown_method_needs_alter() -> None:
    assert UNKNOWN.required_permissions(object(), every_id) == ALTER


def test_a_method_takes_no_more_than_its_requests_need() -> None:
    assert METHODS[RAFT + "Vote"].request_bytes_max == SMALL_BYTES_MAX
    assert METHODS[CONTROLLER + "Write"].request_bytes_max == REQUEST_BYTES_MAX
    assert METHODS[ADMIN + "AddRaftVoter"].request_bytes_max == SMALL_BYTES_MAX


def test_only_the_responses_of_reads_may_be_rejected_once_built() -> None:
    telling = {name for name, row in METHODS.items() if row.only_tells}
    reads = (
        *("Read", "ListTopics", "DescribeTopics", "DescribeConfigs", "ListBrokers"),
        "DescribeClientQuotas",
    )
    assert telling == {
        *(CONTROLLER + name for name in reads),
        RAFT + "FetchSnapshot",
        RAFT + "DescribeQuorum",
        ADMIN + "DescribeQuorum",
    }


def test_elections_and_changes_are_always_sampled() -> None:
    never = {"ApiVersions", "BeginQuorumEpoch", "DescribeQuorum"}
    fetches = {"Fetch", "FetchOnce", "FetchSnapshot"}
    for method, row in METHODS.items():
        name = method.rpartition("/")[2]
        if method.startswith((RAFT, ADMIN)) and name not in never | fetches:
            assert row.sampling is Sampling.ALWAYS, method
        elif name in fetches:
            assert row.sampling is Sampling.AS_FETCHES, method
    assert METHODS[CONTROLLER + "Write"].sampling is Sampling.AS_WRITES
    assert METHODS[CONTROLLER + "Read"].sampling is Sampling.NEVER


def test_a_request_by_itself_is_treated_as_in_its_envelope() -> None:
    for method in CONTROLLER_SERVICE.methods:
        if takes_any(method):
            continue
        row = METHODS[path(method)]
        envelope = METHODS[CONTROLLER + ("Write" if is_write(method) else "Read")]
        assert row == replace(envelope, needs=row.needs, kind_of=row.kind_of)
        assert row.needs[""] in envelope.needs.values()
        assert not row.needs_request_authorization
