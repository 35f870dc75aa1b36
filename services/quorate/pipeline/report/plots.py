"""Inline SVG plots: interval lanes, lines, bars.

The drawings are stretched to the available width and contain no text: labels are HTML next to them,
so that they have the same size on a phone, on a screen and on paper.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from quorate.pipeline.report.formatting import escaped, format_int
from quorate.records.value_types import value_type

if TYPE_CHECKING:
    from collections.abc import Sequence

# The width of a drawing in units, and the minimum width of an interval, so that it is visible.
WIDTH: Final = 1000.0
_WIDTH_MIN: Final = 1.5
_HEIGHT: Final = 100.0
# The number of parts of a line with a tooltip for the highest value in that part and its time.
_PARTS: Final = 125
# Round intervals between the ticks of a time axis, and the maximum number of ticks on a screen and
# on a phone, which hides the others.
_STEPS: Final = tuple(
    timedelta(seconds=seconds)
    for seconds in (
        *(1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800),
        *(hours * 3600 for hours in (1, 2, 3, 4, 6, 12, 24, 48, 96, 7 * 24, 14 * 24, 28 * 24)),
    )
)
_TICKS_MAX: Final = 10
_TICKS_MAX_OF_PHONE: Final = 5
_DAY: Final = timedelta(days=1)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
# A label in the last part of an axis is shifted to the left, so that it stays on the page.
_LAST_PART: Final = 0.95 * WIDTH


@value_type
class Span:
    """The time span of a plot."""

    start: datetime
    end: datetime

    def place(self, at: datetime) -> float:
        """The x position of a time, from 0 to WIDTH."""
        whole = (self.end - self.start).total_seconds() or 1.0
        return min(max((at - self.start).total_seconds() / whole, 0.0), 1.0) * WIDTH


@value_type
class Interval:
    """An interval in a lane; `kind` is `good`, `bad` or `plain`, `title` is the tooltip."""

    start: datetime
    end: datetime
    title: str
    kind: str = "plain"


@value_type
class Lane:
    """A label and its intervals; later intervals are drawn above earlier ones."""

    label: str
    marks: tuple[Interval, ...]


@value_type
class Bar:
    """A label, a value, and the value as text."""

    label: str
    value: float
    words: str
    kind: str = "plain"


def lanes(
    title: str, span: Span, rows: Sequence[Lane], legend: Sequence[tuple[str, str]] = ()
) -> str:
    """A figure with a row per lane over the same time; `legend` has the kinds and their labels."""
    drawn = "".join(
        f'<div class="row"><span class="label">{escaped(row.label)}</span>{_lane(span, row)}</div>'
        for row in rows
    )
    return _figure(title, _legend(legend) + drawn + _time_axis(span))


def line(
    title: str,
    span: Span,
    points: Sequence[tuple[datetime, float]],
    unit: str = "",
    kind: str = "bad",
) -> str:
    """A figure of a value over time, which is constant until the next point."""
    top = _round_above(max((level for _, level in points), default=0.0))
    path, height = [f"M0 {_HEIGHT}"], _HEIGHT
    for at, level in points:
        x, below = span.place(at), height
        height = _HEIGHT * (1 - level / top)
        path.append(f"L{x:.1f} {below:.1f}L{x:.1f} {height:.1f}")
    path.append(f"L{WIDTH:.0f} {height:.1f}L{WIDTH:.0f} {_HEIGHT}Z")
    middle = 0 if top % 2 else top // 2
    grid = f"M0 0H{WIDTH:.0f}" + (f"M0 {_HEIGHT / 2}H{WIDTH:.0f}" if middle else "")
    drawing = (
        f'<svg class="area" viewBox="0 0 {WIDTH:.0f} {_HEIGHT:.0f}" preserveAspectRatio="none"'
        f' role="img" aria-label="{escaped(title)}"><path class="{kind}" d="{"".join(path)}"/>'
        f"{_grid(span, _HEIGHT, grid)}{_pointers(span, points, unit)}</svg>"
    )
    levels = (f"{format_int(top)} {unit}".strip(), *([format_int(middle)] if middle else []), "0")
    scale = "".join(f"<span>{escaped(level)}</span>" for level in levels)
    label = f'<span class="label scale">{scale}</span>'
    return _figure(title, f'<div class="row">{label}{drawing}</div>{_time_axis(span)}')


def bars(title: str, rows: Sequence[Bar], legend: Sequence[tuple[str, str]] = ()) -> str:
    """A figure with a bar for each row; the longest has the full width."""
    top = max((row.value for row in rows), default=0.0) or 1.0
    drawn = "".join(
        f'<div class="row bar"><span class="label">{escaped(row.label)}</span>'
        f'<svg viewBox="0 0 {WIDTH:.0f} 10" preserveAspectRatio="none" role="img"'
        f' aria-label="{escaped(row.words)}"><rect class="{row.kind}" x="0" y="1" height="8"'
        f' width="{max(row.value / top * WIDTH, _WIDTH_MIN):.1f}"/></svg>'
        f'<span class="words">{escaped(row.words)}</span></div>'
        for row in rows
    )
    return _figure(title, _legend(legend) + drawn)


def _legend(legend: Sequence[tuple[str, str]]) -> str:
    words = "".join(
        f'<span><svg viewBox="0 0 10 10"><rect class="{kind}" width="10" height="10"/></svg>'
        f" {escaped(meaning)}</span>"
        for kind, meaning in legend
    )
    return f'<div class="legend">{words}</div>' if words else ""


def _lane(span: Span, lane: Lane) -> str:
    drawn = "".join(_mark(span, mark) for mark in lane.marks)
    return (
        f'<svg viewBox="0 0 {WIDTH:.0f} 10" preserveAspectRatio="none" role="img"'
        f' aria-label="{escaped(lane.label)}">{_grid(span, 10)}{drawn}</svg>'
    )


def _mark(span: Span, mark: Interval) -> str:
    x = span.place(mark.start)
    width = max(span.place(mark.end) - x, _WIDTH_MIN)
    title = escaped(f"{mark.title}, from {mark.start:%Y-%m-%d %H:%M:%S}")
    return (
        f'<rect class="{mark.kind}" x="{min(x, WIDTH - _WIDTH_MIN):.1f}" y="1" height="8"'
        f' width="{width:.1f}"><title>{title}</title></rect>'
    )


def _pointers(span: Span, points: Sequence[tuple[datetime, float]], unit: str) -> str:
    """Transparent rectangles whose tooltips have the line's highest value there and its time."""
    width = WIDTH / _PARTS
    highest: list[tuple[datetime, float] | None] = [None] * _PARTS
    held, begun = None, 0
    for at, level in points:
        part = min(int(span.place(at) / width), _PARTS - 1)
        for passed in range(begun, part + 1):
            highest[passed] = _higher(highest[passed], held)
        held, begun = (at, level), part
        highest[part] = _higher(highest[part], held)
    for passed in range(begun, _PARTS):
        highest[passed] = _higher(highest[passed], held)
    return "".join(
        f'<rect class="point" x="{part * width:.0f}" y="0" width="{width:.0f}"'
        f' height="{_HEIGHT:.0f}"><title>{found[0]:%Y-%m-%d %H:%M:%S}:'
        f" {escaped(_number(found[1]))} {escaped(unit)}</title></rect>"
        for part, found in enumerate(highest)
        if found is not None and found[1]
    )


