"""When a replica last heard another one: by a request of it, or by an answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.records.value import value

if TYPE_CHECKING:
    from quorate.records.ids import Millis, NodeId


@value
class Heard:
    """Who was heard, and the moment on the clock of the replica that heard it."""

    node_id: NodeId
    at_ms: Millis
