"""Features as a metadata kind."""

from __future__ import annotations

from typing import Final

from quorate.controller.features.records import feature_records, replay_feature_level
from quorate.controller.metadata_kind import MetadataKind
from quorate.records.metadata import FeatureLevelRecord

FEATURES: Final = MetadataKind(
    replay={FeatureLevelRecord: replay_feature_level}, snapshot=feature_records
)
