"""Reads records that are damaged in one voter's log from the log of another.

Two logs that agree up to an offset have the same records below it (Raft's log matching), so records
lost on one disk are still available. Records that no other directory has are reported as damage.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from itertools import chain, groupby
from typing import TYPE_CHECKING, Final, TypeAlias

from quorate.pipeline.source.damage import Damage
from quorate.pipeline.source.directories import find_directory
from quorate.pipeline.source.options import OptionError
from quorate.pipeline.source.split_reader import read_split
from quorate.pipeline.source.splits import NO_END, log_splits

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from quorate.pipeline.source.splits import Split
    from quorate.records.columnar.batch_run import BatchRun

    # What was found, and the split that says which of its records are wanted.
    Found: TypeAlias = tuple[Split, BatchRun | Damage]

_STEP_BYTES: Final = 1024 * 1024


def read_mended(split: Split) -> Iterator[tuple[Split, Iterable[BatchRun | Damage]]]:
    """Yield the contents of a split in order, each part with the split that it is read from."""
    if not split.elsewhere:
        yield split, read_split(split)
        return
    for _, pairs in groupby(_MendedSplit(split).run(), key=lambda pair: id(pair[0])):
        part, first = next(pairs)
        yield part, chain([first], (each for _, each in pairs))  # noqa: B031 - one use, in two parts


class _MendedSplit:
    def __init__(self, split: Split) -> None:
        self.split = split
        # All wanted records below this offset have been yielded.
        self.done = split.low

    def run(self) -> Iterator[Found]:
        for each in read_split(self.split):
            if not isinstance(each, Damage):
                yield from self.give(each)
                continue
            low, high = self.lost(each)
            if low >= high:
                continue
            found, reached = _elsewhere(self.split, low, high)
            yield from found
            self.done = reached
            if reached < high:
                yield self.split, replace(each, offset=reached)

    def give(self, run: BatchRun) -> Iterator[Found]:
        """Yield the part of a run that has not been yielded."""
        if run.last_offset < self.done:
            return
        part = self.split
        if run.first_offset < self.done:
            part = replace(part, low=self.done)
        self.done = run.last_offset + 1
        yield part, run

    def lost(self, damage: Damage) -> tuple[int, int]:
        """The wanted offsets that are lost by a damage, from and up to."""
        low = self.split.low if damage.offset is None else damage.offset
        behind = damage.behind
        if behind is None:
            behind = self.split.high if self.split.reach is None else self.split.reach
        # Records after the split are read with the next one, even if damaged bytes disagree.
        if self.split.next_offset is not None:
            behind = min(behind, self.split.next_offset)
        return max(low, self.done), min(behind, self.split.high)


def _elsewhere(split: Split, low: int, high: int) -> tuple[list[Found], int]:
    """The batches of other directories from `low` up to a gap, and the offset of that gap."""
    found: list[Found] = []
    while low < high < NO_END:
        parts = (_of_directory(path, split, low, high) for path in split.elsewhere)
        part = next((part for part in parts if part), None)
        if part is None:
            break
        found += part
        low = max(low, *(run.last_offset + 1 for _, run in part))
    return found, min(low, high)


def _of_directory(path: str, split: Split, low: int, high: int) -> list[tuple[Split, BatchRun]]:
    """The batches of a directory with these offsets, up to the first missing one."""
    found: list[tuple[Split, BatchRun]] = []
    reached = low
    with suppress(OptionError):
        for part in log_splits(find_directory(path), low, high, _STEP_BYTES):
            known = replace(part, epochs=split.epochs)
            for run in read_split(known):
                if isinstance(run, Damage) or run.first_offset > reached:
                    return found
                if run.last_offset >= reached:
                    found.append((known, run))
                    reached = run.last_offset + 1
    return found
