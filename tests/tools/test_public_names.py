"""Names that users and directories depend on stay as they are; `--rewrite` writes the listing.

The listing next to this file is compared with what the code has. A name that is gone is a
breaking change: CHANGELOG.md has to say so.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from tests.lacking import lack
from tests.tools.public import cluster, files, interfaces, simulation, wire

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

LISTING: Final = Path(__file__).with_name("public_names.txt")
REWRITE: Final = "python -m pytest tests/tools/test_public_names.py --rewrite"
SECTIONS: Final[Mapping[str, Callable[[], Iterable[str]]]] = {
    "chart": cluster.chart,
    "command line": interfaces.commands,
    "error codes": wire.errors,
    "files on disk": files.on_disk,
    "fields of log lines": interfaces.log_fields,
    "Kubernetes": cluster.kubernetes,
    "metrics": interfaces.metrics,
    "protobuf": wire.protobuf,
    "records of the metadata log": wire.records,
    "settings": interfaces.settings,
    "simulator: cases": simulation.cases,
    "simulator: random streams": simulation.streams,
    "Spark: source and jobs": files.source,
    "Spark: tables": files.tables,
    "spans": interfaces.traces,
    "words in logs, metrics and spans": interfaces.words,
}


def read_listing(text: str) -> dict[str, list[str]]:
    """The names by section."""
    listed: dict[str, list[str]] = {}
    for line in text.splitlines():
        if line.startswith("# "):
            names = listed.setdefault(line.removeprefix("# "), [])
        elif line:
            names.append(line)
    return listed


def format_listing(names: Mapping[str, Iterable[str]]) -> str:
    """The text that `read_listing` takes: sections and names in order, a line each."""
    parts = [[f"# {section}", *sorted(names[section])] for section in sorted(names)]
    return "\n\n".join("\n".join(part) for part in parts) + "\n"


def complaint(section: str, listed: Iterable[str], found: Iterable[str]) -> str:
    """The difference of a section in plain text, with the remedy; empty if it has none."""
    gone, new = set(listed) - set(found), set(found) - set(listed)
    if not gone and not new:
        return ""
    lines = [f"public names of the section {section!r} have changed:"]
    lines += [f"  gone: {name}" for name in sorted(gone)]
    lines += [f"  new:  {name}" for name in sorted(new)]
    lines.append("If that was not meant, give the code its old names back. If it was, write the")
    lines.append(f"listing again, and commit it: {REWRITE}")
    if gone:
        lines.append("A name that is gone is a breaking change: tell it in CHANGELOG.md.")
    return "\n".join(lines)


@pytest.mark.parametrize("section", SECTIONS)
def test_public_names_are_those_of_the_listing(
    section: str, request: pytest.FixtureRequest
) -> None:
    if section == "Spark: tables" and find_spec("pyspark") is None:
        lack("pyspark is needed: make pipeline")
    listing = read_listing(LISTING.read_text(encoding="utf-8"))
    found = set(SECTIONS[section]())
    if request.config.getoption("--rewrite"):
        # The sections of tests that do not run stay as they are.
        kept = {name: names for name, names in listing.items() if name in SECTIONS}
        LISTING.write_text(format_listing({**kept, section: found}), encoding="utf-8")
    else:
        problem = complaint(section, listing.get(section, ()), found)
        assert not problem, problem


def test_the_listing_has_each_section_in_order() -> None:
    text = LISTING.read_text(encoding="utf-8")
    listing = read_listing(text)
    assert set(listing) == set(SECTIONS)
    assert format_listing(listing) == text
    assert all(listing.values())
    assert len(text) < 200_000


def test_a_complaint_says_what_is_gone_and_what_is_new() -> None:
    told = complaint("metrics", ["quorate_a gauge", "quorate_b gauge"], ["quorate_b gauge", "x"])
    assert "'metrics'" in told
    assert "  gone: quorate_a gauge\n  new:  x\n" in told
    assert "--rewrite" in told
    assert "CHANGELOG.md" in told
    assert "CHANGELOG.md" not in complaint("metrics", [], ["x"])
    assert not complaint("metrics", ["x"], ["x"])
