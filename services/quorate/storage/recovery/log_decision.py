"""Decides from the scanned log what to keep and whether data was lost.

See rules `flushed_end_file`, `recovery_flush`, `log_generation`, `snapshot_within_flush` and
`damaged_voter_heals`. The decision is pure: evidence goes in, a decision comes out, nothing on the
disk is touched. Ends are compared as in Vote: by epoch, then by offset.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.records.ids import Epoch, Offset, OffsetAndEpoch
from quorate.records.value_types import keyword_value_type, value_type
from quorate.storage.recovery.log_scan import find_resync_end

if TYPE_CHECKING:
    from collections.abc import Sequence

    from quorate.storage.flushed_end import FlushedEnd
    from quorate.storage.healing import HealingState
    from quorate.storage.recovery.log_scan import ScannedLog

EMPTY = OffsetAndEpoch(epoch=Epoch(0), offset=Offset(0))


@keyword_value_type
class RecoveryEvidence:
    """The contents of the directory. `snapshot` is the newest valid one.

    `epoch_max` is the highest epoch in any file except the log.
    """

    log: ScannedLog
    snapshot: OffsetAndEpoch | None
    damaged_snapshots: Sequence[OffsetAndEpoch]
    flushed: FlushedEnd | None
    healing_state: HealingState
    epoch_max: Epoch


@value_type
class LogDecision:
    """The decision about the log.

    The log is kept up to its first inconsistency (`keeps_log`) or restarts empty at `end`.
    `remembered_end` is set if this replica once had more than that. `is_damage` distinguishes lost
    records from a tail that was never acknowledged; `why` gives the reasons in plain text.
    """

    keeps_log: bool
    end: OffsetAndEpoch
    remembered_end: OffsetAndEpoch | None
    is_damage: bool
    why: tuple[str, ...]


def decide_log(recovery_evidence: RecoveryEvidence) -> LogDecision:
    """Decide to keep what is consistent, and determine what was lost."""
    log = recovery_evidence.log
    misfit = _why_not_kept(log, recovery_evidence.snapshot)
    end = log.end if misfit is None else recovery_evidence.snapshot or EMPTY
    once, is_damage = _ends_once_reached(recovery_evidence)
    if misfit is not None and log.first > end.offset:
        # The log itself is valid, but the records between the snapshot and it are lost.
        once.append(log.end)
    is_damage = is_damage or any(known > end for known in once)
    if recovery_evidence.healing_state.remembered_end is not None:
        once.append(recovery_evidence.healing_state.remembered_end)
    most = max(once, default=EMPTY)
    why = [misfit] if misfit is not None and (log.segments or most > end) else []
    if log.problem is not None:
        path = log.segments[log.problem.segment].path
        why.append(f"{path}: byte {log.problem.position}: {log.problem.reason}")
    is_damage = is_damage and most > end
    if is_damage and not why:
        # A log truncated between two batches is valid to its last byte, but incomplete.
        path = log.segments[log.segment].path
        why.append(f"{path}: byte {log.position}: the log ends here")
    return LogDecision(
        keeps_log=misfit is None,
        end=end,
        remembered_end=most if most > end else None,
        is_damage=is_damage,
        why=tuple(why),
    )


def _why_not_kept(log: ScannedLog, snapshot: OffsetAndEpoch | None) -> str | None:
    if snapshot is None:
        if log.first == 0 and log.segments:
            return None
        return f"no valid snapshot ends where the log begins, at {log.first}"
    if not log.segments or log.end.offset < snapshot.offset:
        return f"the log ends at {log.end}, before the newest snapshot {snapshot}"
    if log.first > snapshot.offset:
        return f"the log begins at {log.first}, after the end of the newest snapshot {snapshot}"
    if log.epoch_before(snapshot.offset) not in (None, snapshot.epoch):
        return f"the log differs from the newest snapshot {snapshot}, which was committed"
    return None


def _ends_once_reached(recovery_evidence: RecoveryEvidence) -> tuple[list[OffsetAndEpoch], bool]:
    """Return the ends that this replica once had, and whether the log itself proves damage."""
    once = list(recovery_evidence.damaged_snapshots)
    log, flushed = recovery_evidence.log, recovery_evidence.flushed
    if flushed is not None:
        once.append(flushed.end)
    if log.problem is None or (flushed is not None and flushed.end <= log.end):
        # Whatever is above the flushed end was never acknowledged, so its damage is not a loss: a
        # power failure may lose any of its sectors.
        return once, False
    # Intact batches behind the problem show how far the log once reached. The flushed-end file may
    # show less, if a power failure has restored an older version of it. If the file is missing,
    # only these batches distinguish damage from an unflushed tail.
    if log.doubted is not None:
        once.append(log.doubted)
    behind = find_resync_end(log, recovery_evidence.epoch_max)
    if flushed is not None:
        return [*once, behind or flushed.end], False
    if behind is not None:
        return [*once, behind], True
    if not log.problem.may_be_torn:
        at_least = OffsetAndEpoch(epoch=log.end.epoch, offset=Offset(log.end.offset + 1))
        return [*once, at_least], True
    return once, False
