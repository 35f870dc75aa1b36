"""The admin API's requests and answers, from and to protobuf.

The requests are those of the raft protocol with parts that may be left out: an empty cluster id, no
directory id, no listeners, epoch 0. Bad input raises ValueError that names the field.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from quorate.api.admin import FEATURE_UNSUPPORTED, AdminError
from quorate.raft import messages as m
from quorate.records.errors import ErrorCode
from quorate.records.ids import Epoch, Millis
from quorate.records.voters import KRAFT_VERSION
from quorate.rpc.convert_admin import (
    FEATURES_MAX,
    feature_of,
    fields_to_transfer,
    fields_to_update,
    fields_to_upgrade,
)
from quorate.rpc.convert_raft import (
    at_least_0,
    at_most,
    cluster_of,
    endpoints_of,
    key_of,
    pb_endpoints,
)
from quorate.rpc.gen.admin.v1 import admin_pb2 as pb
from quorate.rpc.gen.raft.v1 import raft_pb2

# Of names that a caller has made up, enough to be recognised.
NAMES_SHOWN_MAX: Final = 32

if TYPE_CHECKING:
    from typing import TypeAlias

    from quorate.records.ids import ReplicaKey

    OfVoter: TypeAlias = (
        pb.AddRaftVoterRequest
        | pb.RemoveRaftVoterRequest
        | pb.UpdateRaftVoterRequest
        | pb.TransferLeadershipRequest
    )


def _key(value: OfVoter) -> ReplicaKey:
    directory = value.voter_directory_id if value.HasField("voter_directory_id") else None
    return key_of(value.voter_id, directory, "voter")


def add_voter(value: pb.AddRaftVoterRequest) -> m.AddRaftVoterRequest:
    listeners = endpoints_of(value.listeners, "listeners")
    cluster_id = cluster_of(value.cluster_id)
    return m.AddRaftVoterRequest(cluster_id, _key(value), listeners, Millis(0), force=value.force)


def remove_voter(value: pb.RemoveRaftVoterRequest) -> m.RemoveRaftVoterRequest:
    cluster_id = cluster_of(value.cluster_id)
    return m.RemoveRaftVoterRequest(cluster_id, _key(value), Millis(0), force=value.force)


def update_voter(value: pb.UpdateRaftVoterRequest) -> m.UpdateRaftVoterRequest:
    return m.UpdateRaftVoterRequest(
        cluster_of(value.cluster_id),
        Epoch(at_least_0(value.current_leader_epoch, "current_leader_epoch")),
        _key(value),
        endpoints_of(value.listeners, "listeners"),
        *feature_of(value.k_raft_version_feature),
    )


def update_features(value: pb.UpdateFeaturesRequest) -> m.UpdateFeaturesRequest:
    """Raises AdminError for every feature but kraft.version."""
    at_most(value.feature_updates, FEATURES_MAX, "feature_updates")
    levels = {update.feature: update.max_version_level for update in value.feature_updates}
    if not levels:
        raise ValueError(f"feature_updates: name a feature, such as {KRAFT_VERSION}")
    others = sorted(levels.keys() - {KRAFT_VERSION})
    if others:
        named = ", ".join(name[:NAMES_SHOWN_MAX] for name in others[:NAMES_SHOWN_MAX])
        raise AdminError(
            FEATURE_UNSUPPORTED,
            ErrorCode.UNSUPPORTED_VERSION,
            f"{named} cannot be changed in this release: {KRAFT_VERSION} is the one "
            "feature that can",
        )
    return m.UpdateFeaturesRequest(levels[KRAFT_VERSION], value.validate_only)


def transfer_leadership(value: pb.TransferLeadershipRequest) -> m.TransferLeadershipRequest:
    return m.TransferLeadershipRequest(cluster_of(value.cluster_id), _key(value))


def pb_key(key: ReplicaKey) -> raft_pb2.ReplicaKey:
    return raft_pb2.ReplicaKey(id=key.node_id, directory_id=key.directory_id)


# --- as a client sends and receives them ----------------------------------------------------------


def pb_add_voter(value: m.AddRaftVoterRequest) -> pb.AddRaftVoterRequest:
    return pb.AddRaftVoterRequest(
        cluster_id=value.cluster_id,
        voter_id=value.voter.node_id,
        voter_directory_id=value.voter.directory_id,
        listeners=pb_endpoints(value.listeners),
        force=value.force,
    )


def pb_remove_voter(value: m.RemoveRaftVoterRequest) -> pb.RemoveRaftVoterRequest:
    return pb.RemoveRaftVoterRequest(
        cluster_id=value.cluster_id,
        voter_id=value.voter.node_id,
        voter_directory_id=value.voter.directory_id,
        force=value.force,
    )


def pb_update_voter(value: m.UpdateRaftVoterRequest) -> pb.UpdateRaftVoterRequest:
    return pb.UpdateRaftVoterRequest(**fields_to_update(value))


def pb_update_features(value: m.UpdateFeaturesRequest) -> pb.UpdateFeaturesRequest:
    return pb.UpdateFeaturesRequest(**fields_to_upgrade(value))


def pb_transfer_leadership(value: m.TransferLeadershipRequest) -> pb.TransferLeadershipRequest:
    return pb.TransferLeadershipRequest(**fields_to_transfer(value))


def key_in(value: raft_pb2.ReplicaKey) -> ReplicaKey:
    """The replica that an answer says it was done to."""
    directory = value.directory_id if value.HasField("directory_id") else None
    return key_of(value.id, directory, "voter")
