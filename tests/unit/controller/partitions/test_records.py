from __future__ import annotations

from dataclasses import replace

import pytest

from quorate.controller.errors import ReplayError
from quorate.controller.image import LOG_BEGIN, MetadataDelta, MetadataImage
from quorate.controller.partitions.partition import (
    MIGRATING_DIR,
    NO_LEADER,
    RECOVERING,
    UNASSIGNED_DIR,
    Partition,
)
from quorate.controller.partitions.records import (
    SLICE_PARTITIONS,
    clear_elr_in_slices,
    partition_record,
    replay_clear_elr,
    replay_partition,
    replay_partition_change,
)
from quorate.controller.partitions.tree import ROWS_MAX
from quorate.records.ids import DirectoryId, TopicId
from quorate.records.metadata import ClearElrRecord, PartitionChangeRecord

TOPIC_ID = TopicId(b"t" * 16)
OTHER_ID = TopicId(b"o" * 16)
DIRS = tuple(DirectoryId(bytes([number]) * 16) for number in (1, 2, 3))
FULL = Partition(
    replicas=(1, 2, 3),
    isr=(1, 2),
    leader=1,
    leader_epoch=4,
    partition_epoch=6,
    directories=DIRS,
    removing_replicas=(3,),
    adding_replicas=(1,),
    eligible_leader_replicas=(3,),
    last_known_elr=(2,),
)


def delta_with(*partitions: Partition) -> MetadataDelta:
    delta = MetadataDelta(MetadataImage())
    for name, topic_id in (("a", TOPIC_ID), ("b", OTHER_ID)):
        delta.topics.add(name, topic_id)
        for partition_id, partition in enumerate(partitions):
            delta.topics.set_partition(
                delta.topics.topic(topic_id), partition_id, partition, old=None
            )
    return delta


def changed(old: Partition, **fields: object) -> Partition | None:
    delta = delta_with(old)
    record = PartitionChangeRecord(partition_id=0, topic_id=TOPIC_ID, **fields)  # type: ignore[arg-type]
    replay_partition_change(delta, record)
    return partition_in(delta, 0)


def partition_in(delta: MetadataDelta, partition_id: int) -> Partition | None:
    return delta.topics.partition(delta.topics.topic(TOPIC_ID), partition_id)


def test_a_partition_comes_back_from_its_record() -> None:
    delta = delta_with()
    record = partition_record(TOPIC_ID, 2, FULL, level=30)
    replay_partition(delta, record)
    assert partition_in(delta, 2) == FULL
    assert record.eligible_leader_replicas == (3,)


def test_a_record_says_no_more_than_its_level_can() -> None:
    old = partition_record(TOPIC_ID, 2, FULL, level=16)
    assert (old.directories, old.eligible_leader_replicas, old.last_known_elr) == ((), None, None)
    newer = partition_record(TOPIC_ID, 2, FULL, level=22)
    assert (newer.directories, newer.eligible_leader_replicas) == (DIRS, None)


def test_replicas_of_old_records_lie_in_directories_to_be_told() -> None:
    delta = delta_with()
    replay_partition(delta, partition_record(TOPIC_ID, 0, FULL, level=7))
    partition = partition_in(delta, 0)
    assert partition is not None
    assert partition.directories == (MIGRATING_DIR,) * 3


def test_a_change_without_fields_raises_the_partition_epoch_only() -> None:
    assert changed(FULL) == replace(FULL, partition_epoch=7)


def test_a_leader_raises_its_epoch_even_if_it_stays() -> None:
    assert changed(FULL, leader=1) == replace(FULL, partition_epoch=7, leader_epoch=5)
    assert changed(FULL, leader=-1) == replace(FULL, partition_epoch=7, leader_epoch=5, leader=-1)


def test_every_field_can_change() -> None:
    assert changed(
        FULL,
        isr=(),
        leader_recovery_state=RECOVERING,
        removing_replicas=(),
        adding_replicas=(),
        eligible_leader_replicas=(),
        last_known_elr=(1,),
        directories=(UNASSIGNED_DIR,) * 3,
    ) == replace(
        FULL,
        partition_epoch=7,
        isr=(),
        leader_recovery_state=RECOVERING,
        removing_replicas=(),
        adding_replicas=(),
        eligible_leader_replicas=(),
        last_known_elr=(1,),
        directories=(UNASSIGNED_DIR,) * 3,
    )


