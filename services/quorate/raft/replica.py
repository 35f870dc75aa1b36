"""One replica's state, and the only places where its role, epoch and vote change.

Election state is saved (a barrier effect) before anything that depends on it is emitted, so that a
crash between two effects never forgets a vote (seed "KRaft Consensus", durableTransitionTo).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from quorate.raft.addresses import Addresses
from quorate.raft.api import (
    AppendToLog,
    ControlBatch,
    Effect,
    Peer,
    PublishProgress,
    SaveElection,
    SendReply,
    SendRequest,
)
from quorate.raft.backoff import backoff_ms
from quorate.raft.believing import Believing
from quorate.raft.calls import TAKES_TURNS, Call, CallKind, Calls
from quorate.raft.contradictions import Contradictions
from quorate.raft.epoch_start import append_epoch_start
from quorate.raft.log_state import LogState
from quorate.raft.messages import (
    ElectionState,
    EpochStart,
    LeaderInfo,
    MembershipResponse,
    PeerRequest,
    Response,
)
from quorate.raft.notes import Cause, Notebook, NoteKind
from quorate.raft.roles import (
    TRANSITIONS,
    Candidate,
    Follower,
    Leader,
    Prospective,
    Refusal,
    Resigned,
    Role,
    Starting,
    Suspicion,
    Tally,
    Unattached,
    role_name,
)
from quorate.raft.transitions import role_values
from quorate.raft.waiting import end_waiting
from quorate.records.ids import (
    Epoch,
    Millis,
    NodeId,
    Offset,
    OffsetAndEpoch,
    ReplicaKey,
    ReplyToken,
)

if TYPE_CHECKING:
    from quorate.raft.api import RaftConfig, Random, RecoveredState
    from quorate.raft.waiting import Obstacle
    from quorate.records.control import ControlRecord
    from quorate.records.voters import Endpoint, Voter, VoterSet

# Of the election timeout: how long a peer that cannot be reached is left alone at the most.
BACKOFF_SHARE: Final = 8


class Replica:
    """Everything that the modules of the core share."""

    def __init__(self, config: RaftConfig, recovered: RecoveredState, random: Random) -> None:
        self.config = config
        self.key = config.key
        self.random = random
        self.now = Millis(0)
        self.log = LogState(recovered)
        self.election = recovered.election or ElectionState(Epoch(0))
        self.role: Role = Starting()
        self.leader_endpoints: tuple[Endpoint, ...] = ()
        self.addresses = Addresses(config.cluster_id, config.listener_name)
        newest = self.log.newest_snapshot
        # A snapshot holds committed records only, so the high watermark starts there (rule 15).
        self.high_watermark: Offset = newest.offset if newest else Offset(0)
        self.leader_high_watermark = self.high_watermark
        self.remembered_end = recovered.remembered_end
        self.abstains = recovered.abstains
        self.is_ready = True
        # Since when the disk has owed a flush without any progress; None while it owes none.
        self.unflushed_since: Millis | None = None
        self.waited_in_epoch: Epoch | None = None
        self.suspicion: Suspicion | None = None
        self.contradictions = Contradictions(config, random)
        self.lost_rounds = 0
        self.brokers_support: int | None = None
        self.last_leader: LeaderInfo | None = None
        self._own_info = LeaderInfo(self.key.node_id, Epoch(-1))
        self.heard_ms: dict[NodeId, Millis] = {}
        self.calls = Calls()
        self.believing = Believing(self)
        self.shutdown_deadline: Millis | None = None
        # Rule 25: asked to stop; a leader owes a successor since. Rule 7: was a voter in this life.
        self.is_stopping = self.owes_successor = self.was_voter = False
        # Voters whose processes could not be connected to when that was last tried.
        self.unreachable: set[NodeId] = set()
        self.refusals: dict[NodeId, Refusal] = {}
        self.effects: list[Effect] = []
        self.notes = Notebook()
        self.note, self.tell = self.notes.note, self.notes.tell
        self.published: tuple[type, Epoch, NodeId | None, Offset] | None = None

    # --- what others ask ------------------------------------------------------------------------

    @property
    def node_id(self) -> NodeId:
        return self.key.node_id

    @property
    def epoch(self) -> Epoch:
        return self.election.epoch

    @property
    def voters(self) -> VoterSet:
        return self.log.voter_set

    @property
    def is_voter(self) -> bool:
        """Whether the latest set holds this very replica, directory included."""
        return self.key in self.voters

    @property
    def is_healing(self) -> bool:
        """Rule 16: this replica's log is behind what it once had."""
        return self.remembered_end is not None

    @property
    def vote_bar(self) -> OffsetAndEpoch:
        """The log that a nominee's must be at least as up to date as (rule 16)."""
        if self.remembered_end is None:
            return self.log.end
        return max(self.log.end, self.remembered_end)

    @property
    def may_campaign(self) -> bool:
        """Whether this replica may ask for votes.

        Rule 1: one whose removal is in its log but not known committed still campaigns, or a quorum
        whose leader died right after appending the removal could stay without a leader for ever.
        """
        if self.abstains or self.is_healing or self.is_stopping:
            return False
        return any(self.key in voters for voters in self.possible_voter_sets())

    def possible_voter_sets(self) -> list[VoterSet]:
        """The sets that may be in force, the latest first."""
        return self.log.possible_voter_sets(self.high_watermark)

    @property
    def flush_deadline(self) -> Millis | None:
        """When a flush that is under way has taken too long (rule 24); None when there is none."""
        since = self.unflushed_since
        return None if since is None else Millis(since + self.config.fetch_timeout_ms * 3 // 2)

    @property
    def is_disk_hanging(self) -> bool:
        """Whether the disk owes a flush for longer than a leader may wait for its voters."""
        deadline = self.flush_deadline
        return deadline is not None and deadline <= self.now

    def note_unflushed(self) -> None:
        """Begin or end to count how long the disk takes."""
        if self.log.flushed >= self.log.end.offset:
            self.unflushed_since = None
        elif self.unflushed_since is None:
            self.unflushed_since = self.now

    @property
    def is_only_voter(self) -> bool:
        return len(self.voters) == 1 and self.is_voter

    @property
    def leader_info(self) -> LeaderInfo:
        """Whom this replica names as leader in its answers."""
        leader_id, epoch = self.election.leader_id, self.election.epoch
        if leader_id is None:
            return LeaderInfo(None, epoch)
        # Not by the role: at a step-down the next leader is known before the role has changed.
        if leader_id == self.key.node_id:
            if self._own_info.epoch != epoch:
                self._own_info = LeaderInfo(leader_id, epoch, self.config.endpoints)
            return self._own_info
        endpoints = self.leader_endpoints
        if not endpoints:
            # A leader that is known from the disk announced none yet; the set may know where it is.
            voter = self.voters.by_id(leader_id)
            endpoints = voter.endpoints if voter is not None else ()
        return LeaderInfo(leader_id, epoch, endpoints)

    def draw_election_timeout(self) -> Millis:
        """Election timeout plus a draw below it, so that rivals rarely meet."""
        timeout = self.config.election_timeout_ms
        return Millis(timeout + int(self.random.random() * timeout))

    def draw(self, below_ms: int) -> Millis:
        """A draw from 0 up to, not including, `below_ms`."""
        return Millis(int(self.random.random() * below_ms))

    def after(self, delay_ms: int) -> Millis:
        return Millis(self.now + delay_ms)

    def peer(self, voter: Voter) -> Peer | None:
        """Where a voter is reached: the listener that all voters share, or where it says it is."""
        return self.addresses.peer(voter)

    def leader_peer(self) -> Peer | None:
        """Where this follower's leader is reached: by what it announced, or by the voter set."""
        leader_id = self.election.leader_id
        if leader_id is None:
            return None
        for endpoint in self.leader_endpoints:
            if endpoint.name == self.config.listener_name:
                return Peer(leader_id, endpoint.host, endpoint.port)
        voter = self.voters.by_id(leader_id)
        return self.peer(voter) if voter else None

    def waits_until_ready(self) -> bool:
        """Rule 11: a state machine that could not lead yet waits once an epoch, never for ever."""
        if self.is_disk_hanging:
            return True
        if self.is_ready or self.waited_in_epoch == self.epoch:
            return False
        self.waited_in_epoch = self.epoch
        self.note(NoteKind.NOT_READY, "not ready to lead: waits one election timeout")
        return True

    # --- what every module emits ----------------------------------------------------------------

    def emit(self, effect: Effect) -> None:
        self.effects.append(effect)

    def reply(self, token: ReplyToken, response: Response) -> None:
        self.effects.append(SendReply(token, response))

    def refuse(
        self, token: ReplyToken, obstacle: Obstacle, leader: LeaderInfo | None = None
    ) -> None:
        """Answer a change of the voters that may not be."""
        reason = obstacle.reason
        response = MembershipResponse(
            obstacle.error, obstacle.text, leader or self.leader_info, reason, obstacle.metadata
        )
        self.effects.append(SendReply(token, response))

    def send(self, kind: CallKind, to: Peer, request: PeerRequest) -> Call:
        """Send a request that the core waits for; it times out after the request timeout."""
        deadline = self.after(self.config.request_timeout_ms)
        call = self.calls.open(kind, to.node_id, self.epoch, deadline, to, self.now)
        if kind in TAKES_TURNS:
            self.addresses.sent(to, self.voters, self.after(-self.config.election_timeout_ms))
        self.effects.append(SendRequest(call.call, to, request))
        return call

    def back_off(self, kind: CallKind, to: NodeId) -> None:
        """Leave a peer alone after a failure, ever longer while they go on (rule 32)."""
        delay = backoff_ms(
            self.calls.failed(kind, to),
            first_ms=self.config.retry_backoff_ms,
            longest_ms=max(
                self.config.retry_backoff_ms, self.config.election_timeout_ms // BACKOFF_SHARE
            ),
            random=self.random,
        )
        self.calls.back_off(kind, to, self.after(delay))

    def save_election(self, state: ElectionState) -> None:
        """Make epoch, leader and vote durable before any effect that follows."""
        if state == self.election:
            return
        if state.epoch > self.epoch:
            self.lost_rounds = 0
        self.election = state
        if self.effects and isinstance(self.effects[-1], SaveElection):
            # Nothing rests on the state between: one write is enough, and each takes two flushes.
            self.effects.pop()
        self.effects.append(SaveElection(state, self.log.kraft_version, self.voters))

    def append_control(self, *records: ControlRecord) -> OffsetAndEpoch:
        """Append control records of our own, as one batch, at the log's end."""
        base = self.log.end.offset
        end = OffsetAndEpoch(epoch=self.epoch, offset=Offset(base + len(records)))
        self.effects.append(AppendToLog(base, end, ControlBatch(records)))
        starts = [EpochStart(self.epoch, base)] if self.epoch > self.log.end.epoch else []
        self.log.append(end, starts)
        for index, record in enumerate(records):
            self.log.append_control(Offset(base + index), record)
        return end

    def publish(self) -> None:
        """Tell the shell what changed for the state machine and the status."""
        role, election = self.role, self.election
        # Hardly any step has news. Where a leader's epoch began does not change within it.
        published = (type(role), election.epoch, election.leader_id, self.high_watermark)
        if published == self.published:
            return
        self.published = published
        start = role.epoch_start if isinstance(role, Leader) else None
        is_leader, name = start is not None, role_name(role)
        self.effects.append(PublishProgress(name, *published[1:3], is_leader, start, published[3]))

    def advance_high_watermark(self, to: Offset) -> bool:
        """The high watermark never goes back (seed: both leader and follower refuse)."""
        if to <= self.high_watermark:
            return False
        assert to <= self.log.end.offset, "the high watermark lies within the log"
        self.high_watermark = to
        return True

    # --- transitions ------------------------------------------------------------------------------

    def take_role(self, role: Role) -> Role:
        """Every change of the role: the table has to hold it. Returns the role before."""
        old = self.role
        assert (type(old), type(role)) in TRANSITIONS, (old, role)
        self.role = role
        return old

    def _take_and_tell(self, role: Role, cause: Cause, text: str) -> None:
        old = self.take_role(role)
        self.note(NoteKind.ROLE_TAKEN, text, **role_values(self, old, cause))

    def _enter(self, role: Role, cause: Cause, why: str) -> None:
        old = self.role
        if isinstance(old, Leader):
            end_waiting(self, old)
        # A peer that was asked who leads may still say so: a far one answers after the round.
        self.calls.abandon(*(set(CallKind) - {CallKind.PROBE, CallKind.DISCOVERY}))
        self.calls.clear_backoff()
        names = f"{role_name(old)} becomes {role_name(role)}"
        self._take_and_tell(role, cause, f"{why}: {names} in epoch {self.epoch}")

    def become_unattached(
        self,
        epoch: Epoch,
        cause: Cause,
        why: str,
        *,
        voted: ReplicaKey | None = None,
        deadline: Millis | None = None,
    ) -> None:
        """Follow nobody, in this epoch or a later one; `voted` records a vote granted in it."""
        if deadline is None:
            deadline = self._unattached_deadline(epoch, is_vote=voted is not None)
        if epoch > self.epoch:
            self.suspicion = None
            self.leader_endpoints = ()
            self.save_election(ElectionState(epoch, None, voted))
        elif voted is not None:
            self.save_election(ElectionState(epoch, None, voted))
        self._enter(Unattached(deadline), cause, why)

    def _unattached_deadline(self, epoch: Epoch, *, is_vote: bool) -> Millis:
        """What is left of the old timer: a higher epoch must not put off elections."""
        match self.role:
            case Unattached(election_deadline=deadline) | Resigned(election_deadline=deadline):
                if not is_vote and epoch > self.epoch:
                    return max(deadline, self.now)
            case Candidate(election_deadline=deadline):
                return max(deadline, self.now)
            case Prospective(election_deadline=deadline, tally=tally) if not tally.is_lost:
                return max(deadline, self.now)
            case Follower(fetch_deadline=deadline) if epoch > self.epoch and deadline > self.now:
                return deadline
        return self.after(self.draw_election_timeout())

    def become_prospective(
        self, cause: Cause, why: str, *, resume_deadline: Millis | None = None
    ) -> None:
        """Ask whether an election is worth holding; an only voter goes straight on."""
        deadline = self.after(self.draw_election_timeout())
        role = Prospective(self.new_tally(), deadline, resume_deadline)
        self._enter(role, cause, why)
        if role.tally.is_won:
            self.become_candidate(Cause.PRE_VOTES_GRANTED, "no other voter to ask")

    def become_candidate(self, cause: Cause, why: str) -> None:
        """Raise the epoch by one, vote for this replica, ask the others."""
        self.leader_endpoints = ()
        self.save_election(ElectionState(Epoch(self.epoch + 1), None, self.key))
        self.campaign(cause, why)

    def campaign(self, cause: Cause, why: str) -> None:
        """Ask for votes in an epoch in which this replica has voted for itself."""
        deadline = self.after(self.draw_election_timeout())
        role = Candidate(self.new_tally(), deadline)
        if isinstance(self.role, Prospective):
            self._enter(role, cause, why)
        else:
            self._take_and_tell(role, cause, f"{why}: candidate in epoch {self.epoch}")
        if role.tally.is_won:
            self.become_leader()

    def new_tally(self) -> Tally:
        """A round of votes that nobody but this voter itself has answered."""
        votes: dict[NodeId, bool | None] = {voter.key.node_id: None for voter in self.voters}
        if self.is_voter:
            votes[self.node_id] = True
        return Tally(votes, self.voters.majority)

    def become_follower(
        self,
        epoch: Epoch,
        leader_id: NodeId,
        endpoints: tuple[Endpoint, ...],
        cause: Cause,
        why: str,
        *,
        resume_deadline: Millis | None = None,
    ) -> None:
        """Follow `leader_id`; the vote given in this epoch is kept."""
        assert leader_id != self.node_id, "a replica does not follow itself"
        voted = self.election.voted if epoch == self.epoch else None
        if resume_deadline is None:
            self.suspicion = None
        if endpoints:
            self.leader_endpoints = endpoints
        elif self.election.leader_id != leader_id or epoch != self.epoch:
            self.leader_endpoints = ()
        self.save_election(ElectionState(epoch, leader_id, voted))
        deadline = resume_deadline or self.after(self.config.fetch_timeout_ms)
        self._enter(Follower(leader_id, deadline), cause, f"{why} (leader {leader_id})")
        self.last_leader = self.leader_info

    def become_leader(self) -> None:
        """Lead: durable first, then the records that begin the epoch (the epoch-start rule).

        The first leader of a quorum with voters in the log also writes its version and its set,
        which so far only stand in the bootstrap checkpoint (KIP-853, "First leader").
        """
        role = self.role
        assert isinstance(role, Candidate)
        granted = tuple(NodeId(node) for node, vote in role.tally.votes.items() if vote)
        self.suspicion = None
        self.leader_endpoints = self.config.endpoints
        self.save_election(ElectionState(self.epoch, self.node_id, self.election.voted))
        leader = Leader(
            epoch_start=self.log.end.offset,
            elected_ms=self.now,
            check_quorum_deadline=self.check_quorum_deadline(),
            begin_epoch_deadline=self.now,
        )
        self._enter(leader, Cause.VOTES_GRANTED, f"{len(granted)} of {len(self.voters)} votes")
        self.last_leader = self.leader_info
        append_epoch_start(self, granted)

    def check_quorum_deadline(self) -> Millis:
        """Floor of 1.5 fetch timeouts (seed: LeaderState)."""
        return self.after(self.config.fetch_timeout_ms * 3 // 2)

    def become_resigned(self, preferred: tuple[ReplicaKey, ...], cause: Cause, why: str) -> None:
        """Give up leadership within the epoch; nothing to save, the epoch's leader stays known."""
        self._enter(self._resigned(preferred), cause, why)

    def stay_resigned(self) -> None:
        """A leader that is started again ends its epoch.

        Unflushed records of this epoch may be lost: leading it on could use an (offset, epoch)
        twice, and so could a vote for somebody else.
        """
        text = f"led epoch {self.epoch} before the restart: resigned"
        self._take_and_tell(self._resigned(()), Cause.STARTUP, text)

    def _resigned(self, preferred: tuple[ReplicaKey, ...]) -> Resigned:
        """The role of a leader that ended its epoch and tells all other voters so."""
        others = {v.key.node_id: None for v in self.voters if v.key.node_id != self.node_id}
        return Resigned(self.after(self.draw_election_timeout()), others, preferred)

    def learn(self, info: LeaderInfo, why: str) -> None:
        """Another replica names an epoch, and maybe its leader (seed: maybeTransition)."""
        if info.epoch < self.epoch or info.leader_id == self.node_id:
            return
        endpoints, leader_id = info.endpoints, info.leader_id
        known = self.election.leader_id
        if info.epoch == self.epoch and known is not None and leader_id not in (None, known):
            text = self.contradictions.add_second_leader(leader_id, known, info.epoch)
            self.note(NoteKind.CONTRADICTED, text, leader_id=leader_id)
            return
        has_address = bool(endpoints) or (
            leader_id is not None and self.voters.by_id(leader_id) is not None
        )
        if info.epoch > self.epoch:
            if leader_id is not None and has_address:
                self.become_follower(info.epoch, leader_id, endpoints, Cause.LEADER_LEARNED, why)
            else:
                self.become_unattached(info.epoch, Cause.HIGHER_EPOCH, f"{why}: epoch {info.epoch}")
        elif leader_id is not None and has_address and self._may_follow_now():
            self.become_follower(info.epoch, leader_id, endpoints, Cause.LEADER_LEARNED, why)
        elif endpoints and isinstance(self.role, Follower):
            self.leader_endpoints = endpoints

    def move_leader(self, endpoints: tuple[Endpoint, ...]) -> None:
        """The leader of this epoch is said to be elsewhere than where it was looked for."""
        before = self.leader_peer()
        self.leader_endpoints = endpoints
        after = self.leader_peer()
        if after != before and after is not None:
            text = f"leader {after.node_id} is at {after.host}:{after.port}"
            self.note(NoteKind.LEADER_MOVED, text, leader_id=after.node_id)
            self.calls.end_backoff(CallKind.FETCH, after.node_id)

    def _may_follow_now(self) -> bool:
        return isinstance(self.role, Unattached | Prospective | Candidate)
