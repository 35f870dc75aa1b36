"""Gauges read from the driver and from the committed image at scrape time.

The cost does not grow with the number of partitions: those are counted as they change
(controller/topics/image.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.controller.features.levels import METADATA_VERSION
from quorate.raft.metrics import raft_metrics

if TYPE_CHECKING:
    from quorate.controller.image import LogPosition, MetadataImage
    from quorate.controller.partitions.partition import PartitionCounts
    from quorate.records.ids import Millis, Offset
    from quorate.server.driver.raft_driver import RaftDriver
    from quorate.server.metrics.raft_meters import RaftMeters
    from quorate.telemetry.metrics import Value


def driver_gauges(driver: RaftDriver, meters: RaftMeters) -> dict[str, Value]:
    """Values of the consensus, its log and its disk."""
    log, times = driver.store.log, driver.access.flushing.times
    replica = driver.core.replica
    oldest = driver.access.calls.oldest()
    return {
        **raft_metrics(replica, driver.host.monotonic_ms()),
        "kraft_version": replica.log.committed_kraft_version(replica.high_watermark),
        "append_records_total": meters.appended_records,
        "fetch_records_total": meters.fetched_records,
        "new_active_controllers_total": meters.new_leaders,
        "last_election_won_timestamp_seconds": meters.last_won,
        "commit_latency_seconds": meters.commits,
        "election_latency_seconds": meters.elections,
        "log_end_offset": log.end.offset,
        "log_end_epoch": log.end.epoch,
        "log_start_offset": log.log_start,
        "log_flushed_offset": log.flushed_end.offset,
        "log_size_bytes": log.segments.size_bytes,
        "flush_duration_seconds": times.durations,
        "flush_p99_seconds": times.quantile_s(0.99),
        "disk_call_age_seconds": 0.0 if oldest is None else oldest.age_s,
    }


def image_gauges(image: MetadataImage, caught_up: PartitionCounts | None) -> dict[str, Value]:
    """Values of the committed metadata; `caught_up` is the tally at catch-up, None before.

    Elections before the catch-up are not counted: a scraper would take them for new ones, since
    the counter starts at 0.
    """
    brokers, tally = image.brokers, image.topics.tally
    before = caught_up or tally
    features = {name: float(level) for name, level in image.features.items()}
    return {
        "global_topics": len(image.topics.by_id),
        "global_partitions": image.topics.partition_count,
        "offline_partitions": tally.offline,
        "preferred_replica_imbalance": tally.imbalanced,
        "unclean_leader_elections_total": tally.unclean - before.unclean,
        "elections_from_eligible_leader_replicas_total": tally.eligible - before.eligible,
        "active_brokers": len(brokers.by_id) - brokers.fenced_count,
        "fenced_brokers": brokers.fenced_count,
        "controlled_shutdown_brokers": brokers.shutting_down_count,
        "current_metadata_version": features.get(METADATA_VERSION, 0.0),
        "finalized_level": features,
    }


def applied_offset_gauges(
    position: LogPosition,
    high_watermark: Offset | None,
    told: Offset | None,
    *,
    wall_ms: int,
    silence_ms: Millis,
) -> dict[str, Value]:
    """The metadata's progress along the log; -1 means no record yet, as in Kafka.

    `told` is the offset that a leader reported committed. `silence_ms` is the time without a
    leader, whose commits are unknown: the metadata may be as old as that.
    """
    committed = max(position.end_offset, high_watermark or 0, told or 0)
    is_behind = position.end_offset < committed and position.timestamp_ms > 0
    lag_ms = max(silence_ms, wall_ms - position.timestamp_ms if is_behind else 0)
    return {
        "last_applied_record_offset": position.end_offset - 1,
        "last_applied_record_timestamp_seconds": position.timestamp_ms / 1000,
        "last_applied_record_lag_seconds": lag_ms / 1000,
        "last_committed_record_offset": committed - 1,
        "metadata_log_lag": committed - position.end_offset,
    }
