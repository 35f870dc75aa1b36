"""A panel shows of a value what Grafana shows of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tools.panel_values import DrawingError, display, formatted, missing, state

if TYPE_CHECKING:
    from tools.panel_values import Panel

NOW_S = 1_000_000.0
LEADS = {"type": "value", "options": {"1": {"text": "leader", "color": "green", "index": 0}}}
NOTHING = {
    "type": "special",
    "options": {"match": "null", "result": {"text": "no data", "color": "red", "index": 0}},
}
STEPS: list[dict[str, Any]] = [
    {"color": "red", "value": None},
    {"color": "green", "value": 1},
]
RED, GREEN = "#f2495c", "#73bf69"


def panel(mode: str, steps: list[dict[str, Any]], **defaults: object) -> Panel:
    thresholds = {"mode": "absolute", "steps": steps}
    common = {"unit": "none", "color": {"mode": mode}, "thresholds": thresholds}
    return {"fieldConfig": {"defaults": common | defaults}, "options": {"mergeValues": True}}


@pytest.mark.parametrize(
    ("value", "unit", "expected"),
    [
        (3, "none", "3"),
        (0.5, "none", "0.500"),
        (999, "short", "999"),
        (12_345, "short", "12.3 K"),
        (2 / 3, "percentunit", "66.7%"),
        (1, "percentunit", "100%"),
        (0, "s", "0 s"),
        (0.0045, "s", "4.50 ms"),
        (90, "s", "1.50 mins"),
        (12_000, "ms", "12 s"),
        (2048, "bytes", "2 KiB"),
        (1.5, "ops", "1.50 ops/s"),
        (NOW_S * 1000, "dateTimeFromNow", "a few seconds ago"),
        ((NOW_S - 60) * 1000, "dateTimeFromNow", "a minute ago"),
        ((NOW_S - 600) * 1000, "dateTimeFromNow", "10 minutes ago"),
        ((NOW_S - 3600) * 1000, "dateTimeFromNow", "an hour ago"),
        ((NOW_S - 172_800) * 1000, "dateTimeFromNow", "2 days ago"),
    ],
)
def test_a_value_has_its_unit(value: float, unit: str, expected: str) -> None:
    assert formatted(value, unit, now_s=NOW_S) == expected


def test_decimals_that_are_set_are_kept() -> None:
    assert formatted(1.02, "none", 0) == "1"


def test_a_value_has_its_mapping_or_its_threshold() -> None:
    mapped = panel("thresholds", STEPS, mappings=[NOTHING, LEADS])
    assert display(mapped, 1, NOW_S) == ("leader", GREEN)
    assert display(mapped, 2, NOW_S) == ("2", GREEN)
    assert display(mapped, 0, NOW_S) == ("0", RED)


def test_a_missing_value_has_its_mapping_or_the_lowest_colour() -> None:
    assert missing(panel("thresholds", STEPS)) == ("No data", RED)
    assert missing(panel("thresholds", STEPS[::-1], noValue="none")) == ("none", GREEN)
    assert missing(panel("thresholds", STEPS[::-1], mappings=[NOTHING])) == ("no data", RED)


def test_a_state_has_its_mapping_only_where_thresholds_do_not_merge_it() -> None:
    fixed = panel("fixed", STEPS, mappings=[LEADS])
    assert state(fixed, 1, NOW_S) == ("leader", GREEN)
    assert state(panel("thresholds", STEPS, mappings=[LEADS]), 1, NOW_S) == ("1+", GREEN)
    assert state(panel("thresholds", STEPS, mappings=[LEADS]), 0, NOW_S) == ("< 1", RED)
    merged = panel("thresholds", STEPS[:1], mappings=[LEADS])
    assert state(merged, 1, NOW_S) == ("-Infinity+", RED)


def test_what_is_not_known_is_an_error() -> None:
    with pytest.raises(DrawingError, match="unit furlong is not known"):
        formatted(1, "furlong")
    with pytest.raises(DrawingError, match="colour mauve is not known"):
        display(panel("thresholds", [{"color": "mauve", "value": None}]), 1, NOW_S)
