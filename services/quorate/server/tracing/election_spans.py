"""Spans of elections and leadership: rounds, votes, epoch start, resignation.

`kraft.election` is the root of the trace of the epoch that is sought. The winner creates it once it
has won, and its name summarizes the election in one line. Its id and that of the trace follow from
the cluster and the epoch, so that the rounds of contenders are its children. A span becomes visible
only when it ends, so a round's span ends after the longest election timeout; the next one links
back to it.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from quorate.raft.api import RequestFailure
from quorate.raft.messages import VoteResponse
from quorate.raft.trace_events import RoleChangeCause
from quorate.records.errors import ErrorCode
from quorate.records.value_types import value_type
from quorate.server.tracing.span_factory import end_failed, record_flush

if TYPE_CHECKING:
    from collections.abc import Mapping

    from opentelemetry.trace import Span, SpanContext

    from quorate.raft.messages import PeerResponse
    from quorate.raft.trace_events import Value
    from quorate.records.ids import CallId, NodeId, Offset
    from quorate.server.tracing.span_factory import SpanFactory
    from quorate.telemetry.tracer import Attributes

    Values = Mapping[str, Value]

# The span kind of each phase, and its name before the votes are counted.
_PHASES: Final = {
    "prospective": ("kraft.election.pre_vote", "pre-vote"),
    "candidate": ("kraft.election.vote", "vote"),
}
# Outcomes of rounds not won here, by the cause that ended them; any other cause supersedes the
# round.
_OUTCOMES: Final = {
    RoleChangeCause.PRE_VOTE_REJECTED.value: "pre_vote_rejected",
    RoleChangeCause.PRE_VOTE_TIMED_OUT.value: "timed_out",
    RoleChangeCause.ELECTION_TIMEOUT.value: "timed_out",
    RoleChangeCause.SHUTDOWN.value: "stopped",
}
# Most rounds begin because a voter is unavailable, so its silence is expected and not a failure.
_UNREACHABLE: Final = (RequestFailure.DISCONNECTED, RequestFailure.TIMED_OUT)
# Roles in which the reason for an election and its start time are reset.
_SETTLED: Final = ("follower", "leader", "resigned")
_AFTER_RESIGNATION: Final = (
    RoleChangeCause.END_QUORUM_EPOCH.value,
    RoleChangeCause.LEADER_REMOVED.value,
)


@value_type
class _Won:
    """The election that was won: cause, start time of the search, previous leader."""

    trigger: str
    since_ms: int
    followed: int | None


class ElectionSpans:
    """The election spans of one replica.

    A replica has at most one round, one epoch to establish or one to resign at a time.
    """

    def __init__(self, maker: SpanFactory, *, longest_ms: int) -> None:
        """`longest_ms` is the longest time that the core gives a round."""
        self._maker = maker
        self._longest_ms = longest_ms
        self._round: Span | None = None
        self._phase: Span | None = None
        # The epoch that this replica has won: until it is on the disk, and then until a record of
        # it is committed.
        self._won: _Won | None = None
        self._election: Span | None = None
        self._establishing: Span | None = None
        self._flushed: set[NodeId] = set()
        self._resigning: Span | None = None
        # The values at the start of the round; once it is won, at the start of leadership.
        self._taken: Values = {}
        self._deadline_ms = 0
        self._has_lost = False
        # The cause of the first round, and since when this replica seeks the epoch.
        self._trigger = ""
        self._sought = self._since_ms = self._established_ns = 0
        # The leader that this replica followed last.
        self._followed: int | None = None
        self._asked: dict[CallId, NodeId] = {}
        self._newest: SpanContext | None = None
        self._resignation: SpanContext | None = None

    @property
    def current(self) -> SpanContext | None:
        """The span of current events; None outside elections and leadership changes."""
        if self._won is not None:
            return self._maker.root_of(_integer(self._taken, "epoch"))
        span = self._phase or self._establishing or self._resigning
        return None if span is None else span.get_span_context()

    # --- votes ------------------------------------------------------------------------------------

    def asked(self, call: CallId, voter: NodeId) -> None:
        """A voter was asked; its response belongs to the phase that is open now."""
        if self._phase is not None:
            self._asked[call] = voter

    def answered(self, call: CallId, response: PeerResponse | RequestFailure) -> None:
        """A voter responded, or could not be reached."""
        voter = self._asked.pop(call, None)
        if voter is None or self._phase is None:
            return
        if isinstance(response, RequestFailure):
            name = "peer.unreachable" if response in _UNREACHABLE else "vote.failed"
            self._phase.add_event(name, {"peer": voter, "reason": response.name.lower()})
        elif isinstance(response, VoteResponse):
            self._phase.add_event("vote.received", {"peer": voter, **_said(response)})

    def lost(self) -> None:
        """Too many voters rejected; the candidate waits for the end of its round."""
        self._has_lost = True

    def heard_resignation(self, call: SpanContext | None) -> None:
        """A leader reported in that call that it resigned: it triggers the next round."""
        self._resignation = call

    # --- roles ------------------------------------------------------------------------------------

    def role_taken(
        self, taken: Values, now_ms: int, *, resigned_for: SpanContext | None = None
    ) -> None:
        """Take a role transition; `resigned_for` is the traced reason of a resignation, if any."""
        before, role = str(taken["from_role"]), str(taken["to_role"])
        if self._round is not None:
            change = {"from": before, "to": role, "cause": str(taken["cause"])}
            self._round.add_event("role.taken", change)
            self._end_phase(taken)
            if role != "candidate":
                self._end_round(self._outcome(taken))
        if before == "leader":
            self._give_up("leadership was lost before a record of its epoch was committed")
        elif before == "resigned":
            self._end_resigning()
        if role in _PHASES:
            if self._round is None:
                self._begin_round(taken, now_ms)
            self._taken = taken
            self._begin_phase()
        elif role == "leader":
            self._taken = taken
            self._won = _Won(self._trigger, self._since_ms, self._followed)
        elif role == "resigned":
            self._begin_resigning(taken, resigned_for)
        if role in _SETTLED:
            self._trigger, self._sought = "", 0
            self._followed = _integer(taken, "leader_id") if role == "follower" else None

    def _outcome(self, taken: Values) -> str:
        if taken["to_role"] == "leader":
            return "won"
        has_winner = (taken["to_role"], taken["epoch"]) == ("follower", self._taken["sought"])
        if self._has_lost or (has_winner and taken["from_role"] == "candidate"):
            return "lost"
        return _OUTCOMES.get(str(taken["cause"]), "superseded")

    def expire(self, now_ms: int) -> None:
        """End the span of a long round and start the next one, which links to it."""
        if self._round is None or now_ms < self._deadline_ms:
            return
        asked = dict(self._asked)
        self._end_phase({})
        self._end_round("timed_out")
        self._begin_round({**self._taken, "cause": RoleChangeCause.ELECTION_TIMEOUT.value}, now_ms)
        self._begin_phase()
        self._asked = asked

    def _begin_round(self, taken: Values, now_ms: int) -> None:
        cause, sought = str(taken["cause"]), _integer(taken, "sought")
        trigger = self._resignation if cause in _AFTER_RESIGNATION else None
        self._has_lost, self._resignation = False, None
        self._deadline_ms = now_ms + self._longest_ms
        self._trigger = self._trigger or cause
        if sought != self._sought:
            self._sought, self._since_ms = sought, now_ms
        self._round = self._maker.round(
            sought,
            {
                "kraft.election.trigger": cause,
                "kraft.voters.size": _integer(taken, "voters"),
                "kraft.log.end_offset": _integer(taken, "log_end_offset"),
                "kraft.log.last_epoch": _integer(taken, "log_last_epoch"),
            },
            {"previous_election": self._newest, "trigger": trigger},
        )
        self._newest = self._round.get_span_context()

    def _begin_phase(self) -> None:
        kind, name = _PHASES[str(self._taken["to_role"])]
        needed = {"kraft.votes.needed": _integer(self._taken, "needed")}
        self._phase = self._maker.start_child(self._newest, kind, needed)
        self._phase.update_name(name)

    def _end_phase(self, taken: Values) -> None:
        self._asked.clear()
        if self._phase is None:
            return
        for name in ("granted", "rejected"):
            if name in taken:
                self._phase.set_attribute(f"kraft.votes.{name}", _integer(taken, name))
        if "granted" in taken:
            _, name = _PHASES[str(self._taken["to_role"])]
            votes = f"{_integer(taken, 'granted')} of {_integer(self._taken, 'voters')}"
            self._phase.update_name(f"{name}: {votes}")
        self._phase.end()
        self._phase = None

    def _end_round(self, outcome: str) -> None:
        if self._round is not None:
            self._round.set_attribute("kraft.election.outcome", outcome)
            self._round.update_name(f"round: {outcome.replace('_', ' ')}")
            self._round.end()
            self._round = None

    # --- leadership -------------------------------------------------------------------------------

    def saved(self, now_ms: int) -> None:
        """Start the spans of the new epoch: the winner's state is durable, its records come next.

        The root is created now. A winner that crashed earlier would win the same epoch again.
        """
        if self._won is None:
            return
        won, self._won = self._won, None
        epoch, node_id = _integer(self._taken, "epoch"), self._maker.node_id
        told: dict[str, str | int] = {
            "kraft.leader.id": node_id,
            "kraft.election.trigger": won.trigger,
        }
        name = f"node {node_id} won epoch {epoch}"
        if won.followed is not None:
            told["kraft.leader.previous_id"] = won.followed
            name += f" from node {won.followed}"
        # The wall clock may step back between two readings. The other clock counts whole
        # milliseconds, and no round may begin before the root.
        since_ns = time.time_ns() - (now_ms - won.since_ms + 1) * 1_000_000
        self._election = self._maker.election(epoch, told, since_ns)
        self._election.update_name(f"{name} ({won.trigger}){self._maker.tracing.place}")
        self._establishing = self._maker.start_child(
            self._election.get_span_context(),
            "kraft.leader.establish",
            {
                "kraft.epoch": epoch,
                "kraft.epoch.start_offset": _integer(self._taken, "epoch_start"),
            },
        )
        self._established_ns = time.time_ns()
        self._flushed.clear()
        self._establishing.update_name("commit LeaderChange")
        self._establishing.add_event("leader_change.appended")

    @property
    def is_establishing(self) -> bool:
        return self._establishing is not None

    def flushed(self, told: tuple[NodeId, Offset] | None) -> None:
        """A voter's flushed end was just reported to the leader."""
        if self._establishing is None or told is None:
            return
        node_id, end_offset = told
        if end_offset <= _integer(self._taken, "epoch_start") or node_id in self._flushed:
            return
        self._flushed.add(node_id)
        since_ns, now_ns = self._established_ns, time.time_ns()
        tracing = self._maker.tracing
        record_flush(tracing, "kraft.leader.flush", self._establishing, node_id, since_ns, now_ns)

    def progressed(self, high_watermark: Offset | None) -> None:
        """End the spans of the new epoch once a record of it is committed.

        That is when the high watermark is above the start of the epoch.
        """
        if self._establishing is None or high_watermark is None:
            return
        if high_watermark > _integer(self._taken, "epoch_start"):
            told = {"kraft.high_watermark": high_watermark}
            self._establishing.add_event("high_watermark.established", told)
            self._establishing.end()
            self._establishing = None
            if self._election is not None:
                self._election.end()
                self._election = None

    def _give_up(self, words: str) -> None:
        for span in (self._establishing, self._election):
            if span is not None:
                end_failed(span, words)
        self._won = self._establishing = self._election = None

    def _begin_resigning(self, taken: Values, resigned_for: SpanContext | None) -> None:
        preferred, epoch, reason = taken["preferred"], _integer(taken, "epoch"), str(taken["cause"])
        told: Attributes = {
            "kraft.epoch": epoch,
            "kraft.resign.reason": reason,
            "kraft.resign.preferred_successors": [
                str(node_id) for node_id in (preferred if isinstance(preferred, tuple) else ())
            ],
        }
        links = {"election": self._maker.root_of(epoch)} if resigned_for is None else {}
        self._resigning = self._maker.start_child(resigned_for, "kraft.resign", told, links)
        why = "restarted" if reason == RoleChangeCause.STARTUP.value else reason
        node_id, place = self._maker.node_id, self._maker.tracing.place
        self._resigning.update_name(f"node {node_id} resigned epoch {epoch} ({why}){place}")

    def _end_resigning(self) -> None:
        if self._resigning is not None:
            self._resigning.end()
            self._resigning = None

    def ended(self) -> None:
        """End all open spans: the core will never be stepped again."""
        self._end_phase({})
        self._end_round("stopped")
        self._give_up("the controller stopped")
        self._end_resigning()


def _said(response: VoteResponse) -> dict[str, str | bool]:
    """Describe a voter's response, with the reason of a rejection."""
    said: dict[str, str | bool] = {"granted": response.vote_granted}
    if response.refusal is not None:
        said["reason"] = response.refusal.value
    elif response.error is not ErrorCode.NONE:
        said["reason"] = response.error.name.lower()
    return said


def _integer(values: Values, name: str) -> int:
    value = values[name]
    assert isinstance(value, int)
    return value
