"""Panels are drawn where their values are."""

from __future__ import annotations

import re
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from tools.panel_svg import Box, Series, Window, draw
from tools.panel_values import DrawingError, Panel

WINDOW = Window(0, 100, 10)
BOX = Box(0, 0, 400, 300)
RED, GREEN = "#f2495c", "#73bf69"
TWO = [{"color": "transparent", "value": None}, {"color": "red", "value": 5}]


def series(name: str, *values: float | None) -> Series:
    """A value every ten seconds; None is a gap."""
    points = [(at * 10.0, value) for at, value in enumerate(values)]
    return Series(name, tuple((at_s, value) for at_s, value in points if value is not None))


def panel(kind: str, options: dict[str, Any] | None = None, **defaults: object) -> Panel:
    return {
        "type": kind,
        "title": "A & B",
        "fieldConfig": {"defaults": {"unit": "none"} | defaults, "overrides": []},
        "options": options or {},
    }


def drawn(panel: Panel, *found: Series) -> ET.Element:
    return ET.fromstring(draw(panel, found, WINDOW, BOX))  # noqa: S314 - our own text


def words(element: ET.Element) -> list[str]:
    return [each.text or "" for each in element.iter("text")]


def rectangles(element: ET.Element, color: str) -> list[tuple[float, float]]:
    """Begin and width of what has this colour."""
    return [
        (float(each.attrib["x"]), float(each.attrib["width"]))
        for each in element.iter("rect")
        if each.attrib["fill"] == color
    ]


def paths(element: ET.Element, color: str) -> list[str]:
    return [each.attrib["d"] for each in element.iter("path") if each.attrib["stroke"] == color]


def stat(mode: str, **defaults: object) -> Panel:
    steps = [{"color": "red", "value": None}, {"color": "green", "value": 1}]
    thresholds = {"color": {"mode": "thresholds"}, "thresholds": {"steps": steps}}
    found = panel("stat", {"textMode": mode})
    found["fieldConfig"]["defaults"] |= thresholds | defaults
    return found


def timeline(*, legend: bool = False) -> Panel:
    texts = {"0": {"text": "down", "color": "red"}, "1": {"text": "leader", "color": "green"}}
    return panel(
        "state-timeline",
        {"mergeValues": True, "legend": {"showLegend": legend}},
        color={"mode": "fixed", "fixedColor": "text"},
        mappings=[{"type": "value", "options": texts}],
    )


def lines(**defaults: object) -> Panel:
    found = panel("timeseries")
    found["fieldConfig"]["defaults"] |= defaults
    return found


def test_a_stat_has_its_last_value_on_its_colour() -> None:
    element = drawn(stat("value"), series("live", 0, 1))
    assert words(element) == ["A & B", "1"]
    assert rectangles(element, GREEN)
    assert not rectangles(element, RED)


def test_a_stat_has_the_names_that_it_is_to_have() -> None:
    assert words(drawn(stat("name"), series("q-0", 1))) == ["A & B", "q-0"]
    assert words(drawn(stat("value_and_name"), series("q-0", 1))) == ["A & B", "1", "q-0"]
    two = drawn(stat("value"), series("q-0", 1), series("q-1", 0))
    assert words(two) == ["A & B", "1", "q-0", "0", "q-1"]
    assert rectangles(two, GREEN)[0] < rectangles(two, RED)[0]


def test_a_stat_without_a_value_says_so_unless_it_shows_names_only() -> None:
    assert words(drawn(stat("value", noValue="no leader"))) == ["A & B", "no leader"]
    assert words(drawn(stat("name", noValue="no leader"))) == ["A & B", ""]


