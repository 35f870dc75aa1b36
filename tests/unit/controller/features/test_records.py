from __future__ import annotations

import pytest
from immutables import Map

from quorate.controller.errors import UnsupportedMetadataVersionError
from quorate.controller.features.records import feature_records, replay_feature_level
from quorate.controller.image import LOG_BEGIN, MetadataDelta, MetadataImage
from quorate.records.metadata import (
    FeatureLevelRecord,
)


def replayed(*levels: tuple[str, int]) -> Map[str, int]:
    delta = MetadataDelta(MetadataImage())
    for name, level in levels:
        replay_feature_level(delta, FeatureLevelRecord(name=name, feature_level=level))
    return delta.apply(LOG_BEGIN).features


def test_the_newest_level_counts_and_zero_takes_a_feature_back() -> None:
    assert replayed(("a", 1), ("b", 2), ("a", 3), ("b", 0), ("c", 0)) == Map(a=3)


@pytest.mark.parametrize("level", [0, 6, 31])
def test_rule_22_a_metadata_version_that_is_not_known_is_refused(level: int) -> None:
    with pytest.raises(UnsupportedMetadataVersionError, match=f"to {level}, and this release"):
        replayed(("metadata.version", level))


def test_a_snapshot_begins_with_the_level_that_says_how_to_read_it() -> None:
    image = MetadataImage(features=replayed(("z", 1), ("metadata.version", 30), ("a", 2)))
    named = [(record.name, record.feature_level) for record in feature_records(image)]
    assert named == [("metadata.version", 30), ("a", 2), ("z", 1)]
