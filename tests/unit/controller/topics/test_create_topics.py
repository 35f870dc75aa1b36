from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from quorate.controller.partitions.partition import LOST_DIR, MIGRATING_DIR, UNASSIGNED_DIR
from quorate.controller.request_types import RECORDS_MAX
from quorate.controller.topics.messages import (
    CreatedTopic,
    CreateTopics,
    NewTopic,
)
from quorate.records.errors import ErrorCode
from quorate.records.ids import DirectoryId, TopicId
from quorate.records.metadata import (
    ConfigRecord,
    PartitionRecord,
    TopicRecord,
)
from tests.unit.controller.conftest import uuid

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.unit.controller.conftest import Cluster


def create(*topics: NewTopic, validate_only: bool = False) -> CreateTopics:
    return CreateTopics(topics, validate_only=validate_only)


def refusal(cluster: Cluster, topic: NewTopic) -> tuple[ErrorCode, str]:
    before = cluster.image
    (result,) = cluster.ask(create(topic)).topics
    assert cluster.image == before
    return result.error, result.message


def test_a_topic_is_its_record_its_configs_and_its_partitions(cluster: Cluster) -> None:
    topic = NewTopic("a", 2, 2, configs=(("retention.ms", "-1"),))
    decision = cluster.decide(create(topic))
    topic_id = TopicId(uuid(1000))
    assert decision.records == (
        TopicRecord(name="a", topic_id=topic_id),
        ConfigRecord(resource_type=2, resource_name="a", name="retention.ms", value="-1"),
        *(
            PartitionRecord(
                partition_id=partition_id,
                topic_id=topic_id,
                replicas=replicas,
                isr=replicas,
                leader=replicas[0],
                leader_epoch=0,
                partition_epoch=0,
                directories=tuple(DirectoryId(uuid(500 + broker_id)) for broker_id in replicas),
            )
            for partition_id, replicas in enumerate([(1, 2), (2, 3)])
        ),
    )
    assert decision.reply.topics == (  # type: ignore[union-attr]
        CreatedTopic("a", topic_id=topic_id, partitions=2, replication_factor=2),
    )


def test_placement_goes_on_where_the_last_topic_ended(cluster: Cluster) -> None:
    cluster.ask(create(NewTopic("a", 1, 1), NewTopic("b", 1, 1)))
    cluster.ask(create(NewTopic("c", 1, 1), NewTopic("d", 1, 1)))
    assert [cluster.leading(name) for name in "abcd"] == [
        [(1, (1,))],
        [(2, (2,))],
        [(3, (3,))],
        [(1, (1,))],
    ]


def test_defaults_are_the_controllers(make_cluster: Callable[..., Cluster]) -> None:
    cluster = make_cluster(num_partitions=3, default_replication_factor=2)
    cluster.start_brokers(1, 2)
    cluster.ask(create(NewTopic("a")))
    assert cluster.leading("a") == [(1, (1, 2)), (2, (2, 1)), (1, (1, 2))]


def test_replicas_go_where_the_assignment_says(cluster: Cluster) -> None:
    cluster.create("a", (3, 1), (1, 2))
    assert cluster.leading("a") == [(3, (3, 1)), (1, (1, 2))]


def test_fenced_replicas_of_an_assignment_are_out_of_sync(cluster: Cluster) -> None:
    cluster.ask(cluster.registration(4))
    cluster.create("a", (4, 2, 3))
    assert cluster.leading("a") == [(2, (2, 3))]
    assert cluster.partition("a").replicas == (4, 2, 3)


def test_new_topics_stay_away_from_fenced_brokers(cluster: Cluster) -> None:
    cluster.ask(cluster.heartbeat(2, want_fence=True))
    cluster.ask(create(NewTopic("a", 4, 2)))
    assert cluster.leading("a") == [(1, (1, 3)), (3, (3, 1)), (1, (1, 3)), (3, (3, 1))]


def test_a_replica_lies_in_its_brokers_only_directory_or_wherever_it_chooses(
    make_cluster: Callable[..., Cluster],
) -> None:
    cluster = make_cluster()
    cluster.start_brokers(1)
    cluster.start_brokers(2, log_dirs=(uuid(1), uuid(2)))
    cluster.create("a", (1, 2))
    assert cluster.partition("a").directories == (uuid(501), UNASSIGNED_DIR)


def test_before_directories_were_registered_nobody_knows_them(
    make_cluster: Callable[..., Cluster],
) -> None:
    cluster = make_cluster(level=16)
    cluster.start_brokers(1)
    cluster.create("a", (1,))
    assert cluster.partition("a").directories == (MIGRATING_DIR,)


