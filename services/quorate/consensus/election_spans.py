"""Spans of elections: how one began, who voted how, what the winner did first, why a leader went.

`kraft.election` is the root of the trace of the epoch that is sought, whose id follows from the
cluster and that epoch, so that rivals draw into one trace. A span is seen only when it is over, so
it ends with its round, or after the longest election timeout; what follows links back to it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from quorate.consensus.span_making import end_in_vain
from quorate.raft.api import CallFailure
from quorate.raft.messages import VoteResponse
from quorate.raft.notes import Cause
from quorate.records.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Mapping

    from opentelemetry.trace import Span, SpanContext

    from quorate.consensus.span_making import SpanMaker
    from quorate.raft.messages import PeerResponse
    from quorate.raft.notes import Value
    from quorate.records.ids import CallId, NodeId, Offset
    from quorate.telemetry.spans import Attributes

    Values = Mapping[str, Value]

_PHASES: Final = {
    "prospective": "kraft.election.pre_vote",
    "candidate": "kraft.election.vote",
}
# How a round ends that was not won here, by what ended it; anything else supersedes it.
_OUTCOMES: Final = {
    Cause.PRE_VOTE_REJECTED.value: "pre_vote_rejected",
    Cause.PRE_VOTE_TIMED_OUT.value: "timed_out",
    Cause.ELECTION_TIMEOUT.value: "timed_out",
    Cause.SHUTDOWN.value: "stopped",
}
# Most rounds begin because a voter is away, so its silence is expected and not a failure.
_UNREACHABLE: Final = (CallFailure.DISCONNECTED, CallFailure.TIMED_OUT)
_AFTER_RESIGNATION: Final = (Cause.END_QUORUM_EPOCH.value, Cause.LEADER_REMOVED.value)


class ElectionSpans:
    """Those of one replica, which has one round, one epoch to establish or one to end at a time."""

    def __init__(self, maker: SpanMaker, *, longest_ms: int) -> None:
        """`longest_ms` is the longest time that the core gives a round."""
        self._maker = maker
        self._longest_ms = longest_ms
        self._round: Span | None = None
        self._phase: Span | None = None
        self._establishing: Span | None = None
        self._resigning: Span | None = None
        # What the round began with; once it is won, what leadership began with.
        self._taken: Values = {}
        self._deadline_ms = 0
        self._has_lost = self._has_won = False
        self._asked: dict[CallId, NodeId] = {}
        self._newest: SpanContext | None = None
        self._resignation: SpanContext | None = None

    @property
    def current(self) -> SpanContext | None:
        """The span that what happens now belongs to; None while nothing is going on."""
        if self._has_won:
            return self._newest
        span = self._phase or self._establishing or self._resigning
        return None if span is None else span.get_span_context()

    # --- votes ------------------------------------------------------------------------------------

    def asked(self, call: CallId, voter: NodeId) -> None:
        """A voter is asked; what it answers belongs to the phase that is open now."""
        if self._phase is not None:
            self._asked[call] = voter

    def answered(self, call: CallId, response: PeerResponse | CallFailure) -> None:
        """A voter answered, or could not be asked."""
        voter = self._asked.pop(call, None)
        if voter is None or self._phase is None:
            return
        if isinstance(response, CallFailure):
            name = "peer.unreachable" if response in _UNREACHABLE else "vote.failed"
            self._phase.add_event(name, {"peer": voter, "reason": response.name.lower()})
        elif isinstance(response, VoteResponse):
            self._phase.add_event("vote.received", {"peer": voter, **_said(response)})

    def lost(self) -> None:
        """Too many refused; the candidate waits for the end of its round."""
        self._has_lost = True

    def heard_resignation(self, call: SpanContext | None) -> None:
        """A leader said by that call that it resigned: it triggers the next round."""
        self._resignation = call

    # --- roles ------------------------------------------------------------------------------------

    def role_taken(
        self, taken: Values, now_ms: int, *, resigned_for: SpanContext | None = None
    ) -> None:
        """What the note says; `resigned_for` is what a leader resigns for, where that is traced."""
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
            self._taken, self._has_won = taken, True
        elif role == "resigned":
            self._begin_resigning(taken, resigned_for)

    def _outcome(self, taken: Values) -> str:
        if taken["to_role"] == "leader":
            return "won"
        has_winner = (taken["to_role"], taken["epoch"]) == ("follower", self._taken["sought"])
        if self._has_lost or (has_winner and taken["from_role"] == "candidate"):
            return "lost"
        return _OUTCOMES.get(str(taken["cause"]), "superseded")

    def expire(self, now_ms: int) -> None:
        """A round that goes on is told in parts, each of which links to the one before."""
        if self._round is None or now_ms < self._deadline_ms:
            return
        asked = dict(self._asked)
        self._end_phase({})
        self._end_round("timed_out")
        self._begin_round({**self._taken, "cause": Cause.ELECTION_TIMEOUT.value}, now_ms)
        self._begin_phase()
        self._asked = asked

    def _begin_round(self, taken: Values, now_ms: int) -> None:
        cause, sought = str(taken["cause"]), _integer(taken, "sought")
        trigger = self._resignation if cause in _AFTER_RESIGNATION else None
        self._has_lost, self._resignation = False, None
        self._deadline_ms = now_ms + self._longest_ms
        self._round = self._maker.root(
            "kraft.election",
            {
                "kraft.epoch": sought,
                "kraft.election.trigger": cause,
                "kraft.voters.size": _integer(taken, "voters"),
                "kraft.log.end_offset": _integer(taken, "log_end_offset"),
                "kraft.log.last_epoch": _integer(taken, "log_last_epoch"),
            },
            epoch=sought,
            links={"previous_election": self._newest, "trigger": trigger},
        )
        self._newest = self._round.get_span_context()

    def _begin_phase(self) -> None:
        name = _PHASES[str(self._taken["to_role"])]
        needed = {"kraft.votes.needed": _integer(self._taken, "needed")}
        self._phase = self._maker.below(self._newest, name, needed)

    def _end_phase(self, taken: Values) -> None:
        self._asked.clear()
        if self._phase is None:
            return
        for name in ("granted", "rejected"):
            if name in taken:
                self._phase.set_attribute(f"kraft.votes.{name}", _integer(taken, name))
        self._phase.end()
        self._phase = None

    def _end_round(self, outcome: str) -> None:
        if self._round is not None:
            self._round.set_attribute("kraft.election.outcome", outcome)
            self._round.end()
            self._round = None

    # --- leadership -------------------------------------------------------------------------------

    def saved(self) -> None:
        """The winner's state is on the disk: the records that begin its epoch come next."""
        if not self._has_won:
            return
        self._has_won = False
        self._establishing = self._maker.below(
            self._newest,
            "kraft.leader.establish",
            {
                "kraft.epoch": _integer(self._taken, "epoch"),
                "kraft.epoch.start_offset": _integer(self._taken, "epoch_start"),
            },
        )
        self._establishing.add_event("leader_change.appended")

    def progressed(self, high_watermark: Offset | None) -> None:
        """A record of the epoch is committed once the high watermark is above its start."""
        if self._establishing is None or high_watermark is None:
            return
        if high_watermark > _integer(self._taken, "epoch_start"):
            told = {"kraft.high_watermark": high_watermark}
            self._establishing.add_event("high_watermark.established", told)
            self._establishing.end()
            self._establishing = None

    def _give_up(self, words: str) -> None:
        self._has_won = False
        if self._establishing is not None:
            end_in_vain(self._establishing, words)
            self._establishing = None

    def _begin_resigning(self, taken: Values, resigned_for: SpanContext | None) -> None:
        preferred = taken["preferred"]
        told: Attributes = {
            "kraft.epoch": _integer(taken, "epoch"),
            "kraft.resign.reason": str(taken["cause"]),
            "kraft.resign.preferred_successors": [
                str(node_id) for node_id in (preferred if isinstance(preferred, tuple) else ())
            ],
        }
        if resigned_for is not None:
            self._resigning = self._maker.below(resigned_for, "kraft.resign", told)
        else:
            links = {"election": self._newest}
            self._resigning = self._maker.root("kraft.resign", told, links=links)

    def _end_resigning(self) -> None:
        if self._resigning is not None:
            self._resigning.end()
            self._resigning = None

    def ended(self) -> None:
        """The core is never stepped again: nothing that is open would end by itself."""
        self._end_phase({})
        self._end_round("stopped")
        self._give_up("the controller stopped")
        self._end_resigning()


def _said(response: VoteResponse) -> dict[str, str | bool]:
    """What a voter answered, with its reason where it refused."""
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
