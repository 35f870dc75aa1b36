"""Plots: well-formed, in proportion, and with nothing of a log that is not escaped."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from xml.etree import ElementTree as ET

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
