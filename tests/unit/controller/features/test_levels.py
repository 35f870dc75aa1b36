from __future__ import annotations

import pytest
from immutables import Map

from quorate.controller.features.levels import (
    SUPPORTED_FEATURES,
    encode_at,
    metadata_version,
    registration_problem,
)
from quorate.controller.features.messages import FeatureRange
from quorate.records.metadata import (
    BrokerRegistrationChangeRecord,
    UnknownRecord,
    decode_record,
)


def test_a_log_without_metadata_version_has_the_lowest() -> None:
    assert metadata_version(Map()) == 7
    assert metadata_version(Map({"metadata.version": 30})) == 30


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
