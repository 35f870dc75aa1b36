"""Mutants of requests that wait for their decisions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from quorate.controller.brokers.heartbeat_tracker import HeartbeatTracker
from quorate.server.metadata.decision_queue import DecisionQueue
from quorate.sim.mutants.mutant import Mutant, Patch, constant

if TYPE_CHECKING:
    from quorate.server.metadata.decision_queue import QueuedRequest

_lane_of = DecisionQueue._lane_of


def _one_lane(self: DecisionQueue, asked: QueuedRequest) -> Any:  # noqa: ANN401 - a private type
    """The lane of the first request, regardless of its client."""
    return next(iter(self._lanes.values()), None) or _lane_of(self, asked)


# A leader that is isolated or has followers with slow disks commits nothing for longer than a
# session timeout: the requests after its few decisions wait.
_COMMITS_LATE: Final = {
    "voters": 3,
    "observers": 0,
    "duration_ms": 20_000,
    "election_timeout_ms": 1000,
    "fetch_timeout_ms": 4000,
    "session_timeout_ms": 1000,
    "request_timeout_ms": 0,
    "election_backoff_max_ms": 0,
    "retry_backoff_ms": 20,
    "linger_ms": 0,
    "brokers": 6,
    "write_every_ms": 100,
    "partition_every_ms": 3000,
    "partition_ms": 3000,
    "decision_us": 1000,
    "ahead_max": 1,
    "client_addresses": 2,
}
# More requests arrive than can be decided.
_ASKED_TOO_MUCH: Final = {
    "voters": 3,
    "observers": 0,
    "duration_ms": 3000,
    "session_timeout_ms": 9000,
    "linger_ms": 0,
    "brokers": 2,
    "write_every_ms": 3,
    "decision_us": 6000,
    "ahead_max": 100,
    "client_addresses": 2,
}

BUGS: Final = (
    Mutant(
        "backlog-counts-as-silence",
        "a broker whose heartbeat waits for its decision is fenced when a session is over",
        (1,),
        (Patch(HeartbeatTracker, "excusable", constant(answer=())),),
        world=_COMMITS_LATE,
    ),
    Mutant(
        "clients-in-one-line",
        "requests are decided in the order in which they came, whichever client asks",
        (3,),
        (Patch(DecisionQueue, "_lane_of", _one_lane),),
        world=_ASKED_TOO_MUCH,
    ),
)
