"""The parts of a log by who holds them."""

from __future__ import annotations

from random import Random

from quorate.pipeline.source.coverage import Span, cover, covered_from, longest
from tests.pipeline.log_frames import clock_seed


def parts(spans: list[Span], low: int, high: int, preferred: Span) -> list[tuple[int, int, int]]:
    return [(each.voter, each.begin, each.end) for each in cover(spans, low, high, preferred)]


def test_one_that_holds_all_is_read_alone() -> None:
    short, long = Span(0, 40, 100), Span(1, 0, 100)
    assert parts([short, long], 0, 100, long) == [(1, 0, 100)]
    assert longest([short, long]) == longest([long, short]) == long


def test_what_is_preferred_is_read_wherever_it_can_be() -> None:
    short, long = Span(0, 40, 90), Span(1, 0, 100)
    assert parts([short, long], 0, 100, short) == [(1, 0, 40), (0, 40, 90), (1, 90, 100)]
    assert parts([short, long], 50, 90, short) == [(0, 50, 90)]


def test_what_no_span_holds_ends_the_parts() -> None:
    spans = [Span(0, 0, 10), Span(1, 20, 30)]
    assert parts(spans, 5, 30, spans[0]) == [(0, 5, 10)]
    assert parts(spans, 12, 30, spans[0]) == []
    assert covered_from(spans, 30) == 20
    assert covered_from(spans, 40) == 40


def test_a_chain_of_logs_begins_with_its_first() -> None:
    spans = [Span(0, 30, 60), Span(1, 55, 90), Span(2, 0, 30)]
    assert covered_from(spans, 90) == 0
    assert parts(spans, 0, 90, spans[1]) == [(2, 0, 30), (0, 30, 55), (1, 55, 90)]


def test_parts_follow_each_other_and_are_held() -> None:
    random = Random(clock_seed())
    for _ in range(300):
        spans = [
            Span(voter, begin := random.randrange(20), begin + random.randrange(12))
            for voter in range(4)
        ]
        low, high = sorted((random.randrange(30), random.randrange(30)))
        preferred = random.choice(spans)
        found = cover(spans, low, high, preferred)
        held = [
            {voter.voter for voter in spans if voter.begin <= at < voter.end}
            for at in range(low, high)
        ]
        readers = [part.voter for part in found for _ in range(part.begin, part.end)]
        first_gap = next((at for at, voters in enumerate(held) if not voters), len(held))
        assert len(readers) == first_gap, (spans, low, high)
        for reader, voters in zip(readers, held, strict=False):
            assert reader in voters
            assert reader == preferred.voter or preferred.voter not in voters
