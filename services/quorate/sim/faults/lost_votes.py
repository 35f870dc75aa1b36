"""Votes and epochs lost with a stale or corrupt quorum-state or epoch checkpoint.

If the epoch checkpoint contradicts an epoch of which the log has one batch, either may be corrupt,
so the log counts as damaged.

A stale quorum-state must be detected if the log has a later epoch. Otherwise no check can detect
it, and the voter may vote a second time, in a majority that overlaps the first one only in this
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
    """True if the flushed end, or at least two batches of the log, have a later epoch.

    A single batch with a later epoch proves nothing: its epoch may be corrupt.
    """
    flushed = newest_slot(node.file_tampering.content(f"{DATA_DIR}/{FLUSHED_END}") or b"")
    if flushed is not None and flushed[2].end.epoch > state.epoch:
        return True
    return sum(entry.epoch > state.epoch for entry in node.log.entries) > 1


def is_forgetting_safe(nodes: Iterable[MachineInterface], node: MachineInterface) -> bool:
    """True if a second vote of this node could not elect a second leader.

    All other nodes know this node's epoch, and none of them is a candidate in it, except the node
    that this node voted for: all later candidates have higher epochs.
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
    """Before a start, notify the invariants of votes that a tampered quorum-state has lost.

    If the log reveals the tampering they are not notified: this start must refuse the directory.
    """
    if ELECTION_PATH not in node.file_tampering.paths:
        return
    state = election_in(node.file_tampering.content(ELECTION_PATH))
    if state is not None and not must_be_noticed(node, state):
        watch.on_forged_epoch(state.epoch)
        watch.on_state_lost(node, state)


def is_in_dispute(node: MachineInterface) -> bool:
    """True if the epoch checkpoint contradicts the epoch of a single batch."""
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
