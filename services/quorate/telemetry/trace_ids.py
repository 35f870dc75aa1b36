"""Trace ids that can be told beforehand: one trace for each epoch that somebody seeks to lead.

Rivals for one epoch, and their voters, draw into one trace without having agreed on it, and
`quorate trace-id` finds it in Jaeger by the number of the epoch alone.
"""

from __future__ import annotations

import hashlib
from typing import Final

TRACE_ID_BYTES: Final = 16
_EPOCH_BYTES: Final = 4


def trace_id_of(cluster_id: str, epoch: int) -> int:
    """The id of the trace in which this epoch is sought, as a number of 128 bits.

    It is the first 16 bytes, big endian, of the SHA-256 of the cluster id's UTF-8 bytes followed by
    the epoch as 4 bytes, big endian: the width is Kafka's, and as it is always the same no other
    cluster and epoch have the same bytes.
    """
    data = cluster_id.encode() + epoch.to_bytes(_EPOCH_BYTES, "big")
    return int.from_bytes(hashlib.sha256(data).digest()[:TRACE_ID_BYTES], "big")


def trace_id_text(trace_id: int) -> str:
    """As W3C, OTLP and Jaeger write it: 32 hexadecimal digits."""
    return f"{trace_id:032x}"
