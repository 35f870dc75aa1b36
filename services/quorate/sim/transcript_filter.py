"""Selects the steps of a transcript that explain a failure.

A violation names nodes, offsets and epochs. The filter selects the steps in which a log got or lost
such an offset or a replica reported it as committed, the steps in which such an epoch began, and
faults of such a node. It leaves out and counts routine and repeated steps.
"""

from __future__ import annotations

import re
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from quorate.raft import api
from quorate.raft.messages import VoteRequest
from quorate.records.value_types import value_type

if TYPE_CHECKING:
    from collections.abc import Iterator

    from quorate.raft.api import Effect, Event
    from quorate.records.ids import NodeId
    from quorate.sim.transcript import Line

# The number of last steps that are always selected.
LAST: Final = 2
_LISTS: Final = re.compile(r"\[[^\]]*\]|\{[^}]*\}")
_KEYS: Final = re.compile(r"\b(\d+):[\w-]{22}\b")
_NODES: Final = re.compile(
    r"\b(?:nodes?|leader|voter|votes for|voted for|makes|and node) (\d+)\b(?: and (\d+)\b)?"
)
_ENDS: Final = re.compile(r"\b(\d+)@(\d+)\b")
_EPOCHS: Final = re.compile(r"\bepochs? (\d+)\b(?: to (\d+)\b)?")
_MEASURES: Final = re.compile(r"\b(?:operation|life) \d+|\b\d+ (?:ms|of|keys|B)\b")
_NUMBERS: Final = re.compile(r"\d+")


@value_type
class MentionedIds:
    """The nodes, offsets and epochs that a violation names; without nodes it concerns all."""

    nodes: frozenset[int]
    epochs: frozenset[int]
    offsets: frozenset[int]

    @classmethod
    def of(cls, violation: str) -> MentionedIds:
        """Parse the message of a violation."""
        text = _LISTS.sub("", violation)
        nodes, text = _take(_KEYS, text)
        more, text = _take(_NODES, text)
        ends = _ENDS.findall(text)
        epochs, text = _take(_EPOCHS, _ENDS.sub("", text))
        offsets, _ = _take(_NUMBERS, _MEASURES.sub("", text))
        return cls(
            nodes=nodes | more,
            epochs=epochs | {int(epoch) for _, epoch in ends},
            offsets=offsets | {int(offset) for offset, _ in ends},
        )


def _take(pattern: re.Pattern[str], text: str) -> tuple[frozenset[int], str]:
    """The numbers that match, and the text without them."""
    found = (match.groups() or (match.group(),) for match in pattern.finditer(text))
    numbers = frozenset(int(number) for groups in found for number in groups if number is not None)
    return numbers, pattern.sub("", text)


@dataclass(slots=True)
class _Known:
    """The state of a node after its last step."""

    is_leader: bool = False
    high_watermark: int = 0
    flushed: int = 0


