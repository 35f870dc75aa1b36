"""Supported and finalized levels, metadata.version above all, and what each level allows.

The level of metadata.version determines the version in which each record is written; a log with a
level that this release does not know is rejected (rule `lossless_replay`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from quorate.controller.features.messages import FeatureRange
from quorate.records.metadata import (
    METADATA_VERSION_LATEST,
    METADATA_VERSION_MIN,
    UnknownRecord,
    encode_record,
    record_version,
)
from quorate.records.voters import KRAFT_VERSION, KRAFT_VERSION_MAX, KRAFT_VERSION_MIN

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from immutables import Map

    from quorate.records.metadata import MetadataRecord

METADATA_VERSION: Final = "metadata.version"
_ELIGIBLE_REPLICAS: Final = "eligible.leader.replicas.version"
# The features of Kafka 4.3 and the levels of each that this release supports.
SUPPORTED_FEATURES: Final = (
    FeatureRange(_ELIGIBLE_REPLICAS, 0, 1),
    FeatureRange("group.version", 0, 1),
    FeatureRange(KRAFT_VERSION, KRAFT_VERSION_MIN, KRAFT_VERSION_MAX),
    FeatureRange(METADATA_VERSION, METADATA_VERSION_MIN, METADATA_VERSION_LATEST),
    FeatureRange("share.version", 0, 1),
    FeatureRange("streams.version", 0, 1),
    FeatureRange("transaction.version", 0, 2),
)
# The first levels at which Kafka's records have the named fields (api-keys of 4.3.1).
ISR_SHRINK_KEEPS_EPOCH_LEVEL: Final = 12
DIRECTORIES_LEVEL: Final = 17
ELIGIBLE_REPLICAS_LEVEL: Final = 23
CORDONED_DIRECTORIES_LEVEL: Final = 30


def metadata_version(features: Map[str, int]) -> int:
    """The finalized level; the lowest existing one if the log has none."""
    return features.get(METADATA_VERSION, METADATA_VERSION_MIN)


def has_eligible_replicas(features: Map[str, int]) -> bool:
    """True if replicas out of sync may be eligible to lead (KIP-966)."""
    is_on = features.get(_ELIGIBLE_REPLICAS, 0) > 0
    return is_on and metadata_version(features) >= ELIGIBLE_REPLICAS_LEVEL


def encode_at(level: int, record: MetadataRecord) -> bytes:
    """The record's value in the version that this metadata.version requires.

    Raises SchemaError if that version cannot hold the record's values.
    """
    if isinstance(record, UnknownRecord):
        return encode_record(record, record.version)
    return encode_record(record, record_version(type(record), level))


def range_of(name: str, supported: Mapping[str, FeatureRange]) -> FeatureRange:
    """The levels of a feature that a node supports; only 0, its absence, if it lists none."""
    return supported.get(name, FeatureRange(name, 0, 0))


def registration_problem(features: Map[str, int], supported: Iterable[FeatureRange]) -> str | None:
    """The reason why a broker may not join the cluster, or None.

    A broker that does not know a finalized feature would terminate at the first record that needs
    it, so every finalized level must be in the range that it supports.
    """
    ranges = {feature.name: feature for feature in supported}
    for name, level in sorted(features.items()):
        known = range_of(name, ranges)
        if not known.min_level <= level <= known.max_level:
            return (
                f"The broker supports {name} from {known.min_level} to {known.max_level}, but the"
                f" cluster has finalised level {level}; run a broker release that supports it."
            )
    return None
