"""Topics are created as columns, with the same result as record by record."""

from __future__ import annotations

import pytest

from quorate.controller.partitions.rows import FIXED
from quorate.controller.topics import create_topics
from quorate.controller.topics.messages import CreateTopics, CreateTopicsReply, NewTopic
from quorate.controller.topics.new_partition_rows import COLUMNS_MIN, rows_max, size_max
from quorate.records.errors import ErrorCode
from tests.unit.controller.conftest import CALLER, Cluster, uuid

MANUAL = tuple((1 + number % 3, 1 + (number + 1) % 3) for number in range(COLUMNS_MIN))
REQUEST = CreateTopics(
    (
        NewTopic("few", COLUMNS_MIN - 1, 2),
        NewTopic("many", 3 * COLUMNS_MIN, 3, configs=(("retention.ms", "-1"),)),
        NewTopic("manual", assignments=MANUAL),
        NewTopic("refused", 9_990, 3),
        NewTopic("one", COLUMNS_MIN, 1),
        *(NewTopic(f"small-{number}", 3 + number, 2) for number in range(12)),
        NewTopic("small-1", 1, 2),
        NewTopic("lower_factor", 1, 1),
        NewTopic("lower.factor", 5, 1),
    )
)


def started(level: int) -> Cluster:
    """Brokers with one disk or with two; the last one is about to shut down."""
    cluster = Cluster(level=level)
    for broker_id, disks in ((1, 1), (2, 2), (4, 1), (3, 2)):
        log_dirs = tuple(uuid(500 + 10 * broker_id + disk) for disk in range(disks))
        cluster.start_brokers(broker_id, log_dirs=log_dirs)
    cluster.create("led", (3, 1))
    cluster.ask(cluster.heartbeat(3, want_shut_down=True))
    return cluster


@pytest.mark.parametrize("level", [7, 17, 30])
def test_columns_and_records_are_the_same(level: int, monkeypatch: pytest.MonkeyPatch) -> None:
    columns, records = started(level), started(level)
    monkeypatch.setattr(
        "quorate.controller.topics.new_partition_rows._CELLS_SLICE", 40 * (FIXED + 6)
    )
    decided = columns.decide(REQUEST)
    monkeypatch.setattr(create_topics, "COLUMNS_MIN", 100_000)
    expected = records.decide(REQUEST)
    assert decided.values == expected.values
    assert decided.reply == expected.reply
    assert columns.image == records.image
    assert columns.image.topics.tally == records.image.topics.tally
    assert isinstance(decided.reply, CreateTopicsReply)
    assert {topic.error for topic in decided.reply.topics} == {
        ErrorCode.NONE,
        ErrorCode.INVALID_TOPIC_EXCEPTION,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.POLICY_VIOLATION,
    }


def test_replicas_that_may_not_lead_are_not_in_sync() -> None:
    cluster = started(30)
    cluster.create("new", *MANUAL)
    assert cluster.partition("new", 1).replicas == (2, 3)
    assert cluster.partition("new", 1).isr == (2,)
    assert cluster.partition("new", 2).replicas == (3, 1)
    assert (cluster.partition("new", 2).leader, cluster.partition("new", 2).isr) == (1, (1,))


def test_a_large_topic_is_decided_in_slices() -> None:
    cluster = started(30)
    size = rows_max(3)
    request = CreateTopics((NewTopic("large", 4 * size, 3),))
    slices = cluster.controller.decide_in_slices(request, CALLER, cluster.now_ms)
    # Each part is placed, then made and encoded, and at last replayed.
    assert sum(1 for _ in slices) >= 3 * 4


def test_topics_behind_small_ones_find_no_room_that_was_kept_for_these(cluster: Cluster) -> None:
    small = tuple(NewTopic(f"small-{number}", 40, 3) for number in range(200))
    request = CreateTopics((*small, NewTopic("large", 2_000, 3), NewTopic("last", 1_700, 3)))
    errors = {topic.name: topic.error for topic in cluster.ask(request).topics}
    assert {name for name, error in errors.items() if error is not ErrorCode.NONE} == {"large"}
    assert errors["large"] is ErrorCode.POLICY_VIOLATION
    assert cluster.image.topics.partition_count == 200 * 40 + 1_700


def test_no_record_is_larger_than_the_room_that_is_kept_for_it(cluster: Cluster) -> None:
    for factor in (1, 3):
        request = CreateTopics((NewTopic(f"topic-{factor}", COLUMNS_MIN, factor),))
        sizes = [len(value) for value in cluster.decide(request).values[1:]]
        assert max(sizes) <= size_max(factor)


def test_wide_rows_are_fewer_at_once() -> None:
    assert rows_max(1) > rows_max(3) > rows_max(100) >= 1
    assert rows_max(100_000) == 1
