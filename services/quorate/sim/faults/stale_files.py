"""Effects of restoring a stale copy of one file, and whether it is survivable.

One file of a directory may be older than the others. If recovery must detect that, it refuses or
heals the directory, and the checkers treat the disk like a corrupted one. A stale copy that cannot
be detected is restored only if nothing is lost by it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from quorate.sim.engine.node_config import DATA_DIR
from quorate.sim.engine.storage import LOG_DIR
from quorate.sim.faults.lost_votes import (
    ELECTION_PATH,
    HISTORY_PATH,
    election_in,
    is_forgetting_safe,
    must_be_noticed,
)
from quorate.storage.flushed_end import newest_slot
from quorate.storage.healing import HealingState, decode_healing
from quorate.storage.layout import (
    BOOTSTRAP_ID,
    EPOCH_CHECKPOINT,
    FLUSHED_END,
    HEALING,
    QUORUM_STATE,
    parse_checkpoint,
    parse_segment,
)

if TYPE_CHECKING:
    from quorate.records.ids import OffsetAndEpoch
    from quorate.sim.action_runner import ActionRunner
    from quorate.sim.engine.node import SimulatedNode

SEGMENT: Final = "segment"
SNAPSHOT: Final = "snapshot"
FILES: Final = (QUORUM_STATE, EPOCH_CHECKPOINT, FLUSHED_END, HEALING, SEGMENT, SNAPSHOT)
SMALL_FILES: Final = {
    QUORUM_STATE: ELECTION_PATH,
    EPOCH_CHECKPOINT: HISTORY_PATH,
    FLUSHED_END: f"{DATA_DIR}/{FLUSHED_END}",
    HEALING: f"{DATA_DIR}/{HEALING}",
}


class Copy(NamedTuple):
    """An earlier copy of a file; `data` is None if the file did not exist.

    For snapshots, it names the newest one at that time: later snapshots are missing in the copy.
    """

    file: str
    directory_id: bytes
    path: str
    data: bytes | None


class StaleFileEffect(NamedTuple):
    """A restored file; with `harms` the disk's contents count as lost, as if corrupted."""

    path: str
    data: bytes | None
    harms: bool


def take_copy(node: SimulatedNode, file: str) -> Copy | None:
    """Take a copy of a file; None for a segment if the directory has none yet."""
    path = SMALL_FILES.get(file) or _newest(node, file)
    if path is None:
        return None
    return Copy(file, node.directory_id, path, node.file_tampering.content(path))


def stale_file_effect(
    action_runner: ActionRunner, node: SimulatedNode, copy: Copy
) -> StaleFileEffect | None:
    """The effect of restoring the copy; None if it is not allowed or changes nothing."""
    if not node.is_intact and copy.file != HEALING:
        return None
    held = node.file_tampering.content(copy.path)
    if node.directory_id != copy.directory_id or node.is_corrupt or node.file_tampering.paths:
        return None
    if copy.file == SNAPSHOT:
        return _without_snapshot(action_runner, node, copy)
    if held == copy.data or (copy.data is None and copy.file != HEALING):
        return None
    match copy.file:
        case "quorum-state":
            return _older_election(action_runner, node, copy)
        case "leader-epoch-checkpoint":
            may_be = action_runner.survivability.can_lose_disk(node)
            return StaleFileEffect(copy.path, copy.data, harms=False) if may_be else None
        case "flushed-end":
            return _older_flushed_end(action_runner, node, copy)
        case "healing":
            return _older_healing(action_runner, node, copy, held)
    return _older_segment(action_runner, node, copy, held)


def _older_election(
    action_runner: ActionRunner, node: SimulatedNode, copy: Copy
) -> StaleFileEffect | None:
    """The effect of a stale quorum-state; None if a last batch would be truncated as corrupt.

    That happens to a last batch that alone has a later epoch. None also if a second vote could
    elect a leader.
    """
    state = election_in(copy.data)
    if state is not None and not must_be_noticed(node, state):
        is_alone = node.log.end.epoch > state.epoch
        if is_alone or not is_forgetting_safe(action_runner.cluster.nodes.values(), node):
            return None
    return StaleFileEffect(copy.path, copy.data, harms=False)


def _older_flushed_end(
    action_runner: ActionRunner, node: SimulatedNode, copy: Copy
) -> StaleFileEffect | None:
    """The effect of a stale flushed-end; an end truncated since makes the log look damaged."""
    flushed = newest_slot(copy.data or b"")
    if flushed is None or not action_runner.survivability.can_lose_disk(node):
        return None
    end = flushed[2].end
    is_known = end.offset <= node.log.start.offset or _has(node, end)
    return StaleFileEffect(copy.path, copy.data, harms=not is_known)


def _older_healing(
    action_runner: ActionRunner, node: SimulatedNode, copy: Copy, held: bytes | None
) -> StaleFileEffect | None:
    """The effect of a stale `healing`; None if both copies have a target.

    Recovery cannot tell which of two such copies is older.
    """
    try:
        before, now = _healing(copy.data), _healing(held)
    except (ValueError, KeyError, TypeError):
        # One of them has bit rot: a file has at most one fault at a time.
        return None
    if before.abstains or now.abstains or (before != HealingState() and now != HealingState()):
        return None
    end = before.remembered_end
    is_behind = end is not None and end > node.log.end
    if not action_runner.survivability.can_lose_disk(node):
        return None
    return StaleFileEffect(copy.path, copy.data, harms=is_behind)


def _older_segment(
    action_runner: ActionRunner, node: SimulatedNode, copy: Copy, held: bytes | None
) -> StaleFileEffect | None:
    """The effect of a stale segment, which lacks records.

    None unless flushed-end reveals that: a power loss may have lost its newest slot.
    """
    flushed = newest_slot(node.file_tampering.content(SMALL_FILES[FLUSHED_END]) or b"")
    is_told = flushed is not None and flushed[2].end.offset >= node.safe_end()
    if held is None or not is_told or not action_runner.survivability.can_lose_disk(node):
        return None
    return StaleFileEffect(copy.path, copy.data, harms=True)


def _without_snapshot(
    action_runner: ActionRunner, node: SimulatedNode, copy: Copy
) -> StaleFileEffect | None:
    path = _newest(node, SNAPSHOT)
    if path in (None, copy.path) or not action_runner.survivability.can_lose_disk(node):
        return None
    return StaleFileEffect(path, None, harms=True)


def _newest(node: SimulatedNode, file: str) -> str | None:
    """The path of the last segment or the newest snapshot.

    None without any segment; a name of no existing file without any snapshot.
    """
    names = node.disk.files(LOG_DIR)
    if file == SEGMENT:
        found = [name for name in names if parse_segment(name) is not None]
        return f"{LOG_DIR}/{found[-1]}" if found else None
    found = [name for name in names if parse_checkpoint(name) not in (None, BOOTSTRAP_ID)]
    return f"{LOG_DIR}/{found[-1]}" if found else f"{LOG_DIR}/no.checkpoint"


def _has(node: SimulatedNode, end: OffsetAndEpoch) -> bool:
    return node.log.epoch_before(end.offset) == end.epoch


def _healing(data: bytes | None) -> HealingState:
    return HealingState() if data is None else decode_healing(data)
