"""Detects two processes on copies of one directory that fetch as one voter.

See rule `one_process_per_voter`. Each Fetch identifies its process by a random number that was
generated at process start. A new process takes over immediately, since a voter that restarts must
not wait. But as long as an earlier process may still run, the log of the new process does not count
for commits.

Each Fetch also echoes the read round of the newest response that its process received, and the
first Fetch of a new process starts a round. So a process that echoes this round ran after the first
Fetch of the new process, however late its other Fetches arrive. If both echo it, both ran at the
same time: there are two processes, and the second one is rejected from then on.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Final

from quorate.raft.messages import FetchRequest, ReplicaState
from quorate.raft.roles import Doubles, Leader, Process
from quorate.raft.trace_events import TraceEventKind
from quorate.records.ids import Millis

if TYPE_CHECKING:
    from collections.abc import Iterator

    from quorate.raft.messages import FetchSnapshotRequest
    from quorate.raft.replica import Replica
    from quorate.raft.replication.fetch_purgatory import ParkedFetch
    from quorate.records.ids import ReplicaKey
    from quorate.records.voters import Endpoint

# Fraction of the fetch timeout after which a silent process is assumed to have exited.
SILENCE_SHARE: Final = 2
# In fetch timeouts: the time for which a silent process is kept, and reported if rejected.
TOLD_FACTOR: Final = 5
# Number of processes of one voter that a leader can distinguish.
PROCESSES_MAX: Final = 4


class Admission(Enum):
    """The treatment of a voter's Fetch or FetchSnapshot."""

    COUNTED = "counted"
    # Served, but an earlier process may still run, and the log of that process counts.
    UNCOUNTED = "uncounted"
    REFUSED = "refused"


class ClonedVoters:
    """The processes of the voters, as one leader knows them."""

    def __init__(self, replica: Replica) -> None:
        self.replica = replica

    def admit(
        self, role: Leader, key: ReplicaKey, request: FetchRequest | FetchSnapshotRequest
    ) -> Admission:
        """Decide if this process is the voter. Earlier releases send no number (0)."""
        number = request.incarnation
        if number == 0:
            return Admission.COUNTED
        found = role.doubles.get(key)
        if found is None:
            if len(role.doubles) >= len(self.replica.voters) + 1:
                self._forget_others(role)
            found = role.doubles[key] = Doubles(number)
        processes = found.processes
        if len(processes) == 1 and processes[0].number == number:
            # A shortcut for the usual case: the code below would have the same result.
            found.is_clone = False
            self._note(role, processes[0], request)
            return Admission.COUNTED
        self._forget_silent(found)
        process = found.process(number) or self._add(role, found, number)
        if process is None:
            return Admission.REFUSED if found.is_clone else Admission.UNCOUNTED
        current = found.process(found.current)
        if process is not current and (current is None or self._is_gone(current)):
            self._take_over(found, process)
        self._note(role, process, request)
        if self._has_outrun_current(found, process):
            found.current = number
        self._find_clones(found, process, key)
        return self._judge(found, process)

    def _note(
        self, role: Leader, process: Process, request: FetchRequest | FetchSnapshotRequest
    ) -> None:
        process.heard_ms, process.has_ended = self.replica.timers.now, False
        if isinstance(request, FetchRequest):
            process.endpoints = request.replica_endpoints
            process.echoed = max(process.echoed, min(request.read_round, role.read_round))

    def _forget_others(self, role: Leader) -> None:
        """Drop replicas that are no longer voters."""
        for key in [key for key in role.doubles if key not in self.replica.voters]:
            del role.doubles[key]

    def _forget_silent(self, found: Doubles) -> None:
        """Drop processes that have been silent for long."""
        found.processes = [
            process
            for process in found.processes
            if process.number == found.current or is_told(self.replica, process)
        ]
        found.is_clone = found.is_clone and len(found.processes) > 1

    def _add(self, role: Leader, found: Doubles, number: int) -> Process | None:
        """Add a new process, which takes over unless another one is known to be the voter.

        Returns None if too many processes fetched recently, so that it has to wait.
        """
        if len(found.processes) >= PROCESSES_MAX:
            gone = [p for p in found.processes if p.number != found.current and self._is_gone(p)]
            if not gone:
                return None
            found.processes.remove(min(gone, key=lambda process: process.heard_ms))
        first_round = role.begin_round() if found.processes else 0
        process = Process(number, self.replica.timers.now, first_round)
        found.processes.append(process)
        if not found.is_clone:
            current = found.process(found.current)
            if current is None or not self._is_gone(current):
                found.current = number
        return process

    def _take_over(self, found: Doubles, process: Process) -> None:
        """Replace the current process, which has ended, by this one."""
        found.processes.remove(process)
        found.processes.insert(0, process)
        found.current, found.is_clone = process.number, False

    @staticmethod
    def _has_outrun_current(found: Doubles, process: Process) -> bool:
        """True if the earlier process has shown that it runs, and the current one has not."""
        current = found.process(found.current)
        if current is None or found.is_clone or not found.is_before_current(process):
            return False
        return _is_outrun(current, process)

    def _find_clones(self, found: Doubles, process: Process, key: ReplicaKey) -> None:
        """Find a process that ran at the same time; the first one to arrive is the voter."""
        for other in found.processes:
            if other is process or self._is_gone(other) or not _ran_together(process, other):
                continue
            elder = min(process, other, key=found.processes.index)
            if found.is_clone and not found.is_before_current(elder):
                continue
            found.current = elder.number
            if not found.is_clone:
                found.is_clone = True
                text = f"two processes are voter {key}: the one that came second is refused"
                self.replica.out.note(TraceEventKind.CLONE_FOUND, text, peer=key.node_id)

    def _judge(self, found: Doubles, process: Process) -> Admission:
        """Decide about a valid Fetch; an earlier process than the current one is served only."""
        if process.number != found.current:
            is_second = found.is_clone and not found.is_before_current(process)
            return Admission.REFUSED if is_second else Admission.UNCOUNTED
        is_alone = all(self._is_gone(rival) for rival in self._rivals(found, process))
        return Admission.COUNTED if is_alone else Admission.UNCOUNTED

    @staticmethod
    def _rivals(found: Doubles, process: Process) -> Iterator[Process]:
        """The processes that must have ended before this one counts."""
        before = found.processes[: found.processes.index(process)]
        yield from before
        if not found.is_clone:
            after = found.processes[len(before) + 1 :]
            yield from (other for other in after if not _is_outrun(other, process))

    def counts_from(self, role: Leader, key: ReplicaKey, number: int) -> Millis | None:
        """The time at which the others have been silent for long enough; None without any."""
        found = role.doubles.get(key)
        process = None if found is None else found.process(number)
        others = () if found is None or process is None else self._rivals(found, process)
        silence_ms = _silence_ms(self.replica)
        return max(
            (Millis(other.heard_ms + silence_ms) for other in others if not self._is_gone(other)),
            default=None,
        )

    def _is_gone(self, process: Process) -> bool:
        """True if a process has ended, as far as its connection and its silence show."""
        return process.has_ended or not _was_heard_lately(self.replica, process)

    def gone(self, role: Leader, fetch: ParkedFetch | None) -> None:
        """Handle the end of the connection on which a process waited.

        Possibly only the connection was reset. If another process would count instead, only silence
        shows that this process has ended.
        """
        found = None if fetch is None or fetch.key is None else role.doubles.get(fetch.key)
        if fetch is None or found is None:
            return
        process = found.process(fetch.request.incarnation)
        others = (other for other in found.processes if other is not process)
        if process is not None and not any(self._is_waiting(found, other) for other in others):
            process.has_ended = True

    def _is_waiting(self, found: Doubles, process: Process) -> bool:
        """True for a process that runs, or that was rejected and may fetch again."""
        was_refused_lately = (
            self.replica.timers.now - process.heard_ms < self.replica.config.fetch_timeout_ms
        )
        may_ask = found.is_clone and not process.has_ended and was_refused_lately
        return may_ask or not self._is_gone(process)


