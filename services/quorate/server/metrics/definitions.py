"""Name, help text and label of every controller metric, without the prefix `quorate_`.

docs/metrics.md lists all of them. Names are Kafka's if Kafka has the metric, in snake case and with
their unit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from quorate.telemetry.metrics import PROCESS_METERS, MetricDefinition

if TYPE_CHECKING:
    from collections.abc import Mapping

_RAFT: Final = {
    "current_state": MetricDefinition("1 for the role that it has, 0 for the others", "state"),
    "current_leader": MetricDefinition("Node id of the leader, -1 for nobody"),
    "current_vote": MetricDefinition("Node id that it voted for in this epoch, -1 for nobody"),
    "current_vote_directory_id": MetricDefinition(
        "1 for the directory that it voted for in this epoch; absent without a vote",
        "directory_id",
    ),
    "current_epoch": MetricDefinition("Epoch of the quorum"),
    "high_watermark": MetricDefinition("Below this offset everything is committed"),
    "kraft_version": MetricDefinition("Committed kraft.version"),
    "number_unknown_voter_connections": MetricDefinition("Other voters whose address is not known"),
    "number_of_voters": MetricDefinition("Voters of the latest set"),
    "number_of_observers": MetricDefinition("Observers that fetch; at the leader only"),
    "number_of_offline_voters": MetricDefinition(
        "Other voters that have not fetched for the fetch timeout; at the leader only"
    ),
    "uncommitted_voter_change": MetricDefinition(
        "1 while a change of the voters is not committed; at the leader only"
    ),
    "pending_voter_changes": MetricDefinition(
        "1 for the kind of voter change that is requested and not committed; leader only", "kind"
    ),
    "is_voter": MetricDefinition("1 where the latest set of voters has this controller"),
    "ignored_static_voters": MetricDefinition(
        "1 where controller.quorum.voters is set and kraft.version no longer needs it"
    ),
    "leader_contradictions_total": MetricDefinition(
        "Answers of leaders that cannot be true, and second leaders of an epoch"
    ),
    "append_records_total": MetricDefinition("Records that it appended as the leader"),
    "fetch_records_total": MetricDefinition("Records that it fetched from a leader"),
    "new_active_controllers_total": MetricDefinition(
        "Leaders that it came to know, itself included"
    ),
    "last_election_won_timestamp_seconds": MetricDefinition(
        "Time of the last election that this controller won, by the cause that began it; "
        "absent before the first",
        "cause",
    ),
    "commit_latency_seconds": MetricDefinition(
        "From the append of a batch to its commit, at the leader"
    ),
    "election_latency_seconds": MetricDefinition(
        "From the first request for votes to a leader, where it asked for votes itself"
    ),
    "poll_idle_ratio": MetricDefinition(
        "Share of the last half minute in which the event loop was idle"
    ),
}
_LOG: Final = {
    "log_end_offset": MetricDefinition("Offset behind the last record of the log"),
    "log_end_epoch": MetricDefinition("Epoch of the last record of the log"),
    "log_start_offset": MetricDefinition("First offset that the log still has"),
    "log_flushed_offset": MetricDefinition("Below this offset everything is on the disk"),
    "log_size_bytes": MetricDefinition("Bytes of the log's segments"),
    "flush_duration_seconds": MetricDefinition("One flush of the log"),
    "flush_p99_seconds": MetricDefinition("What 99 of the last 100 flushes did not exceed, of 256"),
    "disk_call_age_seconds": MetricDefinition(
        "For how long the oldest call to the disk has not returned"
    ),
    "disk_free_bytes": MetricDefinition(
        "Free space where the log lies, looked at every five seconds"
    ),
}
_CONTROLLER: Final = {
    "active_controller": MetricDefinition(
        "1 where it leads and takes writes", old="active_controller_count"
    ),
    "is_ready": MetricDefinition("1 while the readiness probe is answered with yes"),
    "event_queue_size": MetricDefinition(
        "Requests that wait for their decision, or are in the middle of it"
    ),
    "event_queue_operations_started_total": MetricDefinition("Requests that it was to decide"),
    "event_queue_processing_time_seconds": MetricDefinition(
        "From the first look at a request to its end"
    ),
    "event_queue_time_seconds": MetricDefinition(
        "How long a request waited for the decision of others, where one was under way"
    ),
    "metadata_errors_total": MetricDefinition(
        "Requests and sessions that could not be decided by a defect"
    ),
    "timed_out_broker_heartbeats_total": MetricDefinition(
        "Brokers that it fenced for their silence"
    ),
    "last_applied_record_offset": MetricDefinition(
        "Last offset that its metadata reflects, -1 for none"
    ),
    "last_applied_record_timestamp_seconds": MetricDefinition(
        "When the last such record was appended"
    ),
    "last_applied_record_lag_seconds": MetricDefinition(
        "Age of the last such record while more are known to be committed; at least the time "
        "without an answer of a leader, where that exceeds the fetch timeout"
    ),
    "last_committed_record_offset": MetricDefinition(
        "Last offset known to be committed, -1 for none"
    ),
    "metadata_log_lag": MetricDefinition(
        "Known committed records that its metadata does not reflect yet"
    ),
    "replay_duration_seconds": MetricDefinition(
        "From one read of the log to its being part of the metadata"
    ),
    "event_loop_standing_seconds": MetricDefinition(
        "For how long nobody has been answered; 0 below a second"
    ),
    "event_loop_stalls_total": MetricDefinition(
        "How often nobody was answered for a second or more"
    ),
    "refused_connections_total": MetricDefinition(
        "Connections that were refused for their number, in all or of one address; h2 only"
    ),
    "failed_tls_handshakes_total": MetricDefinition(
        "TLS handshakes that failed or took too long; h2 only"
    ),
    "certificate_expiry_timestamp_seconds": MetricDefinition(
        "When its own certificate ends; with TLS only"
    ),
}
_METADATA: Final = {
    "global_topics": MetricDefinition("Topics", old="global_topic_count"),
    "global_partitions": MetricDefinition("Partitions", old="global_partition_count"),
    "offline_partitions": MetricDefinition(
        "Partitions without a leader", old="offline_partitions_count"
    ),
    "preferred_replica_imbalance": MetricDefinition(
        "Partitions that their first replica does not lead", old="preferred_replica_imbalance_count"
    ),
    "unclean_leader_elections_total": MetricDefinition(
        "Leaders of partitions that may lack records, since it caught up"
    ),
    "elections_from_eligible_leader_replicas_total": MetricDefinition(
        "Leaders of partitions that were out of sync and lack nothing, since it caught up"
    ),
    "active_brokers": MetricDefinition("Brokers that are not fenced", old="active_broker_count"),
    "fenced_brokers": MetricDefinition("Brokers that are fenced", old="fenced_broker_count"),
    "controlled_shutdown_brokers": MetricDefinition(
        "Brokers on their way out that are not fenced yet", old="controlled_shutdown_broker_count"
    ),
    "current_metadata_version": MetricDefinition("Level of metadata.version"),
    "finalized_level": MetricDefinition(
        "Level of each finalised feature in the metadata", "feature"
    ),
}
_SNAPSHOTS: Final = {
    "snapshot_generation_duration_seconds": MetricDefinition(
        "One snapshot, from its beginning to its flush"
    ),
    "latest_snapshot_generated_age_seconds": MetricDefinition(
        "Since the last snapshot that it generated; absent before the first of this life"
    ),
    "latest_snapshot_generated_bytes": MetricDefinition("Size of that one"),
    "handle_load_snapshot_total": MetricDefinition("Snapshots that it loaded"),
}
CONTROLLER_METERS: Final[Mapping[str, MetricDefinition]] = {
    **_RAFT,
    **_LOG,
    **_CONTROLLER,
    **_METADATA,
    **_SNAPSHOTS,
    **PROCESS_METERS,
}
