from __future__ import annotations

import numpy as np
import pytest

from quorate.controller.brokers.image import Brokers
from quorate.controller.partitions.leader_acceptor import LeaderAcceptor
from quorate.controller.partitions.partition import (
    LOST_DIR,
    MIGRATING_DIR,
    UNASSIGNED_DIR,
    Partition,
)
from quorate.controller.partitions.rows import PartitionRows
from quorate.records.ids import DirectoryId, TopicId
from tests.unit.controller.brokers.test_image import broker

ONE, TWO, SHARED, GONE = (DirectoryId(bytes([number]) * 16) for number in range(1, 5))


@pytest.fixture
def acceptor() -> LeaderAcceptor:
    """Of the active brokers 1 to 3, of which 3 has told no disks, and 4, which is fenced."""
    brokers = Brokers()
    for broker_id, log_dirs in ((1, (ONE, SHARED)), (2, (TWO, SHARED)), (3, ()), (4, ())):
        member = broker(broker_id, log_dirs=log_dirs, fenced=broker_id == 4)
        brokers = brokers.with_broker(member)
    return LeaderAcceptor.of(brokers)


def rows_of(*partitions: dict[int, DirectoryId]) -> PartitionRows:
    """Partitions with these replicas, all in sync."""
    made = []
    for key, directories in enumerate(partitions):
        ids = tuple(directories)
        values = tuple(directories.values())
        partition = Partition(replicas=ids, isr=ids, leader=-1, directories=values)
        made.append((key, TopicId(bytes(16)), partition))
    return PartitionRows.made(made)


@pytest.mark.parametrize(
    "partitions",
    [
        [],
        [{}],
        [{1: ONE, 2: TWO}, {2: TWO, 1: ONE}],
        # Rows of different widths, and directories that are always there.
        [{1: ONE, 2: TWO, 3: UNASSIGNED_DIR}, {2: MIGRATING_DIR}],
        [{1: MIGRATING_DIR}],
        [{1: SHARED}, {2: SHARED}, {3: SHARED}, {3: GONE}],
        # It is not active anyway.
        [{9: GONE}],
    ],
)
def test_nothing_is_offline(
    acceptor: LeaderAcceptor, partitions: list[dict[int, DirectoryId]]
) -> None:
    assert acceptor.offline(rows_of(*partitions)) is None


@pytest.mark.parametrize(
    ("directories", "expected"),
    [
        ({1: ONE, 2: TWO, 3: ONE}, {1, 2, 3}),
        ({1: TWO, 2: ONE, 3: LOST_DIR}, set()),
        ({1: GONE, 2: SHARED, 3: GONE}, {2, 3}),
        ({4: ONE, 1: LOST_DIR, 2: UNASSIGNED_DIR}, {2}),
        ({}, set()),
    ],
)
def test_replicas_are_accepted_one_by_one_and_in_rows(
    acceptor: LeaderAcceptor, directories: dict[int, DirectoryId], expected: set[int]
) -> None:
    rows = rows_of({1: ONE, 2: TWO, 3: UNASSIGNED_DIR, 4: ONE}, directories, {1: GONE})
    partition = rows.partition(1)
    assert {id_ for id_ in directories if acceptor.accepts(partition, id_)} == expected
    found = acceptor.may_lead(rows, rows.replicas.T)
    assert set(rows.replicas[1][found[:, 1]].tolist()) == expected


def test_a_broker_without_a_replica_has_no_directory_that_could_be_offline(
    acceptor: LeaderAcceptor,
) -> None:
    """A strange log may have it in the ISR."""
    rows = rows_of({2: GONE})
    asked = np.array([[1], [2], [4]], np.int32)
    assert acceptor.may_lead(rows, asked).tolist() == [[True], [False], [False]]
    accepted = [acceptor.accepts(rows.partition(0), id_) for id_ in (1, 2, 4)]
    assert accepted == [True, False, False]