def _is_outrun(newer: Process, process: Process) -> bool:
    """True if only the older process has shown that it ran after the newer one's first Fetch.

    All Fetches of the newer one may be delayed, or from a copy that only fetches a snapshot.
    """
    return newer.echoed < newer.first_round <= process.echoed


def _ran_together(one: Process, other: Process) -> bool:
    """True if both ran at the first Fetch of the later one."""
    first_round = max(one.first_round, other.first_round)
    return min(one.echoed, other.echoed) >= first_round


def _was_heard_lately(replica: Replica, process: Process) -> bool:
    return replica.timers.now - process.heard_ms < _silence_ms(replica)


def _silence_ms(replica: Replica) -> int:
    return replica.config.fetch_timeout_ms // SILENCE_SHARE


def is_contested(
    replica: Replica, role: Leader, key: ReplicaKey, listeners: tuple[Endpoint, ...]
) -> bool:
    """True if these listeners may be those of a second process of that voter.

    Until it is known which process is the voter, its entry is not changed.
    """
    found = role.doubles.get(key)
    if found is None:
        return False
    current = found.process(found.current)
    others = [process for process in found.processes if process is not current]
    if found.is_clone and current is not None:
        is_of_voter = all(endpoint in listeners for endpoint in current.endpoints)
        return any(is_told(replica, other) for other in others) and not is_of_voter
    return any(not other.has_ended and _was_heard_lately(replica, other) for other in others)


def is_told(replica: Replica, process: Process) -> bool:
    """True if a process fetched so recently that it may still run."""
    oldest = replica.timers.now - replica.config.fetch_timeout_ms * TOLD_FACTOR
    return process.heard_ms >= oldest


def refused(replica: Replica) -> Iterator[tuple[ReplicaState, tuple[Endpoint, ...]]]:
    """The second processes of voters, and the addresses of the first; only at a leader."""
    role = replica.role
    if not isinstance(role, Leader):
        return
    for key, found in role.doubles.items():
        current = found.process(found.current)
        if not found.is_clone or current is None:
            continue
        for process in found.processes:
            if process is not current and is_told(replica, process):
                state = ReplicaState(
                    key=key,
                    log_end_offset=None,
                    last_fetch_ms=process.heard_ms,
                    last_caught_up_ms=None,
                    endpoints=process.endpoints,
                )
                yield state, current.endpoints


def remarks(replica: Replica) -> Iterator[str]:
    """Status warnings about clones: of a leader's voters, and of a replica that is one."""
    for state, endpoints in refused(replica):
        yield (
            f"two processes are voter {state.key}: the one at {_words(endpoints)} counts, the one "
            f"at {_words(state.endpoints)} is refused. Each runs on a copy of one directory: stop "
            "the copy, empty its directory, and format it"
        )
    if replica.is_refused:
        yield (
            f"the leader refuses this process, since another one is voter {replica.key}: one of "
            "both runs on a copy of a directory. Stop the copy, empty its directory, and format it"
        )


def _words(endpoints: tuple[Endpoint, ...]) -> str:
    return ", ".join(f"{endpoint.host}:{endpoint.port}" for endpoint in endpoints) or "?"
