"""Requests of the admin API: what may be left out, and what is refused."""

from __future__ import annotations

import pytest

from quorate.api.admin import AdminError
from quorate.raft import messages as m
from quorate.records.ids import ClusterId, Epoch, Millis, NodeId, ReplicaKey
from quorate.rpc import convert_sidecar as convert
from quorate.rpc.gen.admin.v1 import admin_pb2 as pb
from quorate.rpc.gen.raft.v1 import raft_pb2
from tests.unit.raft import cores

ANY = ClusterId("")
BARE = ReplicaKey(NodeId(4))
DIRECTORY = cores.key(4).directory_id
LISTENER = raft_pb2.Endpoint(name="GRPC", host="node-4", port=9094)


def test_what_is_left_out_stays_empty() -> None:
    assert convert.add_voter(pb.AddRaftVoterRequest(voter_id=4)) == m.AddRaftVoterRequest(
        ANY, BARE, (), Millis(0)
    )
    assert convert.remove_voter(pb.RemoveRaftVoterRequest(voter_id=4)) == m.RemoveRaftVoterRequest(
        ANY, BARE, Millis(0)
    )
    assert convert.update_voter(pb.UpdateRaftVoterRequest(voter_id=4)) == m.UpdateRaftVoterRequest(
        ANY, Epoch(0), BARE, (), 0, 0
    )
    moved = convert.transfer_leadership(pb.TransferLeadershipRequest(voter_id=4))
    assert moved == m.TransferLeadershipRequest(ANY, BARE)


def test_what_is_said_is_kept() -> None:
    added = pb.AddRaftVoterRequest(
        cluster_id="cluster",
        voter_id=4,
        voter_directory_id=DIRECTORY,
        listeners=[LISTENER],
        force=True,
    )
    assert convert.add_voter(added) == m.AddRaftVoterRequest(
        cores.CLUSTER, cores.key(4), cores.endpoints(4), Millis(0), force=True
    )
    removed = pb.RemoveRaftVoterRequest(voter_id=4, voter_directory_id=DIRECTORY, force=True)
    assert convert.remove_voter(removed) == m.RemoveRaftVoterRequest(
        ANY, cores.key(4), Millis(0), force=True
    )
    updated = pb.UpdateRaftVoterRequest(
        voter_id=4,
        voter_directory_id=DIRECTORY,
        listeners=[LISTENER],
        current_leader_epoch=3,
        k_raft_version_feature=raft_pb2.KRaftVersionFeature(max_supported_version=1),
    )
    assert convert.update_voter(updated) == m.UpdateRaftVoterRequest(
        ANY, Epoch(3), cores.key(4), cores.endpoints(4), 0, 1
    )
    assert convert.pb_key(cores.key(4)) == raft_pb2.ReplicaKey(id=4, directory_id=DIRECTORY)


@pytest.mark.parametrize(
    ("request_", "field"),
    [
        (pb.UpdateRaftVoterRequest(voter_id=-1), "voter_id"),
        (pb.UpdateRaftVoterRequest(voter_directory_id=b"short"), "voter_directory_id"),
        (pb.UpdateRaftVoterRequest(listeners=[raft_pb2.Endpoint(name="GRPC")]), "listeners"),
        (pb.UpdateRaftVoterRequest(current_leader_epoch=-1), "current_leader_epoch"),
    ],
)
def test_bad_input_names_the_field(request_: pb.UpdateRaftVoterRequest, field: str) -> None:
    with pytest.raises(ValueError, match=field):
        convert.update_voter(request_)


def test_kraft_version_is_the_one_feature() -> None:
    update = raft_pb2.FeatureUpdate(feature="kraft.version", max_version_level=1)
    request = pb.UpdateFeaturesRequest(feature_updates=[update], validate_only=True)
    assert convert.update_features(request) == m.UpdateFeaturesRequest(1, validate_only=True)
    with pytest.raises(ValueError, match="feature_updates: name a feature"):
        convert.update_features(pb.UpdateFeaturesRequest())
    other = raft_pb2.FeatureUpdate(feature="metadata.version", max_version_level=1)
    with pytest.raises(AdminError, match=r"metadata\.version cannot be changed") as error:
        convert.update_features(pb.UpdateFeaturesRequest(feature_updates=[update, other]))
    assert error.value.reason == "FEATURE_UNSUPPORTED"


@pytest.mark.parametrize("key", [BARE, cores.key(4)])
def test_what_a_client_sends_is_what_the_sidecar_gets(key: ReplicaKey) -> None:
    cluster, listeners = cores.CLUSTER, cores.endpoints(4)
    add = m.AddRaftVoterRequest(cluster, key, listeners, Millis(0), force=True)
    assert convert.add_voter(convert.pb_add_voter(add)) == add
    remove = m.RemoveRaftVoterRequest(cluster, key, Millis(0), force=True)
    assert convert.remove_voter(convert.pb_remove_voter(remove)) == remove
    update = m.UpdateRaftVoterRequest(cluster, Epoch(3), key, listeners, 0, 1)
    assert convert.update_voter(convert.pb_update_voter(update)) == update
    features = m.UpdateFeaturesRequest(1, validate_only=True)
    assert convert.update_features(convert.pb_update_features(features)) == features
    transfer = m.TransferLeadershipRequest(cluster, key)
    assert convert.transfer_leadership(convert.pb_transfer_leadership(transfer)) == transfer
    assert convert.key_in(convert.pb_key(key)) == key
