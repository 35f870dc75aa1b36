"""The last message that a replica received from a peer: a request, or a response."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.records.value_types import value_type

if TYPE_CHECKING:
    from quorate.records.ids import Millis, NodeId


@value_type
class Heard:
    """A peer that was heard from, and the time in ms of the replica that heard from it."""

    node_id: NodeId
    at_ms: Millis
