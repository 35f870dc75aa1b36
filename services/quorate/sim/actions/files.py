"""Corrupts a small file, or restores a stale copy of a file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from quorate.records.value_types import keyword_value_type
from quorate.sim.engine.event_loop import MILLION
from quorate.sim.faults.lost_votes import election_in, may_forget
from quorate.sim.faults.stale_files import FILES, SMALL_FILES, ageing, copy_of
from quorate.storage.flushed_end import SLOT_BYTES, SLOTS
from quorate.storage.layout import EPOCH_CHECKPOINT, FLUSHED_END, QUORUM_STATE

if TYPE_CHECKING:
    from quorate.sim.action_runner import Deed, Stage
    from quorate.sim.engine.node import SimulatedNode


@keyword_value_type
class RotSmall:
    """A bit flips in a small file, after `at_ppm` of its bytes.

    Not where somebody could be elected twice by it, nor beside other damage that only the two
    together would hide.
    """

    who: int
    file: str
    at_ppm: int
    bit: int

    def __post_init__(self) -> None:
        if self.file not in SMALL_FILES:
            raise ValueError(f"file {self.file!r}: one of {', '.join(SMALL_FILES)} is needed")

    def do(self, stage: Stage) -> None:
        node = stage.find(self.who)
        path = SMALL_FILES[self.file]
        data = None if node is None else node.spoiling.content(path)
        if node is None or not data or node.is_rotten or node.spoiling.paths:
            return
        at = self._position(len(data))
        flipped = bytearray(data)
        flipped[at] ^= 1 << self.bit % 8
        if self._may_rot(stage, node, data, bytes(flipped)):
            stage.world.remark(f"node {node.node_id}: byte {at} of {self.file} rots")
            node.spoiling.rot(path, at, 1 << self.bit % 8)

    def _position(self, size_bytes: int) -> int:
        if self.file != FLUSHED_END:
            return size_bytes * self.at_ppm // MILLION
        # The rest of each block is never looked at.
        slot, at = divmod(len(SLOTS) * SLOT_BYTES * self.at_ppm // MILLION, SLOT_BYTES)
        return min(SLOTS[slot] + at, size_bytes - 1)

    def _may_rot(self, stage: Stage, node: SimulatedNode, held: bytes, flipped: bytes) -> bool:
        if self.file == QUORUM_STATE:
            says, said = election_in(flipped), election_in(held)
            if says is None or says == said:
                return True
            # With an earlier epoch a batch that comes next would count as flipped itself.
            is_later = said is not None and says.epoch >= said.epoch
            return is_later and may_forget(stage.world.nodes.values(), node)
        if self.file in (FLUSHED_END, EPOCH_CHECKPOINT):
            return node.is_whole and stage.sparing.can_spare(node)
        return True


@keyword_value_type
class PutBack:
    """A file is put back as it was `after_us` before, with the process down for `down_us`.

    Of the log it is the last segment; of snapshots the newest is missing that came since.
    """

    who: int
    file: str
    after_us: int
    down_us: int

    def __post_init__(self) -> None:
        if self.file not in FILES:
            raise ValueError(f"file {self.file!r}: one of {', '.join(FILES)} is needed")

    def do(self, stage: Stage) -> None:
        node = stage.find(self.who)
        copy = None if node is None else copy_of(node, self.file)
        if node is None or copy is None:
            return

        def put_back() -> None:
            change = None if stage.is_over else ageing(stage, node, copy)
            if change is None:
                return
            stage.world.remark(f"node {node.node_id}: {change.path} is as it was before")
            node.kill()
            node.age(change.path, change.data, harms=change.harms)
            stage.start_later(node, self.down_us)

        stage.world.schedule(self.after_us, put_back)


KINDS: Final[dict[str, type[Deed]]] = {
    "rot-small": RotSmall,
    "put-back": PutBack,
}
