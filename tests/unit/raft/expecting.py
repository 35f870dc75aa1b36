"""Compare all output of a core with what is expected.

`expect` compares an Update with all that it should ask for, effect by effect and in order, with the
wake-up and the notes; differences are reported by field. What a core has reported in all its steps
far (its role, its vote, the end of its log) is read with `told`, `saved` and `log_end`, so that a
test needs no look at the state within.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass, fields, is_dataclass
from typing import TYPE_CHECKING, Final

from quorate.raft import api
from quorate.raft import messages as m
from quorate.raft.core import RaftCore
from quorate.records.control import KRaftVoters
from quorate.records.ids import Epoch, Millis, Offset
from quorate.records.voters import VoterSet

if TYPE_CHECKING:
    from quorate.raft.trace_events import TraceEventKind
    from quorate.records.control import ControlRecord
    from quorate.records.ids import CallId, OffsetAndEpoch, ReplicaKey

CONTEXT_LINES: Final = 3


@dataclass(frozen=True, slots=True)
class Sent:
    """A request that left the core, and when."""

    effect: api.SendRequest
    sent_ms: Millis


class WatchedCore(RaftCore):
    """A core whose every event and Update is recorded by an onlooker that sees nothing else of it.

    The disk does what it is asked for and then reports it; until it has, the log is as it was.
    """

    def __init__(
        self,
        config: api.RaftConfig,
        recovered: api.RecoveredState,
        random: api.Random,
        incarnation: int = 0,
    ) -> None:
        super().__init__(config, recovered, random, incarnation)
        self.config = config
        self.told: api.PublishProgress | None = None
        self.saved = recovered.election or m.ElectionState(Epoch(0))
        self.log_end: OffsetAndEpoch = recovered.end
        self.generation = 0
        self.voters = [(entry.offset, entry.voters) for entry in recovered.voters]
        self.sent: dict[CallId, Sent] = {}
        self.now_ms = Millis(0)
        self._barrier: api.TruncateLog | api.InstallSnapshot | None = None

    def start(self, now_ms: Millis) -> api.Update:
        self.now_ms = now_ms
        return self._read(super().start(now_ms))

    def step(self, event: api.Event, now_ms: Millis) -> api.Update:
        self.now_ms = now_ms
        self._told(event)
        return self._read(super().step(event, now_ms))

    def _told(self, event: api.Event) -> None:
        """Record a report of the disk, or a message of another replica."""
        expected = None if self._barrier is None else self._barrier.generation
        match event:
            case api.ResponseReceived(call=call):
                self.sent.pop(call, None)
            case api.LogTruncated(to=to, generation=generation) if generation == expected:
                self.log_end, self.generation, self._barrier = to, generation, None
                self.voters = [entry for entry in self.voters if entry[0] < to.offset]
            case api.SnapshotInstalled(generation=generation) if generation == expected:
                self.log_end, self.generation = event.snapshot.snapshot_id, generation
                self._barrier = None
                if event.voters is not None:
                    self.voters = [(Offset(self.log_end.offset - 1), event.voters)]
            case api.TruncationRefused() | api.SnapshotRefused():
                self._barrier = None

    def _read(self, update: api.Update) -> api.Update:
        before, sent = self.told, {}
        for effect in update.effects:
            match effect:
                case api.PublishProgress():
                    self.told = effect
                case api.SaveElection(state):
                    self.saved = state
                case api.AppendToLog():
                    self.log_end = effect.end
                    for offset, record in _control_records(effect):
                        if isinstance(record, KRaftVoters):
                            self.voters.append((offset, record.voters))
                case api.TruncateLog() | api.InstallSnapshot():
                    self._barrier = effect
                case api.SendRequest():
                    sent[effect.call] = Sent(effect, self.now_ms)
        if _taken(before) != _taken(self.told):
            # What was asked in another role is wanted no more; who leads may still be answered.
            self.sent = {c: s for c, s in self.sent.items() if is_discovery(s.effect.request)}
        self.sent |= sent
        return update


def _taken(progress: api.PublishProgress | None) -> tuple[object, ...] | None:
    """The role, and in which epoch and under whom."""
    return None if progress is None else (progress.role, progress.epoch, progress.leader_id)


def is_discovery(request: m.PeerRequest) -> bool:
    """True if a Fetch asks who leads, and has no time for more."""
    return isinstance(request, m.FetchRequest) and request.max_wait_ms == 0


def _control_records(effect: api.AppendToLog) -> list[tuple[Offset, ControlRecord]]:
    match effect.payload:
        case api.ControlBatch(records):
            return _numbered(effect.base_offset, records)
        case m.FetchedBatches(batches=batches):
            return [
                record
                for batch in batches
                for record in _numbered(batch.base_offset, batch.control)
            ]
        case _:
            return []


def _numbered(
    base: Offset, records: tuple[ControlRecord, ...]
) -> list[tuple[Offset, ControlRecord]]:
    return [(Offset(base + index), record) for index, record in enumerate(records)]


def told(core: RaftCore) -> api.PublishProgress:
    """The role, the epoch, the leader and the high watermark that it published last."""
    assert isinstance(core, WatchedCore)
    assert core.told is not None
    return core.told


def saved(core: RaftCore) -> m.ElectionState:
    """The election state on its disk: epoch, leader and vote."""
    assert isinstance(core, WatchedCore)
    return core.saved


def log_end(core: RaftCore) -> OffsetAndEpoch:
    """The end of its log, by what it had appended and what the disk has truncated."""
    assert isinstance(core, WatchedCore)
    return core.log_end


def flushed(core: RaftCore) -> api.LogFlushed:
    """The disk has all that it was given."""
    assert isinstance(core, WatchedCore)
    return api.LogFlushed(core.log_end, core.generation)


def appended_voters(core: RaftCore) -> VoterSet:
    """The last set in its log, as far as the disk has not cut it off."""
    assert isinstance(core, WatchedCore)
    return core.voters[-1][1] if core.voters else VoterSet()


def unanswered(core: RaftCore) -> list[api.SendRequest]:
    """The requests of its role that no peer has answered in time, the oldest first."""
    assert isinstance(core, WatchedCore)
    oldest = core.now_ms - core.config.request_timeout_ms
    return [sent.effect for sent in core.sent.values() if sent.sent_ms > oldest]


def own_key(core: RaftCore) -> ReplicaKey:
    """Its node id and directory id."""
    assert isinstance(core, WatchedCore)
    return core.config.key


def now_ms(core: RaftCore) -> Millis:
    """The time of its last step."""
    assert isinstance(core, WatchedCore)
    return core.now_ms


def expect(
    update: api.Update,
    *effects: api.Effect,
    wake_at_ms: int | None,
    notes: tuple[tuple[TraceEventKind, str], ...] = (),
) -> None:
    """Fail unless the Update asks for just these effects, in order, this wake-up and these notes.

    A note is compared by its kind and its words.
    """
    wanted = _lines(effects, wake_at_ms, notes)
    found = _lines(update.effects, update.wake_at_ms, tuple((n.kind, n.text) for n in update.trace))
    if found != wanted:
        raise AssertionError(
            "\n".join(["- is expected, + was found:", *_difference(wanted, found)])
        )


def _difference(wanted: list[str], found: list[str]) -> list[str]:
    """The lines that differ, and those around them that say where."""
    lines = list(difflib.ndiff(wanted, found))
    differing = [index for index, line in enumerate(lines) if not line.startswith("  ")]
    near = {index + by for index in differing for by in range(-CONTEXT_LINES, CONTEXT_LINES + 1)}
    return [line for index, line in enumerate(lines) if index in near]


def _lines(
    effects: tuple[api.Effect, ...],
    wake_at_ms: int | None,
    notes: tuple[tuple[TraceEventKind, str], ...],
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
