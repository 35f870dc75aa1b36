"""Our dump-log prints stock Kafka's files as Kafka's own tool does."""

from __future__ import annotations

import gzip
from typing import TYPE_CHECKING

from quorate.cli.main import main
from tests.interop.comparison import differences, healthy_files

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from tests.interop.stock_kafka import StockKafka


def printed(path: Path) -> list[str]:
    """The recorded output of kafka-dump-log for this file, without the lines with paths."""
    plain = path.with_name(path.name + ".txt")
    packed = path.with_name(path.name + ".txt.gz")
    if plain.exists():
        text = plain.read_text(encoding="utf-8")
    else:
        text = gzip.decompress(packed.read_bytes()).decode()
    return [line for line in text.splitlines() if line.startswith(("base", "|", "Snapshot", "Log"))]


def test_the_output_equals_that_of_kafkas_tool(
    kafka_fixtures: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = [
        path
        for path in sorted(kafka_fixtures.rglob("*"))
        if path.suffix in (".log", ".checkpoint")
        and path.relative_to(kafka_fixtures).parts[:2] != ("damaged", path.parent.name)
        and any(path.with_name(path.name + end).exists() for end in (".txt", ".txt.gz"))
    ]
    assert len(files) > 20
    for path in files:
        status = main(["dump-log", "--cluster-metadata-decoder", "--files", str(path)])
        shown = capsys.readouterr()
        assert (status, shown.err) == (0, ""), path
        lines = [
            x for x in shown.out.splitlines() if x.startswith(("base", "|", "Snapshot", "Log"))
        ]
        assert lines == printed(path), path


def test_both_dump_the_same_of_stocks_files(kafka_fixtures: Path, stock: StockKafka) -> None:
    """Today's tool, and with --skip-record-metadata too."""
    assert differences(stock, *healthy_files(kafka_fixtures)) == []
