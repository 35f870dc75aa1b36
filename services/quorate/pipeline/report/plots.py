"""Plots as inline SVG: lanes of intervals, a line over time, bars.

The drawings are stretched to the width there is and hold no text: labels are HTML beside them, so
that they have the same size on a phone, on a screen and on paper.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from quorate.pipeline.report.text import escaped, grouped
from quorate.records.value import value

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

# Units of a drawing's width. An interval is at least so wide, or it would not be seen.
WIDTH: Final = 1000.0
_WIDTH_MIN: Final = 1.5
_HEIGHT: Final = 100.0


@value
class Span:
    """The time that a plot shows."""

    start: datetime
    end: datetime

    def place(self, at: datetime) -> float:
        """Where a moment is, from 0 to WIDTH."""
        whole = (self.end - self.start).total_seconds() or 1.0
        return min(max((at - self.start).total_seconds() / whole, 0.0), 1.0) * WIDTH


@value
class Interval:
    """An interval in a lane; `kind` is `good`, `bad` or `plain`, `title` is shown on pointing."""

    start: datetime
    end: datetime
    title: str
    kind: str = "plain"


@value
class Lane:
    """A label and its intervals, of which later ones are drawn above earlier ones."""

    label: str
    marks: tuple[Interval, ...]


@value
class Bar:
    """A label, what is measured, and the measure in words."""

    label: str
    value: float
    words: str
    kind: str = "plain"


def lanes(
    title: str, span: Span, rows: Sequence[Lane], legend: Sequence[tuple[str, str]] = ()
) -> str:
    """A figure with a line for each lane over the same time; `legend` has kinds and their words."""
    drawn = "".join(
        f'<div class="row"><span class="label">{escaped(row.label)}</span>{_lane(span, row)}</div>'
        for row in rows
    )
    return _figure(title, _legend(legend) + drawn + _time_axis(span))


def line(title: str, span: Span, points: Sequence[tuple[datetime, float]]) -> str:
    """A figure of a value over time, which holds until the next point."""
    top = max((level for _, level in points), default=0.0) or 1.0
    path, height = [f"M0 {_HEIGHT}"], _HEIGHT
    for at, level in points:
        x, below = span.place(at), height
        height = _HEIGHT * (1 - level / top)
        path.append(f"L{x:.1f} {below:.1f}L{x:.1f} {height:.1f}")
    path.append(f"L{WIDTH:.0f} {height:.1f}L{WIDTH:.0f} {_HEIGHT}Z")
    drawing = (
        f'<svg class="area" viewBox="0 0 {WIDTH:.0f} {_HEIGHT:.0f}" preserveAspectRatio="none"'
        f' role="img" aria-label="{escaped(title)}"><path class="bad" d="{"".join(path)}"/></svg>'
    )
    scale = f'<span class="label scale"><span>{escaped(_number(top))}</span><span>0</span></span>'
    return _figure(title, f'<div class="row">{scale}{drawing}</div>{_time_axis(span)}')


def bars(title: str, rows: Sequence[Bar]) -> str:
    """A figure with a bar for each row, the longest as wide as there is room."""
    top = max((row.value for row in rows), default=0.0) or 1.0
    drawn = "".join(
        f'<div class="row bar"><span class="label">{escaped(row.label)}</span>'
        f'<svg viewBox="0 0 {WIDTH:.0f} 10" preserveAspectRatio="none" role="img"'
        f' aria-label="{escaped(row.words)}"><rect class="{row.kind}" x="0" y="1" height="8"'
        f' width="{max(row.value / top * WIDTH, _WIDTH_MIN):.1f}"/></svg>'
        f'<span class="words">{escaped(row.words)}</span></div>'
        for row in rows
    )
    return _figure(title, drawn)


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
        f' aria-label="{escaped(lane.label)}">{drawn}</svg>'
    )


def _mark(span: Span, mark: Interval) -> str:
    x = span.place(mark.start)
    width = max(span.place(mark.end) - x, _WIDTH_MIN)
    return (
        f'<rect class="{mark.kind}" x="{min(x, WIDTH - _WIDTH_MIN):.1f}" y="1" height="8"'
        f' width="{width:.1f}"><title>{escaped(mark.title)}</title></rect>'
    )


def _time_axis(span: Span) -> str:
    middle = span.start + (span.end - span.start) / 2
    words = "".join(f"<span>{at:%b %d %H:%M}</span>" for at in (span.start, middle, span.end))
    return f'<div class="row"><span class="label"></span><span class="ticks">{words}</span></div>'


def _number(value: float) -> str:
    return grouped(int(value)) if value == int(value) else f"{value:.2f}"


def _figure(title: str, inner: str) -> str:
    return f"<figure><figcaption>{escaped(title)}</figcaption>{inner}</figure>"
