"""Derives the settings of storage, core and metadata controller from the process settings."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

from quorate.controller.decision import ControllerSettings
from quorate.raft.api import RaftConfig, check_quorum_timeout_ms
from quorate.records.ids import UUID_BYTES, TopicId
from quorate.server.timeouts import fetch_max_wait_ms, high_watermark_linger_ms
from quorate.storage.storage_config import StorageConfig

if TYPE_CHECKING:
    from collections.abc import Callable

    from quorate.server.config import ControllerConfig
    from quorate.storage.meta_properties import MetaProperties


def storage_config(config: ControllerConfig) -> StorageConfig:
    """Settings of the log directory: node, static voters, segment size and retention."""
    return StorageConfig(
        node_id=config.node_id,
        static_voters=config.quorum.voters,
        segment_bytes=config.log.segment_bytes,
        retention_bytes=config.log.retention_bytes,
        retention_ms=config.log.retention_ms,
    )


def raft_config(config: ControllerConfig, meta: MetaProperties) -> RaftConfig:
    """Settings of the core: its identity from the directory, timeouts and sizes."""
    quorum = config.quorum
    return RaftConfig(
        node_id=config.node_id,
        directory_id=meta.directory_id,
        cluster_id=meta.cluster_id,
        listener_name=config.peers.name,
        endpoints=config.endpoints,
        bootstrap_servers=quorum.bootstrap_servers,
        election_timeout_ms=quorum.election_timeout_ms,
        fetch_timeout_ms=quorum.fetch_timeout_ms,
        election_backoff_max_ms=quorum.election_backoff_max_ms,
        request_timeout_ms=quorum.request_timeout_ms,
        retry_backoff_ms=quorum.retry_backoff_ms,
        fetch_max_wait_ms=fetch_max_wait_ms(quorum),
        high_watermark_linger_ms=high_watermark_linger_ms(quorum),
        fetch_max_bytes=quorum.fetch_max_bytes,
        fetch_snapshot_max_bytes=quorum.fetch_snapshot_max_bytes,
        auto_join=quorum.auto_join,
    )


def pause_ms(config: ControllerConfig) -> int:
    """The blockage of the event loop (ms) that counts as a pause and may end a session."""
    return min(
        check_quorum_timeout_ms(config.quorum.fetch_timeout_ms), config.broker_session_timeout_ms
    )


def controller_settings(
    config: ControllerConfig,
    meta: MetaProperties,
    new_topic_id: Callable[[], TopicId] = lambda: TopicId(secrets.token_bytes(UUID_BYTES)),
) -> ControllerSettings:
    """Settings of the metadata controller's decisions."""
    return ControllerSettings(
        cluster_id=meta.cluster_id,
        new_topic_id=new_topic_id,
        num_partitions=config.num_partitions,
        default_replication_factor=config.default_replication_factor,
        broker_session_timeout_ms=config.broker_session_timeout_ms,
        auto_leader_rebalance_enable=config.auto_leader_rebalance_enable,
        leader_imbalance_check_interval_ms=config.leader_imbalance_check_interval_ms,
        authorizer=None if config.access is None else config.access.authorizer,
    )
