"""Signals to real processes of the command: to its own, to its group, and to all that it started.

A service manager sends them to a control group, which is here each process below the command.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from quorate.sim.log_generator.generator import generate
from quorate.sim.log_generator.options import WeekOptions
from tests.pipeline.source.logs import small_log

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import SparkSession

    Command = subprocess.Popen[str]

# Java starts on whatever machine this is.
WAIT_S: Final = 300
POLL_S: Final = 0.05
MANY_BATCHES: Final = ("--max-offsets-per-batch", "9")
RECORDS: Final = 600
BATCH: Final = "quorate pipeline ingest: batch "
ENDS: Final = (
    "quorate pipeline ingest: ends after the batch that is under way, and goes on from there when"
    " it is run again; Ctrl-C once more ends it at once\n"
)
STOPPED: Final = "quorate pipeline elections: {} ended it before it was done; run it again\n"

# A job to which a signal comes at a moment of its start, or in the middle of its work.
SIGNALLED: Final = """
import os, signal, sys, time
from pathlib import Path
from pyspark import SparkContext
from quorate.pipeline.command import main
from quorate.pipeline.jobs import job_runner
when, number, path = sys.argv[1], int(sys.argv[2]), sys.argv[3]
def signalled(called, before=True):
    def then(*words, **named):
        if before:
            os.killpg(0, number)
        given = called(*words, **named)
        os.killpg(0, number)
        return given
    return then
match when:
    case "java starts":
        # PySpark sleeps until Java, which it has started, gives its port.
        time.sleep = signalled(time.sleep)
    case "pyspark has started":
        SparkContext._do_init = signalled(SparkContext._do_init, before=False)
    case "spark has started":
        SparkContext.setLogLevel = signalled(SparkContext.setLogLevel)
    case "it reads":
        job_runner.read_log = signalled(job_runner.read_log)
status = main(["elections", "--master", "local[1]", "--path", path])
print(f"children: {Path(f'/proc/self/task/{os.getpid()}/children').read_text()}.")
sys.exit(status)
"""


def without_progress(said: str) -> str:
    """The lines except the progress, which is printed if the machine is slow."""
    return "".join(line for line in said.splitlines(keepends=True) if not line.startswith(BATCH))


def below(pid: int) -> list[int]:
    """The processes that one has started, and those that these have."""
    found = []
    for children in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):
            for child in map(int, children.read_text().split()):
                found += [child, *below(child)]
    return found


def to_the_command(process: Command, number: int) -> None:
    process.send_signal(number)


def to_its_group(process: Command, number: int) -> None:
    os.killpg(process.pid, number)


def is_deaf(pid: int, number: int) -> bool:
    """True if a process ignores or blocks a signal."""
    lines = Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines()
    masks = dict(line.split(":\t") for line in lines if line.startswith("Sig"))
    return any(int(masks[name], 16) >> (number - 1) & 1 for name in ("SigIgn", "SigBlk"))


def to_each(process: Command, number: int) -> None:
    for pid in below(process.pid):
        with suppress(FileNotFoundError, ProcessLookupError):
            assert is_deaf(pid, number)
            os.kill(pid, number)
    process.send_signal(number)


@contextmanager
def ingesting(path: Path, output: Path, *words: str) -> Iterator[tuple[Command, list[int]]]:
    """`ingest` in a group of its own, once its first batch has ended; killed with what is left.

    With descriptors of the processes below it.
    """
    places = ["--path", str(path), "--output", str(output), "--master", "local[1]"]
    process = subprocess.Popen(
        [sys.executable, "-m", "quorate.cli.main", "pipeline", "ingest", *places, *words],
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env=os.environ | {"TMPDIR": str(output.parent)},
    )
    started: list[int] = []
    try:
        # Only its note shows that a batch has ended.
        while not list((output / "_checkpoint/commits").glob("[0-9]*")):
            with suppress(subprocess.TimeoutExpired):
                pytest.fail(process.communicate(timeout=POLL_S)[1])
        for pid in below(process.pid):
            # Spark ends some that it does not need again.
            with suppress(ProcessLookupError):
                started.append(os.pidfd_open(pid))
        assert len(started) > 1
        yield process, started
    finally:
        process.kill()
        for each in started:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(each, signal.SIGKILL)
            os.close(each)
        process.communicate()


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log of some batches of `--max-offsets-per-batch`."""
    root = tmp_path_factory.mktemp("log")
    options = WeekOptions(seed=1, days=1, brokers=3, topics=4, records=RECORDS)
    generate(str(root), options, lambda *_: None)
    return root


@pytest.mark.parametrize(
    ("words", "send"),
    [
        (MANY_BATCHES, to_the_command),
        (MANY_BATCHES, to_its_group),
        (MANY_BATCHES, to_each),
        (("--every-s", "1"), to_its_group),
    ],
)
def test_sigterm_to_one_or_all_ends_ingest_between_batches(
    spark: SparkSession,
    log: Path,
    tmp_path: Path,
    words: tuple[str, ...],
    send: Callable[[Command, int], None],
) -> None:
    output = tmp_path / "lake"
    with ingesting(log, output, *words) as (process, _):
        send(process, signal.SIGTERM)
        said = process.communicate(timeout=WAIT_S)[1]
        assert (process.returncode, without_progress(said)) == (143, ENDS)
    assert not list(tmp_path.glob("quorate-pipeline-*"))
    # What a snapshot has comes first, without offsets of its own.
    stored = spark.read.parquet(str(output)).where("offset >= 0")
    offsets = [row.offset for row in stored.select("offset").collect()]
    assert offsets
    assert sorted(offsets) == list(range(len(offsets)))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP])
def test_a_terminal_that_closes_and_ctrl_c_end_it_in_the_same_way(
    log: Path, tmp_path: Path, number: signal.Signals
) -> None:
    with ingesting(log, tmp_path / "lake", "--every-s", "1") as (process, _):
        to_its_group(process, number)
        said = process.communicate(timeout=WAIT_S)[1]
        assert (process.returncode, without_progress(said)) == (128 + number, ENDS)


@pytest.mark.parametrize("send", [to_the_command, to_its_group])
def test_nothing_outlives_a_command_that_is_killed(
    log: Path, tmp_path: Path, send: Callable[[Command, int], None]
) -> None:
    with ingesting(log, tmp_path / "lake", *MANY_BATCHES) as (process, started):
        send(process, signal.SIGKILL)
        for each in started:
            assert select.select([each], [], [], WAIT_S)[0]


@pytest.mark.parametrize(
    ("when", "number"),
    [
        ("java starts", signal.SIGINT),
        ("java starts", signal.SIGTERM),
        ("pyspark has started", signal.SIGINT),
        ("spark has started", signal.SIGINT),
        ("spark has started", signal.SIGHUP),
        ("it reads", signal.SIGTERM),
    ],
)
def test_a_signal_to_the_group_ends_a_job_and_java_with_one_line(
    tmp_path: Path, when: str, number: signal.Signals
) -> None:
    path = str(small_log(tmp_path / "log").root)
    done = subprocess.run(
        [sys.executable, "-c", SIGNALLED, when, str(int(number)), path],
        env=os.environ | {"TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
        start_new_session=True,
    )
    assert done.stderr == STOPPED.format(number.name)
    assert (done.returncode, done.stdout) == (128 + number, "children: .\n")
    assert not list(tmp_path.glob("quorate-pipeline-*"))
