"""Bytes of the records about brokers and controllers, version by version."""

from __future__ import annotations

import pytest

from quorate.records.codec.compiler import codec_of
from quorate.records.codec.schema import SchemaError
from quorate.records.ids import DirectoryId
from quorate.records.record_types.brokers import (
    BrokerEndpoint,
    BrokerFeature,
    BrokerRegistrationChangeRecord,
    ControllerEndpoint,
    ControllerFeature,
    FenceBrokerRecord,
    RegisterBrokerRecord,
    RegisterControllerRecord,
    UnfenceBrokerRecord,
)

DIRECTORY = DirectoryId(b"d" * 16)
INCARNATION = b"i" * 16
LISTENER = "0241" + "0268" + "c350" + "0000" + "00"
FEATURE = "0266" + "0001" + "0019" + "00"


def test_a_registration_grows_from_version_to_version() -> None:
    record = RegisterBrokerRecord(
        broker_id=7,
        incarnation_id=INCARNATION,
        broker_epoch=9,
        end_points=(BrokerEndpoint(name="A", host="h", port=50_000, security_protocol=0),),
        features=(BrokerFeature(name="f", min_supported_version=1, max_supported_version=25),),
        rack=None,
    )
    head, migrating, rest = "00000007", "00", INCARNATION.hex() + "0000000000000009"
    tail = "02" + LISTENER + "02" + FEATURE + "00" + "01"
    assert [
        codec_of(RegisterBrokerRecord, version).encode(record).hex() for version in range(5)
    ] == [
        head + rest + tail + "00",
        head + rest + tail + "00" + "00",
        head + migrating + rest + tail + "00" + "00",
        head + migrating + rest + tail + "00" + "00",
        head + migrating + rest + tail + "00" + "00",
    ]


def test_a_change_of_registration_is_refused_by_a_version_without_the_field() -> None:
    change = BrokerRegistrationChangeRecord(
        broker_id=7, broker_epoch=9, fenced=-1, cordoned_log_dirs=(DIRECTORY,)
    )
    encoded = codec_of(BrokerRegistrationChangeRecord, 3).encode(change)
    assert encoded.hex() == "00000007" + "0000000000000009" + "02" + "0001ff" + (
        "0311" + "02" + DIRECTORY.hex()
    )
    with pytest.raises(SchemaError, match="version 2 has no such field"):
        codec_of(BrokerRegistrationChangeRecord, 2).encode(change)


def test_a_controller_registers_listeners_and_features() -> None:
    record = RegisterControllerRecord(
        controller_id=7,
        incarnation_id=INCARNATION,
        end_points=(ControllerEndpoint(name="A", host="h", port=50_000, security_protocol=0),),
        features=(ControllerFeature(name="f", min_supported_version=1, max_supported_version=25),),
    )
    assert codec_of(RegisterControllerRecord, 0).encode(record).hex() == (
        "00000007" + INCARNATION.hex() + "00" + "02" + LISTENER + "02" + FEATURE + "00"
    )


def test_old_logs_fence_and_unfence_by_records_of_their_own() -> None:
    for cls in (FenceBrokerRecord, UnfenceBrokerRecord):
        record = cls(id=1, epoch=2)
        encoded = codec_of(cls, 0).encode(record)
        assert encoded.hex() == "00000001" + "0000000000000002" + "00"