def test_states_that_stay_are_one_span_and_a_gap_is_left_open() -> None:
    element = drawn(timeline(), series("q-0", 1, 1, 1, 0, None, None, None, 1, 1, 1))
    (first, last), (down,) = rectangles(element, GREEN), rectangles(element, RED)
    a_step = down[1]
    assert first[1] == pytest.approx(3 * a_step, abs=0.2)
    assert first[0] + first[1] == pytest.approx(down[0], abs=0.2)
    assert last[0] == pytest.approx(down[0] + 4 * a_step, abs=0.2)
    assert last[1] == pytest.approx(3 * a_step, abs=0.2)
    assert words(element).count("leader") == 2


def test_a_span_has_its_text_where_there_is_room_for_it() -> None:
    assert "leader" not in words(drawn(timeline(), series("q-0", 0, 1, 0)))
    assert "leader" in words(drawn(timeline(), series("q-0", 0, 1, 1)))


def test_a_legend_names_the_states_that_are_seen() -> None:
    legend = drawn(timeline(legend=True), series("q-0", 0, 1, 1, 1, 1, 1))
    assert words(legend)[-2:] == ["down", "leader"]


def test_a_line_breaks_at_a_gap() -> None:
    element = drawn(lines(min=0), series("q-0", 1, 2, None, 3, 4))
    (path,) = [each for each in paths(element, GREEN) if "L" in each]
    assert re.sub(r"[^ML]", "", path) == "MLML"


def test_a_threshold_is_drawn_where_the_axis_reaches() -> None:
    style = {"thresholdsStyle": {"mode": "line+area"}}
    steps = {"thresholds": {"steps": TWO}, "custom": style, "min": 0}
    assert not paths(drawn(lines(**steps), series("q-0", 1, 2)), RED)
    steps["custom"] = style | {"axisSoftMax": 10}
    element = drawn(lines(**steps), series("q-0", 1, 2))
    (path,) = paths(element, RED)
    (area,) = (each for each in element.iter("rect") if each.attrib["fill"] == RED)
    top, height = float(area.attrib["y"]), float(area.attrib["height"])
    # Halfway up an axis from 0 to 10, of which the upper half is the area.
    assert float(path.split()[1].split("h")[0]) == pytest.approx(top + height, abs=0.2)
    assert "10" in words(element)


def test_ticks_without_decimals_are_whole() -> None:
    assert "0.500" in words(drawn(lines(min=0), series("q-0", 0, 1)))
    ticks = words(drawn(lines(min=0, decimals=0), series("q-0", 0, 1)))
    assert ticks[1:3] == ["0", "1"]


def test_values_below_the_least_of_the_axis_are_drawn_at_its_end() -> None:
    assert paths(drawn(lines(min=0), series("q-0", -5, -5)), GREEN)


def test_an_override_gives_a_series_an_axis_of_its_own() -> None:
    two = lines(min=0)
    properties = [
        {"id": "unit", "value": "ms"},
        {"id": "custom.axisPlacement", "value": "right"},
    ]
    matcher = {"id": "byRegexp", "options": "mean time"}
    two["fieldConfig"]["overrides"] = [{"matcher": matcher, "properties": properties}]
    element = drawn(two, series("elections", 0, 1), series("mean time", 200, 400))
    ends = {each.text: float(each.attrib["x"]) for each in element.iter("text")}
    assert ends["400 ms"] > 300 > ends["1"]
    matcher["id"] = "byName"
    with pytest.raises(DrawingError, match="overrides go by regular expression"):
        drawn(two, series("elections", 0, 1))


def test_a_legend_takes_the_lines_that_it_needs() -> None:
    found = [series(f"a series with a long name {each}", 0, 1) for each in range(3)]
    element = drawn(lines(), *found)
    places = [each.attrib["transform"] for each in element.iter("g") if each is not element]
    assert len(set(places)) == 3


def test_a_panel_without_data_says_so() -> None:
    assert words(drawn(lines(noValue="no operator"))) == ["A & B", "no operator"]
    assert words(drawn(timeline())) == ["A & B", "No data"]


def test_a_panel_of_another_type_is_an_error() -> None:
    with pytest.raises(DrawingError, match="A & B: panels of type heatmap are not drawn"):
        drawn(panel("heatmap"))
