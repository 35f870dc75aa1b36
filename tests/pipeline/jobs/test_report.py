"""The page of a log, from the command's arguments to the file."""

from __future__ import annotations

import argparse
import html
import os
import re
import shlex
import time
from contextlib import nullcontext
from datetime import UTC, datetime
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import quorate
from quorate.pipeline.command import add_jobs, main
from quorate.pipeline.jobs import job_runner
from quorate.pipeline.jobs import report as jobs_report
from quorate.pipeline.jobs.job_runner import chosen_tables
from quorate.pipeline.jobs.registry import JOBS, PipelineError
from quorate.pipeline.jobs.report import report, run
from quorate.pipeline.jobs.table_filters import apply_filter, parse_filter
from quorate.pipeline.report.formatting import format_int
from quorate.pipeline.source import live_log
from quorate.records.ids import TopicId
from quorate.records.metadata import PartitionRecord, TopicRecord
from quorate.sim.log_generator.generator import generate
from quorate.sim.log_generator.options import WeekOptions
from tests.pipeline.jobs.histories import Entry, History, frame_of
from tests.pipeline.log_frames import Log, clock_seed, frame, read_directory
from tests.pipeline.source.logs import small_log
from tests.pipeline.walks.image import image_at
from tests.pipeline.walks.tables import walked
from tests.ports import free_ports

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SIZE_MAX = 300_000


def test_a_page_of_any_log_has_a_bounded_size_and_escapes_its_names(spark: SparkSession) -> None:
    history = History(time.time_ns() % 1_000_000_000, 300)
    evil, topic_id = "<b>&evil</b>", TopicId(bytes(15) + b"\x09")
    at, at_ms = len(history.entries), history.entries[-1].timestamp_ms
    partition = PartitionRecord(
        partition_id=0,
        topic_id=topic_id,
        replicas=(1, 2),
        isr=(1,),
        leader=-1,
        leader_epoch=0,
        partition_epoch=0,
    )
    entries = [
        *history.entries,
        Entry(at, at_ms, TopicRecord(name=evil, topic_id=topic_id)),
        Entry(at + 1, at_ms - 10_000_000_000, partition),
    ]
    text = report(frame_of(spark, entries), evil)
    assert "&lt;b&gt;&amp;evil&lt;/b&gt;" in text
    assert evil not in text
    assert len(text) < SIZE_MAX, f"seed {history.seed}"
    assert re.findall("<h2>(.*?)</h2>", text) == [
        "Verdicts",
        "Who led",
        "Who voted",
        "Brokers",
        "Partitions",
        "Features and configurations",
        "Records over time",
        "What the log consists of",
    ]
    times = [datetime.fromtimestamp(entry.timestamp_ms / 1000, tz=UTC) for entry in entries]
    for name, end in (("from", min(times)), ("to", max(times))):
        assert f"<dt>{name}</dt><dd>{end:%Y-%m-%d %H:%M:%S} UTC" in text
    assert f"<dt>records</dt><dd>{format_int(len(entries))}, the last at offset" in text


def test_voters_are_beside_each_other_where_there_are_several(spark: SparkSession) -> None:
    log = Log(source_node=1)
    log.lead(1, [1, 2])
    log.add("NoOpRecord", {})
    behind = log.rows[0]._replace(source_node=2)
    text = report(frame(spark, log.rows), "a, b", frame(spark, [*log.rows, behind]))
    assert re.findall("<h2>(.*?)</h2>", text)[1:4] == [
        "Who led",
        "The voters&#x27; logs",
        "Who voted",
    ]
    assert "1: records that node 2 lacks, the most of any" in text
    assert "what two of them have, they have alike" in text


def test_an_empty_log_is_said_to_be_empty(spark: SparkSession) -> None:
    with pytest.raises(PipelineError, match="it holds no record; name a log that has some"):
        report(frame_of(spark, []), "DIR")


