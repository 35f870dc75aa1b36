"""Mutants of elections."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from quorate.raft.election.campaign import Campaign
from quorate.raft.election.epoch_announcements import EpochAnnouncements
from quorate.raft.election.epoch_guard import EpochGuard
from quorate.raft.election.leader_updates import LeaderUpdates
from quorate.raft.election.vote_handler import VoteHandler
from quorate.raft.messages import ElectionState, VoteRefusal
from quorate.raft.replica import Replica
from quorate.raft.roles import Follower, Prospective, Unattached
from quorate.sim.mutants.mutant import SHORT_TIMEOUTS, Mutant, Patch, constant
from quorate.storage.log_store import LogStore

if TYPE_CHECKING:
    from quorate.raft.api import SaveElection
    from quorate.raft.election.vote_handler import RejectionReason
    from quorate.raft.messages import LeaderInfo, VoteRequest
    from quorate.records.ids import OffsetAndEpoch


_save_election = LogStore.save_election


def _save_no_votes(self: LogStore, effect: SaveElection) -> None:
    state, own = effect.state, self.log._meta.directory_id
    if state.voted is None or state.voted.directory_id == own:
        _save_election(self, effect)


def _save_no_leadership(self: LogStore, effect: SaveElection) -> None:
    if effect.state.leader_id != self.log._meta.node_id:
        _save_election(self, effect)


def _grant_again(self: VoteHandler, request: VoteRequest) -> RejectionReason | None:
    del request
    is_free = isinstance(self.replica.role, Unattached | Prospective)
    return None if is_free else (VoteRefusal.ALREADY_VOTED, "busy")


def _only_members_campaign(self: Replica) -> bool:
    return self.is_voter and not (self.abstains or self.log.is_healing or self.is_stopping)


_reason_to_refuse_pre_vote = VoteHandler._reason_to_refuse_pre_vote


def _grant_to_rivals(self: VoteHandler, request: VoteRequest) -> RejectionReason | None:
    is_asking = isinstance(self.replica.role, Prospective)
    return None if is_asking else _reason_to_refuse_pre_vote(self, request)


_leader_is_lost = Campaign._on_fetch_timeout


def _wait_and_claim_to_hear(self: Campaign, role: Follower) -> None:
    _leader_is_lost(self, role)
    if isinstance(self.replica.role, Follower):
        self.replica.role.has_fetched = role.has_fetched


_is_meant_for_us = VoteHandler._is_meant_for_us


def _only_members_vote(self: VoteHandler, request: VoteRequest) -> bool:
    knows_both = self.replica.is_voter and request.replica in self.replica.voters
    return knows_both and _is_meant_for_us(self, request)


def _campaign_while_stopping(self: Replica) -> bool:
    return self.is_voter and not (self.abstains or self.log.is_healing)


def _campaign_while_healing(self: Replica) -> bool:
    is_member = any(self.key in voters for voters in self.commit_state.possible_voter_sets())
    return is_member and not (self.abstains or self.is_stopping)


def _bar_of_what_is_left(self: Replica) -> OffsetAndEpoch:
    return self.log.end


_learn = LeaderUpdates.apply


def _follow_the_past(self: LeaderUpdates, info: LeaderInfo, why: str) -> None:
    replica = self.replica
    if info.epoch < replica.epoch and info.leader_id not in (None, replica.node_id):
        replica.election = ElectionState(info.epoch)
    _learn(self, info, why)


BUGS: Final = (
    Mutant(
        "vote-not-persisted",
        "a vote is granted without being saved",
        (1, 2),
        (Patch(LogStore, "save_election", _save_no_votes),),
    ),
    Mutant(
        "leadership-not-persisted",
        "a leader does not save that it leads, so it restarts as a candidate of the same epoch",
        (15, 21),
        (Patch(LogStore, "save_election", _save_no_leadership),),
    ),
    Mutant(
        "up-to-date-check-dropped",
        "a vote is granted to any log",
        (8,),
        (Patch(VoteHandler, "is_up_to_date", constant(answer=True)),),
    ),
    Mutant(
        "vote-twice-per-epoch",
        "a second candidate of an epoch gets a vote, too",
        (1,),
        (Patch(VoteHandler, "_reason_to_refuse_vote", _grant_again),),
        world={
            **SHORT_TIMEOUTS,
            "voters": 3,
            "delay_us": 10_000,
            "slow_fsync_rate": 0.2,
            "slow_fsync_us": 300_000,
            "power_every_ms": 3900,
            "pause_every_ms": 6500,
            "pause_ms": 5500,
            "hand_over_every_ms": 2300,
        },
    ),
    Mutant(
        "pre-vote-ignored",
        "a pre-vote is granted although the leader is heard",
        (2,),
        (Patch(VoteHandler, "_reason_to_refuse_pre_vote", constant(answer=None)),),
    ),
    Mutant(
        "rivals-split-votes",
        "two that ask for pre-votes at one moment grant each other's",
        (2,),
        (Patch(VoteHandler, "_reason_to_refuse_pre_vote", _grant_to_rivals),),
    ),
    Mutant(
        "unready-voter-blocks",
        "a voter that leaves an election to others claims to hear the leader meanwhile "
        "(rule unready_voter_waits)",
        (1,),
        (Patch(Campaign, "_on_fetch_timeout", _wait_and_claim_to_hear),),
    ),
    Mutant(
        "removed-voter-gives-up",
        "a voter whose removal is in its log, but not known committed, does not campaign "
        "(rule removed_voter_may_campaign)",
        (24,),
        (Patch(Replica, "may_campaign", property(_only_members_campaign)),),
    ),
    Mutant(
        "only-members-vote",
        "a replica that does not find itself and the nominee in its own set refuses "
        "(rule vote_by_voter_key)",
        (15,),
        (Patch(VoteHandler, "_is_meant_for_us", _only_members_vote),),
    ),
    Mutant(
        "healing-voter-forgets",
        "a damaged voter campaigns and votes by what its log has left (rule damaged_voter_heals)",
        (5,),
        (
            Patch(Replica, "may_campaign", property(_campaign_while_healing)),
            Patch(Replica, "min_candidate_log_end", property(_bar_of_what_is_left)),
        ),
    ),
    Mutant(
        "stopping-voter-campaigns",
        "a leader that was asked to stop, and has no successor yet, asks for votes again "
        "(rule stopping_replica)",
        (16,),
        (Patch(Replica, "may_campaign", property(_campaign_while_stopping)),),
    ),
    Mutant(
        "another-cluster-teaches",
        "what a controller of another cluster answers is believed (rule no_state_from_rejections)",
        (1, 4),
        (Patch(EpochGuard, "is_top_level_error", constant(answer=False)),),
    ),
    Mutant(
        "any-epoch-is-believed",
        "an epoch that no election came to is believed (rule input_bounds)",
        (4, 7),
        (Patch(EpochGuard, "accepts", constant(answer=True)),),
    ),
    Mutant(
        "stale-leader-keeps-committing",
        "voters go back to a leader of an older epoch, which goes on committing",
        (1,),
        (
            Patch(EpochAnnouncements, "_reason_to_refuse", constant(answer=None)),
            Patch(LeaderUpdates, "apply", _follow_the_past),
        ),
    ),
)
