from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from quorate.controller.configs.messages import (
    AlterOperation,
    ConfigAlteration,
    ConfigChange,
    ConfigResource,
    IncrementalAlterConfigs,
    ResourceType,
)
from quorate.controller.errors import ReplayError
from quorate.controller.partitions.partition import (
    LOST_DIR,
    NO_LEADER,
    RECOVERED,
    RECOVERING,
    Partition,
)
from quorate.controller.partitions.records import (
    NO_LEADER_CHANGE,
    directories_for,
    partition_record,
)
from quorate.controller.replication.messages import (
    PARTITIONS_MAX,
    AlteredPartition,
    AlterPartition,
    AlterPartitionReply,
    IsrMember,
    PartitionAlteration,
    TopicAlteration,
)
from quorate.records.errors import ErrorCode
from quorate.records.ids import ZERO_UUID, DirectoryId, TopicId
from quorate.records.metadata import FeatureLevelRecord, PartitionChangeRecord

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.unit.controller.conftest import Cluster

REPLICAS = (1, 2, 3)


def epoch_of(cluster: Cluster, broker_id: int) -> int:
    return cluster.image.brokers.by_id[broker_id].registration.broker_epoch


def member(cluster: Cluster, broker_id: int) -> IsrMember:
    return IsrMember(broker_id, epoch_of(cluster, broker_id))


def alteration(
    cluster: Cluster, *isr: int, partition_id: int = 0, **fields: object
) -> PartitionAlteration:
    """The alteration that the leader of a partition of topic `t` would ask for."""
    now = cluster.partition("t", partition_id)
    asked = PartitionAlteration(
        partition_index=partition_id,
        leader_epoch=now.leader_epoch,
        partition_epoch=now.partition_epoch,
        new_isr=tuple(IsrMember(broker_id) for broker_id in isr),
        leader_recovery_state=now.leader_recovery_state,
    )
    return replace(asked, **fields)  # type: ignore[arg-type]


def asks(
    cluster: Cluster, *partitions: PartitionAlteration, sender: int = 1, **fields: object
) -> AlterPartition:
    topic = cluster.image.topics.by_name_or_none("t")
    assert topic is not None
    request = AlterPartition(
        broker_id=sender,
        broker_epoch=epoch_of(cluster, sender),
        topics=(TopicAlteration(topic.topic_id, partitions),),
    )
    return replace(request, **fields)  # type: ignore[arg-type]


def result_of(reply: AlterPartitionReply) -> AlteredPartition:
    assert reply.error is ErrorCode.NONE
    (topic,) = reply.topics
    (result,) = topic.partitions
    return result


def refused(cluster: Cluster, request: AlterPartition) -> ErrorCode:
    """The error of its only partition; nothing is written, and the result is otherwise empty."""
    decision = cluster.decide(request)
    assert decision.values == ()
    assert isinstance(decision.reply, AlterPartitionReply)
    result = result_of(decision.reply)
    assert result == AlteredPartition(result.partition_index, result.error, result.message)
    assert result.message
    return result.error


def fence(cluster: Cluster, broker_id: int) -> None:
    cluster.ask(cluster.heartbeat(broker_id, want_fence=True))
    cluster.settle()


def unfence(cluster: Cluster, broker_id: int) -> None:
    assert not cluster.ask(cluster.heartbeat(broker_id)).is_fenced
    cluster.settle()


def set_partition(cluster: Cluster, **fields: object) -> None:
    """Have the log say something else of partition 0, as one of another controller may."""
    before = cluster.partition("t")
    partition = replace(before, **fields)  # type: ignore[arg-type]
    if "directories" not in fields:
        partition = replace(partition, directories=directories_for(before, partition.replicas))
    topic = cluster.image.topics.by_name_or_none("t")
    assert topic is not None
    cluster.write(partition_record(topic.topic_id, 0, partition, level=30))


@pytest.fixture
def cluster(cluster: Cluster) -> Cluster:
    cluster.create("t", REPLICAS)
    return cluster


def test_a_replica_that_left_comes_back(cluster: Cluster) -> None:
    fence(cluster, 3)
    assert cluster.leading("t") == [(1, (1, 2))]
    unfence(cluster, 3)
    assert cluster.leading("t") == [(1, (1, 2))]
    before = cluster.partition("t")
    decision = cluster.decide(asks(cluster, alteration(cluster, *REPLICAS)))
    (record,) = decision.records
    assert isinstance(record, PartitionChangeRecord)
    assert (record.isr, record.leader) == (REPLICAS, NO_LEADER_CHANGE)
    after = cluster.partition("t")
    assert after == replace(before, isr=REPLICAS, partition_epoch=before.partition_epoch + 1)
    assert isinstance(decision.reply, AlterPartitionReply)
    assert result_of(decision.reply) == AlteredPartition(
        0,
        leader_id=1,
        leader_epoch=after.leader_epoch,
        isr=REPLICAS,
        partition_epoch=after.partition_epoch,
    )


