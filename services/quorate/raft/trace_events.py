"""Structured trace events of the core: a kind, fields for programs and a text for people.

The text is used for the log and the transcript. Spans and metrics use the kind and the fields,
which have stable names, so that programs need not parse the text.
"""

from __future__ import annotations

from dataclasses import field
from enum import Enum
from typing import TYPE_CHECKING, TypeAlias

from quorate.records.value_types import value_type

if TYPE_CHECKING:
    from collections.abc import Mapping

Value: TypeAlias = "str | int | bool | tuple[int, ...]"


class TraceEventKind(Enum):
    """Kinds of notes. `raft/trace_fields.py` has the values of `role_taken`."""

    STARTED = "started"
    ROLE_TAKEN = "role_taken"
    ELECTION_LOST = "election_lost"
    VOTE_GRANTED = "vote_granted"
    VOTE_REFUSED = "vote_refused"
    NOT_READY = "not_ready"
    LEADER_RESIGNED = "leader_resigned"
    LEADER_UNREACHABLE = "leader_unreachable"
    LEADER_MOVED = "leader_moved"
    HAND_OVER_BEGUN = "hand_over_begun"
    TURN_PASSED = "turn_passed"
    LEAVE_GRANTED = "leave_granted"
    LEAVE_ENDED = "leave_ended"
    CHANGE_BEGUN = "change_begun"
    CHANGE_APPENDED = "change_appended"
    CHANGE_COMMITTED = "change_committed"
    VOTERS_LEARNED = "voters_learned"
    JOINING = "joining"
    REFUSED_BY_PEER = "refused_by_peer"
    NOT_BELIEVED = "not_believed"
    LOG_CUT = "log_cut"
    DOWNLOAD = "download"
    SNAPSHOT_INSTALLED = "snapshot_installed"
    SNAPSHOT_DAMAGED = "snapshot_damaged"
    RIVAL_FOUND = "rival_found"
    CLONE_FOUND = "clone_found"
    REFUSED_LOG = "refused_log"
    CONTRADICTED = "contradicted"
    RECONCILED = "reconciled"
    HEALED = "healed"
    VOTES_AGAIN = "votes_again"


class RoleChangeCause(Enum):
    """Reasons for a role change."""

    # An election begins.
    STARTUP = "startup"
    FETCH_TIMEOUT = "fetch_timeout"
    ELECTION_TIMEOUT = "election_timeout"
    END_QUORUM_EPOCH = "end_quorum_epoch"
    LEADER_REMOVED = "leader_removed"
    LEADER_PROCESS_GONE = "leader_process_gone"
    # An election continues, or ends.
    PRE_VOTES_GRANTED = "pre_votes_granted"
    PRE_VOTE_REJECTED = "pre_vote_rejected"
    PRE_VOTE_TIMED_OUT = "pre_vote_timed_out"
    VOTES_GRANTED = "votes_granted"
    # Another replica acts.
    VOTE_GIVEN = "vote_given"
    HIGHER_EPOCH = "higher_epoch"
    LEADER_LEARNED = "leader_learned"
    # A leader resigns, or a nominee gives up.
    SHUTDOWN = "shutdown"
    CHECK_QUORUM = "check_quorum"
    REMOVED = "removed"
    TRANSFER = "transfer"
    DISK_HANGS = "disk_hangs"
    DISK_FULL = "disk_full"
    LOG_DAMAGED = "log_damaged"
    STATE_MACHINE = "state_machine"
    RIVAL = "rival"
    # A resigned leader has not seen a successor in time.
    NO_SUCCESSOR = "no_successor"


@value_type
class TraceEvent:
    """One event that a step reports."""

    kind: TraceEventKind
    text: str
    values: Mapping[str, Value] = field(default_factory=dict)

    def __str__(self) -> str:
        return self.text


class TraceBuffer:
    """The notes of one step, and the last text of each topic."""

    def __init__(self) -> None:
        self.last_emitted: dict[str, str] = {}
        self._notes: list[TraceEvent] = []

    def emit(self, kind: TraceEventKind, text: str | None, /, **values: Value) -> None:
        """Add a note, unless its text is None."""
        if text is not None:
            self._notes.append(TraceEvent(kind, text, values))

    def emit_once(
        self, kind: TraceEventKind, topic: str, text: str, state: str = "", /, **values: Value
    ) -> None:
        """Report a repeated finding once, until its text or `state` changes.

        See rule `retry_backoff`.
        """
        if self.last_emitted.get(topic) != (state or text):
            self.last_emitted[topic] = state or text
            self.emit(kind, text, **values)

    def reset_once(self, *topics: str) -> None:
        """Clear these topics, so that the next finding is reported again."""
        for topic in topics:
            self.last_emitted.pop(topic, None)

    def drain(self) -> tuple[TraceEvent, ...]:
        """The notes of this step; the next one begins with none."""
        if not self._notes:
            return ()
        notes = tuple(self._notes)
        self._notes.clear()
        return notes
