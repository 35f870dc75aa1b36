from __future__ import annotations

from immutables import Map

from quorate.controller.features.kind import FEATURES
from quorate.controller.image import MetadataImage
from quorate.records.metadata import FeatureLevelRecord


def test_what_is_replayed_is_what_a_snapshot_holds() -> None:
    image = MetadataImage(features=Map({"metadata.version": 30}))
    (record,) = FEATURES.snapshot(image)
    assert record == FeatureLevelRecord(name="metadata.version", feature_level=30)
    assert type(record) in FEATURES.replay
