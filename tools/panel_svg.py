"""Panels of a Grafana dashboard as SVG: stats, time series and state timelines."""

from __future__ import annotations

import itertools
import math
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from html import escape
from typing import TYPE_CHECKING, Any, Final

from tools.panel_values import (
    BASE,
    DrawingError,
    Panel,
    color_of,
    defaults_of,
    display,
    formatted,
    missing,
    state,
    steps_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

# The classic palette, by which Grafana colours series in their order.
_PALETTE: Final = (
    *("#73bf69", "#f2cc0c", "#8ab8ff", "#ff780a", "#f2495c", "#5794f2", "#b877d9", "#705da0"),
    *("#37872d", "#fade2a", "#447ebc", "#c15c17", "#890f02", "#0a437c", "#6d1f62", "#584477"),
)
_LINE_HEIGHT: Final = 18.0
# The mean width of a character, in heights of the font.
_CHARACTER: Final = 0.56


@dataclass(frozen=True, slots=True)
class Series:
    """A result of a panel's query, with the name that its legend shows."""

    name: str
    points: tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True)
class Window:
    """The time that is drawn, in Unix seconds, and the distance of two samples."""

    begin_s: float
    end_s: float
    step_s: float

    def x(self, at_s: float, width: float) -> float:
        return (at_s - self.begin_s) / (self.end_s - self.begin_s) * width


@dataclass(frozen=True, slots=True)
class Box:
    """The space of a drawing on the page."""

    x: float
    y: float
    width: float
    height: float


def draw(panel: Panel, found: Sequence[Series], window: Window, box: Box) -> str:
    """One panel with its frame and title, as a group of SVG."""
    inner = Box(10, 34, box.width - 20, box.height - 42)
    match panel["type"]:
        case "row":
            title = _text(4, 22, f"⌄ {panel['title']}", 15, weight=500)
            return f'<g transform="translate({box.x:g},{box.y:g})">{title}</g>'
        case "stat":
            parts = _stat(panel, found, window, inner)
        case "timeseries":
            parts = _time_series(panel, found, window, inner)
        case "state-timeline":
            parts = _state_timeline(panel, found, window, inner)
        case other:
            raise DrawingError(f"{panel['title']}: panels of type {other} are not drawn")
    frame = (
        f'<rect width="{box.width:g}" height="{box.height:g}" rx="2" fill="#181b1f"'
        ' stroke="#2b2e34"/>'
    )
    title = _text(10, 21, panel["title"], 14, weight=500)
    body = "".join(parts)
    return f'<g transform="translate({box.x:g},{box.y:g})">{frame}{title}{body}</g>'


def _text(
    x: float,
    y: float,
    words: str,
    size: float,
    *,
    fill: str = "#ccccdc",
    anchor: str = "start",
    weight: int = 400,
) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size:.1f}" fill="{fill}"'
        f' text-anchor="{anchor}" font-weight="{weight}">{escape(words)}</text>'
    )


def _fitting(words: str, width: float, height: float) -> float:
    """The size of a font in which the words fill a space."""
    return max(8.0, min(height, width / max(1, len(words)) / _CHARACTER))


def _stat(panel: Panel, found: Sequence[Series], window: Window, box: Box) -> Iterator[str]:
    """The last value of each series, side by side, on its colour."""
    mode = panel["options"]["textMode"]
    last = [each for each in found if each.points]
    shown = [(each.name, *display(panel, each.points[-1][1], window.end_s)) for each in last]
    shown = shown or [("", *missing(panel))]
    width = box.width / len(shown)
    for index, (name, value, color) in enumerate(shown):
        x = box.x + index * width
        yield (
            f'<rect x="{x:g}" y="{box.y:g}" width="{width - 4:g}" height="{box.height:g}" rx="3"'
            f' fill="{color}" fill-opacity="0.85"/>'
        )
        big, small = (name, "") if mode == "name" else (value, name)
        small = small if mode == "value_and_name" or len(shown) > 1 else ""
        size = _fitting(big, width - 24, box.height * (0.42 if small else 0.6))
        middle = box.y + box.height / 2
        center = x + width / 2 - 2
        y = middle + size * 0.35 - (10 if small else 0)
        yield _text(center, y, big, size, fill="white", anchor="middle", weight=500)
        if small:
            size = _fitting(small, width - 20, 16)
            yield _text(center, middle + 26, small, size, fill="white", anchor="middle")


