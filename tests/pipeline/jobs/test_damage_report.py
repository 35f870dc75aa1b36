"""Damage in a log is reported on stderr, and the answer is that of the rest."""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING

import pytest
from pyspark.sql import functions as F

from quorate.pipeline.command import main
from quorate.pipeline.jobs import compare, health, job_runner
from quorate.pipeline.jobs.registry import JOBS
from tests.pipeline.every_job import words_of
from tests.pipeline.log_frames import SMALL_FRAMES
from tests.pipeline.source.logs import LogWriter, flip, small_log, topic

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

# One whose answer is tables, as nearly all, and the two that go ways of their own.
SHAPES = ("elections", "report", "ingest")
# Of `small_log` and four elections behind it: the first offset of each epoch.
EPOCHS_OF_LOG = {1: 0, 2: 10, 3: 21, 4: 22, 5: 23, 6: 24}


@pytest.fixture
def damaged(tmp_path: Path) -> tuple[LogWriter, int]:
    """A log with a flipped bit in the batch of offsets 4 to 6, and where that is in its file."""
    log = small_log(tmp_path / "log")
    file, position, offset = next(each for each in log.positions if each[2] == 4)
    assert offset == 4
    data = bytearray(file.read_bytes())
    data[position + 70] ^= 1
    file.write_bytes(data)
    return log, position


def test_jobs_about_logs_tell_of_it_in_their_tables(
    spark: SparkSession, damaged: tuple[LogWriter, int]
) -> None:
    log, position = damaged
    read = job_runner.read_log(spark, {"path": str(log.root)})
    file = log.directory / "00000000000000000000.log"
    begin = f"{file}: byte {position}: CRC is "
    (of_log,) = compare.logs(read).collect()
    assert of_log.first_damage.startswith(begin)
    (errors,) = health.health(read).where(F.col("metric") == health.ERRORS).collect()
    assert (errors.verdict, errors.value) == ("critical", 1)
    assert errors.what.startswith(f"first of what is damaged: {begin}")


@pytest.mark.parametrize(
    ("words", "adaptive"),
    [
        (["elections", "--rows", "1"], "true"),
        (["elections", "--where", "1 = 0"], "true"),
        (["partitions", "--table", "churn", "--where", "1 = 0"], "true"),
        (["health", "--where", "1 = 0"], "true"),
        (["compare", "--table", "epochs"], "true"),
        # Users may turn off what is Spark's default.
        (["elections", "--where", "1 = 0"], "false"),
    ],
)
def test_a_narrow_answer_tells_it_although_nothing_was_read(
    spark: SparkSession,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    damaged: tuple[LogWriter, int],
    words: list[str],
    adaptive: str,
) -> None:
    monkeypatch.setattr(job_runner, "session", lambda *_, **__: nullcontext(spark))
    log, position = damaged
    spark.conf.set("spark.sql.adaptive.enabled", adaptive)
    try:
        assert main([*words, "--path", str(log.root)]) == 0
    finally:
        spark.conf.set("spark.sql.adaptive.enabled", SMALL_FRAMES["spark.sql.adaptive.enabled"])
    (line,) = capsys.readouterr().err.splitlines()
    assert f"pipeline {words[0]}: 1 damaged place is left out of the answer, the first at " in line
    assert f": byte {position}, offset 4: CRC is " in line


@pytest.mark.parametrize(
    ("name", "adaptive"),
    [*((name, "true") for name, job in JOBS.items() if job.tables), ("elections", "false")],
)
def test_a_log_that_cannot_be_read_at_all_has_an_answer_that_says_so(
    spark: SparkSession,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    name: str,
    adaptive: str,
) -> None:
    """Spark drops a part of a plan that yields nothing while it runs."""
    monkeypatch.setattr(job_runner, "session", lambda *_, **__: nullcontext(spark))
    unread = tmp_path / f"{0:020}.log"
    unread.mkdir()
    spark.conf.set("spark.sql.adaptive.enabled", adaptive)
    words = ["--from", "0"] if name == "diff" else []
    try:
        assert main([name, *words, "--path", str(tmp_path), "--format", "json"]) == 0
    finally:
        spark.conf.set("spark.sql.adaptive.enabled", SMALL_FRAMES["spark.sql.adaptive.enabled"])
    said = capsys.readouterr()
    told = said.out if JOBS[name].reads_all_logs else said.err
    assert f"{unread}: byte 0" in told
    assert "cannot be opened: " in told


@pytest.mark.parametrize("is_in_both", [False, True])
def test_of_several_directories_damage_is_told_that_each_has(
    spark: SparkSession,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    damaged: tuple[LogWriter, int],
    tmp_path: Path,
    *,
    is_in_both: bool,
) -> None:
    monkeypatch.setattr(job_runner, "session", lambda *_, **__: nullcontext(spark))
    whole = small_log(tmp_path / "whole", node_id=2)
    whole.write([topic(9)])
    log, position = damaged
    if is_in_both:
        flip(whole.directory / f"{0:020}.log", position + 70)
    assert main(["elections", "--path", str(whole.root), "--path", str(log.root)]) == 0
    assert (": 1 damaged place is left out " in capsys.readouterr().err) == is_in_both


