"""All invariants; the cluster calls their hooks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from quorate.sim.invariants.acknowledged_writes import AcknowledgedSurvives
from quorate.sim.invariants.broker_fencing import SessionsEndInTime
from quorate.sim.invariants.check_quorum import CheckQuorum, LeadersResignOnlyWithoutQuorum
from quorate.sim.invariants.commit_progress import MajorityFlushedIsCommitted
from quorate.sim.invariants.decommissioned import DecommissionedStayAway
from quorate.sim.invariants.election_progress import MajoritiesHaveLeaders
from quorate.sim.invariants.election_safety import ElectionSafety
from quorate.sim.invariants.epoch_origin import EpochsRiseByElections
from quorate.sim.invariants.epoch_start import CommitsOwnEpochFirst
from quorate.sim.invariants.flushed_ends import FlushedEndsAreRecent
from quorate.sim.invariants.joining_voters import (
    AutoJoinKeepsLiveVoters,
    NewVotersHaveTheLog,
    RemovedNodesRejoinAfterRestart,
)
from quorate.sim.invariants.kraft_version_upgrade import UpgradeIsOneBatch
from quorate.sim.invariants.leader_completeness import LeaderCompleteness
from quorate.sim.invariants.live_majorities import ChangesKeepALiveMajority
from quorate.sim.invariants.log_knowledge import CoresKnowTheirLogs
from quorate.sim.invariants.log_matching import LogMatching
from quorate.sim.invariants.monotonic import Monotonic
from quorate.sim.invariants.overlapping_majorities import MajoritiesOverlap
from quorate.sim.invariants.overlay_decisions import OverlayDecidesAsImages
from quorate.sim.invariants.pre_vote import HealthyLeaderKeepsEpoch
from quorate.sim.invariants.process_exits import ExitsHaveCauses
from quorate.sim.invariants.read_confirmation import ReadsAreConfirmed
from quorate.sim.invariants.recovery_soundness import UndamagedLogsStayUndamaged
from quorate.sim.invariants.rejected_requests import InvalidRequestsAreRejected
from quorate.sim.invariants.removed_leaders import RemovedLeadersResign
from quorate.sim.invariants.replay_determinism import ReplayIsDeterministic
from quorate.sim.invariants.responses import RequestsAreAnswered
from quorate.sim.invariants.served_snapshots import SnapshotsAreCheckedAndPinned
from quorate.sim.invariants.shutdown_permits import PermitsKeepAMajority
from quorate.sim.invariants.snapshot_contents import SnapshotEqualsPrefix
from quorate.sim.invariants.state_machine_safety import StateMachineSafety
from quorate.sim.invariants.stopping_replicas import StoppingReplicasDoNotCampaign
from quorate.sim.invariants.timers import TimersAreArmed
from quorate.sim.invariants.truncation import NoTruncationOfCommitted
from quorate.sim.invariants.voter_change_outcomes import ChangeOutcomesAreTrue
from quorate.sim.invariants.voter_sets import OneVoterChangeAtATime
from quorate.sim.invariants.votes import OneVotePerEpoch

if TYPE_CHECKING:
    from quorate.sim.invariants.invariant import Invariant

ALL: Final[tuple[type[Invariant], ...]] = (
    ElectionSafety,
    LogMatching,
    StateMachineSafety,
    LeaderCompleteness,
    CommitsOwnEpochFirst,
    Monotonic,
    OneVotePerEpoch,
    NoTruncationOfCommitted,
    AcknowledgedSurvives,
    SnapshotEqualsPrefix,
    HealthyLeaderKeepsEpoch,
    OneVoterChangeAtATime,
    MajoritiesOverlap,
    ChangeOutcomesAreTrue,
    NewVotersHaveTheLog,
    AutoJoinKeepsLiveVoters,
    DecommissionedStayAway,
    RemovedNodesRejoinAfterRestart,
    UpgradeIsOneBatch,
    StoppingReplicasDoNotCampaign,
    PermitsKeepAMajority,
    EpochsRiseByElections,
    SnapshotsAreCheckedAndPinned,
    OverlayDecidesAsImages,
    UndamagedLogsStayUndamaged,
    RemovedLeadersResign,
    MajoritiesHaveLeaders,
    CheckQuorum,
    LeadersResignOnlyWithoutQuorum,
    MajorityFlushedIsCommitted,
    RequestsAreAnswered,
    SessionsEndInTime,
    ReplayIsDeterministic,
    ExitsHaveCauses,
    InvalidRequestsAreRejected,
    TimersAreArmed,
    CoresKnowTheirLogs,
    ChangesKeepALiveMajority,
    FlushedEndsAreRecent,
    ReadsAreConfirmed,
)
