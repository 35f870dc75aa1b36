from __future__ import annotations

from dataclasses import replace

from quorate.records.ids import ClusterId, DirectoryId, NodeId
from quorate.server.component_config import (
    controller_settings,
    pause_ms,
    raft_config,
    storage_config,
)
from quorate.server.config import read_config
from quorate.storage.meta_properties import MetaProperties

META = MetaProperties(NodeId(7), ClusterId("c"), DirectoryId(b"\x07" * 16))
CONFIG = read_config(
    {
        "node.id": "7",
        "metadata.log.dir": "/data",
        "listeners": "GRPC://:9094",
        "advertised.listeners": "GRPC://seven:9094",
        "controller.quorum.bootstrap.servers": "one:9094",
        "controller.quorum.fetch.timeout.ms": "400",
        "controller.quorum.retry.backoff.ms": "7",
        "metadata.log.segment.bytes": "2048",
        "metadata.max.retention.bytes": "-1",
        "broker.session.timeout.ms": "77",
    },
    {},
)


def test_the_core_is_who_its_directory_says_and_where_it_is_advertised() -> None:
    told = raft_config(CONFIG, META)
    assert (told.node_id, told.directory_id) == (7, META.directory_id)
    assert [(e.name, e.host, e.port) for e in told.endpoints] == [("GRPC", "seven", 9094)]
    assert told.listener_name == "GRPC"
    assert told.bootstrap_servers == (("one", 9094),)


def test_waits_follow_from_the_timeouts() -> None:
    told = raft_config(CONFIG, META)
    assert (told.fetch_timeout_ms, told.retry_backoff_ms) == (400, 7)
    assert (told.fetch_max_wait_ms, told.high_watermark_linger_ms) == (100, 10)


def test_a_loop_pauses_for_longer_than_a_session_or_a_leader_is_waited_for() -> None:
    assert pause_ms(CONFIG) == 77
    assert pause_ms(replace(CONFIG, broker_session_timeout_ms=9000)) == 600


def test_storage_is_told_what_to_keep() -> None:
    told = storage_config(CONFIG)
    assert (told.node_id, told.segment_bytes, told.retention_bytes) == (7, 2048, -1)


def test_topics_get_ids_that_nobody_can_guess_unless_they_are_given() -> None:
    drawn = controller_settings(CONFIG, META)
    assert drawn.broker_session_timeout_ms == 77
    assert len({drawn.new_topic_id() for _ in range(3)}) == 3