def test_replicas_take_their_directories_along_unless_the_record_says_where() -> None:
    assert changed(FULL, replicas=(3, 4)) == replace(
        FULL, partition_epoch=7, replicas=(3, 4), directories=(DIRS[2], MIGRATING_DIR)
    )
    assert changed(FULL, replicas=(4,), directories=(DIRS[0],)) == replace(
        FULL, partition_epoch=7, replicas=(4,), directories=(DIRS[0],)
    )


def test_clearing_eligible_replicas_touches_only_who_has_some() -> None:
    plain = replace(FULL, eligible_leader_replicas=(), last_known_elr=())
    only_last = replace(FULL, eligible_leader_replicas=())
    cleared = replace(plain, partition_epoch=7)
    delta = delta_with(FULL, plain, only_last)
    replay_clear_elr(delta, ClearElrRecord(topic_name="a"))
    image = delta.apply(LOG_BEGIN)
    assert dict(image.topics.partitions_of(TOPIC_ID)) == {0: cleared, 1: plain, 2: cleared}
    assert dict(image.topics.partitions_of(OTHER_ID)) == {0: FULL, 1: plain, 2: only_last}
    delta = MetadataDelta(image)
    replay_clear_elr(delta, ClearElrRecord(topic_name=""))
    image = delta.apply(LOG_BEGIN)
    assert dict(image.topics.partitions_of(OTHER_ID)) == dict(image.topics.partitions_of(TOPIC_ID))


def test_clearing_all_eligible_replicas_pauses_between_partitions_and_between_parts() -> None:
    many = 3 * SLICE_PARTITIONS
    delta = delta_with(*[FULL] * many)
    assert len(list(clear_elr_in_slices(delta, ClearElrRecord(topic_name="")))) == 6
    plain = replace(FULL, eligible_leader_replicas=(), last_known_elr=())
    delta = delta_with(*[plain] * (2 * SLICE_PARTITIONS * ROWS_MAX))
    assert len(list(clear_elr_in_slices(delta, ClearElrRecord(topic_name="")))) == 4
    # The other topic lies behind the first one.
    assert len(list(clear_elr_in_slices(delta, ClearElrRecord(topic_name="a")))) == 2


def test_what_cannot_be_is_an_error_that_names_it() -> None:
    delta = delta_with()
    with pytest.raises(ReplayError, match="topic 'a' has no partition 5 to change"):
        replay_partition_change(delta, PartitionChangeRecord(partition_id=5, topic_id=TOPIC_ID))
    with pytest.raises(ReplayError, match="no topic has the id"):
        replay_partition(delta, partition_record(TopicId(b"x" * 16), 0, FULL, level=30))
    with pytest.raises(ReplayError, match="the partition id -1 is not between 0 and 16777215"):
        replay_partition(delta, partition_record(TOPIC_ID, -1, FULL, level=30))
    with pytest.raises(ReplayError, match="3 directories for 1 replicas"):
        replay_partition(
            delta,
            replace(partition_record(TOPIC_ID, 0, FULL, level=30), replicas=(1,)),
        )
    with pytest.raises(ReplayError, match="there is no topic 'c' whose ELR"):
        replay_clear_elr(delta, ClearElrRecord(topic_name="c"))


@pytest.mark.parametrize(
    ("leader", "unclean", "eligible"),
    [(2, 0, 0), (3, 0, 1), (4, 1, 0), (-1, 0, 0), (1, 0, 0)],
    ids=["in sync", "eligible", "unclean", "nobody", "the same"],
)
def test_elections_are_counted_by_what_may_be_lost(
    leader: int, unclean: int, eligible: int
) -> None:
    delta = delta_with(replace(FULL, replicas=(1, 2, 3, 4), directories=(*DIRS, DIRS[0])))
    change = PartitionChangeRecord(partition_id=0, topic_id=TOPIC_ID, leader=leader)
    replay_partition_change(delta, change)
    tally = delta.apply(LOG_BEGIN).at(LOG_BEGIN).topics.tally
    assert (tally.unclean, tally.eligible) == (unclean, eligible)
    assert tally.offline == (leader == NO_LEADER)


def test_a_partition_that_is_set_anew_is_counted_once() -> None:
    delta = delta_with()
    offline = partition_record(TOPIC_ID, 0, replace(FULL, leader=NO_LEADER), level=30)
    for record in (offline, offline, partition_record(TOPIC_ID, 0, FULL, level=30)):
        replay_partition(delta, record)
    assert delta.apply(LOG_BEGIN).topics.tally.offline == 0
