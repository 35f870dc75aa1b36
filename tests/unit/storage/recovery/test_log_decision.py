"""True if a log is kept, and whether anything has been lost."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from quorate.raft.messages import EpochStart
from quorate.records.ids import ZERO_UUID, DirectoryId, Epoch, Offset
from quorate.storage.flushed_end import FlushedEnd
from quorate.storage.healing import HealingState
from quorate.storage.log.segment import Segment
from quorate.storage.recovery.log_decision import RecoveryEvidence, decide_log
from quorate.storage.recovery.log_scan import Problem, ScannedLog
from tests.unit.storage.conftest import CLUSTER_ID, LOG_DIR, Replica, at

if TYPE_CHECKING:
    from quorate.records.ids import OffsetAndEpoch
    from quorate.storage.recovery.log_decision import LogDecision


def flushed_at(end: OffsetAndEpoch) -> FlushedEnd:
    return FlushedEnd(end, 1, (), 0, CLUSTER_ID, DirectoryId(ZERO_UUID))


def log_of(first: int, end: OffsetAndEpoch, problem: Problem | None = None) -> ScannedLog:
    segment = Segment.create(Replica().disk, LOG_DIR, Offset(first))
    epochs = [EpochStart(end.epoch, Offset(first))]
    return ScannedLog([segment], Offset(first), end, epochs=epochs, problem=problem)


SOUND = RecoveryEvidence(
    log=log_of(0, at(90, 3)),
    snapshot=None,
    damaged_snapshots=(),
    flushed=flushed_at(at(90, 3)),
    healing_state=HealingState(),
    epoch_max=Epoch(3),
)
TORN = Problem(0, 10, "torn", may_be_torn=True)
MISPLACED = Problem(0, 10, "misplaced", may_be_torn=False)
NO_LOG = ScannedLog([], Offset(0), at(0, 0))


def outcome(log_decision: LogDecision) -> tuple[bool, OffsetAndEpoch, OffsetAndEpoch | None, bool]:
    return (
        log_decision.keeps_log,
        log_decision.end,
        log_decision.remembered_end,
        log_decision.is_damage,
    )


@pytest.mark.parametrize(
    "recovery_evidence",
    [
        SOUND,
        replace(SOUND, flushed=None),
        replace(SOUND, flushed=flushed_at(at(40, 3))),  # an older one, back after a power cut
        replace(SOUND, snapshot=at(79, 3)),
        replace(SOUND, snapshot=at(90, 3)),
        replace(SOUND, damaged_snapshots=(at(79, 3),)),  # the log has it all
        replace(SOUND, log=log_of(79, at(90, 3)), snapshot=at(79, 3)),
        replace(SOUND, log=log_of(70, at(90, 3)), snapshot=at(79, 3)),
        replace(SOUND, log=log_of(0, at(90, 3), TORN)),  # above the flushed end: a tail
        replace(SOUND, log=log_of(0, at(90, 3), TORN), flushed=None),
        replace(SOUND, healing_state=HealingState(at(90, 3))),  # whole again
    ],
)
def test_a_log_that_lost_nothing_is_kept(recovery_evidence: RecoveryEvidence) -> None:
    assert outcome(decide_log(recovery_evidence)) == (True, at(90, 3), None, False)


@pytest.mark.rule("flushed_end_file")
@pytest.mark.parametrize(
    ("recovery_evidence", "remembered"),
    [
        (replace(SOUND, log=log_of(0, at(50, 3), TORN)), at(90, 3)),
        (replace(SOUND, log=log_of(0, at(50, 3))), at(90, 3)),
        (replace(SOUND, log=log_of(0, at(50, 3)), flushed=flushed_at(at(10, 4))), at(10, 4)),
        (replace(SOUND, log=log_of(0, at(50, 3), MISPLACED), flushed=None), at(51, 3)),
        (replace(SOUND, log=log_of(0, at(50, 3)), damaged_snapshots=(at(95, 3),)), at(95, 3)),
    ],
)
def test_what_is_below_the_flushed_end_was_lost(
    recovery_evidence: RecoveryEvidence, remembered: OffsetAndEpoch
) -> None:
    assert outcome(decide_log(recovery_evidence)) == (
        True,
        recovery_evidence.log.end,
        remembered,
        True,
    )


@pytest.mark.rule("snapshot_within_flush")
@pytest.mark.parametrize(
    ("recovery_evidence", "remembered"),
    [
        (replace(SOUND, log=log_of(0, at(50, 3))), None),  # the snapshot was just installed
        (replace(SOUND, log=log_of(0, at(50, 3)), flushed=flushed_at(at(79, 3))), None),
        (replace(SOUND, log=log_of(0, at(50, 3), TORN), flushed=flushed_at(at(60, 3))), None),
        (replace(SOUND, log=log_of(0, at(0, 0)), flushed=None), None),
        (replace(SOUND, log=NO_LOG), None),
        (replace(SOUND, log=log_of(0, at(99, 2)), flushed=flushed_at(at(99, 2))), None),
    ],
)
def test_a_log_that_the_newest_snapshot_supersedes_restarts_there(
    recovery_evidence: RecoveryEvidence, remembered: OffsetAndEpoch | None
) -> None:
    recovery_evidence = replace(recovery_evidence, snapshot=at(79, 3))
    if recovery_evidence.flushed == SOUND.flushed:
        recovery_evidence = replace(recovery_evidence, flushed=flushed_at(at(50, 3)))
    assert outcome(decide_log(recovery_evidence)) == (False, at(79, 3), remembered, False)


@pytest.mark.parametrize(
    ("recovery_evidence", "end", "remembered"),
    [
        (replace(SOUND, snapshot=at(79, 3), log=log_of(0, at(50, 3), TORN)), at(79, 3), at(90, 3)),
        (replace(SOUND, snapshot=at(20, 3), log=log_of(79, at(90, 3))), at(20, 3), at(90, 3)),
        (replace(SOUND, log=log_of(79, at(90, 3)), flushed=None), at(0, 0), at(90, 3)),
        (
            replace(SOUND, log=NO_LOG, flushed=None, damaged_snapshots=(at(79, 1),)),
            at(0, 0),
            at(79, 1),
        ),
    ],
)
def test_a_log_that_cannot_be_used_is_damage(
    recovery_evidence: RecoveryEvidence, end: OffsetAndEpoch, remembered: OffsetAndEpoch
) -> None:
    verdict = decide_log(recovery_evidence)
    assert outcome(verdict) == (False, end, remembered, True)


def test_healing_goes_on_without_being_new_damage() -> None:
    evidence = replace(SOUND, healing_state=HealingState(at(200, 3)))
    assert outcome(decide_log(evidence)) == (True, at(90, 3), at(200, 3), False)


def test_the_furthest_end_is_remembered() -> None:
    evidence = replace(SOUND, log=log_of(0, at(5, 1), TORN), healing_state=HealingState(at(7, 1)))
    assert outcome(decide_log(evidence)) == (True, at(5, 1), at(90, 3), True)


def test_a_verdict_says_why() -> None:
    verdict = decide_log(replace(SOUND, log=log_of(0, at(50, 3), TORN), snapshot=at(79, 3)))
    assert [why.split("/")[-1] for why in verdict.why] == [
        "the log ends at 50@3, before the newest snapshot 79@3",
        "00000000000000000000.log: byte 10: torn",
    ]


def test_a_log_that_was_cut_between_two_batches_says_where_it_ends() -> None:
    verdict = decide_log(replace(SOUND, log=log_of(0, at(40, 3))))
    assert verdict.is_damage
    assert verdict.why == (f"{LOG_DIR}/00000000000000000000.log: byte 0: the log ends here",)
