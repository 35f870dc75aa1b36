"""Writes what follows from the chart's values.yaml: the table in the README of the chart.

python tools/chart_values.py            writes it between its two marks
python tools/chart_values.py --check    compares only; exit status 1 when the document is stale
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

if TYPE_CHECKING:
    from collections.abc import Iterator

CHART = Path(__file__).resolve().parent.parent / "deploy" / "helm" / "quorate"
BEGIN = "<!-- values: written by tools/chart_values.py -->\n"
END = "<!-- end of values -->\n"
# A key that is ours begins its line, two blanks for each level.
_KEY = re.compile(r"( *)([A-Za-z]+):")
_INDENT = 2
_DESCRIBES = "# -- "


def described(text: str) -> Iterator[tuple[str, str]]:
    """Each value that a comment describes, by its path with dots, and the words."""
    path: list[str] = []
    words: list[str] = []
    for line in text.splitlines():
        stripped = line.strip()
        if stripped.startswith(_DESCRIBES):
            words = [stripped.removeprefix(_DESCRIBES)]
        elif stripped.startswith("#") and words:
            words.append(stripped.lstrip("# "))
        else:
            key = _KEY.match(line)
            if key is not None:
                path = [*path[: len(key[1]) // _INDENT], key[2]]
                if words:
                    yield ".".join(path), " ".join(words)
            words = []


def table(text: str) -> str:
    """Path, default and description of each value, a row each, in the order of the file."""
    values = yaml.safe_load(text)
    rows = ["| value | default | |", "|---|---|---|"]
    for path, words in described(text):
        default = json.dumps(_at(values, path), separators=(",", ":"))
        rows.append(f"| `{path}` | `{default}` | {_escaped(words)} |")
    return "\n".join([*rows, ""])


def _at(values: Any, path: str) -> Any:  # noqa: ANN401 - whatever YAML holds
    for key in path.split("."):
        values = values[key]
    return values


def _escaped(words: str) -> str:
    """As a cell of a table has it."""
    return words.replace("|", "\\|").replace("<", "&lt;")


def rewritten(text: str, rows: str) -> str:
    """The document with a fresh table. Raises ValueError where a mark is missing."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"the document lacks {BEGIN.strip()!r} or {END.strip()!r}")
    return before + BEGIN + rows + END + after


def main(arguments: list[str] | None = None, chart: Path = CHART) -> int:
    """Write, or with --check compare; the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="compare only, change nothing")
    document = chart / "README.md"
    text = document.read_text(encoding="utf-8")
    fresh = rewritten(text, table((chart / "values.yaml").read_text(encoding="utf-8")))
    if not parser.parse_args(arguments).check:
        document.write_text(fresh, encoding="utf-8")
        return 0
    if fresh != text:
        print("README.md of the chart: the table of values is stale: run make gen", file=sys.stderr)
    return int(fresh != text)


if __name__ == "__main__":
    raise SystemExit(main())
