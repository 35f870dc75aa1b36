"""Mutants of voter-set changes."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from quorate.raft.identity.cloned_voters import ClonedVoters
from quorate.raft.identity.single_voter_guard import SingleVoterGuard
from quorate.raft.membership.add_voter import AddVoterHandler
from quorate.raft.membership.auto_join import AutoJoin
from quorate.raft.membership.leadership_transfer import LeadershipTransfer
from quorate.raft.membership.remove_voter import RemoveVoterHandler
from quorate.raft.membership.shutdown_permits import ShutdownPermits
from quorate.raft.membership.update_voter import UpdateVoterHandler
from quorate.raft.membership.voter_changes import VoterChanges
from quorate.raft.messages import MembershipResponse
from quorate.raft.replication.high_watermark import CommitState
from quorate.raft.replication.leader import LeaderReplication
from quorate.raft.roles import Leader
from quorate.records.errors import ErrorCode
from quorate.records.voters import VoterSet
from quorate.sim.engine.node import SimulatedNode
from quorate.sim.mutants.mutant import Mutant, Patch, constant
from quorate.storage.log.metadata_log import MetadataLog

if TYPE_CHECKING:
    from quorate.raft.membership.rejection import Rejection
    from quorate.raft.messages import RemoveRaftVoterRequest, UpdateRaftVoterRequest
    from quorate.raft.roles import PendingChange, Process
    from quorate.records.control import ControlRecord
    from quorate.records.ids import DirectoryId, Offset, ReplicaKey, ReplyToken
    from quorate.records.voters import Voter

_why_not_now = VoterChanges.check_preconditions
_why_pending = VoterChanges.check_no_pending_change
_why_no_live_majority = VoterChanges.check_live_majority
_append = VoterChanges.append
_expire_hand_over = LeadershipTransfer.expire
_why_not_add = AddVoterHandler.check
_why_not_remove = RemoveVoterHandler._why_not
_is_here = ShutdownPermits._is_here
_replace_disk = SimulatedNode.replace_disk
_without = VoterSet.without
_voters_below = MetadataLog.voters_below


def _change_at_once(self: VoterChanges, role: Leader) -> Rejection | None:
    obstacle = self.check_no_pending_change(role)
    return _why_not_now(self, role) if self.replica.log.kraft_version < 1 else obstacle


def _end_with_itself(self: CommitState, role: Leader) -> Offset:
    voters = self._log.voter_set
    ends = [self.flushed_end_of(role, voter) for voter in voters]
    if self._key not in voters:
        ends.append(self.local_flushed_end())
    return sorted(ends, reverse=True)[voters.majority - 1]


def _welcome_back(
    self: AddVoterHandler,
    role: Leader,
    key: ReplicaKey,
    *,
    auto_join: bool = False,
    force: bool = False,
) -> Rejection | None:
    del auto_join
    return _why_not_add(self, role, key, force=force)


def _evict(
    self: RemoveVoterHandler, role: Leader, request: RemoveRaftVoterRequest
) -> Rejection | None:
    return _why_not_remove(self, role, replace(request, auto_join=False))


def _add_and_forget(self: VoterSet, voter: Voter) -> VoterSet:
    return VoterSet.of((*(v for v in self if v.key.node_id != voter.key.node_id), voter))


def _decommission(self: VoterSet, key: ReplicaKey, *, decommission: bool = True) -> VoterSet:
    del decommission
    return _without(self, key)


def _voters_alone(self: MetadataLog, offset: int) -> VoterSet:
    return VoterSet(_voters_below(self, offset).voters)


def _any_directory(self: VoterSet, key: ReplicaKey) -> Voter | None:
    return self.by_id(key.node_id)


def _keep_directory(self: SimulatedNode, directory_id: DirectoryId) -> None:
    del directory_id
    _replace_disk(self, self.directory_id)


def _append_apart(
    self: VoterChanges, pending: PendingChange | None, *before: ControlRecord, voters: VoterSet
) -> None:
    if before:
        self.replica.append_control(*before)
    _append(self, pending, voters=voters)


def _answer_at_once(
    self: VoterChanges, pending: PendingChange | None, *before: ControlRecord, voters: VoterSet
) -> None:
    if pending is not None:
        response = MembershipResponse(ErrorCode.NONE, "", self.replica.leader_info)
        self.replica.out.reply(pending.token, response)
    _append(self, None, *before, voters=voters)


def _forget_leaves(self: ShutdownPermits, role: Leader, voter: Voter) -> bool:
    leaves, role.shutdown_permits = role.shutdown_permits, {}
    is_here = _is_here(self, role, voter)
    role.shutdown_permits = leaves
    return is_here


def _of_committed_set(self: CommitState, role: Leader) -> Offset:
    voters = self._log.committed_voter_set(self.high_watermark) or self._log.voter_set
    ends = sorted((self.flushed_end_of(role, voter) for voter in voters), reverse=True)
    return ends[voters.majority - 1]


def _of_half(self: CommitState, role: Leader) -> Offset:
    ends = sorted((self.flushed_end_of(role, v) for v in self._log.voter_set), reverse=True)
    return ends[(len(ends) - 1) // 2]


def _acknowledge_only(
    self: UpdateVoterHandler, token: ReplyToken, request: UpdateRaftVoterRequest
) -> None:
    obstacle = self.voter_changes.check_leader(request.cluster_id)
    if obstacle is not None:
        self.voter_changes.reject(token, obstacle)
        return
    self.replica.out.reply(token, MembershipResponse(ErrorCode.NONE, "", self.replica.leader_info))


def _overlook_hand_over(self: VoterChanges, role: Leader) -> Rejection | None:
    hand_over, role.transfer = role.transfer, None
    obstacle = _why_pending(self, role)
    role.transfer = hand_over
    return obstacle


def _never_silent(self: ClonedVoters, process: Process) -> bool:
    del self
    return process.has_ended


def _drop_held(self: LeadershipTransfer) -> None:
    role = self.replica.role
    hand_over = role.transfer if isinstance(role, Leader) else None
    if hand_over is not None and hand_over.deadline <= self.replica.timers.now:
        hand_over.held_proposals.clear()
    _expire_hand_over(self)


def _of_set_before(
    self: VoterChanges, role: Leader, voters: VoterSet, pending: PendingChange | None = None
) -> Rejection | None:
    del voters
    return _why_no_live_majority(self, role, self.replica.voters, pending)


def _of_late(
    self: VoterChanges, role: Leader, voters: VoterSet, pending: PendingChange | None = None
) -> Rejection | None:
    del pending
    return _why_no_live_majority(self, role, voters)


# Several voters of an otherwise healthy quorum are told to stop at the same time.
_STOPPED_TOGETHER: Final = {"voters": 5, "turns_every_ms": 3000, "voters_every_ms": 0}
# Two disks of one node id must occur during a voter change.
_DISKS_LOST: Final = {"kraft_version": 1, "voters": 3, "wipe_every_ms": 4000}
# Pods are scaled down and up again while all nodes auto-join.
_SCALED_AWAY: Final = {
    "kraft_version": 1,
    "voters": 3,
    "auto_join": True,
    "scale_every_ms": 4000,
    "voters_every_ms": 0,
}

BUGS: Final = (
    Mutant(
        "second-change-while-pending",
        "a leader begins a change of the voters before the last one is committed",
        (24,),
        (Patch(VoterChanges, "check_no_pending_change", constant(answer=None)),),
    ),
    Mutant(
        "change-before-epoch-commit",
        "a new leader changes the voters before a record of its epoch is committed",
        (1795430132,),
        (
            Patch(VoterChanges, "check_epoch_committed", constant(answer=None)),
            Patch(VoterChanges, "check_preconditions", _change_at_once),
        ),
    ),
    Mutant(
        "removed-leader-counts-itself",
        "a leader that has appended its own removal counts its disk for the majority "
        "(rule removed_voter_may_campaign)",
        (24,),
        (Patch(CommitState, "majority_flushed_end", _end_with_itself),),
    ),
    Mutant(
        "removed-leader-stays",
        "a leader goes on although its own removal is committed",
        (3,),
        (Patch(LeaderReplication, "is_removed", constant(answer=False)),),
    ),
    Mutant(
        "new-voter-lags",
        "a replica becomes a voter, and is counted, before it has caught up "
        "(rule observer_lag_baseline)",
        (24,),
        (Patch(VoterChanges, "check_caught_up", constant(answer=None)),),
    ),
    Mutant(
        "one-id-two-directories",
        "a node whose old disk still votes is added with its new one",
        (14,),
        (Patch(AddVoterHandler, "check_duplicate", constant(answer=None)),),
        world={**_DISKS_LOST, "voters_every_ms": 1000, "auto_join": False},
    ),
    Mutant(
        "directory-ids-ignored",
        "a voter is known by its node id alone, so that an empty disk passes for the old one",
        (7,),
        (Patch(VoterSet, "voter", _any_directory),),
    ),
    Mutant(
        "wiped-disk-keeps-directory-id",
        "an empty disk is formatted with the directory id of the one before it",
        (7, 9),
        (Patch(SimulatedNode, "replace_disk", _keep_directory),),
    ),
    Mutant(
        "auto-join-evicts-the-living",
        "a voter that fetches is removed for another disk with its node id "
        "(rule live_voter_not_evicted)",
        (14,),
        (Patch(RemoveVoterHandler, "_why_not", _evict),),
        world={**_DISKS_LOST, "voters_every_ms": 1500, "auto_join": True},
    ),
    Mutant(
        "decommissioned-comes-back",
        "a voter that was removed on purpose joins again by itself (rule decommissioned_voters)",
        (1795430758,),
        (
            Patch(AutoJoin, "is_decommissioned", constant(answer=False)),
            Patch(AddVoterHandler, "check", _welcome_back),
        ),
    ),
    Mutant(
        "scaled-away-rejoins-at-once",
        "a voter whose pod is scaled away joins again before its process ends "
        "(rule decommissioned_voters)",
        (1,),
        (Patch(AutoJoin, "was_removed_while_running", constant(answer=False)),),
        world=_SCALED_AWAY,
    ),
    Mutant(
        "scaled-away-is-decommissioned",
        "a voter whose pod was scaled away may not join when it comes back "
        "(rule decommissioned_voters)",
        (1,),
        (Patch(VoterSet, "without", _decommission),),
        world=_SCALED_AWAY,
    ),
    Mutant(
        "update-forgets-decommissioned",
        "an added or updated voter comes with an empty list of those who were removed "
        "(rule decommissioned_voters)",
        (6,),
        (Patch(VoterSet, "with_voter", _add_and_forget),),
    ),
    Mutant(
        "snapshot-forgets-decommissioned",
        "a snapshot holds the voters without the list of those who were removed "
        "(rule decommissioned_voters)",
        (6, 20),
        (Patch(MetadataLog, "voters_below", _voters_alone),),
    ),
    Mutant(
        "upgrade-in-two-batches",
        "kraft.version and the voters that it needs are appended one after the other",
        (27,),
        (Patch(VoterChanges, "append", _append_apart),),
    ),
    Mutant(
        "leave-not-counted",
        "a voter that was given leave to stop is forgotten when the next one asks (decision 0005)",
        (8,),
        (Patch(ShutdownPermits, "_is_here", _forget_leaves),),
        world=_STOPPED_TOGETHER,
    ),
    Mutant(
        "change-answered-when-appended",
        "an operator is told that a change is done before it is committed",
        (6,),
        (Patch(VoterChanges, "append", _answer_at_once),),
    ),
    Mutant(
        "majority-of-the-set-before",
        "a set of voters is committed by a majority of the set that it replaces",
        (6,),
        (Patch(CommitState, "majority_flushed_end", _of_committed_set),),
    ),
    Mutant(
        "half-of-an-even-set-commits",
        "half of the voters are taken for a majority where their number is even",
        (1795522677153,),
        (Patch(CommitState, "majority_flushed_end", _of_half),),
    ),
    Mutant(
        "new-address-only-acknowledged",
        "a voter that tells where it is now is thanked, and nothing is appended",
        (1795522677159,),
        (Patch(UpdateVoterHandler, "handle", _acknowledge_only),),
    ),
    Mutant(
        "change-during-hand-over",
        "the voters are changed while leadership is handed over",
        (112,),
        (Patch(VoterChanges, "check_no_pending_change", _overlook_hand_over),),
        within=300,
    ),
    Mutant(
        "restart-taken-for-clone",
        "a restarted voter counts for nothing, as if the process before still ran "
        "(rule one_process_per_voter)",
        (4, 8),
        (Patch(ClonedVoters, "_is_gone", _never_silent),),
    ),
    Mutant(
        "every-leader-taken-for-rival",
        "a voter among others stands down before a leader that it did not vote for "
        "(rule sole_voter_conflict)",
        (1,),
        (Patch(SingleVoterGuard, "is_alone", constant(answer=True)),),
    ),
    Mutant(
        "hand-over-drops-what-it-held",
        "what was proposed during a hand-over that failed is forgotten",
        (1795522677214,),
        (Patch(LeadershipTransfer, "expire", _drop_held),),
    ),
    Mutant(
        "majority-of-the-living-before",
        "whether most voters live is looked up in the set before an unforced change "
        "(rule check_quorum_restart)",
        (14,),
        (Patch(VoterChanges, "check_live_majority", _of_set_before),),
        within=300,
    ),
    Mutant(
        "alive-before-the-request",
        "a voter that fetched just before a change was asked for is taken for alive "
        "(rule check_quorum_restart)",
        (3,),
        (Patch(VoterChanges, "check_live_majority", _of_late),),
    ),
)
