from __future__ import annotations

import pytest
from immutables import Map

from quorate.controller.errors import UnsupportedMetadataVersionError
from quorate.controller.features.records import feature_records, replay_feature_level
from quorate.controller.image import LOG_BEGIN, MetadataDelta, MetadataImage
from quorate.records.metadata import (
    FeatureLevelRecord,
)

TRANSACTIONS = "transaction.version"
GROUPS = "group.version"


def replayed(*levels: tuple[str, int]) -> Map[str, int]:
    delta = MetadataDelta(MetadataImage())
    for name, level in levels:
        replay_feature_level(delta, FeatureLevelRecord(name=name, feature_level=level))
    return delta.apply(LOG_BEGIN).features


def test_the_newest_level_counts_and_zero_takes_a_feature_back() -> None:
    levels = [(TRANSACTIONS, 1), (GROUPS, 1), (TRANSACTIONS, 2), (GROUPS, 0), ("unknown", 0)]
    assert replayed(*levels) == Map({TRANSACTIONS: 2})


@pytest.mark.rule("lossless_replay")
@pytest.mark.parametrize(
    ("name", "level", "known"),
    [
        ("metadata.version", 0, "7 to 30"),
        ("metadata.version", 6, "7 to 30"),
        ("metadata.version", 31, "7 to 30"),
        ("group.version", 2, "0 to 1"),
        ("group.version", -1, "0 to 1"),
        ("unknown", 1, "0 to 0"),
    ],
)
def test_a_level_that_is_not_known_is_refused(name: str, level: int, known: str) -> None:
    problem = f"the log sets {name} to {level}, and this release knows {known};"
    with pytest.raises(UnsupportedMetadataVersionError, match=problem):
        replayed((name, level))


def test_kraft_version_is_no_feature_of_the_metadata() -> None:
    assert replayed(("kraft.version", 1)) == Map()


def test_a_snapshot_begins_with_the_level_that_says_how_to_read_it() -> None:
    image = MetadataImage(
        features=replayed((TRANSACTIONS, 1), ("metadata.version", 30), (GROUPS, 1))
    )
    named = [(record.name, record.feature_level) for record in feature_records(image)]
    assert named == [("metadata.version", 30), (GROUPS, 1), (TRANSACTIONS, 1)]
