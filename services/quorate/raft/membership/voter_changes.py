"""Preconditions and commit of a voter-set change; at most one is in progress (KIP-853).

A change may begin only once a record of the leader's own epoch is committed: otherwise two voter
sets with disjoint majorities could both commit. A voter set is in effect as soon as it is appended,
and the change is complete when the high watermark passes it (KIP-853, "Voter changes";
rules `fetch_view_at_response`, `observer_lag_baseline` and `check_quorum_restart`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from quorate.raft.membership.rejection import Rejection
from quorate.raft.membership.shutdown_permit_state import holds_permit
from quorate.raft.messages import AddRaftVoterRequest, Reason, RemoveRaftVoterRequest
from quorate.raft.roles import Leader, PendingChange
from quorate.records.control import KRaftVoters, encode_control
from quorate.records.errors import ErrorCode
from quorate.records.field_limits import record_problem
from quorate.records.ids import Offset
from quorate.records.voters import Voter

if TYPE_CHECKING:
    from quorate.raft.replica import Replica
    from quorate.raft.replication.leader import LeaderReplication
    from quorate.raft.roles import Progress
    from quorate.records.control import ControlRecord
    from quorate.records.ids import ClusterId, Millis, ReplicaKey, ReplyToken
    from quorate.records.voters import Endpoint, VoterSet

# Number of records by which a voter may lag when it is added, or takes over leadership.
LAG_MAX: Final = 10_000
# A slow voter may have sent one Fetch just before the change was requested. The next one shows that
# it is alive; each takes at most a fetch timeout.
LIVE_FETCH_TIMEOUTS: Final = 2


class VoterChanges:
    """The voter change that a leader may have in progress, at most one."""

    def __init__(self, replica: Replica, leader_replication: LeaderReplication) -> None:
        self.replica = replica
        self.leader_replication = leader_replication

    # --- preconditions ----------------------------------------------------------------------------

    def check_leader(self, cluster_id: ClusterId | None) -> Rejection | None:
        """Reject a request for another cluster, or at a replica that does not lead."""
        replica = self.replica
        if cluster_id is not None and cluster_id != replica.config.cluster_id:
            return Rejection(
                ErrorCode.INCONSISTENT_CLUSTER_ID,
                Reason.INCONSISTENT_CLUSTER_ID,
                f"cluster_id is {cluster_id}, this is cluster {replica.config.cluster_id}: ask a "
                "controller of your cluster",
            )
        if not isinstance(replica.role, Leader):
            leader_id = replica.election.leader_id
            known = f"the leader is {leader_id}" if leader_id is not None else "none is known"
            text = f"node {replica.node_id} does not lead epoch {replica.epoch}; {known}"
            return Rejection(ErrorCode.NOT_LEADER_OR_FOLLOWER, Reason.NOT_LEADER, text)
        if replica.is_stopping:
            # Rule `stopping_replica`: a stopping leader completes changes, and begins none.
            text = f"node {replica.node_id} does not lead epoch {replica.epoch} any more: it stops"
            return Rejection(ErrorCode.NOT_LEADER_OR_FOLLOWER, Reason.NOT_LEADER, text)
        return None

    def check_preconditions(self, role: Leader) -> Rejection | None:
        """One change at a time, and none before the leader knows committed state and live voters.

        Rule `check_quorum_restart`: a leader younger than the fetch timeout cannot tell failed
        voters from slow ones.
        """
        replica = self.replica
        if replica.log.kraft_version < 1:
            text = (
                "kraft.version is 0, at which the voter set is in the settings: upgrade it first "
                "(quorate features upgrade --feature kraft.version=1)"
            )
            return Rejection(ErrorCode.UNSUPPORTED_VERSION, Reason.KRAFT_VERSION_TOO_OLD, text)
        obstacle = self.check_epoch_committed(role) or self.check_no_pending_change(role)
        age = replica.timers.now - role.elected_ms
        if obstacle is None and age < replica.config.fetch_timeout_ms:
            text = (
                f"the leader of epoch {replica.epoch} was elected {age} ms ago and has yet to "
                "learn who "
                f"fetches: try again in {replica.config.fetch_timeout_ms} ms"
            )
            return Rejection(ErrorCode.REQUEST_TIMED_OUT, Reason.HIGH_WATERMARK_UNKNOWN, text)
        return obstacle

    def check_epoch_committed(self, role: Leader) -> Rejection | None:
        """The rejection before a record of the own epoch is committed: the set is uncertain."""
        replica = self.replica
        if replica.commit_state.has_committed_in_epoch(role):
            return _why_second_quorum(replica)
        text = (
            f"the leader has not committed a record of its epoch {replica.epoch} yet: try again "
            "when a "
            "majority of the voters fetches"
        )
        return Rejection(ErrorCode.REQUEST_TIMED_OUT, Reason.HIGH_WATERMARK_UNKNOWN, text)

    def check_no_pending_change(self, role: Leader) -> Rejection | None:
        """The rejection while another change is in progress."""
        replica = self.replica
        if role.pending is not None:
            what = role.pending.what
        elif role.transfer is not None:
            # The held proposals are for the next offsets.
            what = f"hand over to {role.transfer.to}"
        elif not self.is_committed():
            what = f"the set at offset {replica.log.voters_offset}"
        else:
            return None
        return Rejection(
            ErrorCode.REQUEST_TIMED_OUT,
            Reason.PENDING_VOTER_CHANGE,
            f"another change of the voters is not committed yet ({what}): try again later",
            (("pending", what),),
        )

    def is_committed(self) -> bool:
        """True if the latest set and the latest kraft.version are committed."""
        replica = self.replica
        newest = max(replica.log.voters_offset, replica.log.kraft_version_offset)
        return newest < replica.high_watermark

    def check_live_majority(
        self, role: Leader, voters: VoterSet, pending: PendingChange | None = None
    ) -> Rejection | None:
        """A set with a silent majority could not commit anything (strict-reconfig-check).

        The same applies if a majority is about to stop. With `pending` a voter counts only once it
        has sent a Fetch after that change was requested, since it may have been partitioned just
        before.
        """
        alive = _alive(self, role, voters, pending)
        if len(alive) >= voters.majority:
            return None
        lively = [int(key.node_id) for key in alive]
        within = f"within {self.replica.config.fetch_timeout_ms} ms"
        since = within if pending is None else "since this was asked for"
        recent = _alive(self, role, voters)
        late = [int(key.node_id) for key in recent if key not in alive]
        remedy = _remedy(late, within)
        text = (
            f"of the voters {voters.ids} that would be left only {lively} fetched {since} and "
            f"stay, and a majority is {voters.majority}: {remedy}, or override this check with "
            "force"
        )
        metadata = (("alive", str(len(alive))), ("majority", str(voters.majority)))
        return Rejection(ErrorCode.REQUEST_TIMED_OUT, Reason.NO_LIVE_MAJORITY, text, metadata)

    def voters_after(self, request: AddRaftVoterRequest | RemoveRaftVoterRequest) -> VoterSet:
        """The voter set after this change."""
        voters, key = self.replica.voters, request.voter
        if isinstance(request, RemoveRaftVoterRequest):
            return voters.without(key, decommission=request.decommissions)
        return voters.with_voter(Voter(key))

    def begin_round(self, role: Leader, pending: PendingChange) -> None:
        """Start a round of Fetches by the voters, as a linearizable read does (decision 0002)."""
        replica = self.replica
        pending.read_round = role.begin_round()
        wait_ms = replica.config.fetch_timeout_ms * LIVE_FETCH_TIMEOUTS
        pending.live_by = min(pending.deadline, replica.timers.after(wait_ms))

    def wait(self, role: Leader, pending: PendingChange) -> None:
        """Make this the change in progress, and answer parked Fetches so that new ones arrive."""
        role.pending = pending
        if pending.read_round > 0:
            self.leader_replication.fetch_responder.flush_parked_voters(role)

    def why_silent(self, role: Leader, pending: PendingChange) -> Rejection | None:
        """The rejection if a majority of the resulting set has not fetched since the request."""
        if pending.request is None or pending.read_round == 0:
            return None
        return self.check_live_majority(role, self.voters_after(pending.request), pending)

    def is_alive(self, progress: Progress | None) -> bool:
        """True if a replica has fetched within the fetch timeout."""
        return self.is_recent(progress.last_fetch_ms if progress is not None else None)

    def is_recent(self, moment: Millis | None) -> bool:
        """True if a time is within the last fetch timeout."""
        return (
            moment is not None
            and self.replica.timers.now - moment <= self.replica.config.fetch_timeout_ms
        )

    def check_caught_up(self, role: Leader, key: ReplicaKey) -> Rejection | None:
        """The rejection unless caught up within a fetch timeout, with bounded lag (KAFKA-19933)."""
        replica = self.replica
        progress = role.progress.get(key)
        if progress is None or progress.fetch_offset is None:
            text = f"node {key.node_id} has not fetched from this leader: start it, and let it"
            return Rejection(ErrorCode.REQUEST_TIMED_OUT, Reason.VOTER_LAGGING, text)
        lag = max(0, replica.commit_state.fetchable_end(key) - progress.fetch_offset)
        if self.is_recent(progress.last_caught_up_ms) and lag <= LAG_MAX:
            return None
        text = (
            f"node {key.node_id} is {lag} records behind and was not caught up within "
            f"{replica.config.fetch_timeout_ms} ms: wait until it is"
        )
        return Rejection(
            ErrorCode.REQUEST_TIMED_OUT, Reason.VOTER_LAGGING, text, (("lag", str(lag)),)
        )

    def address(self, listeners: tuple[Endpoint, ...]) -> Endpoint | None:
        """The endpoint of the listener that all voters share."""
        return next((e for e in listeners if e.name == self.replica.config.listener_name), None)

    def check_listeners(self, listeners: tuple[Endpoint, ...]) -> Rejection | None:
        """The rejection for endpoints without the common listener, or with duplicate names.

        With two addresses under one name the other replicas would use either one, and a voter that
        corrects its own entry would not remove the second.
        """
        names = [endpoint.name for endpoint in listeners]
        shown = ", ".join(names)
        if len(set(names)) < len(names):
            text = f"listeners has {shown}: name each once"
        elif self.address(listeners) is None:
            wanted = self.replica.config.listener_name
            text = (
                f"listeners has {shown or 'none'}: the voters reach each other by {wanted}, "
                "so add that one"
            )
        else:
            return None
        return Rejection(ErrorCode.INVALID_REQUEST, Reason.INVALID_LISTENERS, text)

    def check_record_limits(self, voters: VoterSet) -> Rejection | None:
        """The rejection if this voter set cannot be encoded: it is not appended.

        See rule `input_bounds`.
        """
        try:
            encode_control(KRaftVoters(voters))
            problem = record_problem(voters)
        except ValueError as error:
            problem = str(error)
        if problem is None:
            return None
        text = f"listeners has what no record of the voters can hold: {problem}"
        return Rejection(ErrorCode.INVALID_REQUEST, Reason.INVALID_LISTENERS, text)

    def reject(self, token: ReplyToken, rejection: Rejection) -> None:
        """Answer with the rejection."""
        self.replica.out.reply(token, rejection.response(self.replica.leader_info))

    # --- progress ---------------------------------------------------------------------------------

    def append(
        self, pending: PendingChange | None, *before: ControlRecord, voters: VoterSet
    ) -> None:
        """Append the new voter set; `pending` is for callers that wait until it is committed."""
        role = self.replica.role
        assert isinstance(role, Leader)
        role.pending = pending
        if pending is not None:
            pending.offset = Offset(self.replica.log.end.offset + len(before))
            pending.read_round = 0
        self.leader_replication.append_voters(*before, KRaftVoters(voters))

    def expire(self) -> None:
        """Answer callers that have waited for too long; an appended set stays in effect."""
        replica = self.replica
        role = replica.role
        pending = role.pending if isinstance(role, Leader) else None
        if pending is None:
            return
        assert isinstance(role, Leader)
        if pending.offset is None:
            self._expire_waiting(role, pending)
            return
        if pending.deadline > replica.timers.now:
            return
        role.pending = None
        text = (
            f"{pending.what}: the new set is in force at offset {pending.offset} but not committed "
            "in time; it is finished when a majority of it fetches, or rolled back by a new leader"
        )
        obstacle = Rejection(
            ErrorCode.REQUEST_TIMED_OUT,
            Reason.NOT_COMMITTED_IN_TIME,
            text,
            (("offset", str(pending.offset)),),
        )
        self.reject(pending.token, obstacle)

    def _expire_waiting(self, role: Leader, pending: PendingChange) -> None:
        """Reject a change not appended in time: too few fetched, or the voter did not answer."""
        now = self.replica.timers.now
        silent = None
        if pending.live_by is not None and pending.live_by <= now:
            silent = self.why_silent(role, pending)
        if silent is not None:
            role.pending = None
            self.reject(pending.token, silent)
        elif pending.call is not None and pending.deadline <= now:
            role.pending = None
            self.refuse_unreachable(pending)

    def refuse_unreachable(self, pending: PendingChange) -> None:
        """Reject because the new voter did not report its versions."""
        request = pending.request
        assert isinstance(request, AddRaftVoterRequest)
        endpoint = self.address(request.listeners)
        text = (
            f"{pending.what}: node {request.voter.node_id} does not answer ApiVersions at "
            f"{endpoint}: see that it runs, and that this address is its own"
        )
        obstacle = Rejection(ErrorCode.REQUEST_TIMED_OUT, Reason.VOTER_UNREACHABLE, text)
        self.reject(pending.token, obstacle)

    def add_deadlines(self, due: list[Millis]) -> None:
        """Add the times at which the pending change continues or times out."""
        replica = self.replica
        role = replica.role
        pending = role.pending if isinstance(role, Leader) else None
        if pending is None:
            return
        assert isinstance(role, Leader)
        due.append(pending.deadline)
        if pending.offset is not None or pending.live_by is None:
            return
        if self.why_silent(role, pending) is not None:
            due.append(pending.live_by)
            # A voter whose permit expires counts again.
            lapses = (leave.until_ms for leave in role.shutdown_permits.values())
            due += [until_ms for until_ms in lapses if until_ms > replica.timers.now]
        elif pending.call is None:
            # It continues in a step of its own, after all earlier decisions.
            due.append(replica.timers.now)


def _has_echoed(role: Leader, pending: PendingChange, key: ReplicaKey) -> bool:
    """True if a voter has fetched since the change was requested.

    The new voter need not have fetched: it has to answer the request for its versions.
    """
    is_new = pending.request is not None and key == pending.request.voter
    return is_new or role.read_rounds_echoed.get(key, 0) >= pending.read_round


def _alive(
    voter_changes: VoterChanges,
    role: Leader,
    voters: VoterSet,
    pending: PendingChange | None = None,
) -> list[ReplicaKey]:
    """Voters of a set without a permit that fetched recently, or since `pending` began."""
    own = voter_changes.replica.key
    return [
        voter.key
        for voter in voters
        if not holds_permit(voter_changes.replica, role, voter.key)
        and (
            voter.key == own
            or (
                voter_changes.is_alive(role.progress.get(voter.key))
                and (pending is None or _has_echoed(role, pending, voter.key))
            )
        )
    ]


def _remedy(late: list[int], within: str) -> str:
    if not late:
        return "bring the others back first"
    return (
        f"{late} fetched {within}, but show no Fetch sent since: see that they are neither cut off "
        "nor slow, and send read rounds back, as stock and old ones do not"
    )


def _why_second_quorum(replica: Replica) -> Rejection | None:
    """Rule `sole_voter_conflict`: commits are not reliable while there is another quorum."""
    remark = replica.second_quorum.remark()
    if remark is None:
        return None
    return Rejection(ErrorCode.REQUEST_TIMED_OUT, Reason.HIGH_WATERMARK_UNKNOWN, remark)
