"""Two processes on copies of one directory, that fetch as one voter (rule 33).

Each Fetch names its process by a number that was drawn at its start. A new number takes over at
once, since a voter that restarts must not wait. But as long as the process before may still run,
nothing that the new one has counts for commits; and when the one before fetches again, and again
after that, two processes are there: the one that came second is refused from then on.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Final

from quorate.raft.messages import ReplicaState
from quorate.raft.notes import NoteKind
from quorate.raft.roles import Doubles, Leader

if TYPE_CHECKING:
    from collections.abc import Iterator

    from quorate.raft.messages import FetchRequest
    from quorate.raft.parking import ParkedFetch
    from quorate.raft.replica import Replica
    from quorate.records.ids import Millis, ReplicaKey
    from quorate.records.voters import Endpoint

# Of the fetch timeout: a process that has been silent for so long is taken for gone.
SILENCE_SHARE: Final = 2
# One Fetch of a process that has ended may come late; it has no more than that under way.
RETURNS_MIN: Final = 2
# In fetch timeouts: how long a refused process that is silent is still told of.
TOLD_FACTOR: Final = 5


class Admission(Enum):
    """What becomes of a voter's Fetch."""

    COUNTED = "counted"
    # Served, but the process before it may still run, and its disk is the one that counts.
    UNCOUNTED = "uncounted"
    REFUSED = "refused"


class Clones:
    """The processes of the voters, as one leader hears them."""

    def __init__(self, replica: Replica) -> None:
        self.r = replica

    def admit(self, role: Leader, key: ReplicaKey, request: FetchRequest) -> Admission:
        """Whether this process is the voter. Releases before drew no number: 0 is anybody."""
        number = request.incarnation
        if number == 0:
            return Admission.COUNTED
        found = role.doubles.get(key)
        if found is None:
            if len(role.doubles) >= len(self.r.voters) + 1:
                self._forget_others(role)
            found = role.doubles[key] = Doubles(number, self.r.timers.now)
        admission = self._admit(found, number, key)
        now, endpoints = self.r.timers.now, request.replica_endpoints
        if number == found.current:
            found.heard_ms, found.endpoints = now, endpoints
        else:
            found.other_ms, found.other_endpoints = now, endpoints
        return admission

    def _forget_others(self, role: Leader) -> None:
        """Those that are voters no more need no memory."""
        for key in [key for key in role.doubles if key not in self.r.voters]:
            del role.doubles[key]

    def _admit(self, found: Doubles, number: int, key: ReplicaKey) -> Admission:
        if found.is_clone and not is_told(self.r, found):
            found.is_clone, found.other, found.other_ms = False, 0, None
        if number == found.current:
            is_alone = found.is_clone or self._is_gone(found.other_ms)
            return Admission.COUNTED if is_alone else Admission.UNCOUNTED
        if found.is_clone and not self._is_gone(found.heard_ms):
            # A third one is refused as well.
            found.other = number
            return Admission.REFUSED
        if number != found.other or found.is_clone:
            return self._take_over(found, number)
        found.returns += 1
        if found.returns < RETURNS_MIN:
            return Admission.UNCOUNTED
        self._swap(found)
        found.is_clone = True
        text = f"two processes are voter {key}: the one that came second is refused"
        self.r.out.note(NoteKind.CLONE_FOUND, text, peer=key.node_id)
        return Admission.COUNTED

    def _take_over(self, found: Doubles, number: int) -> Admission:
        """A process that is new, or that goes on where the other one has ended."""
        self._swap(found)
        found.current, found.returns, found.is_clone = number, 0, False
        return Admission.COUNTED if self._is_gone(found.other_ms) else Admission.UNCOUNTED

    def _swap(self, found: Doubles) -> None:
        found.current, found.other = found.other, found.current
        found.heard_ms, found.other_ms = found.other_ms, found.heard_ms
        found.endpoints, found.other_endpoints = found.other_endpoints, found.endpoints

    def _is_gone(self, heard_ms: Millis | None) -> bool:
        """Whether a process has ended, as far as its silence tells."""
        silence_ms = self.r.config.fetch_timeout_ms // SILENCE_SHARE
        return heard_ms is None or self.r.timers.now - heard_ms >= silence_ms

    def gone(self, role: Leader, fetch: ParkedFetch | None) -> None:
        """The connection has ended on which this process waited: nothing of it is to come."""
        found = None if fetch is None or fetch.key is None else role.doubles.get(fetch.key)
        if fetch is None or found is None:
            return
        if fetch.request.incarnation == found.current:
            found.heard_ms = None
        elif fetch.request.incarnation == found.other:
            found.other_ms = None


def is_contested(
    replica: Replica, role: Leader, key: ReplicaKey, listeners: tuple[Endpoint, ...]
) -> bool:
    """Whether these listeners may be those of a second process of that voter.

    Until it has turned out which process the voter is, its entry stays as it is.
    """
    found = role.doubles.get(key)
    if found is None or found.other_ms is None:
        return False
    if found.is_clone:
        is_of_voter = all(endpoint in listeners for endpoint in found.endpoints)
        return is_told(replica, found) and not is_of_voter
    silence_ms = replica.config.fetch_timeout_ms // SILENCE_SHARE
    return replica.timers.now - found.other_ms < silence_ms


def is_told(replica: Replica, found: Doubles) -> bool:
    """Whether the second process was heard so lately that it still runs."""
    oldest = replica.timers.now - replica.config.fetch_timeout_ms * TOLD_FACTOR
    return found.other_ms is not None and found.other_ms >= oldest


def refused(replica: Replica) -> Iterator[tuple[ReplicaState, tuple[Endpoint, ...]]]:
    """The second processes of voters, and where the first is; for a leader alone."""
    role = replica.role
    if not isinstance(role, Leader):
        return
    for key, found in role.doubles.items():
        if found.is_clone and is_told(replica, found):
            assert found.other_ms is not None
            state = ReplicaState(
                key=key,
                log_end_offset=None,
                last_fetch_ms=found.other_ms,
                last_caught_up_ms=None,
                endpoints=found.other_endpoints,
            )
            yield state, found.endpoints


def remarks(replica: Replica) -> Iterator[str]:
    """What a human has to know of clones: of a leader's voters, and of a replica that is one."""
    for state, endpoints in refused(replica):
        yield (
            f"two processes are voter {state.key}: the one at {_words(endpoints)} counts, the one "
            f"at {_words(state.endpoints)} is refused. Each runs on a copy of one directory: stop "
            "the copy, and format its directory anew"
        )
    if replica.is_refused:
        yield (
            f"the leader refuses this process, since another one is voter {replica.key}: one of "
            "both runs on a copy of a directory. Stop the copy, and format its directory anew"
        )


def _words(endpoints: tuple[Endpoint, ...]) -> str:
    return ", ".join(f"{endpoint.host}:{endpoint.port}" for endpoint in endpoints) or "?"
