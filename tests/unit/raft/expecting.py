"""What a core says to the outside, held whole against what is expected.

`expect` compares an Update with all that it should ask for, effect by effect and in order, with the
wake-up and the notes; a difference is told field by field. What a core has told in all its steps so
far (its role, its vote, the end of its log) is read with `told`, `saved` and `log_end`, so that a
test needs no look at the state within.
"""

from __future__ import annotations

import difflib
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING

from quorate.raft import api
from quorate.raft import messages as m
from quorate.raft.core import RaftCore
from quorate.records.control import KRaftVoters
from quorate.records.ids import Epoch, Millis
from quorate.records.voters import VoterSet

if TYPE_CHECKING:
    from quorate.raft.notes import NoteKind
    from quorate.records.control import ControlRecord
    from quorate.records.ids import OffsetAndEpoch


class WatchedCore(RaftCore):
    """A core whose every Update is read by somebody who sees nothing else of it."""

    def __init__(
        self, config: api.RaftConfig, recovered: api.RecoveredState, random: api.Random
    ) -> None:
        super().__init__(config, recovered, random)
        self.told: api.PublishProgress | None = None
        self.saved = recovered.election or m.ElectionState(Epoch(0))
        self.log_end: OffsetAndEpoch | None = recovered.end
        self.voters = recovered.voters[-1].voters if recovered.voters else VoterSet()
        self.now_ms = Millis(0)

    def start(self, now_ms: Millis) -> api.Update:
        self.now_ms = now_ms
        return self._read(super().start(now_ms))

    def step(self, event: api.Event, now_ms: Millis) -> api.Update:
        self.now_ms = now_ms
        return self._read(super().step(event, now_ms))

    def _read(self, update: api.Update) -> api.Update:
        for effect in update.effects:
            match effect:
                case api.PublishProgress():
                    self.told = effect
                case api.SaveElection(state):
                    self.saved = state
                case api.AppendToLog():
                    self.log_end = effect.end
                    for record in _control_records(effect.payload):
                        if isinstance(record, KRaftVoters):
                            self.voters = record.voters
                case api.TruncateLog() | api.InstallSnapshot():
                    # What the disk makes of it is said by the test, not by the core.
                    self.log_end = None
        return update


def _control_records(
    payload: api.ControlBatch | api.ProposedBatch | m.FetchedBatches,
) -> tuple[ControlRecord, ...]:
    match payload:
        case api.ControlBatch(records):
            return records
        case m.FetchedBatches(batches=batches):
            return tuple(record for batch in batches for record in batch.control)
        case _:
            return ()


def told(core: RaftCore) -> api.PublishProgress:
    """The role, the epoch, the leader and the high watermark that it published last."""
    assert isinstance(core, WatchedCore)
    assert core.told is not None
    return core.told


def saved(core: RaftCore) -> m.ElectionState:
    """What its disk holds of the election: epoch, leader and vote."""
    assert isinstance(core, WatchedCore)
    return core.saved


def log_end(core: RaftCore) -> OffsetAndEpoch:
    """Where its log ends by what it had appended, as long as nothing was to be cut."""
    assert isinstance(core, WatchedCore)
    assert core.log_end is not None
    return core.log_end


def appended_voters(core: RaftCore) -> VoterSet:
    """The set that it appended last, as long as nothing was to be cut."""
    assert isinstance(core, WatchedCore)
    assert core.log_end is not None
    return core.voters


def now_ms(core: RaftCore) -> Millis:
    """The time of its last step."""
    assert isinstance(core, WatchedCore)
    return core.now_ms


def expect(
    update: api.Update,
    *effects: api.Effect,
    wake_at_ms: int | None,
    notes: tuple[tuple[NoteKind, str], ...] = (),
) -> None:
    """Fail unless the Update asks for just these effects, in order, this wake-up and these notes.

    A note is compared by its kind and its words.
    """
    wanted = _lines(effects, wake_at_ms, notes)
    found = _lines(update.effects, update.wake_at_ms, tuple((n.kind, n.text) for n in update.notes))
    if found != wanted:
        difference = difflib.ndiff(wanted, found)
        raise AssertionError("\n".join(["- is expected, + was found:", *difference]))


def _lines(
    effects: tuple[api.Effect, ...],
    wake_at_ms: int | None,
    notes: tuple[tuple[NoteKind, str], ...],
) -> list[str]:
    lines = [line for effect in effects for line in _shown("", effect)]
    lines += [f"note {kind.name}: {text}" for kind, text in notes]
    return [*lines, f"wake at {wake_at_ms} ms"]


def _shown(name: str, thing: object, depth: int = 0) -> list[str]:
    """One line for each leaf, so that a difference is that of one field."""
    indent = "  " * depth
    label = f"{name}: " if name else ""
    if isinstance(thing, tuple) and not hasattr(thing, "_fields") and thing:
        inner = [_shown(f"{index}", item, depth + 1) for index, item in enumerate(thing)]
        return [f"{indent}{label}(", *(line for lines in inner for line in lines), f"{indent})"]
    if not is_dataclass(thing) or isinstance(thing, type):
        return [f"{indent}{label}{thing!r}"]
    lines = [f"{indent}{label}{type(thing).__name__}"]
    for item in fields(thing):
        lines += _shown(item.name, getattr(thing, item.name), depth + 1)
    return lines
