"""What each method needs, and the header by which somebody calls for somebody else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import pytest

from quorate.controller.authorizer import Operation
from quorate.rpc.authorization import (
    FORWARDED_PRINCIPAL,
    NEEDS,
    NEEDS_OF_REQUESTS,
    forwarding,
    kind_of,
)
from quorate.rpc.gen.admin.v1 import admin_pb2
from quorate.rpc.gen.controller.v1 import controller_pb2
from quorate.rpc.gen.raft.v1 import raft_pb2
from quorate.rpc.gen.raw.v1 import raw_pb2

if TYPE_CHECKING:
    from google.protobuf.descriptor import ServiceDescriptor


def services() -> list[ServiceDescriptor]:
    files: list[Any] = [raft_pb2, controller_pb2, raw_pb2, admin_pb2]
    return [service for module in files for service in module.DESCRIPTOR.services_by_name.values()]


def test_every_method_of_every_service_has_its_need() -> None:
    methods = {
        f"/{service.full_name}/{method.name}"
        for service in services()
        for method in service.methods
    }
    assert NEEDS.keys().isdisjoint(NEEDS_OF_REQUESTS)
    known = {*NEEDS, *NEEDS_OF_REQUESTS}
    assert known - methods == {"/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"}
    assert methods <= known


@pytest.mark.parametrize("request_type", [controller_pb2.WriteRequest, controller_pb2.ReadRequest])
def test_every_kind_of_request_has_its_need(request_type: Any) -> None:  # noqa: ANN401
    kinds = {field.name for field in request_type.DESCRIPTOR.oneofs_by_name["request"].fields}
    method = request_type.DESCRIPTOR.name.removesuffix("Request")
    assert NEEDS_OF_REQUESTS[f"/quorate.controller.v1.Controller/{method}"].keys() == kinds


def test_peers_need_cluster_action_and_no_more() -> None:
    methods = ["Vote", "BeginQuorumEpoch", "EndQuorumEpoch", "Fetch", "FetchOnce", "FetchSnapshot"]
    needs = {NEEDS[f"/quorate.raft.v1.Raft/{method}"].operations for method in methods}
    assert needs == {(Operation.CLUSTER_ACTION,)}
    for method in ("ApiVersions", "UpdateRaftVoter"):
        assert Operation.CLUSTER_ACTION in NEEDS[f"/quorate.raft.v1.Raft/{method}"].operations


@pytest.mark.parametrize("method", ["TakeLeave", "TransferLeadership", "UpdateFeatures"])
def test_no_broker_may_hold_up_who_is_to_stop(method: str) -> None:
    # Leaves that are taken again and again for others keep everybody from stopping.
    assert NEEDS[f"/quorate.raft.v1.Raft/{method}"].operations == (Operation.ALTER,)


@pytest.mark.parametrize("method", ["AddRaftVoter", "RemoveRaftVoter"])
def test_a_peer_may_change_the_voters_for_itself_only(method: str) -> None:
    needs = NEEDS_OF_REQUESTS[f"/quorate.raft.v1.Raft/{method}"]
    request = getattr(raft_pb2, f"{method}Request")
    by_itself, by_hand = kind_of(request(auto_join=True)), kind_of(request())
    assert needs[by_itself].operations == (Operation.CLUSTER_ACTION, Operation.ALTER)
    assert needs[by_hand].operations == (Operation.ALTER,)


def test_a_request_is_of_the_kind_that_is_set() -> None:
    request = controller_pb2.WriteRequest(delete_topics=controller_pb2.DeleteTopics())
    assert kind_of(request) == "delete_topics"
    assert kind_of(controller_pb2.WriteRequest()) == ""


@pytest.mark.parametrize("name", ["User:CN=a\\, b+c,O=Übersee", "User:50%20;x\n"])
def test_a_forwarded_principal_is_ascii_and_comes_back(name: str) -> None:
    ((key, value),) = forwarding(name)
    assert key == FORWARDED_PRINCIPAL
    assert value.isascii()
    assert value.isprintable()
    assert unquote(value) == name
