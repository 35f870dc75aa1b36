"""Plots: well-formed, in proportion, and with nothing of a log that is not escaped."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from xml.etree import ElementTree as ET

import pytest

from quorate.pipeline.report.plots import Bar, Interval, Lane, Span, bars, lanes, line

START = datetime(2026, 1, 1, tzinfo=UTC)
SPAN = Span(START, START + timedelta(hours=10))
EVIL = '"><script>alert(1)</script>'


def parsed(figure: str) -> ET.Element:
    """A figure as XML, which it has to be."""
    return ET.fromstring(figure)  # noqa: S314 - of our own making


def test_an_interval_is_where_it_was_and_can_be_seen() -> None:
    marks = (
        Interval(START + timedelta(hours=5), START + timedelta(hours=6), EVIL),
        Interval(SPAN.end, SPAN.end, "at the very end"),
    )
    figure = lanes(EVIL, SPAN, [Lane(EVIL, marks)])
    rects = parsed(figure).iter("rect")
    places = [(float(rect.attrib["x"]), float(rect.attrib["width"])) for rect in rects]
    assert places == [(500.0, 100.0), (998.5, 1.5)]
    assert "<script" not in figure


def test_a_line_holds_its_value_until_the_next_point() -> None:
    points = [(START, 0.0), (START + timedelta(hours=5), 4.0), (START + timedelta(hours=7.5), 1.0)]
    figure = parsed(line("t", SPAN, points))
    path = next(figure.iter("path")).attrib["d"]
    numbers = [tuple(map(float, pair.split())) for pair in re.findall(r"[ML]([\d. ]+)", path)]
    assert numbers[3:] == [
        (500.0, 100.0),
        (500.0, 0.0),
        (750.0, 0.0),
        (750.0, 75.0),
        (1000.0, 75.0),
        (1000.0, 100.0),
    ]


def test_bars_are_in_proportion_to_the_longest() -> None:
    figure = parsed(bars("t", [Bar("a", 50, "50"), Bar(EVIL, 25, EVIL), Bar("c", 0, "0")]))
    assert [rect.attrib["width"] for rect in figure.iter("rect")] == ["1000.0", "500.0", "1.5"]


def test_nothing_to_draw_is_drawn_without_an_error() -> None:
    for figure in (bars("t", []), lanes("t", Span(START, START), []), line("t", SPAN, [])):
        assert parsed(figure).tag == "figure"


def test_colours_are_explained_where_they_mean_something() -> None:
    figure = lanes("t", SPAN, [], [("bad", EVIL), ("good", "well")])
    assert [rect.attrib["class"] for rect in parsed(figure).iter("rect")] == ["bad", "good"]
    assert "legend" not in lanes("t", SPAN, [])


def ticks(span: Span) -> list[tuple[str, str]]:
    """The labels of an axis with their places."""
    found = parsed(lanes("t", span, [])).findall(".//span[@style]")
    return [("".join(tick.itertext()), tick.attrib["style"]) for tick in found]


def test_an_axis_has_round_times_at_their_places() -> None:
    start = datetime(2026, 1, 1, 21, 50, tzinfo=UTC)
    span = Span(start, start + timedelta(hours=20))
    assert ticks(span) == [
        ("00:00Jan 02", "left:10.83%"),
        ("03:00", "left:25.83%"),
        ("06:00", "left:40.83%"),
        ("09:00", "left:55.83%"),
        ("12:00", "left:70.83%"),
        ("15:00", "left:85.83%"),
    ]


@pytest.mark.parametrize(
    ("seconds", "first", "count"),
    [
        (0, "21:50Jan 01", 1),
        (30, "21:50Jan 01", 7),
        (600, "21:50Jan 01", 6),
        (86_400 * 30, "Jan 03", 8),
        (86_400 * 3000, "2026-01-15", 10),
    ],
)
def test_an_axis_of_any_length_has_few_ticks(seconds: int, first: str, count: int) -> None:
    start = datetime(2026, 1, 1, 21, 50, tzinfo=UTC)
    found = ticks(Span(start, start + timedelta(seconds=seconds)))
    assert len(found) == count
    assert found[0][0] == first


def test_times_that_no_calendar_goes_beyond_have_an_axis() -> None:
    first = datetime(1, 1, 1, tzinfo=UTC)
    last = datetime(9999, 12, 31, 23, 59, 59, 999000, tzinfo=UTC)
    for span in (Span(first, last), Span(last, last), Span(first, first)):
        assert 1 <= len(ticks(span)) <= 10


def test_a_phone_shows_some_of_the_ticks_the_first_day_among_them() -> None:
    figure = parsed(lanes("t", Span(START, START + timedelta(hours=16)), []))
    found = figure.findall(".//span[@style]")
    shown = ["".join(tick.itertext()) for tick in found if "minor" not in tick.attrib["class"]]
    assert len(found) == 9
    assert shown == ["00:00Jan 01", "04:00", "08:00", "12:00", "16:00"]


def test_a_line_tells_its_height_and_its_time_on_pointing() -> None:
    points = [(START, 0.0), (START + timedelta(hours=5), 41.0), (START + timedelta(hours=6), 0.0)]
    figure = parsed(line("t", SPAN, points, EVIL))
    titles = [title.text for title in figure.iter("title")]
    # An hour of ten is a tenth of 125 parts; the part in which it ends has it still.
    assert titles == [f"2026-01-01 05:00:00: 41 {EVIL}"] * 14
    assert "<script" not in line("t", SPAN, points, EVIL)


@pytest.mark.parametrize(
    ("highest", "levels"),
    [(0, ["1 x", "0"]), (1, ["1 x", "0"]), (3, ["4 x", "2", "0"]), (41, ["60 x", "30", "0"])],
)
def test_a_line_has_a_round_scale_with_its_unit(highest: int, levels: list[str]) -> None:
    figure = parsed(line("t", SPAN, [(START, float(highest))], "x"))
    scale = figure.find(".//span[@class='label scale']")
    assert scale is not None
    assert [level.text for level in scale] == levels
