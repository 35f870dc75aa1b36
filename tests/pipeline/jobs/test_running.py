from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from quorate.pipeline.command import main
from quorate.pipeline.jobs import running
from quorate.pipeline.jobs.running import furthest_log, what_was_said
from tests.pipeline.log_frames import Log, frame

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession


def log_of(node: int, epochs: int, records: int) -> Log:
    """A voter's log with so many epochs, so many records in each."""
    log = Log(epoch=0, source_node=node)
    for _ in range(epochs):
        log.lead(node, [1, 2, 3])
        for _ in range(records):
            log.add("NoOpRecord", {})
    return log


@pytest.fixture
def read(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Runs jobs in the session of the tests over two voters' logs; the options they asked with."""
    asked: dict[str, str] = {}
    rows = [*log_of(1, 2, 9).rows, *log_of(2, 3, 2).rows]

    @contextmanager
    def shared(master: str | None) -> Iterator[SparkSession]:
        del master
        yield spark

    def read_log(session: SparkSession, options: dict[str, str]) -> Any:  # noqa: ANN401 - a frame
        asked.update(options)
        return frame(session, rows)

    monkeypatch.setattr(running, "session", shared)
    monkeypatch.setattr(running, "read_log", read_log)
    return asked


def test_a_job_reads_the_log_that_reaches_furthest(
    read: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["elections", "--path", "a", "--path", "b", "--format", "csv"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(",")[:2] for line in lines[1:]] == [["1", "2"], ["2", "2"], ["3", "2"]]
    assert read["path"] == "a,b"
    assert read["isolation"] == "committed"
    assert read["includeControlRecords"] == "true"


def test_a_running_quorum_is_named_by_its_servers(read: dict[str, str]) -> None:
    assert (
        main(["elections", "--bootstrap-controller", "a:1", "--starting-offsets", "snapshot"]) == 0
    )
    assert read["bootstrap.servers"] == "a:1"
    assert read["startingOffsets"] == "snapshot"
    assert "path" not in read


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["--path", "a", "--bootstrap-controller", "b:1"], "--path"),
        (["--path", "a,b"], "--path: 'a,b'"),
        (["--path", "a", "--format", "parquet"], "--output"),
    ],
)
def test_flags_that_do_not_fit_are_told_in_one_line(
    capsys: pytest.CaptureFixture[str], words: list[str], named: str
) -> None:
    assert main(["elections", *words]) == 1
    said = capsys.readouterr().err
    assert said.startswith(f"quorate pipeline elections: {named}")
    assert said.count("\n") == 1


def test_one_log_of_equals_is_taken(spark: SparkSession) -> None:
    rows = [*log_of(3, 1, 1).rows, *log_of(2, 1, 1).rows]
    assert {row.source_node for row in furthest_log(frame(spark, rows)).collect()} == {2}


def test_logs_that_nobody_owns_are_one(spark: SparkSession) -> None:
    rows = [row._replace(source_node=None) for row in log_of(1, 1, 1).rows]
    assert furthest_log(frame(spark, rows)).count() == len(rows)


def test_the_sentence_is_found_in_a_traceback() -> None:
    said = (
        "[PYTHON_DATA_SOURCE_ERROR] Failed when Python data source instance creation: Traceback\n"
        '  File "worker.py", line 1, in f\n'
        "quorate.pipeline.source.options.OptionError: path: x cannot be listed\n"
    )
    assert what_was_said(ValueError(said)) == "path: x cannot be listed"
    assert what_was_said(ValueError("one thing\nand more")) == "one thing"