@pytest.mark.parametrize(("level", "rise"), [(11, 1), (12, 0)])
def test_a_leader_takes_a_replica_out(
    make_cluster: Callable[..., Cluster], level: int, rise: int
) -> None:
    cluster = make_cluster(level=level)
    cluster.start_brokers(*REPLICAS)
    cluster.create("t", REPLICAS)
    before = cluster.partition("t")
    cluster.ask(asks(cluster, alteration(cluster, 1, 3)))
    after = cluster.partition("t")
    assert (after.isr, after.leader) == ((1, 3), 1)
    assert after.leader_epoch == before.leader_epoch + rise
    # To grow needs no new epoch of the leader at any level.
    cluster.ask(asks(cluster, alteration(cluster, *REPLICAS)))
    assert cluster.partition("t").leader_epoch == after.leader_epoch


def test_nothing_changes_and_nothing_is_written(cluster: Cluster) -> None:
    decision = cluster.decide(asks(cluster, alteration(cluster, *REPLICAS)))
    assert decision.values == ()
    assert isinstance(decision.reply, AlterPartitionReply)
    assert result_of(decision.reply).isr == REPLICAS


def test_another_order_is_a_change(cluster: Cluster) -> None:
    before = cluster.partition("t")
    cluster.ask(asks(cluster, alteration(cluster, 3, 2, 1)))
    after = cluster.partition("t")
    assert (after.isr, after.partition_epoch) == ((3, 2, 1), before.partition_epoch + 1)


def test_an_empty_request_has_an_empty_answer(cluster: Cluster) -> None:
    assert cluster.ask(asks(cluster, topics=())) == AlterPartitionReply()


@pytest.mark.parametrize(("sender", "epoch"), [(1, -1), (1, 10**9), (9, 0)])
def test_the_sender_has_to_be_registered(cluster: Cluster, sender: int, epoch: int) -> None:
    request = asks(cluster, alteration(cluster, 1), broker_id=sender, broker_epoch=epoch)
    reply = cluster.ask(request)
    assert (reply.error, reply.topics) == (ErrorCode.STALE_BROKER_EPOCH, ())
    assert "register" in reply.message


@pytest.mark.parametrize("topic_id", [ZERO_UUID, b"\xaa" * 16])
def test_unknown_topics(cluster: Cluster, topic_id: bytes) -> None:
    asked = (TopicAlteration(TopicId(topic_id), (alteration(cluster, 1),)),)
    assert refused(cluster, asks(cluster, topics=asked)) is ErrorCode.UNKNOWN_TOPIC_ID


@pytest.mark.parametrize("partition_id", [1, -1, 2**24, 2**31 - 1])
def test_unknown_partitions(cluster: Cluster, partition_id: int) -> None:
    request = asks(cluster, alteration(cluster, 1, partition_index=partition_id))
    assert refused(cluster, request) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.parametrize(
    ("leader_epoch", "partition_epoch", "error"),
    [
        (1, 0, ErrorCode.NOT_CONTROLLER),
        (0, 1, ErrorCode.NOT_CONTROLLER),
        (-1, 1, ErrorCode.NOT_CONTROLLER),
        (-1, 0, ErrorCode.FENCED_LEADER_EPOCH),
        (0, -1, ErrorCode.INVALID_UPDATE_VERSION),
    ],
)
def test_epochs(
    cluster: Cluster, leader_epoch: int, partition_epoch: int, error: ErrorCode
) -> None:
    now = cluster.partition("t")
    asked = alteration(
        cluster,
        1,
        leader_epoch=now.leader_epoch + leader_epoch,
        partition_epoch=now.partition_epoch + partition_epoch,
    )
    assert refused(cluster, asks(cluster, asked)) is error


def test_only_the_leader_may_ask(cluster: Cluster) -> None:
    # Checked before the epoch of the partition, as Kafka does.
    asked = alteration(cluster, 2, partition_epoch=-1)
    assert refused(cluster, asks(cluster, asked, sender=2)) is ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize("isr", [(1, 1), (1, -1), (1, 4), (2, 3), ()])
