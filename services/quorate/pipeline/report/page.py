"""Renders the page: verdicts, then sections with plots and tables.

All text from a log is escaped here or in the plots. The page has no script and loads no external
resources; a Content-Security-Policy in the page forbids both as well.
"""

from __future__ import annotations

import html
import re
from datetime import datetime
from typing import TYPE_CHECKING, Final

from quorate.pipeline.report.formatting import escaped, format_int, format_value
from quorate.pipeline.report.style import STYLE
from quorate.records.value_types import value_type

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'"
# A flag of a command in a sentence, with its value: no line break after its hyphens.
_FLAG: Final = re.compile(r"(?<!\S)--[a-z-]+(?: snapshot(?!\S))?")
# A time in the text of job `health`; the page formats it like all others, without a line break.
_MOMENT: Final = re.compile(r"\b(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d)Z")
# Long enough for the path of a damaged file and the error.
_VERDICT_CHARACTERS_MAX: Final = 1000
# A truncated command is useless: this is enough for the paths of many voters.
_COMMAND_CHARACTERS_MAX: Final = 8000


class Amount(str):
    """A number with its unit as text, right-aligned in a table as numbers are."""

    __slots__ = ()


@value_type
class Table:
    """Rows of values with headings; `row_count` is the total number of rows.

    `command` prints the complete table, or whatever `caption` says.
    """

    title: str
    headings: tuple[str, ...]
    rows: tuple[tuple[object, ...], ...]
    row_count: int
    command: str = ""
    caption: str = "All of it"


@value_type
class Section:
    """A section: title, introduction, plots (HTML) and tables."""

    title: str
    words: str
    plots: tuple[str, ...]
    tables: tuple[Table, ...]


@value_type
class HealthVerdict:
    """A verdict on the quorum: `status` is `ok`, `warning`, `critical` or `unknown`.

    `metric` is its name for programs, if it has one, and `section` the title of the section with
    the details, which the page may lack.
    """

    status: str
    title: str
    words: str
    threshold: str = ""
    section: str = ""
    metric: str = ""


def page(
    title: str,
    facts: Sequence[tuple[str, str]],
    verdicts: Sequence[HealthVerdict],
    sections: Sequence[Section],
) -> str:
    """Render the complete document."""
    told_facts = "\n".join(
        f"<dt>{escaped(name)}</dt><dd>{escaped(fact)}</dd>" for name, fact in facts
    )
    titles = {section.title for section in sections}
    links = "".join(f"<li>{_link(section.title, section.title)}</li>\n" for section in sections)
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escaped(title)}</title><style>{STYLE}</style></head><body>\n"
        f"<header><h1>{escaped(title)}</h1><dl>\n{told_facts}\n</dl></header>\n"
        f"<nav><ul>{links}</ul></nav>\n<main>\n"
        f"{_verdicts(verdicts, titles)}{''.join(map(_section, sections))}</main>\n</body></html>\n"
    )


def _anchor(title: str) -> str:
    """The id of a section, of characters that a link need not escape."""
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")


def _link(title: str, words: str) -> str:
    return f'<a href="#{_anchor(title)}">{escaped(words)}</a>'


def _verdicts(verdicts: Sequence[HealthVerdict], titles: Collection[str]) -> str:
    items = "".join(_verdict(verdict, titles) for verdict in verdicts)
    return f'<section><h2>Verdicts</h2>\n<ul class="verdicts">{items}</ul></section>\n'


def _verdict(verdict: HealthVerdict, titles: Collection[str]) -> str:
    words = escaped(verdict.words, _VERDICT_CHARACTERS_MAX)
    words = _FLAG.sub(lambda flag: f"<code>{flag[0]}</code>", words)
    words = _MOMENT.sub(r"<time>\1 \2</time>", words)
    is_there = verdict.section in titles
    title = _link(verdict.section, verdict.title) if is_there else escaped(verdict.title)
    small = ", ".join(escaped(part) for part in (verdict.threshold, verdict.metric) if part)
    return (
        f'<li class="{escaped(verdict.status)}"><b>{escaped(verdict.status)}</b> '
        f"<span><strong>{title}</strong> {words}"
        f"{f' <small>{small}</small>' if small else ''}</span></li>\n"
    )


def _section(section: Section) -> str:
    tables = "".join(map(_table, section.tables))
    return (
        f'<section id="{_anchor(section.title)}"><h2>{escaped(section.title)}</h2>\n'
        f"<p>{html.escape(section.words)}</p>\n{''.join(section.plots)}\n{tables}</section>\n"
    )


def _table(table: Table) -> str:
    command = (
        f'<p class="command">{escaped(table.caption)}: <code>{_command(table.command)}</code></p>\n'
        if table.command
        else ""
    )
    if not table.rows:
        return f"<h3>{escaped(table.title)}</h3>\n<p>None.</p>\n"
    kinds = [_kind(values) for values in zip(*table.rows, strict=True)]
    head = "".join(
        f"<th{kind}>{escaped(heading)}</th>"
        for heading, kind in zip(table.headings, kinds, strict=True)
    )
    body = "".join(
        f"<tr>{''.join(map(_cell, table.headings, kinds, row))}</tr>\n" for row in table.rows
    )
    left_out = table.row_count - len(table.rows)
    more = (
        f'<p class="more">{format_int(left_out)} more rows are left out.</p>\n' if left_out else ""
    )
    return (
        f'<h3>{escaped(table.title)}</h3>\n<div class="wide"><table><thead><tr>{head}</tr></thead>'
        f"<tbody>\n{body}</tbody></table></div>\n{more}{command}"
    )


def _command(command: str) -> str:
    """A command for copying, without line breaks in its flags."""
    words = escaped(command, _COMMAND_CHARACTERS_MAX)
    return _FLAG.sub(lambda flag: f"<span>{flag[0]}</span>", words)


def _cell(heading: str, kind: str, value: object) -> str:
    """A cell with its heading as an attribute: on a phone, rows are lists of both."""
    return f'<td{kind} data-label="{escaped(heading)}">{escaped(format_value(value))}</td>'


def _kind(column: Sequence[object]) -> str:
    """The class of a column's cells: numbers are right-aligned, times have no line breaks."""
    match next((value for value in column if value is not None), None):
        case bool():
            return ""
        case int() | float() | Amount():
            return ' class="number"'
        case datetime():
            return ' class="time"'
        case _:
            return ""
