"""Corrupts a small file, or restores a stale copy of a file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from quorate.records.value_types import keyword_value_type
from quorate.sim.engine.event_loop import MILLION
from quorate.sim.faults.lost_votes import election_in, is_forgetting_safe
from quorate.sim.faults.stale_files import FILES, SMALL_FILES, stale_file_effect, take_copy
from quorate.storage.flushed_end import SLOT_BYTES, SLOTS
from quorate.storage.layout import EPOCH_CHECKPOINT, FLUSHED_END, QUORUM_STATE

if TYPE_CHECKING:
    from quorate.sim.action_runner import Action, ActionRunner
    from quorate.sim.engine.node import SimulatedNode


@keyword_value_type
class CorruptSmallFile:
    """A bit flips in a small file; `at_ppm` is its position within the file.

    It does not if two leaders of one epoch could be elected because of it, or if the directory has
    other damage: together, two faults could go undetected.
    """

    who: int
    file: str
    at_ppm: int
    bit: int

    def __post_init__(self) -> None:
        if self.file not in SMALL_FILES:
            raise ValueError(f"file {self.file!r}: one of {', '.join(SMALL_FILES)} is needed")

    def run(self, action_runner: ActionRunner) -> None:
        node = action_runner.resolve(self.who)
        path = SMALL_FILES[self.file]
        data = None if node is None else node.file_tampering.content(path)
        if node is None or not data or node.is_corrupt or node.file_tampering.paths:
            return
        at = self._position(len(data))
        flipped = bytearray(data)
        flipped[at] ^= 1 << self.bit % 8
        if self._may_rot(action_runner, node, data, bytes(flipped)):
            action_runner.cluster.log(f"node {node.node_id}: byte {at} of {self.file} rots")
            node.file_tampering.flip_bits(path, at, 1 << self.bit % 8)

    def _position(self, size_bytes: int) -> int:
        if self.file != FLUSHED_END:
            return size_bytes * self.at_ppm // MILLION
        # The rest of each block is never read.
        slot, at = divmod(len(SLOTS) * SLOT_BYTES * self.at_ppm // MILLION, SLOT_BYTES)
        return min(SLOTS[slot] + at, size_bytes - 1)

    def _may_rot(
        self, action_runner: ActionRunner, node: SimulatedNode, held: bytes, flipped: bytes
    ) -> bool:
        if self.file == QUORUM_STATE:
            says, said = election_in(flipped), election_in(held)
            if says is None or says == said:
                return True
            # With an earlier epoch, recovery would take the next batch itself for corrupt.
            is_later = said is not None and says.epoch >= said.epoch
            return is_later and is_forgetting_safe(action_runner.cluster.nodes.values(), node)
        if self.file in (FLUSHED_END, EPOCH_CHECKPOINT):
            return node.is_intact and action_runner.survivability.can_lose_disk(node)
        return True


@keyword_value_type
class RestoreStaleFile:
    """A file is restored from a copy that is `after_us` old; the process is down for `down_us`.

    For the log, the last segment is restored. For snapshots, the newest one is removed if it was
    taken since.
    """

    who: int
    file: str
    after_us: int
    down_us: int

    def __post_init__(self) -> None:
        if self.file not in FILES:
            raise ValueError(f"file {self.file!r}: one of {', '.join(FILES)} is needed")

    def run(self, action_runner: ActionRunner) -> None:
        node = action_runner.resolve(self.who)
        copy = None if node is None else take_copy(node, self.file)
        if node is None or copy is None:
            return

        def put_back() -> None:
            change = None if action_runner.is_over else stale_file_effect(action_runner, node, copy)
            if change is None:
                return
            action_runner.cluster.log(f"node {node.node_id}: {change.path} is as it was before")
            node.kill()
            node.restore_stale(change.path, change.data, harms=change.harms)
            action_runner.start_later(node, self.down_us)

        action_runner.cluster.schedule(self.after_us, put_back)


KINDS: Final[dict[str, type[Action]]] = {
    "rot-small": CorruptSmallFile,
    "put-back": RestoreStaleFile,
}