def test_isrs_that_no_partition_can_have(cluster: Cluster, isr: tuple[int, ...]) -> None:
    assert refused(cluster, asks(cluster, alteration(cluster, *isr))) is ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize("state", [RECOVERING, -1, 2, 127])
def test_states_that_a_leader_cannot_enter(cluster: Cluster, state: int) -> None:
    asked = alteration(cluster, 1, leader_recovery_state=state)
    assert refused(cluster, asks(cluster, asked)) is ErrorCode.INVALID_REQUEST


def test_a_leader_recovers_before_others_are_in_sync(cluster: Cluster) -> None:
    set_partition(cluster, isr=(1,), leader_recovery_state=RECOVERING)
    both = alteration(cluster, 1, 2)
    assert refused(cluster, asks(cluster, both)) is ErrorCode.INVALID_REQUEST
    before = cluster.partition("t")
    cluster.ask(asks(cluster, alteration(cluster, 1, leader_recovery_state=RECOVERED)))
    after = cluster.partition("t")
    assert after.leader_recovery_state == RECOVERED
    assert (after.leader_epoch, after.partition_epoch) == (
        before.leader_epoch,
        before.partition_epoch + 1,
    )
    cluster.ask(asks(cluster, alteration(cluster, 1, 2)))
    assert cluster.partition("t").isr == (1, 2)


def test_who_cannot_be_in_sync(cluster: Cluster) -> None:
    fence(cluster, 3)
    assert refused(cluster, asks(cluster, alteration(cluster, 1, 3))) is (
        ErrorCode.INELIGIBLE_REPLICA
    )
    stale = (member(cluster, 1), replace(member(cluster, 2), broker_epoch=1))
    asked = alteration(cluster, new_isr=stale)
    assert refused(cluster, asks(cluster, asked)) is ErrorCode.INELIGIBLE_REPLICA
    set_partition(cluster, replicas=(1, 2, 9), isr=(1, 2))
    assert refused(cluster, asks(cluster, alteration(cluster, 1, 9))) is (
        ErrorCode.INELIGIBLE_REPLICA
    )
    cluster.ask(cluster.heartbeat(2, want_shut_down=True))
    cluster.settle()
    assert refused(cluster, asks(cluster, alteration(cluster, 1, 2))) is (
        ErrorCode.INELIGIBLE_REPLICA
    )
    known = (member(cluster, 1),)
    assert cluster.ask(asks(cluster, alteration(cluster, new_isr=known))).topics


def test_a_leader_that_is_fenced_gets_nothing(cluster: Cluster) -> None:
    set_partition(cluster, isr=(1,))
    # No other replica is in sync, but the leader goes as soon as it is fenced.
    fence(cluster, 1)
    assert cluster.leading("t") == [(-1, (1,))]
    assert refused(cluster, asks(cluster, alteration(cluster, 1, 2))) is ErrorCode.INVALID_REQUEST


def test_partitions_are_judged_one_by_one(cluster: Cluster) -> None:
    topic_id = cluster.create("u", (1, 2), (2, 1))
    first = alteration(cluster, 1, 2)
    topics = (
        *asks(cluster, first, first).topics,
        TopicAlteration(
            topic_id,
            tuple(
                PartitionAlteration(index, 0, 0, (IsrMember(broker_id),))
                for index, broker_id in ((1, 2), (0, 1))
            ),
        ),
    )
    decision = cluster.decide(asks(cluster, topics=topics))
    assert isinstance(decision.reply, AlterPartitionReply)
    errors = [[p.error for p in topic.partitions] for topic in decision.reply.topics]
    assert errors == [
        [ErrorCode.NONE, ErrorCode.INVALID_UPDATE_VERSION],
        [ErrorCode.INVALID_REQUEST, ErrorCode.NONE],
    ]
    assert len(decision.values) == 2
    assert cluster.leading("u") == [(1, (1,)), (2, (2, 1))]


def test_a_request_is_bounded_over_all_its_topics(cluster: Cluster) -> None:
    topics = []
    for name, count in (("many", PARTITIONS_MAX - 1), ("more", 2)):
        topic_id = cluster.create(name, *[(1, 2)] * count)
        partitions = [PartitionAlteration(i, 0, 0, (IsrMember(1),)) for i in range(count)]
        topics.append(TopicAlteration(topic_id, tuple(partitions)))
    decision = cluster.decide(asks(cluster, topics=tuple(topics)))
    assert isinstance(decision.reply, AlterPartitionReply)
    assert (decision.values, decision.reply.topics) == ((), ())
    assert decision.reply.error is ErrorCode.INVALID_REQUEST
    assert "split" in decision.reply.message
    fitting = replace(topics[1], partitions=topics[1].partitions[:1])
    decision = cluster.decide(asks(cluster, topics=(topics[0], fitting)))
    assert len(decision.values) == PARTITIONS_MAX
    assert cluster.leading("more") == [(1, (1,)), (1, (1, 2))]


