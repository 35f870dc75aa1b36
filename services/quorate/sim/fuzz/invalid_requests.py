"""Requests that every replica must reject, in any state of the quorum and its metadata.

Each kind has a few variants, each with one error: a foreign cluster, an invalid name, a number out
of bounds, an unknown broker or node. Sources: rules `no_state_from_rejections` and `input_bounds`;
Kafka's error codes.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from quorate.controller.brokers.messages import (
    BrokerHeartbeat,
    Listener,
    RegisterBroker,
    UnregisterBroker,
)
from quorate.controller.configs.messages import (
    AlterOperation,
    ConfigAlteration,
    ConfigChange,
    ConfigResource,
    IncrementalAlterConfigs,
    ResourceType,
)
from quorate.controller.features.levels import SUPPORTED_FEATURES
from quorate.controller.topics.messages import CreateTopics, DeleteTopics, NewTopic
from quorate.raft.election.epoch_guard import EPOCH_MAX
from quorate.raft.messages import (
    AddRaftVoterRequest,
    BeginQuorumEpochRequest,
    EndQuorumEpochRequest,
    FetchRequest,
    FetchSnapshotRequest,
    RemoveRaftVoterRequest,
    TakeLeaveRequest,
    TransferLeadershipRequest,
    UpdateFeaturesRequest,
    UpdateRaftVoterRequest,
    VoteRequest,
    VoteResponse,
)
from quorate.records.errors import ErrorCode
from quorate.records.ids import (
    ClusterId,
    DirectoryId,
    Epoch,
    Millis,
    NodeId,
    Offset,
    OffsetAndEpoch,
    ReplicaKey,
)
from quorate.sim.engine.node_config import CLUSTER_ID

if TYPE_CHECKING:
    from quorate.controller.request_types import WriteRequest
    from quorate.raft.messages import Request, Response
    from quorate.sim.randomness import RandomSource
    from quorate.sim.views import NodeView

OTHER_CLUSTER: Final = ClusterId("YW5vdGhlci1jbHVzdGVyIQ")
# Ids that no node and no broker of a cluster has.
NOBODY: Final = ReplicaKey(NodeId(77), DirectoryId(b"\x07" * 16))
NO_BROKER: Final = 4242
_NO_TOPIC: Final = "nobody-makes-this-one"
_NAMES: Final = ("", ".", "..", "a/b", "a b", "ä", "a" * 250)
_INCARNATION: Final = bytes((9, 9)).rjust(16, b"\x10")
_DIRECTORY: Final = bytes((9, 8)).rjust(16, b"\x10")
_TIME_MS: Final = Millis(1000)


# --- clients and brokers --------------------------------------------------------------------------


def invalid_client_request(random_source: RandomSource) -> WriteRequest:
    """An invalid request of a client or a broker: each of its items must be rejected."""
    match random_source.choice(("create", "delete", "alter", "register", "beat", "unregister")):
        case "create":
            return CreateTopics((_topic(random_source),))
        case "delete":
            return DeleteTopics((random_source.choice((_NO_TOPIC, "", "a/b")),))
        case "alter":
            return IncrementalAlterConfigs((_alteration(random_source),))
        case "register":
            return _registration(random_source)
        case "beat":
            return BrokerHeartbeat(
                broker_id=NO_BROKER,
                broker_epoch=random_source.choice((0, -1, 1 << 40)),
                current_metadata_offset=Offset(random_source.choice((0, 1 << 40))),
                want_fence=random_source.chance(0.5),
                want_shut_down=random_source.chance(0.5),
            )
    return UnregisterBroker(random_source.choice((NO_BROKER, -1)))


def _topic(random_source: RandomSource) -> NewTopic:
    topic = NewTopic(_NO_TOPIC, partitions=1, replication_factor=1)
    return random_source.choice(
        (
            replace(topic, name=random_source.choice(_NAMES)),
            replace(topic, partitions=random_source.choice((0, -2, 1 << 30))),
            replace(topic, replication_factor=random_source.choice((0, -2, 32_767))),
            replace(topic, configs=(("no.such.key", "1"),)),
            replace(topic, configs=(("retention.ms", "soon"),)),
            replace(topic, assignments=((1,),)),
            NewTopic(_NO_TOPIC, assignments=((NO_BROKER,),)),
            NewTopic(_NO_TOPIC, assignments=((1, 1),)),
            NewTopic(_NO_TOPIC, assignments=((),)),
        )
    )


def _alteration(random_source: RandomSource) -> ConfigAlteration:
    brokers = ConfigResource(ResourceType.BROKER, "")
    no_topic = ConfigResource(ResourceType.TOPIC, _NO_TOPIC)
    set_it = ConfigChange("what", AlterOperation.SET, "1")
    return random_source.choice(
        (
            ConfigAlteration(no_topic, (set_it,)),
            ConfigAlteration(brokers, (set_it, set_it)),
            ConfigAlteration(brokers, (ConfigChange("what", AlterOperation.SET, None),)),
            ConfigAlteration(brokers, (ConfigChange("a b", AlterOperation.SET, "1"),)),
            ConfigAlteration(brokers, (ConfigChange("what", AlterOperation.APPEND, "1"),)),
            ConfigAlteration(ConfigResource(ResourceType.BROKER, "one"), (set_it,)),
            ConfigAlteration(ConfigResource(ResourceType.BROKER_LOGGER, "1"), (set_it,)),
        )
    )


def _registration(random_source: RandomSource) -> RegisterBroker:
    listener = Listener("PLAINTEXT", "nowhere", 9092)
    request = RegisterBroker(
        broker_id=NO_BROKER,
        incarnation_id=_INCARNATION,
        cluster_id=CLUSTER_ID,
        listeners=(listener,),
        features=SUPPORTED_FEATURES,
        log_dirs=(_DIRECTORY,),
    )
    return random_source.choice(
        (
            replace(request, cluster_id=OTHER_CLUSTER),
            replace(request, broker_id=-1),
            replace(request, incarnation_id=bytes(16)),
            replace(request, incarnation_id=b"short"),
            replace(request, listeners=()),
            replace(request, listeners=(listener, listener)),
            replace(request, listeners=(Listener("PLAINTEXT", "nowhere", 70_000),)),
            replace(request, features=()),
            replace(request, features=(*SUPPORTED_FEATURES, *SUPPORTED_FEATURES)),
            replace(request, log_dirs=(_DIRECTORY, _DIRECTORY)),
            replace(request, log_dirs=(b"short",)),
        )
    )


def is_client_served(reply: object) -> bool:
    """True if a reply reports success for any requested item."""
    items = [getattr(reply, name) for name in ("topics", "resources") if hasattr(reply, name)]
    told = [item.error for item in items[0]] if items else [getattr(reply, "error", None)]
    return ErrorCode.NONE in told


# --- peers and operators --------------------------------------------------------------------------


def invalid_peer_request(random_source: RandomSource, node: NodeView) -> Request:
    """An invalid request to this node: the response must be an error, without any effect."""
    epoch = Epoch(0) if node.progress is None else node.progress.epoch
    match random_source.choice(
        ("vote", "begin", "end", "fetch", "snapshot", "change", "change", "change")
    ):
        case "vote":
            return _vote(random_source, node, epoch)
        case "begin":
            return _begin(random_source, node, epoch)
        case "end":
            return EndQuorumEpochRequest(OTHER_CLUSTER, NOBODY.node_id, epoch, (node.key,))
        case "fetch":
            return _fetch(random_source, node, epoch)
        case "snapshot":
            snapshot_id = OffsetAndEpoch(epoch=epoch, offset=Offset(1 << 40))
            cluster_id = random_source.choice((CLUSTER_ID, OTHER_CLUSTER))
            position = random_source.choice((0, 1 << 40))
            return FetchSnapshotRequest(
                cluster_id=cluster_id,
                replica=NOBODY,
                current_leader_epoch=epoch,
                snapshot_id=snapshot_id,
                position=position,
                max_bytes=1024,
            )
    return _change(random_source, node)


def _begin(random_source: RandomSource, node: NodeView, epoch: Epoch) -> BeginQuorumEpochRequest:
    request = BeginQuorumEpochRequest(
        OTHER_CLUSTER, node.key, NOBODY.node_id, epoch, node.endpoints
    )
    choices = [request, replace(request, cluster_id=CLUSTER_ID, leader_epoch=Epoch(EPOCH_MAX))]
    if epoch:
        stale = replace(request, cluster_id=CLUSTER_ID, leader_epoch=Epoch(epoch - 1))
        choices.append(stale)
    return random_source.choice(choices)


def _vote(random_source: RandomSource, node: NodeView, epoch: Epoch) -> VoteRequest:
    """A vote request of an unknown candidate, mostly one with an empty log."""
    last = OffsetAndEpoch(epoch=Epoch(0), offset=Offset(0))
    request = VoteRequest(
        cluster_id=CLUSTER_ID,
        voter=node.key,
        replica=NOBODY,
        replica_epoch=epoch,
        last=last,
        pre_vote=random_source.chance(0.5),
    )
    choices = [
        replace(request, cluster_id=OTHER_CLUSTER),
        replace(request, replica_epoch=Epoch(EPOCH_MAX)),
        # A complete log alone does not entitle a candidate to a vote.
        replace(request, voter=NOBODY, last=node.log.end),
    ]
    if epoch:
        choices.append(replace(request, replica_epoch=Epoch(epoch - 1)))
    return random_source.choice(choices)


def _fetch(random_source: RandomSource, node: NodeView, epoch: Epoch) -> FetchRequest:
    request = FetchRequest(
        cluster_id=CLUSTER_ID,
        replica=NOBODY,
        current_leader_epoch=epoch,
        fetch_offset=node.log.end.offset,
        last_fetched_epoch=node.log.end.epoch,
        max_wait_ms=Millis(0),
        max_bytes=1024,
    )
    choices = [replace(request, cluster_id=OTHER_CLUSTER)]
    if epoch:
        choices.append(replace(request, current_leader_epoch=Epoch(epoch - 1)))
    return random_source.choice([*choices, replace(request, current_leader_epoch=Epoch(EPOCH_MAX))])


def _change(random_source: RandomSource, node: NodeView) -> Request:
    """A membership request that every replica must reject, the leader as well."""
    key, at = node.key, node.endpoints
    add = AddRaftVoterRequest(
        cluster_id=CLUSTER_ID, voter=NOBODY, listeners=at, timeout_ms=_TIME_MS
    )
    remove = RemoveRaftVoterRequest(
        cluster_id=CLUSTER_ID, voter=NOBODY, timeout_ms=_TIME_MS, force=random_source.chance(0.5)
    )
    update = UpdateRaftVoterRequest(
        cluster_id=CLUSTER_ID,
        current_leader_epoch=Epoch(0),
        voter=NOBODY,
        listeners=at,
        kraft_version_min=0,
        kraft_version_max=1,
    )
    choices: tuple[Request, ...] = (
        replace(add, cluster_id=OTHER_CLUSTER),
        replace(remove, cluster_id=OTHER_CLUSTER, voter=key),
        replace(update, cluster_id=OTHER_CLUSTER, voter=key),
        TransferLeadershipRequest(OTHER_CLUSTER, key),
        TakeLeaveRequest(OTHER_CLUSTER, key),
        # Another node answers at that address.
        add,
        replace(add, voter=ReplicaKey(NOBODY.node_id)),
        replace(add, listeners=()),
        replace(add, voter=replace(NOBODY, node_id=key.node_id)),
        remove,
        update,
        UpdateFeaturesRequest(
            random_source.choice((2, 99, -1)), validate_only=random_source.chance(0.5)
        ),
        TransferLeadershipRequest(CLUSTER_ID, NOBODY),
        TakeLeaveRequest(CLUSTER_ID, NOBODY),
    )
    return random_source.choice(choices)


def is_peer_served(response: Response) -> bool:
    """True if the response to such a request grants anything."""
    if isinstance(response, VoteResponse):
        return response.vote_granted
    return response.error is ErrorCode.NONE
