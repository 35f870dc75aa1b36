"""Settings of a metadata log directory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.raft.replication.log_state import NO_VOTERS
from quorate.records.value_types import keyword_value_type

if TYPE_CHECKING:
    from quorate.records.ids import ClusterId, DirectoryId, NodeId
    from quorate.records.voters import VoterSet


@keyword_value_type
class StorageConfig:
    """The expected identity of the directory, and Kafka's `metadata.*` settings for storage.

    `cluster_id` and `directory_id` are compared if they are given. `static_voters` are those of
    controller.quorum.voters, for quorums of kraft.version 0. A directory without an id gets the one
    under which its log was written, otherwise `new_directory_id`; without both it is refused.
    """

    node_id: NodeId
    cluster_id: ClusterId | None = None
    directory_id: DirectoryId | None = None
    new_directory_id: DirectoryId | None = None
    static_voters: VoterSet = NO_VOTERS
    segment_bytes: int = 1024 * 1024 * 1024
    cache_bytes: int = 4 * 1024 * 1024
    retention_bytes: int = 100 * 1024 * 1024
    retention_ms: int = 7 * 24 * 60 * 60 * 1000
