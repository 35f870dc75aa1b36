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

# Receives a reply or an error; None if the client's connection broke.
Told: TypeAlias = "Callable[[WriteReply | ControllerApiError | None], None]"


@dataclass(slots=True, eq=False)
class WaitingRequest:
    """One request, accepted at `since_ms` of the node's clock by the controller active in `epoch`.

    Both are None until the process, which may be paused, accepts it. `end` is the end offset of its
    decision, None while it is undecided; `is_written` is True if the decision has records.
    `late_since_ms` is the time when a check first found that the reply was due, `fetches` the
    number of Fetches of each voter after the decision. `own_turns` and `other_turns` count the
    requests of its client and of other clients that were decided while it waited.
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
        """True if it is accepted and not decided."""
        return self.since_ms is not None and self.end is None

    @property
    def lane(self) -> tuple[str, bool]:
        """The client whose turns it shares: heartbeats count as a separate client."""
        return self.client, isinstance(self.request, BrokerHeartbeat)

    @property
    def what(self) -> str:
        """The kind of request, for messages."""
        return type(self.request).__name__