def _higher(
    one: tuple[datetime, float] | None, other: tuple[datetime, float] | None
) -> tuple[datetime, float] | None:
    if one is None or other is None:
        return one or other
    return max(one, other, key=lambda point: point[1])


def _grid(span: Span, height: float, more: str = "") -> str:
    ticks = _ticks(span, _step(span, _TICKS_MAX))
    lines = "".join(f"M{span.place(at):.1f} 0V{height:.0f}" for at in ticks)
    return f'<path class="grid" d="{lines}{more}"/>' if lines or more else ""


def _time_axis(span: Span) -> str:
    """Labels at round times; the first label and those at midnight have the day."""
    step = _step(span, _TICKS_MAX)
    ticks = _ticks(span, step) or [span.start]
    coarse = _ticks(span, _step(span, _TICKS_MAX_OF_PHONE, step)) or ticks[:1]
    words = "".join(
        f'<span class="{"" if at in coarse else "minor"}'
        f'{" last" if span.place(at) > _LAST_PART else ""}"'
        f' style="left:{span.place(at) / WIDTH:.2%}">'
        f"{_tick_words(at, step, has_day=at == coarse[0])}</span>"
        for at in ticks
    )
    return f'<div class="row"><span class="label"></span><span class="ticks">{words}</span></div>'


def _tick_words(at: datetime, step: timedelta, *, has_day: bool) -> str:
    day = f"{at:%Y-%m-%d}" if step > _DAY * 14 else f"{at:%b %d}"
    if step >= _DAY:
        return day
    time = f"{at:%H:%M:%S}" if at.second else f"{at:%H:%M}"
    is_midnight = not (at - _EPOCH) % _DAY
    return f"{time}<br/>{day}" if has_day or is_midnight else time


def _step(span: Span, count_max: int, of: timedelta = _STEPS[0]) -> timedelta:
    """The shortest round step, a multiple of `of`, that needs at most `count_max` ticks."""
    length = span.end - span.start
    days = max(of, _DAY)
    return next(
        (step for step in _STEPS if not step % of and length <= step * (count_max - 1)),
        days * (length // (days * count_max) + 1),
    )


def _ticks(span: Span, step: timedelta) -> list[datetime]:
    """The multiples of a step within a span."""
    first, last = -((_EPOCH - span.start) // step), (span.end - _EPOCH) // step
    return [_EPOCH + step * number for number in range(first, last + 1)]


def _round_above(level: float) -> int:
    """The next higher number of one digit and zeros, from 1, 2, 4, 6 and 8: most can be halved."""
    whole = 1
    while whole < level:
        digit = int(str(whole)[0])
        scale = whole // digit
        whole = scale * {1: 2, 2: 4, 4: 6, 6: 8, 8: 10}[digit]
    return whole


def _number(value: float) -> str:
    return format_int(int(value)) if value == int(value) else f"{value:.2f}"


def _figure(title: str, inner: str) -> str:
    return f"<figure><figcaption>{escaped(title)}</figcaption>{inner}</figure>"
