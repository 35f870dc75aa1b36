"""Writes what follows from the chart's values.yaml.

That is the table in the README of the chart, between two marks, and files/sections.yaml, from which
the templates take a section that is null.

python tools/chart_values.py            writes both
python tools/chart_values.py --check    compares only; exit status 1 when one of them is stale
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
_HEADER = "# Written by tools/chart_values.py from values.yaml: what a section that is null has.\n"


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


def sections(schema: Any, values: Any, path: tuple[str, ...] = ()) -> dict[str, Any]:  # noqa: ANN401 - whatever JSON and YAML hold
    """The default of each section by its path: an object whose keys the schema knows."""
    found: dict[str, Any] = {}
    for key, shape in schema["properties"].items():
        if "properties" in shape:
            inner = (*path, key)
            found[".".join(inner)] = values[key]
            found |= sections(shape, values[key], inner)
    return found


def _sections_file(schema: str, values: str) -> str:
    found = sections(json.loads(schema), yaml.safe_load(values))
    return _HEADER + yaml.safe_dump(found, sort_keys=False)


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
    values = (chart / "values.yaml").read_text(encoding="utf-8")
    schema = (chart / "values.schema.json").read_text(encoding="utf-8")
    readme, file = chart / "README.md", chart / "files" / "sections.yaml"
    fresh = {
        readme: rewritten(readme.read_text(encoding="utf-8"), table(values)),
        file: _sections_file(schema, values),
    }
    if not parser.parse_args(arguments).check:
        for path, text in fresh.items():
            path.write_text(text, encoding="utf-8")
        return 0
    stale = [path for path, text in fresh.items() if path.read_text(encoding="utf-8") != text]
    for path in stale:
        print(f"{path.name} of the chart is stale: run make gen", file=sys.stderr)
    return int(bool(stale))


if __name__ == "__main__":
    raise SystemExit(main())
