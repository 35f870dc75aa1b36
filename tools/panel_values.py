"""Text, unit and colour of a value on a panel of a Grafana dashboard.

As Grafana 10 and 11 do it, as far as the dashboard of the chart goes. Whatever else a panel asks
for raises DrawingError.
"""

from __future__ import annotations

import math
from typing import Any, Final, TypeAlias

Panel: TypeAlias = dict[str, Any]

_COLORS: Final = {
    "green": "#73bf69",
    "blue": "#5794f2",
    "light-blue": "#8ab8ff",
    "yellow": "#fade2a",
    "light-yellow": "#ffee52",
    "orange": "#ff9830",
    "red": "#f2495c",
    "dark-red": "#c4162a",
    "light-red": "#ff7383",
    "purple": "#b877d9",
    "text": "#ccccdc",
    "transparent": "none",
}
BASE: Final = -math.inf
# Of each unit: by how much a value is divided from which size on, and the words behind it.
_SCALES: Final[dict[str, tuple[tuple[float, str], ...]]] = {
    "none": ((1, ""),),
    "short": ((1, ""), (1e3, " K"), (1e6, " Mil"), (1e9, " Bil")),
    "ops": ((1, " ops/s"), (1e3, "K ops/s"), (1e6, "M ops/s")),
    "s": ((1e-9, " ns"), (1e-6, " µs"), (1e-3, " ms"), (1, " s"), (60, " mins"), (3600, " hours")),
    "ms": ((1e-3, " µs"), (1, " ms"), (1e3, " s"), (6e4, " min"), (3.6e6, " hour")),
    "bytes": ((1, " B"), (2**10, " KiB"), (2**20, " MiB"), (2**30, " GiB"), (2**40, " TiB")),
    "percentunit": ((0.01, "%"),),
}


class DrawingError(Exception):
    """A panel asks for what is not drawn here."""


def formatted(value: float, unit: str, decimals: int | None = None, now_s: float = 0.0) -> str:
    """A value with its unit, with as many decimals as Grafana chooses where none are set."""
    if unit == "dateTimeFromNow":
        return _ago(now_s - value / 1000)
    if unit not in _SCALES:
        raise DrawingError(f"unit {unit} is not known")
    reached = [each for each in _SCALES[unit] if abs(value) >= each[0]]
    by, words = reached[-1] if reached and value else _SCALES[unit][0]
    if unit in {"s", "ms"} and not value:
        by, words = 1, f" {unit}"
    return _number(value / by, decimals) + words


def _number(value: float, decimals: int | None) -> str:
    if decimals is None:
        rounded = float(f"{value:.4g}") if value else 0.0
        size = math.floor(math.log10(abs(rounded))) if rounded else 0
        decimals = 0 if rounded == int(rounded) else max(0, 2 - size)
    return f"{value:.{decimals}f}"


def _ago(age_s: float) -> str:
    for least_s, unit_s, word in ((86400, 86400, "day"), (3600, 3600, "hour"), (45, 60, "minute")):
        if age_s >= least_s:
            count = max(1, round(age_s / unit_s))
            return f"{count} {word}s ago" if count > 1 else f"a{'n' * (word == 'hour')} {word} ago"
    return "a few seconds ago"


def defaults_of(panel: Panel) -> dict[str, Any]:
    """The settings of every series of a panel without an override."""
    found: dict[str, Any] = panel["fieldConfig"]["defaults"]
    return found


def steps_of(panel: Panel) -> list[tuple[float, str]]:
    """The thresholds from the base on, each with its colour."""
    steps = defaults_of(panel).get("thresholds", {}).get("steps", ())
    return [
        (BASE if each["value"] is None else float(each["value"]), each["color"]) for each in steps
    ]


def display(panel: Panel, value: float, now_s: float) -> tuple[str, str]:
    """The text and the colour of one value: its mapping, or else its unit and threshold."""
    defaults = defaults_of(panel)
    color = defaults.get("color", {})
    name = color.get("fixedColor", "text")
    if color.get("mode") == "thresholds":
        name = [step for least, step in steps_of(panel) if value >= least][-1]
    for mapping in defaults.get("mappings", ()):
        mapped = mapping["options"].get(f"{value:g}") if mapping["type"] == "value" else None
        if mapped is not None:
            return mapped["text"], color_of(mapped.get("color", name))
    text = formatted(value, defaults["unit"], defaults.get("decimals"), now_s)
    return text, color_of(name)


def color_of(name: str) -> str:
    """The colour that a name has in Grafana's dark theme. Raises DrawingError."""
    if name not in _COLORS:
        raise DrawingError(f"colour {name} is not known")
    return _COLORS[name]


def missing(panel: Panel) -> tuple[str, str]:
    """Text and colour of a stat without a value, which has no name either."""
    for mapping in defaults_of(panel).get("mappings", ()):
        if mapping["type"] == "special" and mapping["options"]["match"] == "null":
            result = mapping["options"]["result"]
            return result["text"], color_of(result["color"])
    # Grafana colours what is missing as the lowest value.
    return defaults_of(panel).get("noValue", "No data"), color_of(steps_of(panel)[0][1])


def state(panel: Panel, value: float, now_s: float) -> tuple[str, str]:
    """Text and colour of a state.

    Where colours come from thresholds and equal values are merged, Grafana merges by threshold: it
    shows the threshold instead of the mapping (https://github.com/grafana/grafana/issues/71804).
    """
    steps = steps_of(panel)
    is_merged = panel["options"].get("mergeValues") and steps
    if not is_merged or defaults_of(panel).get("color", {}).get("mode") != "thresholds":
        return display(panel, value, now_s)
    index = max(index for index, (least, _) in enumerate(steps) if value >= least)
    least, color = steps[index]
    if least == BASE and len(steps) > 1:
        return f"< {steps[1][0]:g}", color_of(color)
    return ("-Infinity+" if least == BASE else f"{least:g}+"), color_of(color)