def test_a_place_that_cannot_be_written_is_refused_before_anything_is_read(tmp_path: Path) -> None:
    pipe, link = tmp_path / "pipe", tmp_path / "link"
    os.mkfifo(pipe)
    link.symlink_to(pipe)
    for place, words in (
        *((each, f"^--html: {each} is not a file; name one$") for each in (tmp_path, pipe, link)),
        (tmp_path / "no" / "x", "does not exist"),
    ):
        arguments = argparse.Namespace(html=str(place))
        with pytest.raises(PipelineError, match=words):
            run(arguments)
    assert pipe.is_fifo()
    assert link.is_symlink()


@pytest.mark.parametrize(
    ("error", "status"), [(OSError(28, "No space left on device"), 1), (KeyboardInterrupt(), 130)]
)
def test_a_page_that_fails_leaves_no_part_of_it(
    spark: SparkSession,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    error: BaseException,
    status: int,
) -> None:
    def fails(unfinished: str, _: str) -> None:
        assert Path(unfinished).is_file()
        raise error

    monkeypatch.setattr(job_runner, "session", lambda *_, **__: nullcontext(spark))
    monkeypatch.setattr(jobs_report, "report", lambda log, *_, **__: str(log.collect()))
    monkeypatch.setattr(os, "replace", fails)
    page = tmp_path / "page.html"
    page.write_text("the page before")
    path = str(small_log(tmp_path / "log").root)
    assert main(["report", "--path", path, "--html", str(page)]) == status
    assert page.read_text() == "the page before"
    assert sorted(each.name for each in tmp_path.iterdir()) == ["log", "page.html"]