@pytest.mark.parametrize(
    ("topic", "error", "message"),
    [
        (
            NewTopic("a/b"),
            ErrorCode.INVALID_TOPIC_EXCEPTION,
            "The topic name 'a/b' contains characters other than letters, digits, '.', '_' and '-';"
            " leave them out.",
        ),
        (
            NewTopic("old_name"),
            ErrorCode.INVALID_TOPIC_EXCEPTION,
            "The topic name 'old_name' differs from the existing 'old.name' only in '.' and '_',"
            " which metrics do not tell apart; choose another.",
        ),
        (
            NewTopic("old.name"),
            ErrorCode.TOPIC_ALREADY_EXISTS,
            "The topic 'old.name' exists already.",
        ),
        (
            NewTopic("a", 0, 1),
            ErrorCode.INVALID_PARTITIONS,
            "The number of partitions is 0; give at least 1, or -1 for the default.",
        ),
        (
            NewTopic("a", 1, -2),
            ErrorCode.INVALID_REPLICATION_FACTOR,
            "The replication factor is -2; give at least 1, or -1 for the default.",
        ),
        (
            NewTopic("a", 1, 4),
            ErrorCode.INVALID_REPLICATION_FACTOR,
            "The replication factor 4 needs as many brokers, but 4 are registered and 3 of them are"
            " unfenced; start more brokers or ask for fewer replicas.",
        ),
        (
            NewTopic("a", configs=(("nope", "1"),)),
            ErrorCode.INVALID_CONFIG,
            "There is no topic configuration 'nope'; check its spelling.",
        ),
        (
            NewTopic("a", configs=(("retention.ms", "1"), ("retention.ms", "2"))),
            ErrorCode.INVALID_CONFIG,
            "The configuration 'retention.ms' occurs twice; give it once.",
        ),
        (
            NewTopic("a", 1, assignments=((1,),)),
            ErrorCode.INVALID_REQUEST,
            "Assignments say how many partitions and replicas there are; leave partitions and"
            " replication factor at -1 beside them.",
        ),
        (
            NewTopic("a", assignments=((1,), ())),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "The assignment of partition 1 names no broker; name at least one.",
        ),
        (
            NewTopic("a", assignments=((1, 1),)),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "The assignment of partition 0 names a broker twice: [1, 1]; name each once.",
        ),
        (
            NewTopic("a", assignments=((1, 7),)),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "The assignment of partition 0 names brokers that are not registered: [7]; register"
            " them or choose others.",
        ),
        (
            NewTopic("a", assignments=((1, 2), (1,))),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "The assignment of partition 1 has 1 replicas where partition 0 has 2; give each"
            " partition the same number.",
        ),
        (
            NewTopic("a", assignments=((4,),)),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "The assignment of partition 0 names only brokers that are fenced or shutting down:"
            " [4]; wait for one of them or choose others.",
        ),
    ],
)
def test_a_topic_that_cannot_be_is_refused_with_the_remedy(
    cluster: Cluster, topic: NewTopic, error: ErrorCode, message: str
) -> None:
    cluster.create("old.name", (1,))
    cluster.ask(cluster.registration(4))
    assert refusal(cluster, topic) == (error, message)


def test_topics_of_one_request_are_judged_together(cluster: Cluster) -> None:
    topics = [NewTopic(name, 1, 1) for name in ("a", "b.c", "a", "b_c", "d")]
    results = cluster.ask(create(*topics)).topics
    assert [(result.name, result.error) for result in results] == [
        ("a", ErrorCode.INVALID_REQUEST),
        ("b.c", ErrorCode.NONE),
        ("a", ErrorCode.INVALID_REQUEST),
        ("b_c", ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("d", ErrorCode.NONE),
    ]
    assert results[0].message == "The topic 'a' occurs twice in the request; name it once."
    assert sorted(cluster.image.topics.ids) == ["b.c", "d"]


def test_validation_answers_without_an_id_and_writes_nothing(cluster: Cluster) -> None:
    decision = cluster.decide(create(NewTopic("a", 2, 1), NewTopic("..", 1, 1), validate_only=True))
    assert decision.records == ()
    good, bad = decision.reply.topics  # type: ignore[union-attr]
    assert good == CreatedTopic("a", partitions=2, replication_factor=1)
    assert bad.error is ErrorCode.INVALID_TOPIC_EXCEPTION


@pytest.mark.parametrize("partitions", [RECORDS_MAX, RECORDS_MAX + 1])
def test_a_topic_that_fits_into_no_batch_is_to_be_split(cluster: Cluster, partitions: int) -> None:
    error, message = refusal(cluster, NewTopic("a", partitions, 1))
    assert error is ErrorCode.POLICY_VIOLATION
    assert message.startswith("The topic 'a' does not fit into one batch of at most 10000 records")


def test_topics_that_fit_are_created_beside_one_that_does_not(cluster: Cluster) -> None:
    sizes = {"a": 6000, "b": 6000, "c": 3000}
    results = cluster.ask(create(*(NewTopic(name, size, 1) for name, size in sizes.items()))).topics
    assert [result.error.name for result in results] == ["NONE", "POLICY_VIOLATION", "NONE"]
    assert cluster.image.topics.partition_count == 9000


def test_ids_that_are_taken_reserved_or_look_like_options_are_drawn_again(
    make_cluster: Callable[..., Cluster],
) -> None:
    drawn = iter([uuid(1), uuid(1), UNASSIGNED_DIR, LOST_DIR, b"\xf8" + bytes(15), uuid(2)])
    cluster = make_cluster(new_topic_id=lambda: TopicId(next(drawn)))
    cluster.start_brokers(1)
    assert [cluster.create(name, (1,)) for name in "ab"] == [uuid(1), uuid(2)]