@pytest.mark.parametrize("job", SHAPES)
def test_each_job_tells_what_it_leaves_out(
    spark: SparkSession,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    damaged: tuple[LogWriter, int],
    tmp_path: Path,
    job: str,
) -> None:
    monkeypatch.setattr(job_runner, "session", lambda *_, **__: nullcontext(spark))
    log, position = damaged
    assert main([job, "--path", str(log.root), *words_of(job, tmp_path / "output")]) == 0
    (line,) = capsys.readouterr().err.splitlines()
    where = "in the output as record_type=damaged" if job == "ingest" else "left out of the answer"
    file = log.directory / "00000000000000000000.log"
    begin = f"quorate pipeline {job}: 1 damaged place is {where}, the first at "
    assert line.startswith(f"{begin}{file}: byte {position}, offset 4: CRC is ")
    if job == "report":
        page = (tmp_path / "output" / "report.html").read_text(encoding="utf-8")
        assert f"first of what is damaged: {file}: byte {position}: CRC is " in page


def test_of_several_places_the_first_is_named(
    spark: SparkSession,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    damaged: tuple[LogWriter, int],
) -> None:
    monkeypatch.setattr(job_runner, "session", lambda *_, **__: nullcontext(spark))
    log, _ = damaged
    with log.file.open("ab") as file:
        file.write(b"torn")
    assert main(["elections", "--path", str(log.root)]) == 0
    assert ": 2 damaged places are left out of the answer, the first at " in capsys.readouterr().err


def test_a_whole_log_and_a_damaged_one_that_nobody_asked_about_are_not_spoken_of(
    spark: SparkSession,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    damaged: tuple[LogWriter, int],
    tmp_path: Path,
) -> None:
    monkeypatch.setattr(job_runner, "session", lambda *_, **__: nullcontext(spark))
    whole = small_log(tmp_path / "whole", node_id=2)
    whole.write([topic(9)])
    words = ["elections", "--path"]
    assert main([*words, str(whole.root)]) == 0
    assert main([*words, str(damaged[0].root), "--starting-offsets", "10"]) == 0
    assert capsys.readouterr().err == ""


def lake_of(spark: SparkSession, output: Path) -> tuple[list[int], list[str]]:
    """The offsets of the records in a lake, and what its rows about damage say."""
    stored = spark.read.parquet(str(output)).collect()
    of_records = sorted(row.offset for row in stored if row.record_type != "damaged")
    return of_records, [row.payload for row in stored if row.record_type == "damaged"]


@pytest.mark.parametrize("byte", [11, 16])
def test_a_lake_and_jobs_over_two_logs_go_on_behind_a_damaged_header(
    spark: SparkSession,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    byte: int,
) -> None:
    """The length or the magic is wrong of offset 11 of the last segment."""
    monkeypatch.setattr(job_runner, "session", lambda *_, **__: nullcontext(spark))
    logs = [small_log(tmp_path / f"log{node}", node_id=node) for node in (1, 2)]
    for log in logs:
        for number in range(4):
            log.lead(3 + number)
        text = "\n".join(f"{epoch} {start}" for epoch, start in EPOCHS_OF_LOG.items())
        (log.directory / "leader-epoch-checkpoint").write_text(f"0\n{len(EPOCHS_OF_LOG)}\n{text}\n")
    file, position, _ = next(each for each in logs[0].positions if each[2] == 11)
    flip(file, position + byte)
    output = tmp_path / "lake"
    for _ in range(2):
        assert main(["ingest", "--path", str(logs[0].root), "--output", str(output)]) == 0
    stored, damages = lake_of(spark, output)
    assert stored == [*range(11), *range(21, 25)]
    assert ["offsets 11 to 20 are lost" in damage for damage in damages] == [True]
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("quorate pipeline ingest: 1 damaged place is in the output ")
    paths = [word for log in logs for word in ("--path", str(log.root))]
    assert main(["elections", *paths, "--format", "csv", "--columns", "epoch"]) == 0
    said = capsys.readouterr()
    assert said.out.split() == ["epoch", *map(str, EPOCHS_OF_LOG)]
    # The other one has what is damaged here.
    assert "left out" not in said.err


def test_a_lake_waits_for_a_segment_that_is_away(
    spark: SparkSession,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    """A hole between two segments, and one that cannot be opened: a directory in its place."""
    monkeypatch.setattr(job_runner, "session", lambda *_, **__: nullcontext(spark))
    log = small_log(tmp_path / "log")
    log.roll()
    log.lead(3)
    file, away = log.directory / f"{10:020}.log", tmp_path / "away"
    words = ["ingest", "--path", str(log.root), "--output"]
    file.rename(away)
    assert main([*words, str(tmp_path / "lake")]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert "offsets 10 to 20 are missing behind, and there is no 00000000000000000010.log" in line
    assert line.endswith("or say --go-on-after-loss yes to go on without these records")
    file.mkdir()
    assert main([*words, str(tmp_path / "lake")]) == 1
    assert f"ingest: {file}: byte 0: cannot be opened: " in capsys.readouterr().err
    file.rmdir()
    patient = tmp_path / "patient"
    assert main([*words, str(patient), "--go-on-after-loss", "yes"]) == 0
    assert lake_of(spark, patient)[0] == [*range(10), 21]
    assert "offsets 10 to 20 are missing" in lake_of(spark, patient)[1][0]
    away.rename(file)
    capsys.readouterr()
    assert main([*words, str(tmp_path / "lake")]) == 0
    assert lake_of(spark, tmp_path / "lake") == (list(range(22)), [])
    assert capsys.readouterr().err == ""
