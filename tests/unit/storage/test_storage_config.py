"""Settings of storage: Kafka's defaults if Kafka has them."""

from __future__ import annotations

from quorate.records.ids import NodeId
from quorate.storage.storage_config import StorageConfig


def test_what_is_not_said_is_as_in_kafka() -> None:
    config = StorageConfig(node_id=NodeId(1))
    assert config.segment_bytes == 1 << 30, "metadata.log.segment.bytes"
    assert config.retention_bytes == 100 << 20, "metadata.max.retention.bytes"
    assert config.retention_ms == 604_800_000, "metadata.max.retention.ms"
    assert (config.cluster_id, config.directory_id) == (None, None), "compared where given"
