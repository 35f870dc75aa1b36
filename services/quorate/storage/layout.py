"""File names in the metadata log directory: Kafka's and ours.

Files of ours lie outside `__cluster_metadata-0`, so that Kafka's tools find only files they know
there.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from quorate.records.ids import Epoch, Offset, OffsetAndEpoch

META_PROPERTIES: Final = "meta.properties"
BOOTSTRAP_CHECKPOINT: Final = "bootstrap.checkpoint"
FLUSHED_END: Final = "flushed-end"
HEALING: Final = "healing"
RIVAL: Final = "rival"
FIRST_BOOTSTRAP: Final = "first-bootstrap"
FOUNDING: Final = "founding"
POD_DOMAIN: Final = "pod-domain"
RESCUE: Final = "rescue"
LOCK: Final = ".lock"

LOG_DIR: Final = "__cluster_metadata-0"
QUORUM_STATE: Final = "quorum-state"
EPOCH_CHECKPOINT: Final = "leader-epoch-checkpoint"
PARTITION_METADATA: Final = "partition.metadata"

LOG_SUFFIX: Final = ".log"
CHECKPOINT_SUFFIX: Final = ".checkpoint"
PART_SUFFIX: Final = ".part"
DELETED_SUFFIX: Final = ".deleted"
TEMPORARY_SUFFIX: Final = ".tmp"
DAMAGED_SUFFIX: Final = ".damaged"
# Kafka keeps these next to a segment and rebuilds them at each start; here they would become stale.
INDEX_SUFFIXES: Final = (".index", ".timeindex", ".txnindex", ".snapshot")

BOOTSTRAP_ID: Final = OffsetAndEpoch(epoch=Epoch(0), offset=Offset(0))

_SEGMENT: Final = re.compile(r"(\d{20})\.log")
_CHECKPOINT: Final = re.compile(r"(\d{20})-(\d{10})\.checkpoint")


def rescue_record_name(epoch: int) -> str:
    """Name the record of a quorum recovery that led to that epoch, as `rescue-1005.json`."""
    return f"{RESCUE}-{epoch}.json"


def segment_name(base_offset: int) -> str:
    """`00000000000000000516.log` for the segment whose first record is 516."""
    return f"{base_offset:020d}{LOG_SUFFIX}"


def parse_segment(name: str) -> Offset | None:
    """Parse the base offset in a segment's name; None for any other file."""
    match = _SEGMENT.fullmatch(name)
    return Offset(int(match[1])) if match else None


# Cached: a log directory has the same few snapshots each time it is listed.
@lru_cache(maxsize=256)
def checkpoint_name(snapshot_id: OffsetAndEpoch) -> str:
    """`00000000000000000516-0000000001.checkpoint` for the snapshot below 516 in epoch 1."""
    return f"{snapshot_id.offset:020d}-{snapshot_id.epoch:010d}{CHECKPOINT_SUFFIX}"


@lru_cache(maxsize=256)
def parse_checkpoint(name: str) -> OffsetAndEpoch | None:
    """Parse the id in a snapshot's name; None for any other file."""
    match = _CHECKPOINT.fullmatch(name)
    if match is None:
        return None
    return OffsetAndEpoch(epoch=Epoch(int(match[2])), offset=Offset(int(match[1])))
