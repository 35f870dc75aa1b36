from __future__ import annotations

from quorate.controller.features.levels import SUPPORTED_FEATURES
from quorate.controller.features.messages import FeatureRange
from quorate.controller.message_registry import SHAPES


def test_ranges_are_told_to_doors_and_by_them() -> None:
    assert SHAPES["FeatureRange"] is FeatureRange


def test_of_every_range_of_ours_the_lower_end_comes_first() -> None:
    names = [feature.name for feature in SUPPORTED_FEATURES]
    assert names == sorted(set(names))
    assert all(0 <= feature.min_level <= feature.max_level for feature in SUPPORTED_FEATURES)
