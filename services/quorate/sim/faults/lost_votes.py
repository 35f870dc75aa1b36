"""Votes and epochs lost with a stale or corrupt quorum-state or epoch checkpoint.

If a history contradicts an epoch of which the log has one batch, it is undecidable which of the two
has flipped, so the log counts as damaged.

A stale quorum-state has to be noticed if the log is of a later epoch. Otherwise no check can detect
it, and the voter may vote a second time, with a majority that overlaps the first one only in this
voter. So a file is only made stale if no second vote can elect a leader.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from quorate.sim.engine.node_config import DATA_DIR
from quorate.sim.engine.storage import LOG_DIR
from quorate.storage.flushed_end import newest_slot
from quorate.storage.layout import EPOCH_CHECKPOINT, FLUSHED_END, QUORUM_STATE
from quorate.storage.log.leader_epoch_checkpoint import decode_epochs
from quorate.storage.quorum_state import decode_quorum_state

if TYPE_CHECKING:
    from collections.abc import Iterable

    from quorate.raft.messages import ElectionState
    from quorate.sim.interfaces import MachineInterface
    from quorate.sim.invariants.invariant import Invariant

ELECTION_PATH: Final = f"{LOG_DIR}/{QUORUM_STATE}"
HISTORY_PATH: Final = f"{LOG_DIR}/{EPOCH_CHECKPOINT}"


def election_in(data: bytes | None) -> ElectionState | None:
    """The election state in a quorum-state; None if it cannot be read."""
    try:
        return None if data is None else decode_quorum_state(data)
    except ValueError:
        return None


def must_be_noticed(node: MachineInterface, state: ElectionState) -> bool:
    """True if what was flushed of the log, or two batches of it, are of a later epoch.

    A last batch that is alone with its epoch may have flipped itself, and proves nothing.
    """
    flushed = newest_slot(node.file_tampering.content(f"{DATA_DIR}/{FLUSHED_END}") or b"")
    if flushed is not None and flushed[2].end.epoch > state.epoch:
        return True
    return sum(entry.epoch > state.epoch for entry in node.log.entries) > 1


def is_forgetting_safe(nodes: Iterable[MachineInterface], node: MachineInterface) -> bool:
    """True if no vote in an epoch that this node knows could elect anybody any more.

    All others know that epoch, and none of them stands for election in it but the one that this
    node voted for: whatever this node forgets, they stand in later ones from now on.
    """
    held = election_in(node.file_tampering.content(ELECTION_PATH))
    if held is None:
        return False
    chosen = (held.leader_id, None if held.voted is None else held.voted.node_id)
    for other in nodes:
        if other is node:
            continue
        known = election_in(other.file_tampering.content(ELECTION_PATH))
        if known is None or known.epoch < held.epoch:
            return False
        stands = known.voted is not None and known.voted.node_id == other.node_id
        if known.epoch == held.epoch and stands and other.node_id not in chosen:
            return False
    return True


def report_forgotten(node: MachineInterface, watch: Invariant) -> None:
    """Before a start: the judges hear of what an old or rotten quorum-state leaves out.

    Not where the log tells that it is one: then this start has to refuse it.
    """
    if ELECTION_PATH not in node.file_tampering.paths:
        return
    state = election_in(node.file_tampering.content(ELECTION_PATH))
    if state is not None and not must_be_noticed(node, state):
        watch.on_forged_epoch(state.epoch)
        watch.on_state_lost(node, state)


def is_in_dispute(node: MachineInterface) -> bool:
    """True if the epoch history contradicts what a single batch tells."""
    if HISTORY_PATH not in node.file_tampering.paths:
        return False
    try:
        recorded = decode_epochs(node.file_tampering.content(HISTORY_PATH) or b"")
    except ValueError:
        return False
    said = {entry.start_offset: entry.epoch for entry in recorded}
    told = Counter(entry.epoch for entry in node.log.entries)
    return any(
        told[entry.epoch] == 1 and said.get(entry.base, entry.epoch) != entry.epoch
        for entry in node.log.entries
    )