def _state_timeline(
    panel: Panel, found: Sequence[Series], window: Window, box: Box
) -> Iterator[str]:
    """A row of coloured spans for each series."""
    if not found:
        yield _no_data(panel, box)
        return
    left = max(len(each.name) for each in found) * 12 * _CHARACTER + 14
    below = 40 if panel["options"]["legend"]["showLegend"] else 20
    plot = Box(box.x + left, box.y, box.width - left, box.height - below)
    high = plot.height / len(found)
    seen: dict[str, str] = {}
    for index, each in enumerate(found):
        y = plot.y + index * high
        yield _text(plot.x - 8, y + high / 2 + 4, each.name, 12, anchor="end")
        for begin_s, end_s, value in _spans(each.points, window):
            text, color = state(panel, value, window.end_s)
            x = plot.x + window.x(begin_s, plot.width)
            width = plot.x + window.x(end_s, plot.width) - x
            yield (
                f'<rect x="{x:.1f}" y="{y + high * 0.1:.1f}" width="{width:.1f}"'
                f' height="{high * 0.8:.1f}" fill="{color}" fill-opacity="0.8"/>'
            )
            if width > len(text) * 12 * _CHARACTER + 6:
                yield _text(x + 4, y + high / 2 + 4, text, 12, fill=_readable(color))
            seen[text] = color
    yield from _times(window, plot)
    if panel["options"]["legend"]["showLegend"]:
        (legend,) = _legend(list(seen.items()), Box(box.x, 0, math.inf, 0))
        yield f'<g transform="translate(0,{box.y + box.height:g})">{legend}</g>'


def _readable(color: str) -> str:
    """Black on a light colour, white on a dark one."""
    if color == "none":
        return "white"
    red, green, blue = (int(color[at : at + 2], 16) for at in (1, 3, 5))
    return "#111217" if red * 0.3 + green * 0.6 + blue * 0.1 > 90 else "white"


def _spans(
    points: Sequence[tuple[float, float]], window: Window
) -> Iterator[tuple[float, float, float]]:
    """Begin, end and value of what stays the same without a gap."""
    begun: tuple[float, float] | None = None
    before_s = 0.0
    for at_s, value in points:
        is_next = begun is not None and at_s - before_s < window.step_s * 1.5
        if begun is not None and not (is_next and value == begun[1]):
            yield begun[0], at_s if is_next else before_s + window.step_s, begun[1]
            begun = None
        begun = begun or (at_s, value)
        before_s = at_s
    if begun is not None:
        yield begun[0], min(before_s + window.step_s, window.end_s), begun[1]


@dataclass(frozen=True, slots=True)
class _Line:
    """One series of a time series panel; `unit` names its axis."""

    series: Series
    color: str
    unit: str
    is_right: bool


def _lines(panel: Panel, found: Sequence[Series]) -> Iterator[_Line]:
    for index, each in enumerate(found):
        config = {"unit": defaults_of(panel)["unit"]}
        for override in panel["fieldConfig"]["overrides"]:
            if override["matcher"]["id"] != "byRegexp":
                raise DrawingError(f"{panel['title']}: overrides go by regular expression")
            if re.search(override["matcher"]["options"], each.name):
                config |= {one["id"]: one["value"] for one in override["properties"]}
        is_right = config.get("custom.axisPlacement") == "right"
        yield _Line(each, _PALETTE[index % len(_PALETTE)], config["unit"], is_right)


def _time_series(panel: Panel, found: Sequence[Series], window: Window, box: Box) -> Iterator[str]:
    """Lines over time with their axes, thresholds and legend."""
    lines = list(_lines(panel, found))
    if not any(each.series.points for each in lines):
        yield _no_data(panel, box)
        return
    legend = list(_legend([(each.series.name, each.color) for each in lines], box))
    right = 58 if any(each.is_right for each in lines) else 6
    height = box.height - 22 - _LINE_HEIGHT * max(1, len(legend))
    plot = Box(box.x + 66, box.y, box.width - 66 - right, height)
    for is_right in (False, True):
        drawn = [each for each in lines if each.is_right is is_right]
        values = [value for each in drawn for _, value in each.series.points]
        if not values:
            continue
        custom = {} if is_right else defaults_of(panel).get("custom", {})
        low, high = _range(values, defaults_of(panel), custom)
        yield from _axis(drawn[0], panel, plot, (low, high))
        if not is_right:
            yield from _thresholds(panel, plot, low, high)
        for each in drawn:
            d = _path(each.series.points, window, plot, low, high)
            yield f'<path d="{d}" fill="none" stroke="{each.color}" stroke-width="1.3"/>'
    yield from _times(window, plot)
    for index, line in enumerate(legend):
        yield f'<g transform="translate(0,{plot.y + height + 34 + index * _LINE_HEIGHT:g})">'
        yield f"{line}</g>"


def _range(
    values: Sequence[float], limits: dict[str, Any], custom: dict[str, Any]
) -> tuple[float, float]:
    """The ends of an axis: the data with a tenth to both sides, and what the panel wants."""
    least, most = min(values), max(values)
    # A line that is flat lies in the middle, and one that is zero at the bottom.
    pad = (most - least) * 0.1 or abs(most) or 100.0
    low = 0.0 if 0 <= least <= pad else least - pad
    high = max(most + pad, 0.0)
    soft = custom.get("axisSoftMax")
    if soft is not None and most <= soft:
        high = soft
    low, high = float(limits.get("min", low)), float(limits.get("max", high))
    return low, high if high > low else low + 1


