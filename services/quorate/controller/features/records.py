"""Records of features: how one changes the state, and what a snapshot says of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.controller.errors import UnsupportedMetadataVersionError
from quorate.controller.features.levels import METADATA_VERSION
from quorate.records.metadata import (
    METADATA_VERSION_LATEST,
    METADATA_VERSION_MIN,
    FeatureLevelRecord,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from quorate.controller.image import MetadataDelta, MetadataImage


def replay_feature_level(delta: MetadataDelta, record: FeatureLevelRecord) -> None:
    """Finalise a level; zero takes the feature back.

    Raises UnsupportedMetadataVersionError for a metadata.version that this release cannot read.
    """
    level = record.feature_level
    if record.name == METADATA_VERSION and not (
        METADATA_VERSION_MIN <= level <= METADATA_VERSION_LATEST
    ):
        raise UnsupportedMetadataVersionError(
            f"the log sets metadata.version to {level}, and this release knows"
            f" {METADATA_VERSION_MIN} to {METADATA_VERSION_LATEST}; run a release that knows it"
        )
    if level:
        delta.features = delta.features.set(record.name, level)
    elif record.name in delta.features:
        delta.features = delta.features.delete(record.name)


def feature_records(image: MetadataImage) -> Iterator[FeatureLevelRecord]:
    """metadata.version first: it says how to read the rest."""
    names = sorted(image.features, key=lambda name: (name != METADATA_VERSION, name))
    for name in names:
        yield FeatureLevelRecord(name=name, feature_level=image.features[name])
