"""Rounds become ratios, and ratios a table: the median of the rounds, and how far they spread.

Only ratios of one run carry over to another machine; the figures next to them are of this one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from statistics import median
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, slots=True)
class Row:
    """One measure of ours next to another's. `goal` bounds the ratio ours / theirs."""

    what: str
    unit: str
    ours: Sequence[float]
    theirs: Sequence[float]
    at_most: float | None = None
    at_least: float | None = None

    @property
    def ratios(self) -> list[float]:
        """Round by round where there are as many of both, otherwise against their median."""
        if len(self.ours) == len(self.theirs):
            return [ours / theirs for ours, theirs in zip(self.ours, self.theirs, strict=True)]
        return [ours / median(self.theirs) for ours in self.ours]

    def cells(self) -> tuple[str, ...]:
        ratio = median(self.ratios)
        goal, verdict = "", ""
        if self.at_most is not None:
            goal, is_met = f"<= {self.at_most:g}", ratio <= self.at_most
            verdict = "met" if is_met else "missed"
        elif self.at_least is not None:
            goal, is_met = f">= {self.at_least:g}", ratio >= self.at_least
            verdict = "met" if is_met else "missed"
        spread = f"{ratio:.2f} [{min(self.ratios):.2f}..{max(self.ratios):.2f}]"
        return (
            self.what,
            spread,
            goal,
            verdict,
            f"{figure(median(self.ours))} {self.unit}",
            f"{figure(median(self.theirs))} {self.unit}",
        )


@dataclass(slots=True)
class Bounds:
    """Measures of ours alone, each with what it has to stay within."""

    rows: list[tuple[str, str, Sequence[float], float | None]] = field(default_factory=list)

    def add(
        self, what: str, unit: str, values: Sequence[float], at_most: float | None = None
    ) -> None:
        self.rows.append((what, unit, values, at_most))


def figure(value: float) -> str:
    """Three digits that mean something."""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def render(title: str, theirs: str, rows: Sequence[Row]) -> str:
    """A table in Markdown."""
    head = ("", f"ratio to {theirs}", "aim", "", "ours", theirs)
    return "\n".join([f"## {title}", "", *markdown(head, [row.cells() for row in rows]), ""])


def render_bounds(title: str, bounds: Bounds) -> str:
    """A table of measures that stand for themselves."""
    lines = []
    for what, unit, values, at_most in bounds.rows:
        middle = median(values)
        verdict = "" if at_most is None else "met" if middle <= at_most else "missed"
        goal = "" if at_most is None else f"<= {at_most:g} {unit}"
        spread = f"{figure(middle)} [{figure(min(values))}..{figure(max(values))}] {unit}"
        lines.append((what, spread, goal, verdict))
    return "\n".join([f"## {title}", "", *markdown(("", "ours", "aim", ""), lines), ""])


def markdown(head: Sequence[str], lines: Sequence[Sequence[str]]) -> list[str]:
    """The lines of a table with that header."""
    widths = [max(len(line[i]) for line in (head, *lines)) for i in range(len(head))]
    rows = [
        "| "
        + " | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        + " |"
        for line in (head, *lines)
    ]
    rule = "|" + "|".join("-" * (width + 2) for width in widths) + "|"
    return [rows[0], rule, *rows[1:]]
