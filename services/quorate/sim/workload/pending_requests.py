"""Client requests that still wait for a reply of one process."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from quorate.controller.brokers.messages import BrokerHeartbeat

if TYPE_CHECKING:
    from collections.abc import Callable

    from quorate.api.handlers import ControllerApiError
    from quorate.controller.request_types import WriteReply, WriteRequest
    from quorate.records.ids import Epoch, Millis, Offset, ReplicaKey

# A reply, or why there is none; None where the client's connection broke.
Told: TypeAlias = "Callable[[WriteReply | ControllerApiError | None], None]"


@dataclass(slots=True, eq=False)
class WaitingRequest:
    """One request, taken at `since_ms` of the node's clock by the controller active in `epoch`.

    Until it is taken, by a process that may be paused, nothing is known of it.
    `end` is where its decision ended, None while it is undecided; `is_written` with records of its
    own. `late_since_ms` is when somebody first saw that the answer was due, `fetches` how often
    each voter had fetched when it had been decided. While it waited so many requests of its client
    (`own_turns`), and of others (`other_turns`), were decided.
    """

    request: WriteRequest
    client: str
    told: Told
    since_ms: Millis | None = None
    epoch: Epoch | None = None
    end: Offset | None = None
    is_written: bool = False
    late_since_ms: Millis | None = None
    own_turns: int = 0
    other_turns: int = 0
    fetches: dict[ReplicaKey, int] | None = None

    @property
    def waits_for_decision(self) -> bool:
        """True when it was taken, and is not decided."""
        return self.since_ms is not None and self.end is None

    @property
    def lane(self) -> tuple[str, bool]:
        """The client whose turns it shares: heartbeats are a client of their own."""
        return self.client, isinstance(self.request, BrokerHeartbeat)

    @property
    def what(self) -> str:
        """The kind of request, in a word."""
        return type(self.request).__name__
