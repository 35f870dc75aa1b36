"""Every request and reply of the controller survives the way to protobuf and back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from quorate.controller.brokers import messages as of_brokers
from quorate.controller.client_quotas import messages as of_quotas
from quorate.controller.configs import messages as of_configs
from quorate.controller.features import messages as of_features
from quorate.controller.message_registry import ITEMS_MAX, REQUESTS
from quorate.controller.replication import messages as of_replication
from quorate.controller.request_types import RECORDS_MAX, ReadRequest
from quorate.controller.slices import run_to_end
from quorate.controller.topics import messages as of_topics
from quorate.records.errors import ErrorCode
from quorate.records.ids import ClusterId, Offset, TopicId
from quorate.rpc.convert import controller as convert
from quorate.rpc.convert.codegen import make_reader
from quorate.rpc.gen.controller.v1 import controller_pb2 as pb

if TYPE_CHECKING:
    from collections.abc import Callable

UUID = bytes(range(16))
RESOURCE = of_configs.ConfigResource(of_configs.ResourceType.TOPIC, "t")
ENTITY = (of_quotas.EntityPart("client-id"), of_quotas.EntityPart("user", ""))
LISTENER = of_brokers.Listener("PLAINTEXT", "host", 9092, 1)
VALUES: list[Any] = [
    of_topics.CreateTopics(
        (of_topics.NewTopic("t", -1, 3, ((1, 2), (2, 3)), (("a", "b"),)),), validate_only=True
    ),
    of_topics.DeleteTopics(("a", "b")),
    of_topics.ListTopics(),
    of_topics.DescribeTopics(("a",)),
    of_configs.IncrementalAlterConfigs(
        (
            of_configs.ConfigAlteration(
                RESOURCE,
                (
                    of_configs.ConfigChange("k", of_configs.AlterOperation.SET, "v"),
                    of_configs.ConfigChange("l", of_configs.AlterOperation.DELETE),
                ),
            ),
        )
    ),
    of_configs.DescribeConfigs((RESOURCE,), include_defaults=True),
    of_brokers.RegisterBroker(
        broker_id=1,
        incarnation_id=UUID,
        cluster_id=ClusterId("c"),
        listeners=(LISTENER,),
        features=(of_features.FeatureRange("metadata.version", 7, 30),),
        rack="r",
        log_dirs=(UUID,),
    ),
    of_brokers.BrokerHeartbeat(
        broker_id=1, broker_epoch=5, current_metadata_offset=Offset(9), want_fence=True
    ),
    of_brokers.ListBrokers(),
    of_brokers.UnregisterBroker(4),
    of_quotas.AlterClientQuotas(
        (
            of_quotas.QuotaAlteration(
                ENTITY, (of_quotas.QuotaOp("k", 1.5), of_quotas.QuotaOp("l", remove=True))
            ),
        ),
        validate_only=True,
    ),
    of_quotas.DescribeClientQuotas(
        (
            of_quotas.QuotaComponent("user", of_quotas.MatchType.EXACT, ""),
            of_quotas.QuotaComponent("client-id", of_quotas.MatchType.SPECIFIED),
        ),
        strict=True,
        cursor=of_quotas.QuotaCursor(ENTITY),
        response_entry_limit=5,
    ),
    of_quotas.AlterClientQuotasReply(
        (of_quotas.AlteredEntity(ENTITY, ErrorCode.INVALID_REQUEST, "k"),)
    ),
    of_quotas.DescribeClientQuotasReply(
        Offset(4),
        (of_quotas.DescribedEntity(ENTITY, (of_quotas.QuotaValue("k", 1.5),)),),
        of_quotas.QuotaCursor(ENTITY),
    ),
    of_replication.AlterPartition(
        broker_id=1,
        broker_epoch=5,
        topics=(
            of_replication.TopicAlteration(
                TopicId(UUID),
                (
                    of_replication.PartitionAlteration(
                        partition_index=2,
                        leader_epoch=3,
                        partition_epoch=4,
                        new_isr=(of_replication.IsrMember(1, 5), of_replication.IsrMember(2)),
                        leader_recovery_state=1,
                    ),
                ),
            ),
        ),
    ),
    of_replication.AlterPartitionReply(
        topics=(
            of_replication.AlteredTopic(
                TopicId(UUID),
                (
                    of_replication.AlteredPartition(
                        2, leader_id=1, leader_epoch=3, isr=(1, 2), partition_epoch=5
                    ),
                    of_replication.AlteredPartition(3, ErrorCode.INELIGIBLE_REPLICA, "4"),
                ),
            ),
        )
    ),
    of_replication.ElectLeaders(
        of_replication.ElectionType.UNCLEAN, (of_replication.LeaderElection("t", 2),)
    ),
    of_replication.ElectLeaders(of_replication.ElectionType.PREFERRED, every_partition=True),
    of_replication.ElectLeadersReply(
        partitions=(
            of_replication.ElectedLeader("t", 0, leader_id=1),
            of_replication.ElectedLeader("t", 1, ErrorCode.ELECTION_NOT_NEEDED, "1"),
        )
    ),
    of_topics.CreateTopicsReply(
        (of_topics.CreatedTopic("t", topic_id=TopicId(UUID), partitions=2, replication_factor=3),)
    ),
    of_topics.CreateTopicsReply(
        (of_topics.CreatedTopic("t", ErrorCode.INVALID_PARTITIONS, "partitions: 0"),)
    ),
    of_topics.DeleteTopicsReply((of_topics.DeletedTopic("t", topic_id=TopicId(UUID)),)),
    of_topics.ListTopicsReply(Offset(4), (of_topics.ListedTopic("t", TopicId(UUID), 3),)),
    of_topics.DescribeTopicsReply(
        Offset(4),
        (
            of_topics.DescribedTopic(
                "t",
                topic_id=TopicId(UUID),
                partitions=(of_topics.DescribedPartition(0, 1, 2, 3, (1, 2), (1,), (2,), (2,)),),
                configs=(("a", "b"),),
            ),
        ),
    ),
    of_configs.IncrementalAlterConfigsReply(
        (of_configs.AlteredResource(RESOURCE, ErrorCode.INVALID_CONFIG, "k"),)
    ),
    of_configs.DescribeConfigsReply(
        Offset(4),
        (
            of_configs.DescribedResource(
                RESOURCE,
                entries=(
                    of_configs.ConfigEntry(
                        "k", None, of_configs.ConfigSource.DEFAULT_CONFIG, is_sensitive=True
                    ),
                ),
            ),
        ),
    ),
    of_brokers.RegisterBrokerReply(broker_epoch=7),
    of_brokers.BrokerHeartbeatReply(is_caught_up=True, is_fenced=False),
    of_brokers.ListBrokersReply(
        Offset(4),
        (of_brokers.ListedBroker(1, 5, UUID, (LISTENER,), None, True, False, (UUID,)),),  # noqa: FBT003
    ),
    of_brokers.UnregisterBrokerReply(ErrorCode.BROKER_ID_NOT_REGISTERED, "4"),
]


@pytest.mark.parametrize("value", VALUES, ids=lambda value: type(value).__name__)
def test_values_survive(value: Any) -> None:  # noqa: ANN401 - every shape
    message = getattr(pb, type(value).__name__)()
    convert.fill_message(message, value)
    assert convert.from_message(message) == value


def test_every_request_and_reply_has_a_message_and_is_tried_here() -> None:
    shapes = {type(value).__name__ for value in VALUES}
    assert all(getattr(pb, name).DESCRIPTOR.full_name for name in shapes)
    names = {request.__name__ for request in REQUESTS}
    assert shapes == names | {f"{name}Reply" for name in names}


def test_a_request_travels_in_its_envelope() -> None:
    write = convert.write_request(of_topics.DeleteTopics(("a",)), 7)
    assert write.sequence == 7
    assert convert.request_in(write, "request") == of_topics.DeleteTopics(("a",))
    read = convert.read_request(of_topics.ListTopics(), min_offset=3, current=True, timeout_ms=9)
    assert (read.min_offset, read.current, read.timeout_ms) == (3, True, 9)
    assert convert.request_in(read, "request") == of_topics.ListTopics()


def test_replies_travel_in_their_envelopes() -> None:
    result, response = pb.WriteResult(), pb.ReadResponse()
    convert.put_write_reply(result, of_brokers.RegisterBrokerReply(broker_epoch=7))
    convert.put_read_reply(response, of_topics.ListTopicsReply(Offset(4), ()))
    assert convert.request_in(result, "reply") == of_brokers.RegisterBrokerReply(broker_epoch=7)
    assert convert.request_in(response, "reply") == of_topics.ListTopicsReply(Offset(4), ())


def test_a_reply_in_slices_is_the_reply() -> None:
    topics = tuple(of_topics.ListedTopic(f"t-{n}", TopicId(UUID), n) for n in range(250))
    for cursor in (None, of_topics.Cursor(""), of_topics.Cursor("t", 4)):
        reply, response = of_topics.ListTopicsReply(Offset(4), topics, cursor), pb.ReadResponse()
        assert sum(1 for _ in convert.put_in_slices(response, reply)) == 3
        assert convert.request_in(response, "reply") == reply


def test_an_empty_envelope_is_named() -> None:
    with pytest.raises(ValueError, match="request: none is given"):
        convert.request_in(pb.WriteRequest(), "request")


@pytest.mark.parametrize("value", [v for v in VALUES if not type(v).__name__.endswith("Reply")])
def test_a_request_in_slices_is_the_request(value: Any) -> None:  # noqa: ANN401 - each of them
    message = (
        convert.read_request(value, min_offset=0, current=False, timeout_ms=0)
        if isinstance(value, ReadRequest)
        else convert.write_request(value)
    )
    assert run_to_end(convert.chosen_in_slices(message, "request")) == value


def test_a_slice_of_a_request_has_no_more_than_one_item(monkeypatch: pytest.MonkeyPatch) -> None:
    changes = tuple(
        of_configs.ConfigChange(f"k{n}", of_configs.AlterOperation.DELETE) for n in range(100)
    )
    alterations = tuple(of_configs.ConfigAlteration(RESOURCE, changes) for _ in range(50))
    message = convert.write_request(of_configs.IncrementalAlterConfigs(alterations))
    read: list[Any] = []

    def noting_reader(name: str, given: str | None = None) -> Callable[..., Any]:
        def noting(message: Any, *given_items: Any) -> Any:  # noqa: ANN401 - any message
            read.append(name)
            return make_reader(name, given)(message, *given_items)

        return noting if name == "ConfigAlteration" else make_reader(name, given)

    monkeypatch.setattr("quorate.rpc.convert.controller.make_reader", noting_reader)
    counts = [len(read) for _ in convert.chosen_in_slices(message, "request")]
    assert counts == list(range(1, 51))


def test_the_partitions_of_one_topic_are_read_one_by_one() -> None:
    # As many as a request may have, of a hundred replicas each, took 70 ms.
    topic = of_topics.NewTopic("t", -1, -1, assignments=tuple((n, n + 1) for n in range(60)))
    few = of_topics.NewTopic("u", -1, -1, assignments=((1,),))
    value = of_topics.CreateTopics((topic, few))
    slices = convert.chosen_in_slices(convert.write_request(value), "request")
    assert sum(1 for _ in slices) == 60 + 1 + 2
    message = convert.write_request(value)
    assert run_to_end(convert.chosen_in_slices(message, "request")) == value


def test_too_many_partitions_of_one_topic_are_refused_before_any_is_read() -> None:
    assignments = [pb.Replicas(ids=[1])] * (RECORDS_MAX + 1)
    request = pb.CreateTopics(topics=[pb.NewTopic(name="t", assignments=assignments)])
    with pytest.raises(ValueError, match=r"NewTopic.assignments: 10001 items"):
        next(convert.chosen_in_slices(pb.WriteRequest(create_topics=request), "request"))


def test_too_many_items_are_refused_before_any_is_read() -> None:
    topics = tuple(of_topics.NewTopic("t", 1, 1) for _ in range(ITEMS_MAX + 1))
    message = convert.write_request(of_topics.CreateTopics(topics))
    with pytest.raises(ValueError, match=r"CreateTopics.topics: 1001 items"):
        next(convert.chosen_in_slices(message, "request"))
