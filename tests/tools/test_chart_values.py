"""Files that follow from the chart's values.yaml are fresh, and say what is there."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
import yaml

from tools import chart_values

if TYPE_CHECKING:
    from pathlib import Path

VALUES = """\
# Of the file, no value.

# -- How many | there are,
# and why.
count: 3
part:
  # -- A list.
  items: [a, "<b>"]
  inner:
    # -- A text.
    name: ""
# no description
other: {}
"""
ROWS = """\
| value | default | |
|---|---|---|
| `count` | `3` | How many \\| there are, and why. |
| `part.items` | `["a","<b>"]` | A list. |
| `part.inner.name` | `""` | A text. |
"""


SCHEMA = {
    "properties": {
        "count": {"type": "integer"},
        "part": {"properties": {"items": {}, "inner": {"properties": {"name": {}}}}},
        "other": {"type": "object"},
    }
}


@pytest.fixture
def chart(tmp_path: Path) -> Path:
    (tmp_path / "values.yaml").write_text(VALUES)
    text = f"before\n{chart_values.BEGIN}old\n{chart_values.END}after\n"
    (tmp_path / "README.md").write_text(text)
    (tmp_path / "values.schema.json").write_text(json.dumps(SCHEMA))
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "sections.yaml").touch()
    return tmp_path


def test_the_committed_table_is_fresh() -> None:
    assert chart_values.main(["--check"]) == 0


def test_every_described_value_has_a_row() -> None:
    assert chart_values.table(VALUES) == ROWS


def test_every_comment_of_the_chart_belongs_to_a_value() -> None:
    text = (chart_values.CHART / "values.yaml").read_text()
    paths = [path for path, _ in chart_values.described(text)]
    assert len(paths) == len(set(paths)) == text.count("# -- ")
    assert set(yaml.safe_load(text)) == {path.partition(".")[0] for path in paths}


def test_a_stale_table_is_found_and_rewritten(
    chart: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert chart_values.main(["--check"], chart) == 1
    assert capsys.readouterr().err.splitlines() == [
        f"{name} of the chart is stale: run make gen" for name in ("README.md", "sections.yaml")
    ]
    assert chart_values.main([], chart) == 0
    assert chart_values.main(["--check"], chart) == 0
    begin, end = chart_values.BEGIN, chart_values.END
    assert (chart / "README.md").read_text() == f"before\n{begin}{ROWS}{end}after\n"


def test_a_section_is_what_the_schema_knows_the_keys_of(chart: Path) -> None:
    chart_values.main([], chart)

    assert yaml.safe_load((chart / "files" / "sections.yaml").read_text()) == {
        "part": {"items": ["a", "<b>"], "inner": {"name": ""}},
        "part.inner": {"name": ""},
    }


def test_marks_must_be_there() -> None:
    with pytest.raises(ValueError, match="lacks"):
        chart_values.rewritten("no marks\n", "")
