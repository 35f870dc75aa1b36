"""Carries out a membership change across leader changes, without doing it twice.

A change is repeated only if that cannot do it twice: after a transient rejection, if it was never
sent, or if its outcome was unknown and the leader's log then shows that it is missing. An unknown
outcome is always settled by describing the quorum.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from quorate.api.admin_api import OUTCOME_UNKNOWN, AdminError, ChangeResult
from quorate.client.backoff import ATTEMPT_MIN_S, Backoff, told_ms
from quorate.client.controller_calls import (
    OutcomeUnknownError,
    QuorumUnavailableError,
    RequestRefusedError,
    name_of,
)
from quorate.client.membership_requests import (
    UNKNOWN_EPOCH,
    Completion,
    complete_request,
    completion_of,
    predict_rejection,
)
from quorate.client.unresponsive_servers import LeaderReplacedError
from quorate.raft import messages as m
from quorate.records.errors import ErrorCode
from quorate.records.escaping import shown
from quorate.records.ids import Millis
from quorate.telemetry import tracing

if TYPE_CHECKING:
    from quorate.client.controller_client import ControllerClient
    from quorate.client.leader_finder import FoundLeader, LeaderFinder

log = logging.getLogger(__name__)

# Characters shown of a leader's message.
_SAID_SHOWN_MAX: Final = 500
# Fraction of the remaining time: the leader gives up first, so that it can give the reason.
LEADER_SHARE: Final = 0.8
# Transient reasons: nothing was changed.
TRANSIENT_REASONS: Final = frozenset(
    {m.Reason.NOT_LEADER, m.Reason.PENDING_VOTER_CHANGE, m.Reason.HIGH_WATERMARK_UNKNOWN}
)
# The change may be in the log.
UNKNOWN_OUTCOME_REASONS: Final = frozenset(
    {m.Reason.LEADERSHIP_LOST, m.Reason.NOT_COMMITTED_IN_TIME}
)
# Errors of a leader for a change that was already made.
_DONE_BEFORE: Final = frozenset({ErrorCode.DUPLICATE_VOTER, ErrorCode.VOTER_NOT_FOUND})


class MembershipClient:
    """Asks the current leader; the first server of the client is the nearest controller."""

    def __init__(self, client: ControllerClient) -> None:
        self._client = client
        self._finder = client.finder

    async def describe(self, deadline: float) -> m.DescribeQuorumResponse:
        """The leader's view, by `deadline` of the loop's clock. Raises AdminError: NO_LEADER."""
        return (await self._finder.find(deadline)).quorum

    async def predict(
        self, request: m.MembershipRequest, deadline: float
    ) -> tuple[m.MembershipRequest, AdminError | None]:
        """Predict the request that would be sent, and its rejection as far as that can be known.

        Raises AdminError if the request could not be sent at all.
        """
        whole, found = await self._complete(request, deadline)
        return whole, predict_rejection(whole, found.quorum)

    async def change(self, request: m.MembershipRequest, deadline: float) -> ChangeResult:
        """Carry out the change by `deadline` of the loop's clock. Raises AdminError."""
        whole, found = await self._complete(request, deadline)
        return await _ChangeAttempt(self._client, self._finder, whole, deadline).run(found)

    async def _complete(
        self, request: m.MembershipRequest, deadline: float
    ) -> tuple[m.MembershipRequest, FoundLeader]:
        found = await self._finder.find(deadline)
        cluster_id = await self._finder.cluster_id(found, deadline)
        return complete_request(request, found.quorum, cluster_id), found


