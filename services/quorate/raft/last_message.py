"""The last message that a replica received from a peer: a request, or a response."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.records.value_types import value_type

if TYPE_CHECKING:
    from quorate.records.ids import Millis, NodeId


@value_type
class Heard:
    """A peer, and the time in ms of its last message, on the clock of the receiving replica."""

    node_id: NodeId
    at_ms: Millis