def test_a_link_stays_and_its_target_is_the_page(
    spark: SparkSession,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    page, link = tmp_path / "pages" / "page.html", tmp_path / "link.html"
    page.parent.mkdir()
    link.symlink_to(page)
    path = str(small_log(tmp_path / "log").root)
    assert "Verdicts" in shown(spark, monkeypatch, ["--path", path, "--html", str(link)])
    assert link.readlink() == page
    assert page.is_file()
    assert capsys.readouterr().out == f"{link}\n"


def shown(spark: SparkSession, monkeypatch: pytest.MonkeyPatch, words: list[str]) -> str:
    """The page that the command writes, as text without markup."""
    monkeypatch.setattr(job_runner, "session", lambda *_, **__: nullcontext(spark))
    assert main(["report", *words]) == 0
    page = Path(words[words.index("--html") + 1]).read_text(encoding="utf-8")
    # A command is one line, whatever its flags look like.
    return html.unescape(re.sub("<[^>]*>", "\n", re.sub("</?span>", "", page)))


@pytest.fixture(scope="module")
def voter(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A voter's directory, with all that a day brings."""
    root = tmp_path_factory.mktemp("day")
    options = WeekOptions(
        seed=7, days=1, brokers=4, topics=4, records=600, voters=3, segment_bytes=32_768
    )
    generate(str(root), options, lambda *_: None)
    return min(path.parent for path in root.rglob("meta.properties"))


def test_the_page_says_whose_log_it_is_and_how_large_the_cluster(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, voter: Path, tmp_path: Path
) -> None:
    words = ["--path", str(voter), "--html", str(tmp_path / "page.html")]
    lines = [line for line in shown(spark, monkeypatch, words).splitlines() if line]
    facts = dict(pairwise(lines[lines.index("made") : lines.index("Verdicts")]))
    meta = dict(
        line.split("=", 1)
        for line in (voter / "meta.properties").read_text().splitlines()
        if "=" in line
    )
    assert facts["cluster"] == meta["cluster.id"]
    assert facts["log"] == f"{voter}, of node {meta['node.id']}"
    assert facts["made"].endswith(f"by Quorate {quorate.__version__}")
    log = read_directory(voter / "__cluster_metadata-0", 1)
    image = image_at(log, None).tables()
    assert facts["topics"] == (f"{len(image['topics'])} with {len(image['partitions'])} partitions")
    fenced = sum(row[4] is True for row in image["brokers"])
    assert facts["brokers"] == f"{len(image['brokers'])}, of which {fenced} fenced"
    levels = [row for row in walked("features", log, 0)["features"] if row[3] == "metadata.version"]
    assert facts["metadata.version"] == str(max(levels, key=lambda row: int(str(row[0] or 0)))[4])
    assert facts["kraft.version"] == "1"


def test_each_command_of_a_page_prints_a_table(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, voter: Path, tmp_path: Path
) -> None:
    text = shown(spark, monkeypatch, ["--path", str(voter), "--html", str(tmp_path / "page.html")])
    commands = [shlex.split(line) for line in text.splitlines() if line.startswith("quorate ")]
    assert len(commands) > 10
    (totals,) = (words for words in commands if "totals" in words)
    assert totals[-2:] == ["--order-by", "fenced_ms desc,broker_id"]
    parser = argparse.ArgumentParser()
    add_jobs(parser)
    empty = frame(spark, [])
    for words in commands:
        asked = parser.parse_args(words[2:])
        assert asked.path == [str(voter)], words
        job = JOBS[asked.job]
        module = import_module(job.module)
        (name,) = chosen_tables(job, asked)
        values = {option.name: getattr(asked, option.name) for option in job.options}
        table = module.tables(empty, values)[name]
        narrowing = parse_filter(asked, {name: module.SCHEMAS[name]})
        assert apply_filter(table, narrowing).columns == module.SCHEMAS[name].names


def test_a_wrong_path_is_told_by_name(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(job_runner, "session", lambda *_, **__: nullcontext(spark))
    parser = argparse.ArgumentParser()
    add_jobs(parser)
    asked = parser.parse_args(["report", "--path", str(tmp_path), "--html", str(tmp_path / "x")])
    with pytest.raises(PipelineError, match=f"path: {tmp_path} holds no segment"):
        run(asked)


def test_a_quorum_that_cannot_be_reached_is_told_by_its_flag_before_spark_starts(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(job_runner, "session", lambda *_, **__: pytest.fail("Spark starts"))
    monkeypatch.setattr(live_log, "TIMEOUT_MS", 1)
    (port,) = free_ports(1)
    words = ["--bootstrap-controller", f"127.0.0.1:{port}", "--html", str(tmp_path / "page.html")]
    assert main(["report", *words]) == 1
    said = capsys.readouterr().err
    assert said.startswith("quorate pipeline report: --bootstrap-controller: ")
    assert said.count("\n") == 1


def test_a_small_log_is_read_once_and_has_the_same_page(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seed = clock_seed()
    generate(
        str(tmp_path / "log"),
        WeekOptions(seed=seed, days=1, brokers=4, topics=4, records=600, voters=3),
        lambda *_: None,
    )
    paths = sorted(str(file.parent) for file in (tmp_path / "log").rglob("meta.properties"))
    words = [word for path in paths[:2] for word in ("--path", path)]
    monkeypatch.setattr(job_runner, "session", lambda *_, **__: nullcontext(spark))
    pages, jobs = {}, {}
    for is_small in (True, False):
        monkeypatch.setattr(jobs_report, "is_small_log", lambda _, is_small=is_small: is_small)
        spark.sparkContext.setJobGroup(f"small {is_small}", "")
        page = tmp_path / f"{is_small}.html"
        assert main(["report", *words, "--html", str(page)]) == 0
        # Each says when it was made.
        pages[is_small] = re.sub(r"[\d-]+ [\d:]+ UTC, by", "", page.read_text())
        tracker = spark.sparkContext.statusTracker()
        jobs[is_small] = len(tracker.getJobIdsForGroup(f"small {is_small}"))
    assert pages[True] == pages[False], f"seed {seed}"
    assert jobs[True] < jobs[False]
