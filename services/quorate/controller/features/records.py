"""Converts feature-level records to state and back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from quorate.controller.errors import UnsupportedMetadataVersionError
from quorate.controller.features.levels import METADATA_VERSION, SUPPORTED_FEATURES, range_of
from quorate.records.metadata import FeatureLevelRecord
from quorate.records.voters import KRAFT_VERSION

if TYPE_CHECKING:
    from collections.abc import Iterator

    from quorate.controller.image import MetadataDelta, MetadataImage

_SUPPORTED: Final = {feature.name: feature for feature in SUPPORTED_FEATURES}


def replay_feature_level(delta: MetadataDelta, record: FeatureLevelRecord) -> None:
    """Finalize a level; zero removes the feature. kraft.version is ignored: raft handles it.

    Raises UnsupportedMetadataVersionError for a level that this release does not support.
    """
    name, level = record.name, record.feature_level
    if name == KRAFT_VERSION:
        return
    known = range_of(name, _SUPPORTED)
    if not known.min_level <= level <= known.max_level:
        raise UnsupportedMetadataVersionError(
            f"the log sets {name} to {level}, and this release knows"
            f" {known.min_level} to {known.max_level}; run a release that knows it"
        )
    if level:
        delta.features = delta.features.set(name, level)
    elif name in delta.features:
        delta.features = delta.features.delete(name)


def feature_records(image: MetadataImage) -> Iterator[FeatureLevelRecord]:
    """metadata.version first: it determines how the rest is read."""
    names = sorted(image.features, key=lambda name: (name != METADATA_VERSION, name))
    for name in names:
        yield FeatureLevelRecord(name=name, feature_level=image.features[name])
