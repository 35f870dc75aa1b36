"""State shared by all handlers of one replica: log, role, election state, requests in flight."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from quorate.raft.api import AppendToLog, ControlBatch, Peer, SaveElection, SendRequest
from quorate.raft.backoff import backoff_ms
from quorate.raft.leader_eligibility import LeaderEligibility
from quorate.raft.messages import NOTHING_KNOWN, ElectionState, EpochStart, LeaderInfo
from quorate.raft.outbox import Outbox
from quorate.raft.replication.high_watermark import CommitState
from quorate.raft.replication.leader_contradictions import LeaderContradictions
from quorate.raft.replication.log_state import LogState
from quorate.raft.request_manager import (
    ROTATES_ADDRESSES,
    InFlightRequest,
    RequestKind,
    RequestManager,
)
from quorate.raft.roles import TRANSITIONS, Abstention, Initializing
from quorate.raft.timers import Timers
from quorate.raft.voter_addresses import VoterAddresses
from quorate.records.ids import Epoch, NodeId, Offset, OffsetAndEpoch

if TYPE_CHECKING:
    from quorate.raft.api import RaftConfig, Random, RecoveredState
    from quorate.raft.identity.rival_leader import Rival
    from quorate.raft.identity.second_quorum import SecondQuorum
    from quorate.raft.messages import PeerRequest
    from quorate.raft.roles import LeaderSuspicion, Role
    from quorate.records.control import ControlRecord
    from quorate.records.voters import Endpoint, Voter, VoterSet

# Fraction of the election timeout: the longest backoff from an unreachable peer.
BACKOFF_SHARE: Final = 8
FIRST_BOOTSTRAP_ID: Final = -2


class Replica:
    """One replica: identity, log, election state, role, and the outbox of the current step."""

    def __init__(self, config: RaftConfig, recovered: RecoveredState, random: Random) -> None:
        self.config = config
        self.key = config.key
        self.timers = Timers(config, random)
        self.out = Outbox()
        self.log = LogState(recovered)
        self.commit_state = CommitState(self.log, self.key)
        self.election = recovered.election or ElectionState(Epoch(0))
        self.role: Role = Initializing()
        self.leader_endpoints: tuple[Endpoint, ...] = ()
        self.last_leader: LeaderInfo | None = None
        self._own_info = LeaderInfo(self.key.node_id, Epoch(-1))
        self.voter_addresses = VoterAddresses(config.cluster_id, config.listener_name)
        self.leader_eligibility = LeaderEligibility(
            config, self.log, self.timers, self.out, recovered.rival
        )
        self.abstention = Abstention(recovered.abstains)
        self.leader_suspicion: LeaderSuspicion | None = None
        self.leader_contradictions = LeaderContradictions(config, random)
        self.failed_rounds = 0
        self.request_manager = RequestManager()
        # Rule `stopping_replica`: asked to stop. Rule `decommissioned_voters`: was a voter since
        # the process started.
        self.is_stopping = self.was_voter = False

    # --- queries of other modules ---------------------------------------------------------------

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
    def high_watermark(self) -> Offset:
        return self.commit_state.high_watermark

    @property
    def is_voter(self) -> bool:
        """True if the latest voter set contains this replica, directory id included."""
        return self.key in self.voters

    @property
    def abstains(self) -> bool:
        """True if it takes no part in elections, since it may have lost a vote.

        See rule `empty_log_abstains`.
        """
        return self.abstention.is_on

    @property
    def second_quorum(self) -> SecondQuorum:
        """Evidence of another quorum of this cluster, if there are several voters.

        See rule `sole_voter_conflict`.
        """
        return self.leader_eligibility.second_quorum

    @property
    def rival(self) -> Rival | None:
        """Another quorum of this cluster, known to this single voter.

        See rule `sole_voter_conflict`.
        """
        return self.leader_eligibility.rival

    @property
    def is_refused(self) -> bool:
        """Rule `one_process_per_voter`: a leader considers another process to be this voter."""
        return self.leader_eligibility.is_refused

    @property
    def is_only_voter(self) -> bool:
        return len(self.voters) == 1 and self.is_voter

    @property
    def min_candidate_log_end(self) -> OffsetAndEpoch:
        """The log end that a nominee's log must reach to get a vote.

        See rule `damaged_voter_heals`.
        """
        remembered = self.log.remembered_end
        return self.log.end if remembered is None else max(self.log.end, remembered)

    @property
    def is_bound(self) -> bool:
        """True if this replica may not campaign, for reasons other than its voter sets."""
        is_away = self.is_stopping or self.is_refused or self.rival is not None
        return is_away or self.abstains or self.log.is_healing

    @property
    def may_campaign(self) -> bool:
        """True if this replica may request votes.

        Rule `removed_voter_may_campaign`: a voter whose removal is in its log, but not known to be
        committed, still campaigns. Otherwise a quorum whose leader died right after it appended the
        removal could stay without a leader forever.
        """
        if self.is_bound:
            return False
        return any(self.key in voters for voters in self.commit_state.possible_voter_sets())

    @property
    def leader_info(self) -> LeaderInfo:
        """The leader that this replica names in its responses."""
        leader_id, epoch = self.election.leader_id, self.election.epoch
        if self.rival is not None:
            return NOTHING_KNOWN
        if leader_id is None:
            return LeaderInfo(None, epoch)
        # The role is not used: at a step-down the next leader is known before the role changes.
        if leader_id == self.key.node_id:
            if self._own_info.epoch != epoch:
                self._own_info = LeaderInfo(leader_id, epoch, self.config.endpoints)
            return self._own_info
        endpoints = self.leader_endpoints
        if not endpoints:
            # A leader known only from the disk has not announced its endpoints yet; the voter set
            # may have them.
            voter = self.voters.by_id(leader_id)
            endpoints = voter.endpoints if voter is not None else ()
        return LeaderInfo(leader_id, epoch, endpoints)

    def peer(self, voter: Voter) -> Peer | None:
        """A voter's address: in the voter set, or as announced by the voter itself."""
        return self.voter_addresses.current(voter)

    def leader_peer(self) -> Peer | None:
        """The address of this follower's leader: as announced, or from the voter set."""
        leader_id = self.election.leader_id
        if leader_id is None:
            return None
        for endpoint in self.leader_endpoints:
            if endpoint.name == self.config.listener_name:
                return Peer(leader_id, endpoint.host, endpoint.port)
        voter = self.voters.by_id(leader_id)
        return self.peer(voter) if voter else None

    def bootstrap_peers(self) -> list[Peer]:
        """The bootstrap servers except itself, with negative ids."""
        own = {(e.host, e.port) for e in self.config.endpoints}
        return [
            Peer(NodeId(FIRST_BOOTSTRAP_ID - index), host, port)
            for index, (host, port) in enumerate(self.config.bootstrap_servers)
            if (host, port) not in own
        ]

    def should_defer_campaign(self) -> bool:
        """True if this replica defers campaigning for one timeout.

        See rules `unready_voter_waits` and `disk_call_deadline`.
        """
        return self.leader_eligibility.should_defer_campaign(self.epoch)

    # --- actions shared by all modules ------------------------------------------------------------

    def set_role(self, role: Role) -> Role:
        """Change the role, if the table of transitions permits. Returns the previous role."""
        old = self.role
        assert (type(old), type(role)) in TRANSITIONS, (old, role)
        self.role = role
        return old

    def save_election(self, state: ElectionState) -> None:
        """Make epoch, leader and vote durable before any effect that follows."""
        if state == self.election:
            return
        if state.epoch > self.epoch:
            self.failed_rounds = 0
        self.election = state
        self.out.save(SaveElection(state, self.log.kraft_version, self.voters))

    def append_control(self, *records: ControlRecord) -> OffsetAndEpoch:
        """Append control records of this replica, as one batch, at the end of the log."""
        base = self.log.end.offset
        end = OffsetAndEpoch(epoch=self.epoch, offset=Offset(base + len(records)))
        self.out.emit(AppendToLog(base, end, ControlBatch(records)))
        starts = [EpochStart(self.epoch, base)] if self.epoch > self.log.end.epoch else []
        self.log.append(end, starts)
        for index, record in enumerate(records):
            self.log.append_control(Offset(base + index), record)
        return end

    def send(self, kind: RequestKind, to: Peer, request: PeerRequest) -> InFlightRequest:
        """Send a request and track it until its response or the request timeout."""
        timers = self.timers
        deadline = timers.after(self.config.request_timeout_ms)
        call = self.request_manager.register(kind, to.node_id, self.epoch, deadline, to, timers.now)
        if kind in ROTATES_ADDRESSES:
            self.voter_addresses.on_sent(
                to, self.voters, timers.after(-self.config.election_timeout_ms)
            )
        self.out.emit(SendRequest(call.call, to, request))
        return call

    def back_off(self, kind: RequestKind, to: NodeId) -> None:
        """Back off from a peer after a failure, exponentially (rule `retry_backoff`)."""
        delay = backoff_ms(
            self.request_manager.failed(kind, to),
            first_ms=self.config.retry_backoff_ms,
            longest_ms=max(
                self.config.retry_backoff_ms, self.config.election_timeout_ms // BACKOFF_SHARE
            ),
            random=self.timers.random,
        )
        self.request_manager.back_off(kind, to, self.timers.after(delay))
