"""All invariants; the world tells each of them what happens."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from quorate.sim.invariants.acknowledged import AcknowledgedSurvives
from quorate.sim.invariants.answering import EverybodyIsAnswered
from quorate.sim.invariants.changes import ChangesEndAsTold
from quorate.sim.invariants.committing import WhatAMajorityHasIsCommitted
from quorate.sim.invariants.confirming import ReadsHaveTheWord
from quorate.sim.invariants.deciding import OverlayDecidesAsImages
from quorate.sim.invariants.decommissioned import DecommissionedStayAway
from quorate.sim.invariants.electing import MajoritiesHaveLeaders
from quorate.sim.invariants.election_safety import ElectionSafety
from quorate.sim.invariants.ending import EndingsHaveCauses
from quorate.sim.invariants.epoch_start import CommitsOwnEpochFirst
from quorate.sim.invariants.epochs import EpochsRiseByElections
from quorate.sim.invariants.fencing import SessionsEndInTime
from quorate.sim.invariants.flushed_ends import FlushedEndsAreYoung
from quorate.sim.invariants.joining import (
    LivingVotersStay,
    NewVotersHaveTheLog,
    WhoLeftWaitsForARestart,
)
from quorate.sim.invariants.knowing import CoresKnowTheirLogs
from quorate.sim.invariants.leader_completeness import LeaderCompleteness
from quorate.sim.invariants.leaving import LeavesKeepAMajority
from quorate.sim.invariants.live_majorities import ChangesKeepALiveMajority
from quorate.sim.invariants.log_matching import LogMatching
from quorate.sim.invariants.majorities import MajoritiesMeet
from quorate.sim.invariants.monotonic import Monotonic
from quorate.sim.invariants.offering import SnapshotsAreCheckedAndPinned
from quorate.sim.invariants.pre_vote import HealthyLeaderKeepsEpoch
from quorate.sim.invariants.quorum_lost import LeadersHearTheirVoters, LeadersResignForWant
from quorate.sim.invariants.refusing import WhatMustBeRefusedIs
from quorate.sim.invariants.removed import RemovedLeadersResign
from quorate.sim.invariants.replaying import HistoryIsReplayedAlike
from quorate.sim.invariants.snapshots import SnapshotEqualsPrefix
from quorate.sim.invariants.soundness import SoundDisksAreFoundSound
from quorate.sim.invariants.state_machine_safety import StateMachineSafety
from quorate.sim.invariants.stopping import WhoStopsBeginsNothing
from quorate.sim.invariants.timers import TimersAreArmed
from quorate.sim.invariants.truncation import NoTruncationOfCommitted
from quorate.sim.invariants.upgrade import UpgradeIsOneBatch
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
    MajoritiesMeet,
    ChangesEndAsTold,
    NewVotersHaveTheLog,
    LivingVotersStay,
    DecommissionedStayAway,
    WhoLeftWaitsForARestart,
    UpgradeIsOneBatch,
    WhoStopsBeginsNothing,
    LeavesKeepAMajority,
    EpochsRiseByElections,
    SnapshotsAreCheckedAndPinned,
    OverlayDecidesAsImages,
    SoundDisksAreFoundSound,
    RemovedLeadersResign,
    MajoritiesHaveLeaders,
    LeadersHearTheirVoters,
    LeadersResignForWant,
    WhatAMajorityHasIsCommitted,
    EverybodyIsAnswered,
    SessionsEndInTime,
    HistoryIsReplayedAlike,
    EndingsHaveCauses,
    WhatMustBeRefusedIs,
    TimersAreArmed,
    CoresKnowTheirLogs,
    ChangesKeepALiveMajority,
    FlushedEndsAreYoung,
    ReadsHaveTheWord,
)
