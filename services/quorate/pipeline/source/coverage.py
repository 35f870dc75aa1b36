"""A cover of a log's offsets by the logs of several voters, each of which may be incomplete."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.records.value_types import value_type

if TYPE_CHECKING:
    from collections.abc import Iterable


@value_type
class Span:
    """Offsets from `begin` up to, not including, `end`, of the log of one voter.

    `voter` is a number that the caller assigns; among equals the lowest is preferred.
    """

    voter: int
    begin: int
    end: int


def longest(spans: Iterable[Span]) -> Span:
    """The span with the most offsets."""
    return max(spans, key=lambda each: (each.end - each.begin, each.end, -each.voter))


def covered_from(spans: Iterable[Span], end: int) -> int:
    """The lowest offset from which the spans together cover all offsets below `end`."""
    begin, spans = end, tuple(spans)
    while (lower := min((s.begin for s in spans if s.end >= begin), default=begin)) < begin:
        begin = lower
    return begin


def cover(spans: Iterable[Span], low: int, high: int, preferred: Span) -> list[Span]:
    """Consecutive parts for the offsets from `low` up to `high`, up to the first gap.

    The offsets in `preferred` are its part; the span that reaches furthest has the rest.
    """
    parts: list[Span] = []
    spans = tuple(spans)
    while low < high:
        holding = [each for each in spans if each.begin <= low < each.end]
        if not holding:
            break
        end = high
        if preferred in holding:
            chosen = preferred
        else:
            chosen = max(holding, key=lambda each: (each.end, -each.voter))
            if low < preferred.begin < preferred.end:
                end = min(end, preferred.begin)
        parts.append(Span(chosen.voter, low, min(end, chosen.end)))
        low = parts[-1].end
    return parts
