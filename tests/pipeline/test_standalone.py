"""The jobs on a cluster: driver and executors in processes of their own, and the same results."""

from __future__ import annotations

import json
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from quorate.pipeline import __main__
from quorate.pipeline.command import main
from quorate.pipeline.jobs import job_runner
from quorate.pipeline.jobs.registry import JOBS
from quorate.sim.log_generator.generator import generate
from quorate.sim.log_generator.options import WeekOptions
from tests.pipeline import every_job, faulty_inputs
from tests.pipeline.every_job import results, run_jobs
from tests.pipeline.faulty_inputs import answers, write_inputs
from tests.pipeline.log_frames import clock_seed
from tests.pipeline.standalone import StandaloneCluster

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

# Windows over the log, entries that are kept, and a stream. On six processes each table takes its
# seconds, however small the log.
SHAPES: Final = ("elections", "image", "ingest")
FAULTS_ON_A_CLUSTER: Final = ("magic 3", "record 1", "missing segment 1")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StandaloneCluster]:
    """A master and two workers."""
    with StandaloneCluster(tmp_path_factory.mktemp("cluster")) as started:
        yield started


@pytest.fixture(scope="module")
def voters(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Three controllers' directories: a day with elections, changes of voters, snapshots."""
    root = tmp_path_factory.mktemp("log")
    options = WeekOptions(
        seed=clock_seed(), days=1, brokers=4, topics=4, records=600, voters=3, segment_bytes=32_768
    )
    generate(str(root), options, lambda *_: None)
    found = sorted(path.parent for path in root.rglob("meta.properties"))
    assert len(found) == 3
    return found


def test_jobs_answer_on_a_cluster_as_in_one_process(
    cluster: StandaloneCluster,
    voters: list[Path],
    spark: SparkSession,
    tmp_path: Path,
    pytestconfig: pytest.Config,
) -> None:
    there, here = tmp_path / "cluster", tmp_path / "local"
    jobs = tuple(JOBS) if pytestconfig.getoption("--every-job") else SHAPES
    done = cluster.submit("jobs", Path(every_job.__file__), str(there), str(voters[0]), *jobs)
    # The driver ran nothing itself, and no executor did everything.
    assert set(done.tasks) == set(cluster.worker_pages)
    run_jobs(spark, here, voters[0], jobs)
    found, expected = results(spark, there), results(spark, here)
    for name, lines in expected.items():
        assert found[name] == lines, name
    assert all(expected[name] for name in ("elections/elections", "ingest", "image/topics"))


def test_the_products_own_module_is_what_spark_is_given(
    cluster: StandaloneCluster,
    voters: list[Path],
    spark: SparkSession,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = ["compare", *(word for path in voters for word in ("--path", str(path)))]
    words += ["--format", "json", "--table", "logs", "--table", "epochs"]
    done = cluster.submit("compare", Path(__main__.__file__), *words)
    assert set(done.tasks) == set(cluster.worker_pages)
    monkeypatch.setattr(job_runner, "session", lambda *_, **__: nullcontext(spark))
    assert main(words) == 0
    # spark-submit prints both streams as one, and on a slow machine there is progress to tell.
    told = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    expected = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert {row["table"] for row in told} == {"logs", "epochs"}
    assert sorted(map(repr, told)) == sorted(map(repr, expected))


def test_logs_with_faults_are_answered_on_a_cluster_as_in_one_process(
    cluster: StandaloneCluster, spark: SparkSession, tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    inputs = write_inputs(tmp_path)
    if not pytestconfig.getoption("--every-job"):
        inputs = {name: inputs[name] for name in FAULTS_ON_A_CLUSTER}
        (tmp_path / faulty_inputs.INPUTS).write_text(json.dumps(inputs))
    there, here = tmp_path / "there", tmp_path / "here"
    done = cluster.submit("faults", Path(faulty_inputs.__file__), str(tmp_path), str(there))
    assert set(done.tasks) == set(cluster.worker_pages)
    told = json.loads((there / faulty_inputs.ANSWERS).read_text())
    expected = json.loads(json.dumps(answers(spark, inputs, here)))
    assert told == expected
