"""A cover of a log's offsets by the logs of several voters, none of which need hold all."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.records.value_types import value_type

if TYPE_CHECKING:
    from collections.abc import Iterable


@value_type
class Span:
    """Offsets from `begin` up to, not including, `end`, of the log of one voter.

    `voter` is a number of the caller's; among equals the lowest is taken.
    """

    voter: int
    begin: int
    end: int


def longest(spans: Iterable[Span]) -> Span:
    """The span that holds the most offsets."""
    return max(spans, key=lambda each: (each.end - each.begin, each.end, -each.voter))


def covered_from(spans: Iterable[Span], end: int) -> int:
    """The first offset from which on the spans together hold all below `end`."""
    begin, spans = end, tuple(spans)
    while (lower := min((s.begin for s in spans if s.end >= begin), default=begin)) < begin:
        begin = lower
    return begin


def cover(spans: Iterable[Span], low: int, high: int, preferred: Span) -> list[Span]:
    """The offsets from `low` up to `high`, one part behind the other, as far as a span holds them.

    What `preferred` holds is its part, and the span that reaches furthest has the rest.
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
