"""Identifiers and positions: one type each, so that a swapped pair of integers is a type error.

Directory ids are sixteen bytes and print as Kafka prints uuids: URL-safe base64 without padding.
"""

from __future__ import annotations

import base64
import binascii
import re
from dataclasses import dataclass
from typing import Final, NewType

from quorate.records.value_types import value_type

NodeId = NewType("NodeId", int)
Epoch = NewType("Epoch", int)
Offset = NewType("Offset", int)
Millis = NewType("Millis", int)
CallId = NewType("CallId", int)
ReplyToken = NewType("ReplyToken", int)
ClusterId = NewType("ClusterId", str)
DirectoryId = NewType("DirectoryId", bytes)
TopicId = NewType("TopicId", bytes)
_CLUSTER_ID: Final = re.compile(r"[A-Za-z0-9._-]{1,64}", re.ASCII)

UUID_BYTES: Final = 16
ZERO_UUID: Final = bytes(UUID_BYTES)
UNKNOWN_OFFSET: Final = Offset(-1)


@dataclass(frozen=True, slots=True, order=True, kw_only=True)
class OffsetAndEpoch:
    """A log end: `offset` is the next offset, `epoch` the epoch of the last record below it.

    Ordered as Raft compares logs: by epoch first, then by offset.
    """

    epoch: Epoch
    offset: Offset

    def __str__(self) -> str:
        return f"{self.offset}@{self.epoch}"


@value_type
class ReplicaKey:
    """Identity of a replica (KIP-853): its node id and, if known, its log directory id."""

    node_id: NodeId
    directory_id: DirectoryId | None = None

    def __str__(self) -> str:
        if self.directory_id is None:
            return str(self.node_id)
        return f"{self.node_id}:{format_uuid(self.directory_id)}"


def check_cluster_id(text: str) -> None:
    """Raise ValueError unless the text is a short word that is safe in all tools and logs."""
    if _CLUSTER_ID.fullmatch(text) is None:
        raise ValueError(
            f"{text!r} is no id: take what `quorate storage random-uuid` prints, or up to 64"
            " letters, digits, dots, dashes and underscores"
        )


def format_uuid(value: bytes) -> str:
    """Format sixteen bytes as Kafka does: 22 characters of URL-safe base64, no padding."""
    return base64.urlsafe_b64encode(value).rstrip(b"=").decode("ascii")


def parse_uuid(text: str) -> bytes:
    """Parse Kafka's 22 characters to sixteen bytes.

    Raises ValueError for any other text.
    """
    try:
        value = base64.b64decode(text.encode("ascii") + b"==", altchars=b"-_", validate=True)
    except (UnicodeEncodeError, binascii.Error) as error:
        raise ValueError(f"not a uuid in URL-safe base64: {text!r}") from error
    if len(value) != UUID_BYTES or format_uuid(value) != text:
        raise ValueError(f"not a uuid of 22 characters of URL-safe base64: {text!r}")
    return value


def parse_directory_id(text: str) -> DirectoryId:
    """Parse a directory id. Raises ValueError, also for the reserved zero id."""
    value = parse_uuid(text)
    if value == ZERO_UUID:
        raise ValueError(f"{text} is no directory id: it stands for one that is unknown")
    return DirectoryId(value)
