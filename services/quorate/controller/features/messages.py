"""Types that requests use for feature ranges."""

from __future__ import annotations

from quorate.records.value_types import value_type


@value_type
class FeatureRange:
    """The levels of a feature that a node supports, both ends included."""

    name: str
    min_level: int
    max_level: int
