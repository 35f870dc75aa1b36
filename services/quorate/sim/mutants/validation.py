"""Mutants that accept requests of another cluster or of an unknown sender."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from quorate.raft.election.epoch_announcements import EpochAnnouncements
from quorate.raft.election.vote_handler import VoteHandler
from quorate.raft.membership.voter_changes import VoterChanges
from quorate.raft.replication.leader import LeaderReplication
from quorate.sim.mutants.mutant import Mutant, Patch, constant

if TYPE_CHECKING:
    from quorate.raft.membership.rejection import Rejection
    from quorate.raft.messages import (
        BeginQuorumEpochRequest,
        EndQuorumEpochRequest,
        FetchRequest,
        FetchSnapshotRequest,
    )
    from quorate.records.errors import ErrorCode
    from quorate.records.ids import ClusterId

_serve = LeaderReplication._reason_to_refuse
_believe = EpochAnnouncements._reason_to_refuse
_change = VoterChanges.check_leader


def _serve_any_cluster(
    self: LeaderReplication, request: FetchRequest | FetchSnapshotRequest
) -> ErrorCode | None:
    return _serve(self, replace(request, cluster_id=self.replica.config.cluster_id))


def _believe_any_cluster(
    self: EpochAnnouncements, request: BeginQuorumEpochRequest | EndQuorumEpochRequest
) -> ErrorCode | None:
    return _believe(self, replace(request, cluster_id=self.replica.config.cluster_id))


def _change_for_any_cluster(self: VoterChanges, cluster_id: ClusterId | None) -> Rejection | None:
    del cluster_id
    return _change(self, None)


BUGS: Final = (
    Mutant(
        "serves-another-cluster",
        "a leader answers fetches of another cluster (rule no_state_from_rejections)",
        (18,),
        (Patch(LeaderReplication, "_reason_to_refuse", _serve_any_cluster),),
    ),
    Mutant(
        "another-cluster-announces",
        "a voter hears of its leader from another cluster (rule no_state_from_rejections)",
        (18,),
        (Patch(EpochAnnouncements, "_reason_to_refuse", _believe_any_cluster),),
    ),
    Mutant(
        "another-cluster-operates",
        "an operator of another cluster changes the voters of this one "
        "(rule no_state_from_rejections)",
        (18,),
        (Patch(VoterChanges, "check_leader", _change_for_any_cluster),),
    ),
    Mutant(
        "votes-in-anothers-name",
        "a vote is given that somebody else was asked for",
        (2,),
        (Patch(VoteHandler, "_is_meant_for_us", constant(answer=True)),),
    ),
)
