from __future__ import annotations

import argparse
import json
from contextlib import contextmanager, nullcontext
from importlib import import_module
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import PySparkException

from quorate.pipeline.command import add_jobs, main
from quorate.pipeline.jobs import running
from quorate.pipeline.jobs.registry import JOBS, PipelineError
from quorate.pipeline.jobs.running import furthest_log, read_log, source_options
from tests.pipeline.log_frames import Log, frame, rows_as_dicts
from tests.pipeline.source.logs import LogWriter, partition, paths_of, topic, voters

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

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
    assert "commandConfig" not in read
    assert read["bootstrap.servers"] == "a:1"
    assert read["startingOffsets"] == "snapshot"
    assert "path" not in read


def test_a_job_about_all_logs_reads_what_is_not_committed_where_there_is_such(
    read: dict[str, str],
) -> None:
    assert main(["health", "--path", "a"]) == 0
    assert read["isolation"] == "read_uncommitted"
    assert main(["health", "--bootstrap-controller", "a:1"]) == 0
    assert read["isolation"] == "committed"


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["--path", "a", "--bootstrap-controller", "b:1"], "--path"),
        (["--path", "a,b"], "--path: 'a,b'"),
        (["--path", "a", "--command-config", "c"], "--command-config"),
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


def test_certificates_for_a_running_quorum_come_from_a_file(read: dict[str, str]) -> None:
    flags = ["--bootstrap-controller", "a:1", "--command-config", "client.properties"]
    assert main(["elections", *flags]) == 0
    assert read["commandConfig"] == "client.properties"


def options_of(*words: str) -> dict[str, str]:
    parser = argparse.ArgumentParser()
    add_jobs(parser)
    arguments = parser.parse_args(words)
    return source_options(JOBS[arguments.job], arguments)


@pytest.mark.parametrize("name", [name for name, job in JOBS.items() if job.record_types])
def test_what_a_job_does_not_read_is_of_no_consequence(
    spark: SparkSession, kafka_fixtures: Path, name: str
) -> None:
    """The tables of the slim frame that the command reads are those of one with everything."""
    path = str(kafka_fixtures / "dynamic/node-1")
    job = JOBS[name]
    last = ["--from", "20"] if name == "diff" else []
    slim = read_log(spark, options_of(name, *last, "--path", path))
    assert "value" not in slim.columns
    whole = read_log(spark, {"path": path})
    values: dict[str, object] = {"at": None, "from": 20, "to": None}
    tables = import_module(job.module).tables
    expected = tables(whole, values)
    for table, found in tables(slim, values).items():
        assert found.columns == expected[table].columns
        rows, others = rows_as_dicts(found), rows_as_dicts(expected[table])
        assert sorted(rows, key=repr) == sorted(others, key=repr), table


def test_one_log_of_equals_is_taken(spark: SparkSession) -> None:
    rows = [*log_of(3, 1, 1).rows, *log_of(2, 1, 1).rows]
    assert {row.source_node for row in furthest_log(frame(spark, rows), "elections").collect()} == {
        2
    }


def test_a_log_that_nobody_owns_is_taken_alone_where_it_reaches_furthest(
    spark: SparkSession,
) -> None:
    longer = [row._replace(source_node=None) for row in log_of(3, 2, 1).rows]
    rows = [*longer, *log_of(2, 1, 1).rows]
    assert {row.source_node for row in furthest_log(frame(spark, rows), "elections").collect()} == {
        None
    }


def test_logs_that_nobody_owns_are_one(spark: SparkSession) -> None:
    rows = [row._replace(source_node=None) for row in log_of(1, 1, 1).rows]
    assert furthest_log(frame(spark, rows), "elections").count() == len(rows)


def test_what_others_have_in_front_of_the_furthest_log_is_read_from_them(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    short, long = voters(tmp_path)

    def found(isolation: str, ending: str) -> list[tuple[int, int]]:
        kinds = {}
        for paths in (paths_of(short, long), paths_of(long, short)):
            log = read_log(spark, {"path": paths, "isolation": isolation})
            rows = furthest_log(log, "elections").collect()
            told = capsys.readouterr().err
            kinds[told] = sorted((row.offset, row.source_node) for row in rows)
        # Whichever is named first.
        ((told, rows),) = kinds.items()
        assert told.startswith("quorate pipeline elections: of 2 logs that of node ")
        assert told.endswith(ending)
        return rows

    ending = "node 2 is read, which reaches furthest: up to offset 20\n"
    assert found("committed", ending) == [(offset, 2) for offset in range(21)]
    _, position, _ = long.positions[15]
    long.file.write_bytes(long.file.read_bytes()[:position])
    ending = "node 1 is read, which reaches furthest: up to offset 20, behind offsets 0 to 11 of "
    ending += "node 2\n"
    expected = [(offset, 2 if offset < 12 else 1) for offset in range(21)]
    assert found("read_uncommitted", ending) == expected


def test_an_error_is_read_before_the_session_ends(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_open = False

    def words(error: PySparkException) -> str:
        del error
        assert is_open
        return "x.OptionError: path: no such place"

    @contextmanager
    def shared(master: str | None) -> Iterator[SparkSession]:
        nonlocal is_open
        del master
        is_open = True
        try:
            yield spark
        finally:
            is_open = False

    monkeypatch.setattr(running, "session", shared)
    monkeypatch.setattr(PySparkException, "__str__", words)
    with pytest.raises(PipelineError, match=r"^path: no such place$"), running.opened(None):
        raise PySparkException("?")


@pytest.mark.parametrize("name", [name for name, job in JOBS.items() if job.tables])
def test_every_job_answers_over_the_source(
    spark: SparkSession,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    kafka_fixtures: Path,
    name: str,
) -> None:
    monkeypatch.setattr(running, "session", lambda _master: nullcontext(spark))
    job = JOBS[name]
    words = [
        word for node in (1, 4) for word in ("--path", str(kafka_fixtures / f"dynamic/node-{node}"))
    ]
    for option in job.options:
        words += [option.flag, "1"] if option.is_required else []
    assert main([name, *words, "--format", "json"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    schemas = import_module(job.module).SCHEMAS
    assert rows
    for row in rows:
        assert list(row) == ["table", *schemas[row["table"]].names]


def test_a_path_without_a_log_is_told_by_name(
    spark: SparkSession,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    monkeypatch.setattr(running, "session", lambda _master: nullcontext(spark))
    assert main(["elections", "--path", str(tmp_path)]) == 1
    said = capsys.readouterr().err
    assert said.startswith(f"quorate pipeline elections: path: {tmp_path} holds no segment")
    assert said.count("\n") == 1


@pytest.mark.parametrize("option", ["starting", "ending"])
def test_a_job_does_not_answer_for_what_was_deleted(
    spark: SparkSession,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    option: str,
) -> None:
    monkeypatch.setattr(running, "session", lambda _master: nullcontext(spark))
    log = LogWriter(tmp_path / "c", base=50)
    log.write([partition(number) for number in range(9)])
    log.snapshot(52, [topic(1)])
    assert main(["partitions", "--path", str(log.root), f"--{option}-offsets", "7"]) == 1
    said = capsys.readouterr().err
    assert said.startswith(f"quorate pipeline partitions: {option}Offsets: 7 is gone, the log in ")
    assert " begins at offset 52; " in said
    assert said.count("\n") == 1
