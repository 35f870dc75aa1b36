from __future__ import annotations

import pytest
from immutables import Map

from quorate.controller.brokers.messages import FeatureRange
from quorate.controller.errors import UnsupportedMetadataVersionError
from quorate.controller.features import (
    SUPPORTED_FEATURES,
    encode_at,
    metadata_version,
    registration_problem,
    replay_feature_level,
)
from quorate.controller.image import LOG_BEGIN, MetadataDelta, MetadataImage
from quorate.records.metadata import (
    BrokerRegistrationChangeRecord,
    FeatureLevelRecord,
    UnknownRecord,
    decode_record,
)


def replayed(*levels: tuple[str, int]) -> Map[str, int]:
    delta = MetadataDelta(MetadataImage())
    for name, level in levels:
        replay_feature_level(delta, FeatureLevelRecord(name=name, feature_level=level))
    return delta.apply(LOG_BEGIN).features


def test_the_newest_level_counts_and_zero_takes_a_feature_back() -> None:
    assert replayed(("a", 1), ("b", 2), ("a", 3), ("b", 0), ("c", 0)) == Map(a=3)


def test_a_log_without_metadata_version_has_the_lowest() -> None:
    assert metadata_version(Map()) == 7
    assert metadata_version(replayed(("metadata.version", 30))) == 30


@pytest.mark.parametrize("level", [0, 6, 31])
def test_rule_22_a_metadata_version_that_is_not_known_is_refused(level: int) -> None:
    with pytest.raises(UnsupportedMetadataVersionError, match=f"to {level}, and this release"):
        replayed(("metadata.version", level))


def test_a_broker_must_support_every_finalised_level() -> None:
    finalised = Map({"metadata.version": 25, "group.version": 1})
    assert registration_problem(finalised, SUPPORTED_FEATURES) is None
    assert registration_problem(Map(), ()) is None
    assert registration_problem(
        finalised, (FeatureRange("metadata.version", 7, 25), FeatureRange("group.version", 2, 3))
    ) == (
        "The broker supports group.version from 2 to 3, but the cluster has finalised level 1; run"
        " a broker release that supports it."
    )
    assert registration_problem(finalised, SUPPORTED_FEATURES[:2]) == (
        "The broker supports metadata.version from 0 to 0, but the cluster has finalised level 25;"
        " run a broker release that supports it."
    )


@pytest.mark.parametrize(("level", "version"), [(7, 1), (17, 2), (30, 3)])
def test_the_level_chooses_the_version_of_a_record(level: int, version: int) -> None:
    record = BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=2, fenced=1)
    assert decode_record(encode_at(level, record)) == (record, version)


def test_an_unknown_record_keeps_its_version() -> None:
    record = UnknownRecord(99, 3, b"body")
    assert decode_record(encode_at(7, record)) == (record, 3)
