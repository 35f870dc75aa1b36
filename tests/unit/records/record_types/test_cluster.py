"""Bytes of the records about configs, features, quotas and transactions."""

from __future__ import annotations

from quorate.records.codec.compiler import codec_of
from quorate.records.record_types.cluster import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    ClientQuotaRecord,
    ConfigRecord,
    EndTransactionRecord,
    EntityData,
    FeatureLevelRecord,
    ProducerIdsRecord,
)


def test_a_config_without_value_is_a_removal() -> None:
    codec = codec_of(ConfigRecord, 0)
    record = ConfigRecord(resource_type=2, resource_name="t", name="k", value="v")
    removal = ConfigRecord(resource_type=2, resource_name="t", name="k", value=None)
    assert codec.encode(record).hex() == "02" + "0274" + "026b" + "0276" + "00"
    assert codec.encode(removal).hex() == "02" + "0274" + "026b" + "00" + "00"


def test_the_default_entity_of_a_quota_has_no_name() -> None:
    entity = (EntityData(entity_type="user", entity_name=None),)
    record = ClientQuotaRecord(entity=entity, key="k", value=0.5, remove=True)
    assert codec_of(ClientQuotaRecord, 0).encode(record).hex() == (
        "02" + "0575736572" + "00" + "00" + "026b" + "3fe0000000000000" + "01" + "00"
    )


def test_features_and_producer_ids_are_flat() -> None:
    level = FeatureLevelRecord(name="m", feature_level=30)
    ids = ProducerIdsRecord(broker_id=1, next_producer_id=1000)
    assert codec_of(FeatureLevelRecord, 0).encode(level).hex() == "026d" + "001e" + "00"
    assert codec_of(ProducerIdsRecord, 0).encode(ids).hex() == (
        "00000001" + "ff" * 8 + "00000000000003e8" + "00"
    )


def test_transactions_carry_their_names_under_a_tag() -> None:
    begin = codec_of(BeginTransactionRecord, 0)
    abort = codec_of(AbortTransactionRecord, 0)
    end = codec_of(EndTransactionRecord, 0)
    assert begin.encode(BeginTransactionRecord(name="x")).hex() == "01" + "0002" + "0278"
    assert begin.encode(BeginTransactionRecord()).hex() == "00"
    assert abort.encode(AbortTransactionRecord(reason="")).hex() == "01" + "0001" + "01"
    assert end.encode(EndTransactionRecord()).hex() == "00"
