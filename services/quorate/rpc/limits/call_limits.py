"""Which calls share places on a listener, and how many there are.

docs/operations.md adds up what they come to.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from quorate.rpc.limits.admission import Admission, Pool
from quorate.rpc.limits.inbound_limiter import Arrivals
from quorate.rpc.method_table import PlaceKind

if TYPE_CHECKING:
    from quorate.rpc.method_table import MethodRow

# A call under way costs about 40 KiB beside its request.
CALLS_MAX: Final = 4000
# Descriptions, changes of the quorum, health and reflection: few ask, and none of them waits long.
OTHERS_MAX: Final = 512
# Requests as they came and answers as they go: the objects made of them are several times as large.
UNANSWERED_BYTES_MAX: Final = 32 * 1024 * 1024
# Of reads and of snapshots: answers above all, which are bytes already when they are counted.
ANSWERS_BYTES_MAX: Final = 16 * 1024 * 1024
# Of votes, descriptions and changes of the quorum: a few hundred bytes each. What is made of empty
# items is twenty-four times as large as they are.
SMALL_ONES_BYTES_MAX: Final = 8 * 1024 * 1024
# Each is of a mebibyte at most.
ARRIVALS_MAX: Final = 128
PATIENCE_S: Final = 0.5


def _places(what: str, calls_max: int, bytes_max: int) -> Admission:
    return Admission(what, calls_max=calls_max, pool=Pool(bytes_max))


class CallPlaces:
    """The places of all calls of one listener that a guard can judge."""

    def __init__(self) -> None:
        # Each kind has bytes of its own: answers that somebody does not read hold up no other kind.
        self._kinds = {
            PlaceKind.READS: _places("reads", CALLS_MAX, ANSWERS_BYTES_MAX),
            PlaceKind.WRITES: _places("writes", CALLS_MAX, UNANSWERED_BYTES_MAX),
            PlaceKind.SNAPSHOTS: _places("fetches of snapshots", OTHERS_MAX, ANSWERS_BYTES_MAX),
            PlaceKind.OTHERS: _places("calls", OTHERS_MAX, SMALL_ONES_BYTES_MAX),
            # A fetching replica may leave answers unread; votes need neither its place nor its
            # bytes.
            PlaceKind.FETCHES: _places("single fetches", CALLS_MAX, UNANSWERED_BYTES_MAX),
            PlaceKind.PEERS: _places("calls of peers", CALLS_MAX, SMALL_ONES_BYTES_MAX),
        }
        self._arrivals = Arrivals(at_once=ARRIVALS_MAX, patience_s=PATIENCE_S)
        self._of_peers = Arrivals(at_once=ARRIVALS_MAX, patience_s=0)

    def of(self, row: MethodRow) -> Admission:
        """What counts the calls of a method."""
        return self._kinds[row.places]

    def arrivals_of(self, row: MethodRow) -> Arrivals:
        """Where the requests of a method are received."""
        return self._of_peers if row.is_of_peers else self._arrivals
