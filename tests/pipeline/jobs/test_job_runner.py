from __future__ import annotations

import argparse
import json
from contextlib import contextmanager, nullcontext
from importlib import import_module
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import PySparkException

from quorate.pipeline.command import add_jobs, main
from quorate.pipeline.jobs import job_runner
from quorate.pipeline.jobs.job_runner import check_log, read_log, source_options
from quorate.pipeline.jobs.registry import JOBS, PipelineError
from tests.pipeline.log_frames import Log, frame, rows_as_dicts
from tests.pipeline.source.logs import (
    LogWriter,
    log_with_a_clock_ahead,
    partition,
    small_log,
    topic,
    voters,
)

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

    monkeypatch.setattr(job_runner, "session", shared)
    monkeypatch.setattr(job_runner, "read_log", read_log)
    monkeypatch.setattr(job_runner, "check_log", lambda *_: None)
    return asked


def test_a_job_reads_the_log_of_several_directories_once(read: dict[str, str]) -> None:
    assert main(["elections", "--path", "a", "--path", "b", "--format", "csv"]) == 0
    assert read["path"] == "a,b"
    assert read["mergeDirectories"] == "true"
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


def test_of_several_directories_the_log_is_read_once_and_the_choice_is_told(
    spark: SparkSession,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    monkeypatch.setattr(job_runner, "session", lambda *_, **__: nullcontext(spark))
    short, long = voters(tmp_path)
    answers = set()
    for logs in ((short, long), (long, short)):
        words = [word for log in logs for word in ("--path", str(log.root))]
        assert main(["elections", *words, "--format", "json"]) == 0
        answers.add(tuple(capsys.readouterr()))
    # The order in which they are named makes no difference.
    ((rows, told),) = answers
    assert [json.loads(line)["record_count"] for line in rows.splitlines()] == [21]
    assert told == (
        f"quorate pipeline elections: of 2 directories {long.directory} is read, which holds the"
        " most: offsets 0 to 20\n"
    )


def test_what_the_chosen_directory_lacks_is_told_with_whose_it_is(
    spark: SparkSession,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    monkeypatch.setattr(job_runner, "session", lambda *_, **__: nullcontext(spark))
    short, long = voters(tmp_path)
    _, position, _ = long.positions[15]
    long.file.write_bytes(long.file.read_bytes()[:position])
    words = ["--path", str(short.root), "--path", str(long.root), "--format", "json"]
    assert main(["elections", *words, "--isolation", "read_uncommitted"]) == 0
    rows, told = capsys.readouterr()
    assert [json.loads(line)["record_count"] for line in rows.splitlines()] == [21]
    assert told == (
        f"quorate pipeline elections: of 2 directories {long.directory} is read, which holds the"
        f" most: offsets 0 to 14, and offsets 15 to 20 of {short.directory}\n"
    )


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

    monkeypatch.setattr(job_runner, "session", shared)
    monkeypatch.setattr(PySparkException, "__str__", words)
    with (
        pytest.raises(PipelineError, match=r"^--path: no such place$"),
        job_runner.job_session(None),
    ):
        raise PySparkException("?")


@pytest.mark.parametrize("name", [name for name, job in JOBS.items() if job.tables])
def test_every_job_answers_over_the_source(
    spark: SparkSession,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    kafka_fixtures: Path,
    name: str,
) -> None:
    monkeypatch.setattr(job_runner, "session", lambda *_, **__: nullcontext(spark))
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


@pytest.fixture
def no_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    """A session ends the test."""

    def refuse(master: str | None) -> None:
        raise AssertionError(master)

    monkeypatch.setattr(job_runner, "session", refuse)


@pytest.mark.usefixtures("no_spark")
@pytest.mark.parametrize("job", ["elections", "report"])
def test_a_path_without_a_log_is_told_by_name_before_spark_starts(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, job: str
) -> None:
    assert main([job, "--path", str(tmp_path / "nope")]) == 1
    assert f"{job}: --path: {tmp_path / 'nope'} cannot be listed: " in capsys.readouterr().err
    assert main(["elections", "--path", str(tmp_path)]) == 1
    said = capsys.readouterr().err
    assert said.startswith(f"quorate pipeline elections: --path: {tmp_path} holds no segment")
    assert said.count("\n") == 1


@pytest.mark.parametrize("option", ["starting", "ending"])
def test_a_job_does_not_answer_for_what_was_deleted(
    spark: SparkSession,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    option: str,
) -> None:
    monkeypatch.setattr(job_runner, "session", lambda *_, **__: nullcontext(spark))
    log = LogWriter(tmp_path / "c", base=50)
    log.write([partition(number) for number in range(9)])
    log.snapshot(52, [topic(1)])
    assert main(["partitions", "--path", str(log.root), f"--{option}-offsets", "7"]) == 1
    said = capsys.readouterr().err
    assert said.startswith(
        f"quorate pipeline partitions: --{option}-offsets: 7 is gone, the log in "
    )
    assert " begins at offset 52; " in said
    assert said.count("\n") == 1


@pytest.mark.usefixtures("no_spark")
def test_a_segment_is_no_directory_and_stays_where_it_is(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = small_log(tmp_path / "c").file
    assert main(["elections", "--path", str(file)]) == 1
    assert capsys.readouterr().err == (
        f"quorate pipeline elections: --path: {file} is a file; give the directory that holds it\n"
    )


@pytest.mark.usefixtures("read")
def test_a_condition_that_fails_for_a_row_is_told_by_its_flag(
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = ["elections", "--path", "a", "--table", "elections", "--where", "epoch / 0 > 2"]
    assert main(words) == 1
    said = capsys.readouterr().err
    assert said.startswith("quorate pipeline elections: --where: epoch / 0: Division by zero. ")
    assert said.count("\n") == 1


def test_times_that_go_back_are_told_before_spark_starts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = log_with_a_clock_ahead(tmp_path / "c", values=[topic(1)])
    time = "2026-01-05T00:00:25Z"
    words = ["--path", str(log.root), "--ending-offsets", time]
    job = JOBS["sizes"]
    check_log(job, options_of("sizes", *words))
    told = capsys.readouterr().err
    assert told.startswith("quorate pipeline sizes: --ending-offsets: times go back in the log in ")
    assert told.endswith("offset 25 is taken for that time, name an offset to cut elsewhere\n")
    check_log(job, options_of("sizes", *words[:2], "--ending-offsets", "25"))
    assert capsys.readouterr().err == ""
