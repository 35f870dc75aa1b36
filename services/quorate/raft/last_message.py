"""The last message that a replica received from a peer: a request, or a response."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.records.value_types import value

if TYPE_CHECKING:
    from quorate.records.ids import Millis, NodeId


@value
class Heard:
    """One that was heard, and the moment on the clock of the replica that heard it."""

    node_id: NodeId
    at_ms: Millis
