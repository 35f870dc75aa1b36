"""The concurrency limits of each group of methods.

docs/operations.md adds up their total.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from quorate.rpc.limits.admission import AdmissionControl, ByteBudget
from quorate.rpc.limits.inbound_limiter import InboundLimiter
from quorate.rpc.method_table import LimitGroup

if TYPE_CHECKING:
    from quorate.rpc.method_table import MethodPolicy

# A call in progress costs about 40 KiB in addition to its request.
CALLS_MAX: Final = 4000
# Descriptions, membership changes, health and reflection: such calls are few, and none waits long.
OTHERS_MAX: Final = 512
# Encoded requests and responses: the objects made of them are several times as large.
UNANSWERED_BYTES_MAX: Final = 32 * 1024 * 1024
# For reads and snapshots: mostly responses, which are bytes already when they are counted.
ANSWERS_BYTES_MAX: Final = 16 * 1024 * 1024
# For votes, descriptions and membership changes: a few hundred bytes each. The objects made of
# empty items are twenty-four times as large as those.
SMALL_ONES_BYTES_MAX: Final = 8 * 1024 * 1024
# Requests, of 1 MiB each at most.
ARRIVALS_MAX: Final = 128
RECEIVE_TIMEOUT_S: Final = 0.5


def _places(what: str, calls_max: int, bytes_max: int) -> AdmissionControl:
    return AdmissionControl(what, calls_max=calls_max, byte_budget=ByteBudget(bytes_max))


class CallLimits:
    """The concurrency limits of all calls of one listener that the interceptor can check."""

    def __init__(self) -> None:
        # Each kind has a byte budget of its own: unread responses of one kind delay no other kind.
        self._kinds = {
            LimitGroup.READS: _places("reads", CALLS_MAX, ANSWERS_BYTES_MAX),
            LimitGroup.WRITES: _places("writes", CALLS_MAX, UNANSWERED_BYTES_MAX),
            LimitGroup.SNAPSHOTS: _places("fetches of snapshots", OTHERS_MAX, ANSWERS_BYTES_MAX),
            LimitGroup.OTHERS: _places("calls", OTHERS_MAX, SMALL_ONES_BYTES_MAX),
            # A fetching replica may leave responses unread; votes need neither its slots nor its
            # bytes.
            LimitGroup.FETCHES: _places("single fetches", CALLS_MAX, UNANSWERED_BYTES_MAX),
            LimitGroup.PEERS: _places("calls of peers", CALLS_MAX, SMALL_ONES_BYTES_MAX),
        }
        self._inbound_limiter = InboundLimiter(at_once=ARRIVALS_MAX, patience_s=RECEIVE_TIMEOUT_S)
        self._of_peers = InboundLimiter(at_once=ARRIVALS_MAX, patience_s=0)

    def of(self, row: MethodPolicy) -> AdmissionControl:
        """Return the admission of a method's calls."""
        return self._kinds[row.places]

    def arrivals_of(self, row: MethodPolicy) -> InboundLimiter:
        """Return the limiter that receives a method's requests."""
        return self._of_peers if row.is_peer_method else self._inbound_limiter