def test_an_index_is_never_that_of_another_topic(cluster: Cluster) -> None:
    cluster.create("u", (1, 2))
    first, other = (cluster.image.topics.by_name_or_none(name) for name in ("t", "u"))
    assert first is not None
    assert other is not None
    # So their keys would be equal.
    index = (first.number ^ other.number) << 24
    asked = PartitionAlteration(index, 0, 0, (IsrMember(1),))
    request = asks(cluster, topics=(TopicAlteration(first.topic_id, (asked,)),))
    assert refused(cluster, request) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert cluster.leading("u") == [(1, (1, 2))]
    record = PartitionChangeRecord(partition_id=index, topic_id=first.topic_id, isr=(1,))
    with pytest.raises(ReplayError, match="no partition"):
        cluster.write(record)


def test_behind_the_last_epoch_comes_the_lowest(cluster: Cluster) -> None:
    set_partition(cluster, leader_epoch=2**31 - 1, partition_epoch=2**31 - 1)
    result = result_of(cluster.ask(asks(cluster, alteration(cluster, 1, 2))))
    assert result.partition_epoch == -(2**31)
    fence(cluster, 1)
    assert cluster.leading("t") == [(2, (2,))]
    assert cluster.partition("t").leader_epoch == -(2**31)
    assert cluster.ask(asks(cluster, alteration(cluster, 2, 3), sender=2)).topics
    assert cluster.leading("t") == [(2, (2, 3))]


# --- reassignments that a log of another controller began -----------------------------------------


def test_a_reassignment_is_completed(cluster: Cluster) -> None:
    set_partition(
        cluster, replicas=(3, 1, 2), isr=(1, 2), adding_replicas=(3,), removing_replicas=(2,)
    )
    before = cluster.partition("t")
    cluster.ask(asks(cluster, alteration(cluster, 1, 2)))
    assert cluster.partition("t") == before
    result = result_of(cluster.ask(asks(cluster, alteration(cluster, 1, 2, 3))))
    after = cluster.partition("t")
    assert (result.error, result.isr, result.leader_epoch) == (
        ErrorCode.NONE,
        (1, 3),
        before.leader_epoch + 1,
    )
    assert (after.replicas, after.isr, after.leader) == ((3, 1), (1, 3), 1)
    assert (after.adding_replicas, after.removing_replicas) == ((), ())
    assert after.directories == (before.directories[0], before.directories[1])


def test_a_leader_that_joins_the_isr_by_the_same_record_is_not_unclean(cluster: Cluster) -> None:
    set_partition(
        cluster, replicas=(2, 3, 1), isr=(1,), adding_replicas=(2, 3), removing_replicas=(1,)
    )
    cluster.ask(asks(cluster, alteration(cluster, 1, 2, 3)))
    assert cluster.leading("t") == [(2, (2, 3))]
    tally = cluster.image.topics.tally
    assert (tally.unclean, tally.eligible) == (0, 0)


def test_a_reassignment_takes_the_leader_away(cluster: Cluster) -> None:
    set_partition(
        cluster, replicas=(3, 2, 1), isr=(1, 2), adding_replicas=(3,), removing_replicas=(1,)
    )
    decision = cluster.decide(asks(cluster, alteration(cluster, 1, 2, 3)))
    assert len(decision.values) == 1
    assert isinstance(decision.reply, AlterPartitionReply)
    assert result_of(decision.reply).error is ErrorCode.NEW_LEADER_ELECTED
    after = cluster.partition("t")
    assert (after.replicas, after.isr, after.leader) == ((3, 2), (2, 3), 3)


def test_a_reassignment_has_nobody_lead_from_a_directory_that_is_offline(cluster: Cluster) -> None:
    directories = cluster.partition("t").directories
    set_partition(
        cluster,
        replicas=(3, 2, 1),
        directories=(LOST_DIR, directories[1], directories[0]),
        isr=(1, 2, 3),
        adding_replicas=(3,),
        removing_replicas=(1,),
    )
    result = result_of(cluster.ask(asks(cluster, alteration(cluster, 1, 3, 2))))
    assert result.error is ErrorCode.NEW_LEADER_ELECTED
    after = cluster.partition("t")
    assert (after.replicas, after.isr, after.leader) == ((3, 2), (3, 2), 2)


