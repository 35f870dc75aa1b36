"""Which calls share places on a listener, and how many there are.

docs/operations.md adds up what they come to.
"""

from __future__ import annotations

from typing import Final

from quorate.rpc.admission import Admission, Pool
from quorate.rpc.arrivals import Arrivals

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

_RAFT: Final = "/quorate.raft.v1.Raft/"
_FETCH_ONCE: Final = _RAFT + "FetchOnce"
_CONTROLLER: Final = "/quorate.controller.v1.Controller/"
_RAW: Final = "/quorate.raw.v1.RawLog/"
# What keeps the quorum together. Whatever clients hold, there is room for these.
_OF_PEERS: Final = frozenset(
    (_FETCH_ONCE, *(_RAFT + name for name in ("Vote", "BeginQuorumEpoch", "EndQuorumEpoch")))
)
# Which replica fetches, and what a stream of writes has not been told, only the services know.
_OWN_PLACES: Final = frozenset((_RAFT + "Fetch", _CONTROLLER + "WriteStream", _RAW + "Append"))


def takes_own_places(method: str) -> bool:
    """Whether the service itself bounds the streams of this method."""
    return method in _OWN_PLACES


def is_of_peers(method: str) -> bool:
    """Whether half-sent calls of others must not keep one of these waiting."""
    return method in _OF_PEERS


class Places:
    """The places of all calls of one listener that a guard can judge."""

    def __init__(self) -> None:
        # Each kind has bytes of its own: answers that somebody does not read hold up no other kind.
        self._reads = Admission("reads", calls_max=CALLS_MAX, pool=Pool(ANSWERS_BYTES_MAX))
        self._writes = Admission("writes", calls_max=CALLS_MAX, pool=Pool(UNANSWERED_BYTES_MAX))
        self._snapshots = Admission(
            "fetches of snapshots", calls_max=OTHERS_MAX, pool=Pool(ANSWERS_BYTES_MAX)
        )
        self._others = Admission("calls", calls_max=OTHERS_MAX, pool=Pool(SMALL_ONES_BYTES_MAX))
        # A fetching replica may leave answers unread; votes need neither its place nor its bytes.
        self._fetches = Admission(
            "single fetches", calls_max=CALLS_MAX, pool=Pool(UNANSWERED_BYTES_MAX)
        )
        self._peers = Admission(
            "calls of peers", calls_max=CALLS_MAX, pool=Pool(SMALL_ONES_BYTES_MAX)
        )
        self._arrivals = Arrivals(at_once=ARRIVALS_MAX, patience_s=PATIENCE_S)
        self._of_peers = Arrivals(at_once=ARRIVALS_MAX, patience_s=0)

    def of(self, method: str) -> Admission:
        """What counts the calls of a method."""
        if method == _FETCH_ONCE:
            return self._fetches
        if is_of_peers(method):
            return self._peers
        if method == _RAFT + "FetchSnapshot":
            return self._snapshots
        if method == _CONTROLLER + "Read":
            return self._reads
        return self._writes if method.startswith((_CONTROLLER, _RAW)) else self._others

    def arrivals_of(self, method: str) -> Arrivals:
        """Where the requests of a method are received."""
        return self._of_peers if is_of_peers(method) else self._arrivals
