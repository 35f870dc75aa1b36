"""Trace ids derived from cluster id and epoch: one trace for the election of each epoch.

Contenders for one epoch, and their voters, add to one trace without coordination, and
`quorate trace-id` finds it in Jaeger by the number of the epoch alone.
"""

from __future__ import annotations

import hashlib
from typing import Final

TRACE_ID_BYTES: Final = 16
_SPAN_ID_BYTES: Final = 8
_EPOCH_BYTES: Final = 4


def trace_id_of(cluster_id: str, epoch: int) -> int:
    """The id of the trace of an epoch's election, as a number of 128 bits.

    It is the first 16 bytes, big endian, of the SHA-256 of the cluster id's UTF-8 bytes followed by
    the epoch as 4 bytes, big endian. The width is Kafka's; because it is constant, no two pairs of
    cluster and epoch have the same bytes.
    """
    return int.from_bytes(_digest(cluster_id, epoch)[:TRACE_ID_BYTES], "big")


def root_id_of(cluster_id: str, epoch: int) -> int:
    """The id of the root span of that trace, as a number of 64 bits: the 8 bytes that follow.

    The winner of the election records the root span. Each round is a child of it, and needs this id
    before the winner is known.
    """
    digest = _digest(cluster_id, epoch)
    return int.from_bytes(digest[TRACE_ID_BYTES : TRACE_ID_BYTES + _SPAN_ID_BYTES], "big")


def _digest(cluster_id: str, epoch: int) -> bytes:
    return hashlib.sha256(cluster_id.encode() + epoch.to_bytes(_EPOCH_BYTES, "big")).digest()


def trace_id_text(trace_id: int) -> str:
    """The trace id as W3C, OTLP and Jaeger write it: 32 hexadecimal digits."""
    return f"{trace_id:032x}"