class TranscriptFilter:
    """Reads a transcript line by line and keeps at most about `lines` of them."""

    def __init__(self, mentioned_ids: MentionedIds, lines: int) -> None:
        self._mentioned_ids = mentioned_ids
        self._known: dict[NodeId, _Known] = {}
        self._said: set[tuple[NodeId, str]] = set()
        self._taken: set[tuple[NodeId, str, int]] = set()
        self._count = 0
        # The latest lines of each reason: offsets, roles and epochs, nodes, and the end.
        self._about_offsets: deque[tuple[int, Line]] = deque(maxlen=max(1, lines // 2))
        self._about_epochs: deque[tuple[int, Line]] = deque(maxlen=max(1, lines // 3))
        self._about_nodes: deque[tuple[int, Line]] = deque(maxlen=max(1, lines // 6))
        self._last: deque[tuple[int, Line]] = deque(maxlen=LAST)

    def add(self, line: Line) -> None:
        """The next line."""
        self._count += 1
        numbered = (self._count, line)
        self._last.append(numbered)
        if line.node is None:
            if self._befalls(str(line.event)):
                self._about_epochs.append(numbered)
            return
        update = line.update
        assert update is not None, "a node's lines are steps of its core"
        known = self._known.setdefault(line.node, _Known())
        # Evaluate all of them: each updates the state that the next step is compared with.
        about_offsets = [self._moves(known, effect) for effect in update.effects]
        about_offsets.append(self._confirms(known, line.event))
        about_epochs = [self._decides(line.node, known, effect) for effect in update.effects]
        if any(about_offsets):
            self._about_offsets.append(numbered)
        elif any(about_epochs) or self._asks_for_vote(line.event):
            self._about_epochs.append(numbered)
        elif self._says_something_new(line.node, update):
            self._about_nodes.append(numbered)

    def lines(self) -> Iterator[Line | int]:
        """Yield the selected lines in order, and between them the number of lines left out."""
        reasons = (self._about_offsets, self._about_epochs, self._about_nodes, self._last)
        kept = {number: line for reason in reasons for number, line in reason}
        before = 0
        for number, line in sorted(kept.items()):
            if number > before + 1:
                yield number - before - 1
            yield line
            before = number

    # --- what matters -----------------------------------------------------------------------------

    def _befalls(self, remark: str) -> bool:
        """True if a line about the cluster names a named node, or no node."""
        nodes = MentionedIds.of(remark).nodes
        return not nodes or self._is_named(*nodes)

    def _is_named(self, *nodes: int) -> bool:
        return not self._mentioned_ids.nodes or not self._mentioned_ids.nodes.isdisjoint(nodes)

    def _moves(self, known: _Known, effect: Effect) -> bool:
        """True if a log gets or loses a named offset, or learns that it is committed."""
        offsets = self._mentioned_ids.offsets
        match effect:
            case api.AppendToLog(base_offset=base, end=end):
                return any(base <= offset <= end.offset for offset in offsets)
            case api.TruncateLog(to=to):
                known.flushed = min(known.flushed, to.offset)
                return any(to.offset <= offset for offset in offsets)
            case api.InstallSnapshot(snapshot_id=end):
                return any(offset <= end.offset for offset in offsets)
            case api.PublishProgress(high_watermark=int(end_offset)):
                before, known.high_watermark = known.high_watermark, end_offset
                return any(before < offset <= end_offset for offset in offsets)
        return False

    def _confirms(self, known: _Known, event: Event | str) -> bool:
        """True if a flush has just reached a named offset."""
        match event:
            case api.LogFlushed(end=end):
                before, known.flushed = known.flushed, end.offset
                return any(before < offset <= end.offset for offset in self._mentioned_ids.offsets)
        return False

    def _decides(self, node: NodeId, known: _Known, effect: Effect) -> bool:
        """True if a vote is saved in a named epoch, or a role worth showing is assumed.

        A role is worth showing if it is new, and if its node or epoch is named or it begins or ends
        leadership.
        """
        match effect:
            case api.SaveElection(state=state):
                return state.epoch in self._mentioned_ids.epochs
            case api.PublishProgress(role=role, epoch=epoch, is_leader=is_leader):
                # Candidates without a majority assume the same roles repeatedly.
                is_new = (node, role, epoch) not in self._taken
                was_leader, known.is_leader = known.is_leader, is_leader
                if is_new:
                    self._taken.add((node, role, epoch))
                    self._said = {said for said in self._said if said[0] != node}
                leads = is_leader or was_leader
                return is_new and (
                    leads or epoch in self._mentioned_ids.epochs or self._is_named(node)
                )
        return False

    def _asks_for_vote(self, event: Event | str) -> bool:
        match event:
            case api.RequestReceived(request=VoteRequest(replica_epoch=epoch, pre_vote=False)):
                return epoch in self._mentioned_ids.epochs
        return False

    def _says_something_new(self, node: NodeId, update: api.Update) -> bool:
        """True if a named node logs a trace event that is new in this role, apart from numbers."""
        if not update.trace or not self._is_named(node):
            return False
        said = {(node, _NUMBERS.sub("", note.text)) for note in update.trace}
        is_new = not said <= self._said
        self._said |= said
        return is_new