@pytest.mark.parametrize(("isr", "leader"), [((1, 2), 2), ((1,), NO_LEADER)])
def test_a_leader_whose_directory_is_offline_leads_no_more_when_it_asks(
    cluster: Cluster, isr: tuple[int, ...], leader: int
) -> None:
    set_partition(cluster, isr=isr)
    fields = {"log_dirs": (DirectoryId(b"another disk    "),)}
    # No pass comes between.
    cluster.ask(cluster.registration(1, **fields))
    decision = cluster.decide(asks(cluster, alteration(cluster, *isr)))
    assert isinstance(decision.reply, AlterPartitionReply)
    result = result_of(decision.reply)
    assert result.error is ErrorCode.NEW_LEADER_ELECTED
    assert (f"broker {leader}" if leader > 0 else "no broker") in result.message
    assert cluster.leading("t") == [(leader, isr)]
    assert cluster.settle() == []


def test_where_more_go_than_come_all_that_stay_have_to_be_in_sync(cluster: Cluster) -> None:
    set_partition(cluster, isr=(1, 3), removing_replicas=(3,))
    cluster.ask(asks(cluster, alteration(cluster, 1)))
    assert cluster.partition("t").removing_replicas == (3,)
    cluster.ask(asks(cluster, alteration(cluster, 1, 2)))
    after = cluster.partition("t")
    assert (after.replicas, after.removing_replicas) == ((1, 2), ())


# --- eligible leader replicas ---------------------------------------------------------------------


def elr_of(partition: Partition) -> tuple[tuple[int, ...], tuple[int, ...]]:
    return partition.eligible_leader_replicas, partition.last_known_elr


def test_with_enough_in_sync_nobody_else_is_eligible(cluster: Cluster) -> None:
    cluster.write(FeatureLevelRecord(name="eligible.leader.replicas.version", feature_level=1))
    set_partition(cluster, isr=(1,), eligible_leader_replicas=(2,), last_known_elr=(3,))
    cluster.ask(asks(cluster, alteration(cluster, 1, 3)))
    assert elr_of(cluster.partition("t")) == ((), ())


def test_with_too_few_in_sync_those_that_are_not_stay_eligible(cluster: Cluster) -> None:
    cluster.write(FeatureLevelRecord(name="eligible.leader.replicas.version", feature_level=1))
    change = ConfigChange("min.insync.replicas", AlterOperation.SET, "3")
    owner = ConfigResource(ResourceType.TOPIC, "t")
    cluster.ask(IncrementalAlterConfigs((ConfigAlteration(owner, (change,)),)))
    set_partition(cluster, isr=(1,), eligible_leader_replicas=(2, 3), last_known_elr=(3,))
    cluster.ask(asks(cluster, alteration(cluster, 1, 2)))
    assert elr_of(cluster.partition("t")) == ((3,), (3,))
    # A replica that leaves the ISR does not become eligible.
    cluster.ask(asks(cluster, alteration(cluster, 1)))
    assert elr_of(cluster.partition("t")) == ((3,), (3,))


def test_without_the_feature_nobody_stays_eligible(cluster: Cluster) -> None:
    set_partition(cluster, isr=(1,), eligible_leader_replicas=(2,), last_known_elr=(3,))
    cluster.ask(asks(cluster, alteration(cluster, 1, 3)))
    assert elr_of(cluster.partition("t")) == ((), ())


def test_a_replica_that_a_reassignment_removed_is_not_eligible(cluster: Cluster) -> None:
    cluster.start_brokers(4)
    cluster.write(FeatureLevelRecord(name="eligible.leader.replicas.version", feature_level=1))
    change = ConfigChange("min.insync.replicas", AlterOperation.SET, "3")
    owner = ConfigResource(ResourceType.TOPIC, "t")
    cluster.ask(IncrementalAlterConfigs((ConfigAlteration(owner, (change,)),)))
    set_partition(
        cluster,
        replicas=(1, 2, 4, 3),
        isr=(1,),
        adding_replicas=(2,),
        removing_replicas=(3,),
        eligible_leader_replicas=(3,),
    )
    cluster.ask(asks(cluster, alteration(cluster, 1, 2)))
    after = cluster.partition("t")
    assert (after.replicas, elr_of(after)) == ((1, 2, 4), ((), ()))
    # One that a log has nevertheless does not lead.
    set_partition(cluster, isr=(1,), eligible_leader_replicas=(3,))
    fence(cluster, 1)
    assert cluster.leading("t") == [(NO_LEADER, (1,))]
