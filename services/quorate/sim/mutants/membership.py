"""Mutants of voter-set changes."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from quorate.raft.identity.cloned_voters import Clones
from quorate.raft.identity.single_voter_guard import Rivalry
from quorate.raft.membership.add_voter import Adding
from quorate.raft.membership.auto_join import Joining
from quorate.raft.membership.leadership_transfer import HandingOver
from quorate.raft.membership.remove_voter import Removing
from quorate.raft.membership.shutdown_permits import Leaving
from quorate.raft.membership.update_voter import Updating
from quorate.raft.membership.voter_changes import Changes
from quorate.raft.messages import MembershipResponse
from quorate.raft.replication.high_watermark import Ends
from quorate.raft.replication.leader import Leading
from quorate.raft.roles import Leader
from quorate.records.errors import ErrorCode
from quorate.records.voters import VoterSet
from quorate.sim.engine.node import SimulatedNode
from quorate.sim.mutants.mutant import Bug, Patch, always
from quorate.storage.log.metadata_log import MetadataLog

if TYPE_CHECKING:
    from quorate.raft.membership.rejection import Obstacle
    from quorate.raft.messages import RemoveRaftVoterRequest, UpdateRaftVoterRequest
    from quorate.raft.roles import PendingChange, Process
    from quorate.records.control import ControlRecord
    from quorate.records.ids import DirectoryId, Offset, ReplicaKey, ReplyToken
    from quorate.records.voters import Voter

_why_not_now = Changes.why_not_now
_why_pending = Changes.why_pending
_why_no_live_majority = Changes.why_no_live_majority
_append = Changes.append
_expire_hand_over = HandingOver.expire
_why_not_add = Adding.why_not
_why_not_remove = Removing._why_not
_is_here = Leaving._is_here
_replace_disk = SimulatedNode.replace_disk
_without = VoterSet.without
_voters_below = MetadataLog.voters_below


def _change_at_once(self: Changes, role: Leader) -> Obstacle | None:
    obstacle = self.why_pending(role)
    return _why_not_now(self, role) if self.r.log.kraft_version < 1 else obstacle


def _end_with_itself(self: Ends, role: Leader) -> Offset:
    voters = self._log.voter_set
    ends = [self.replicated(role, voter) for voter in voters]
    if self._key not in voters:
        ends.append(self.own())
    return sorted(ends, reverse=True)[voters.majority - 1]


def _welcome_back(
    self: Adding, role: Leader, key: ReplicaKey, *, auto_join: bool = False, force: bool = False
) -> Obstacle | None:
    del auto_join
    return _why_not_add(self, role, key, force=force)


def _evict(self: Removing, role: Leader, request: RemoveRaftVoterRequest) -> Obstacle | None:
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
    self: Changes, pending: PendingChange | None, *before: ControlRecord, voters: VoterSet
) -> None:
    if before:
        self.r.append_control(*before)
    _append(self, pending, voters=voters)


def _answer_at_once(
    self: Changes, pending: PendingChange | None, *before: ControlRecord, voters: VoterSet
) -> None:
    if pending is not None:
        response = MembershipResponse(ErrorCode.NONE, "", self.r.leader_info)
        self.r.out.reply(pending.token, response)
    _append(self, None, *before, voters=voters)


def _forget_leaves(self: Leaving, role: Leader, voter: Voter) -> bool:
    leaves, role.leaves = role.leaves, {}
    is_here = _is_here(self, role, voter)
    role.leaves = leaves
    return is_here


def _of_committed_set(self: Ends, role: Leader) -> Offset:
    voters = self._log.committed_voter_set(self.high_watermark) or self._log.voter_set
    ends = sorted((self.replicated(role, voter) for voter in voters), reverse=True)
    return ends[voters.majority - 1]


def _of_half(self: Ends, role: Leader) -> Offset:
    ends = sorted((self.replicated(role, v) for v in self._log.voter_set), reverse=True)
    return ends[(len(ends) - 1) // 2]


def _acknowledge_only(self: Updating, token: ReplyToken, request: UpdateRaftVoterRequest) -> None:
    obstacle = self.changes.why_not_leader(request.cluster_id)
    if obstacle is not None:
        self.changes.refuse(token, obstacle)
        return
    self.r.out.reply(token, MembershipResponse(ErrorCode.NONE, "", self.r.leader_info))


def _overlook_hand_over(self: Changes, role: Leader) -> Obstacle | None:
    hand_over, role.hand_over = role.hand_over, None
    obstacle = _why_pending(self, role)
    role.hand_over = hand_over
    return obstacle


def _never_silent(self: Clones, process: Process) -> bool:
    del self
    return process.has_ended


def _drop_held(self: HandingOver) -> None:
    role = self.r.role
    hand_over = role.hand_over if isinstance(role, Leader) else None
    if hand_over is not None and hand_over.deadline <= self.r.timers.now:
        hand_over.held.clear()
    _expire_hand_over(self)


def _of_set_before(
    self: Changes, role: Leader, voters: VoterSet, pending: PendingChange | None = None
) -> Obstacle | None:
    del voters
    return _why_no_live_majority(self, role, self.r.voters, pending)


def _of_late(
    self: Changes, role: Leader, voters: VoterSet, pending: PendingChange | None = None
) -> Obstacle | None:
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
    Bug(
        "second-change-while-pending",
        "a leader begins a change of the voters before the last one is committed",
        (24,),
        (Patch(Changes, "why_pending", always(answer=None)),),
    ),
    Bug(
        "change-before-epoch-commit",
        "a new leader changes the voters before a record of its epoch is committed",
        (1795430132,),
        (
            Patch(Changes, "why_uncommitted", always(answer=None)),
            Patch(Changes, "why_not_now", _change_at_once),
        ),
    ),
    Bug(
        "removed-leader-counts-itself",
        "a leader that has appended its own removal counts its disk for the majority "
        "(rule removed_voter_may_campaign)",
        (24,),
        (Patch(Ends, "of_majority", _end_with_itself),),
    ),
    Bug(
        "removed-leader-stays",
        "a leader goes on although its own removal is committed",
        (3,),
        (Patch(Leading, "has_left", always(answer=False)),),
    ),
    Bug(
        "new-voter-lags",
        "a replica becomes a voter, and is counted, before it has caught up "
        "(rule observer_lag_baseline)",
        (24,),
        (Patch(Changes, "why_lagging", always(answer=None)),),
    ),
    Bug(
        "one-id-two-directories",
        "a node whose old disk still votes is added with its new one",
        (14,),
        (Patch(Adding, "why_duplicate", always(answer=None)),),
        world={**_DISKS_LOST, "voters_every_ms": 1000, "auto_join": False},
    ),
    Bug(
        "directory-ids-ignored",
        "a voter is known by its node id alone, so that an empty disk passes for the old one",
        (7,),
        (Patch(VoterSet, "voter", _any_directory),),
    ),
    Bug(
        "wiped-disk-keeps-directory-id",
        "an empty disk is formatted with the directory id of the one before it",
        (7, 9),
        (Patch(SimulatedNode, "replace_disk", _keep_directory),),
    ),
    Bug(
        "auto-join-evicts-the-living",
        "a voter that fetches is removed for another disk with its node id "
        "(rule live_voter_not_evicted)",
        (14,),
        (Patch(Removing, "_why_not", _evict),),
        world={**_DISKS_LOST, "voters_every_ms": 1500, "auto_join": True},
    ),
    Bug(
        "decommissioned-comes-back",
        "a voter that was removed on purpose joins again by itself (rule decommissioned_voters)",
        (1795430758,),
        (
            Patch(Joining, "is_unwanted", always(answer=False)),
            Patch(Adding, "why_not", _welcome_back),
        ),
    ),
    Bug(
        "scaled-away-rejoins-at-once",
        "a voter whose pod is scaled away joins again before its process ends "
        "(rule decommissioned_voters)",
        (1,),
        (Patch(Joining, "has_left", always(answer=False)),),
        world=_SCALED_AWAY,
    ),
    Bug(
        "scaled-away-is-decommissioned",
        "a voter whose pod was scaled away may not join when it comes back "
        "(rule decommissioned_voters)",
        (1,),
        (Patch(VoterSet, "without", _decommission),),
        world=_SCALED_AWAY,
    ),
    Bug(
        "update-forgets-decommissioned",
        "an added or updated voter comes with an empty list of those who were removed "
        "(rule decommissioned_voters)",
        (6,),
        (Patch(VoterSet, "with_voter", _add_and_forget),),
    ),
    Bug(
        "snapshot-forgets-decommissioned",
        "a snapshot holds the voters without the list of those who were removed "
        "(rule decommissioned_voters)",
        (6, 20),
        (Patch(MetadataLog, "voters_below", _voters_alone),),
    ),
    Bug(
        "upgrade-in-two-batches",
        "kraft.version and the voters that it needs are appended one after the other",
        (27,),
        (Patch(Changes, "append", _append_apart),),
    ),
    Bug(
        "leave-not-counted",
        "a voter that was given leave to stop is forgotten when the next one asks (decision 0005)",
        (8,),
        (Patch(Leaving, "_is_here", _forget_leaves),),
        world=_STOPPED_TOGETHER,
    ),
    Bug(
        "change-answered-when-appended",
        "an operator is told that a change is done before it is committed",
        (6,),
        (Patch(Changes, "append", _answer_at_once),),
    ),
    Bug(
        "majority-of-the-set-before",
        "a set of voters is committed by a majority of the set that it replaces",
        (6,),
        (Patch(Ends, "of_majority", _of_committed_set),),
    ),
    Bug(
        "half-of-an-even-set-commits",
        "half of the voters are taken for a majority where their number is even",
        (1795522677153,),
        (Patch(Ends, "of_majority", _of_half),),
    ),
    Bug(
        "new-address-only-acknowledged",
        "a voter that tells where it is now is thanked, and nothing is appended",
        (1795522677159,),
        (Patch(Updating, "handle", _acknowledge_only),),
    ),
    Bug(
        "change-during-hand-over",
        "the voters are changed while leadership is handed over",
        (112,),
        (Patch(Changes, "why_pending", _overlook_hand_over),),
        within=300,
    ),
    Bug(
        "restart-taken-for-clone",
        "a restarted voter counts for nothing, as if the process before still ran "
        "(rule one_process_per_voter)",
        (4, 8),
        (Patch(Clones, "_is_gone", _never_silent),),
    ),
    Bug(
        "every-leader-taken-for-rival",
        "a voter among others stands down before a leader that it did not vote for "
        "(rule sole_voter_conflict)",
        (1,),
        (Patch(Rivalry, "is_alone", always(answer=True)),),
    ),
    Bug(
        "hand-over-drops-what-it-held",
        "what was proposed during a hand-over that failed is forgotten",
        (1795522677214,),
        (Patch(HandingOver, "expire", _drop_held),),
    ),
    Bug(
        "majority-of-the-living-before",
        "whether most voters live is looked up in the set before an unforced change "
        "(rule check_quorum_restart)",
        (14,),
        (Patch(Changes, "why_no_live_majority", _of_set_before),),
        within=300,
    ),
    Bug(
        "alive-before-the-request",
        "a voter that fetched just before a change was asked for is taken for alive "
        "(rule check_quorum_restart)",
        (3,),
        (Patch(Changes, "why_no_live_majority", _of_late),),
    ),
)