def _axis(line: _Line, panel: Panel, plot: Box, ends: tuple[float, float]) -> Iterator[str]:
    """Ticks at round values, with lines across for the left axis."""
    low, high = ends
    rough = (high - low) / 5
    if line.unit == "bytes":
        step = 2.0 ** math.ceil(math.log2(rough))
    else:
        size = 10.0 ** math.floor(math.log10(rough))
        step = next(size * by for by in (1, 2, 2.5, 5, 10) if size * by >= rough)
    if defaults_of(panel).get("decimals") == 0:
        step = max(1.0, step)
    for number in range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1):
        value = number * step
        y = _y(value, plot, low, high)
        words = formatted(value, line.unit, None)
        if line.is_right:
            yield _text(plot.x + plot.width + 6, y + 4, words, 11)
            continue
        yield _text(plot.x - 6, y + 4, words, 11, anchor="end")
        yield (
            f'<path d="M{plot.x:g} {y:.1f}h{plot.width:g}" stroke="#ccccdc" stroke-opacity="0.1"/>'
        )


def _thresholds(panel: Panel, plot: Box, low: float, high: float) -> Iterator[str]:
    """Lines at the thresholds and, where asked for, the areas between them."""
    style = defaults_of(panel).get("custom", {}).get("thresholdsStyle", {}).get("mode", "off")
    steps = steps_of(panel) if style != "off" else []
    for (least, color), (upper, _) in itertools.pairwise([*steps, (math.inf, "transparent")]):
        if "area" in style and color != "transparent" and upper > low and least < high:
            top, bottom = (
                _y(min(upper, high), plot, low, high),
                _y(max(least, low), plot, low, high),
            )
            yield (
                f'<rect x="{plot.x:g}" y="{top:.1f}" width="{plot.width:g}"'
                f' height="{bottom - top:.1f}" fill="{color_of(color)}" fill-opacity="0.15"/>'
            )
    for (_, below), (least, color) in itertools.pairwise(steps):
        if "line" in style and low <= least <= high:
            # A line whose own colour is transparent has that of the step below it.
            stroke = color_of(below if color == "transparent" else color)
            y = _y(least, plot, low, high)
            d = f"M{plot.x:g} {y:.1f}h{plot.width:g}"
            yield f'<path d="{d}" stroke="{stroke}" stroke-width="2"/>'


def _y(value: float, plot: Box, low: float, high: float) -> float:
    return plot.y + plot.height * (1 - (value - low) / (high - low))


def _path(
    points: Sequence[tuple[float, float]], window: Window, plot: Box, low: float, high: float
) -> str:
    """Lines from point to point; a gap begins a new one, and a single point is a dot."""
    parts: list[str] = []
    before_s = BASE
    for at_s, value in points:
        x = plot.x + window.x(at_s, plot.width)
        y = _y(min(max(value, low), high), plot, low, high)
        is_next = at_s - before_s < window.step_s * 1.5
        parts.append(f"L{x:.1f} {y:.1f}" if is_next else f"M{x:.1f} {y:.1f}h0.1")
        before_s = at_s
    return "".join(parts)


def _legend(entries: Sequence[tuple[str, str]], box: Box) -> Iterator[str]:
    """Names with their colours, in as many lines as they need."""
    x, parts = box.x, list[str]()
    for name, color in entries:
        width = len(name) * 12 * _CHARACTER + 30
        if parts and x + width > box.x + box.width:
            yield "".join(parts)
            x, parts = box.x, []
        parts.append(f'<path d="M{x:g} -4h14" stroke="{color}" stroke-width="4"/>')
        parts.append(_text(x + 19, 0, name, 12))
        x += width
    yield "".join(parts)


def _times(window: Window, plot: Box) -> Iterator[str]:
    """The axis of time, in UTC."""
    count = max(2, int(plot.width / 90))
    rough_s = (window.end_s - window.begin_s) / count
    steps_s = (5, 10, 30, 60, 120, 300, 600, 1800, 3600, 7200, 21600, 86400)
    step_s = next((each for each in steps_s if each >= rough_s), 7 * 86400)
    words = "%H:%M" if step_s >= 60 else "%H:%M:%S"
    at_s = math.ceil(window.begin_s / step_s) * step_s
    while at_s <= window.end_s:
        # At the end of the axis a time would leave the panel.
        x = plot.x + min(window.x(at_s, plot.width), plot.width - 12)
        time = datetime.fromtimestamp(at_s, UTC).strftime(words)
        yield _text(x, plot.y + plot.height + 16, time, 11, anchor="middle")
        at_s += step_s


def _no_data(panel: Panel, box: Box) -> str:
    words = defaults_of(panel).get("noValue", "No data")
    x, y = box.x + box.width / 2, box.y + box.height / 2
    return _text(x, y, words, 16, anchor="middle", fill="#8e8e99")