class _ChangeAttempt:
    """One change in progress. `_open` is the reason for which it may be in the log already."""

    def __init__(
        self,
        client: ControllerClient,
        finder: LeaderFinder,
        request: m.MembershipRequest,
        deadline: float,
    ) -> None:
        self._client = client
        self._finder = finder
        self._request = request
        self._backoff = Backoff(deadline)
        self._open: AdminError | None = None
        self._successor: m.LeaderInfo | None = None

    async def run(self, found: FoundLeader) -> ChangeResult:
        """Request and check until the change is done. Raises AdminError."""
        before: AdminError | None = None
        while True:
            said = self._open
            where = (
                Completion.NOT_DONE if said is None else completion_of(self._request, found.quorum)
            )
            if where is Completion.NOT_DONE:
                if before is not None and self._backoff.left_s <= ATTEMPT_MIN_S:
                    # Requested now, its outcome would become unknown, which it is not yet.
                    raise self._last_word(before)
                said = before = await self._ask(found)
                where = Completion.DONE if said is None else Completion.UNCOMMITTED
            if where is Completion.DONE:
                return ChangeResult(self._request, self._successor or found.quorum.leader)
            assert said is not None
            again = {"reason": said.reason, "repeats": ("asks again", said.reason)}
            log.info(f"asks again: {shown(said.message, _SAID_SHOWN_MAX)}", extra=again)
            told = {"reason": said.reason, "message": said.message}
            tracing.event("kraft.voter_change.asks_again", told)
            if not await self._backoff.wait():
                raise self._last_word(said)
            is_fair = self._backoff.left_s > ATTEMPT_MIN_S
            try:
                found = await self._finder.find(self._backoff.deadline)
            except AdminError as error:
                raise self._last_word(error if is_fair else said) from error

    def _last_word(self, error: AdminError) -> AdminError:
        """The error at the deadline; an unknown outcome is not hidden."""
        if self._open is None or self._open is error:
            return error
        return AdminError(
            OUTCOME_UNKNOWN,
            ErrorCode.REQUEST_TIMED_OUT,
            f"the change may have been made, or may still be ({self._open.message}); since then: "
            f"{error.message}. Look at the quorum before you ask again",
            (self._open.metadata | error.metadata).items(),
        )

    async def _ask(self, found: FoundLeader) -> AdminError | None:
        """None when done, else a transient error. Raises AdminError for a permanent one."""
        request = self._timed(found)
        left_s = max(0.001, self._backoff.left_s)
        calling = self._client.change_on(found.server, request, left_s)
        try:
            # Only a later leader counts: this one may be slow.
            answer = await self._finder.call(found.server, calling, is_repeatable=False)
        except LeaderReplacedError as error:
            said = f"{name_of(found.server)}: {error}"
            self._open = AdminError(OUTCOME_UNKNOWN, ErrorCode.REQUEST_TIMED_OUT, said)
            return self._open
        except QuorumUnavailableError as error:
            self._finder.on_leader_lost()
            return AdminError(
                m.Reason.NOT_LEADER.value, ErrorCode.NOT_LEADER_OR_FOLLOWER, str(error)
            )
        except RequestRefusedError as error:
            raise AdminError(error.reason, error.error, error.message) from error
        except OutcomeUnknownError as error:
            self._finder.on_leader_lost()
            self._open = AdminError(OUTCOME_UNKNOWN, ErrorCode.REQUEST_TIMED_OUT, str(error))
            return self._open
        if answer.error is ErrorCode.NONE:
            return await self._accepted(found)
        refusal = AdminError.of(answer)
        if answer.reason in UNKNOWN_OUTCOME_REASONS:
            self._open = refusal
        elif answer.error is ErrorCode.NOT_LEADER_OR_FOLLOWER:
            self._finder.on_leader_lost()
        elif not self._passes(answer.reason):
            if self._open is not None and answer.error in _DONE_BEFORE:
                again = await self._finder.find(self._backoff.deadline)
                if completion_of(self._request, again.quorum) is not Completion.NOT_DONE:
                    return self._open
            raise refusal
        return refusal

    def _passes(self, reason: m.Reason | None) -> bool:
        is_ours = (
            isinstance(self._request, m.UpdateRaftVoterRequest)
            and self._request.current_leader_epoch == UNKNOWN_EPOCH
        )
        return reason in TRANSIENT_REASONS or (reason is m.Reason.STALE_EPOCH and is_ours)

    def _timed(self, found: FoundLeader) -> m.MembershipRequest:
        """The request for this leader, which has to answer before the deadline."""
        match self._request:
            case m.AddRaftVoterRequest() | m.RemoveRaftVoterRequest():
                timeout_ms = Millis(max(1, told_ms(self._backoff.left_s * LEADER_SHARE)))
                return replace(self._request, timeout_ms=timeout_ms)
            case m.UpdateRaftVoterRequest(current_leader_epoch=epoch):
                epoch = epoch or found.quorum.leader.epoch
                return replace(self._request, current_leader_epoch=epoch)
            case _:
                return self._request

    async def _accepted(self, found: FoundLeader) -> AdminError | None:
        """Two kinds of requests are answered before they are done: wait for them here."""
        match self._request:
            case m.UpdateRaftVoterRequest() if found.quorum.kraft_version > 0:
                self._open = AdminError(
                    m.Reason.NOT_COMMITTED_IN_TIME.value,
                    ErrorCode.REQUEST_TIMED_OUT,
                    "the leader has appended the update, and it is not committed yet",
                )
                return self._open
            case m.TransferLeadershipRequest(voter=to):
                if found.quorum.leader.leader_id == to.node_id:
                    return None
                self._finder.on_leader_lost()
                leader = (await self._finder.find(self._backoff.deadline)).quorum.leader
                if leader.leader_id == to.node_id:
                    self._successor = leader
                    return None
                raise AdminError(
                    m.Reason.NO_HAND_OVER.value,
                    ErrorCode.REQUEST_TIMED_OUT,
                    f"the leader stepped down for {to}, but node {leader.leader_id} leads epoch "
                    f"{leader.epoch} now",
                    (("leader_id", str(leader.leader_id)), ("leader_epoch", str(leader.epoch))),
                )
            case _:
                return None
