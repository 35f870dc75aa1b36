from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pyspark
import pytest
from py4j.protocol import REFLECTION_COMMAND_NAME
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from quorate.pipeline.command import main
from quorate.pipeline.session import SHORT_LIVED, local_settings, memory_share_mib, settings
from tests.pipeline.source.logs import small_log
from tests.pipeline.zones import ZONES, submitted_in

if TYPE_CHECKING:
    from pathlib import Path

SMALL_LOG_SESSION = """
from quorate.pipeline.session import SMALL_LOG_SETTINGS, session
with session("local[1]", is_small=True) as spark:
    print({key: spark.conf.get(key) for key in SMALL_LOG_SETTINGS} == SMALL_LOG_SETTINGS)
    beans = spark._jvm.java.lang.management.ManagementFactory
    print(*beans.getRuntimeMXBean().getInputArguments())
"""

ONE_JOB = """
import sys
from quorate.pipeline.session import session
with session(*sys.argv[1:]) as spark:
    print(spark.range(5).count(), spark.sparkContext.master)
    scratch = spark.conf.get("spark.local.dir")
import os
print(os.path.exists(scratch))
"""

STARTED_AMONG_OTHERS = """
import os, re, signal, sys
from pathlib import Path
forks = []
os.register_at_fork(before=lambda: forks.append("before"))
from quorate.pipeline.session import session
with session("local[1]") as spark:
    java = spark.sparkContext._gateway.proc
    status = Path(f"/proc/{java.pid}/status").read_text()
    ignored = int(re.search(r"^SigIgn:\\s*(\\w+)$", status, re.MULTILINE)[1], 16)
    stops = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM)
    is_deaf = all(ignored >> (number - 1) & 1 for number in stops)
    print(forks, is_deaf, os.getpgid(java.pid) == os.getpgid(0))
"""

JAVA_KILLED = """
import sys
from quorate.pipeline.command import main
from quorate.pipeline.jobs import job_runner
read = job_runner.read_log
def reads(spark, options):
    spark.sparkContext._gateway.proc.kill()
    return read(spark, options)
job_runner.read_log = reads
sys.exit(main(["elections", "--master", "local[1]", "--path", sys.argv[1]]))
"""


def run(*words: str, **environ: str) -> subprocess.CompletedProcess[str]:
    """A process of its own that opens a session and closes it."""
    return run_script(ONE_JOB, *words, **environ)


def run_script(script: str, *words: str, **environ: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", script, *words],
        env=os.environ | environ,
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_session_is_quiet_and_leaves_nothing() -> None:
    done = run("local[1]")
    assert (done.stdout, done.stderr) == ("5 local[1]\nFalse\n", "")


def test_for_a_small_log_neither_java_nor_spark_compiles_at_length() -> None:
    done = run_script(SMALL_LOG_SESSION, SPARK_SUBMIT_OPTS="")
    is_set, arguments = done.stdout.splitlines()
    assert is_set == "True"
    assert set(SHORT_LIVED.split()) <= set(arguments.split())


def test_the_reason_why_spark_does_not_start_is_reported(tmp_path: Path) -> None:
    done = run(JAVA_HOME=str(tmp_path / "no-java"))
    assert done.returncode == 1
    last = done.stderr.strip().splitlines()[-1]
    assert "Spark does not start with --master local[*]" in last
    assert "JAVA_HOME" in last
    assert "no-java" in last
    assert "bad array subscript" not in last


def failing_java(folder: Path, *lines: str) -> str:
    """The JAVA_HOME of a Java that says these lines and fails."""
    java = folder / "bin" / "java"
    java.parent.mkdir()
    java.write_text("\n".join(["#!/bin/sh", "cat >&2 <<'EOF'", *lines, "EOF", "exit 1", ""]))
    java.chmod(0o755)
    return str(folder)


def test_the_causes_in_a_stack_trace_are_reported_without_its_frames(tmp_path: Path) -> None:
    home = failing_java(
        tmp_path,
        'Exception in thread "main" java.lang.RuntimeException: it did not start',
        *["\tat org.example.Deep.call(Deep.java:1)"] * 9,
        "Caused by: java.net.UnknownHostException: no-such-host: Name or service not known",
        *["\tat org.example.Deeper.call(Deeper.java:1)"] * 9,
    )
    done = run(JAVA_HOME=home)
    last = done.stderr.strip().splitlines()[-1]
    assert last.endswith(
        'PipelineError: Spark does not start with --master local[*]: Exception in thread "main"'
        " java.lang.RuntimeException: it did not start; Caused by: java.net.UnknownHostException:"
        " no-such-host: Name or service not known"
    )


def test_an_older_java_is_named_as_the_cause(tmp_path: Path) -> None:
    home = failing_java(
        tmp_path, "\tjava.lang.UnsupportedClassVersionError: org/apache/spark/launcher/Main"
    )
    last = run(JAVA_HOME=home).stderr.strip().splitlines()[-1]
    assert last.endswith("; it needs Java 17 or newer, found by JAVA_HOME or PATH")


def test_a_killed_java_process_is_reported_with_the_likely_cause(tmp_path: Path) -> None:
    path = str(small_log(tmp_path / "c").root)
    done = run_script(JAVA_KILLED, path, TMPDIR=str(tmp_path))
    assert done.returncode == 1
    assert done.stderr.startswith(
        "quorate pipeline elections: Spark's Java process was killed, most likely because the"
        " machine or the container ran out of memory"
    )
    assert done.stderr.count("\n") == 1
    assert not list(tmp_path.glob("quorate-pipeline-*"))


def test_spark_of_another_release_is_named(tmp_path: Path) -> None:
    done = run(SPARK_HOME=str(tmp_path))
    assert done.returncode == 1
    last = done.stderr.strip().splitlines()[-1]
    assert f"SPARK_HOME: {tmp_path} is not Spark {pyspark.__version__}" in last
    assert "Java" not in last


def test_no_handler_of_another_library_takes_part_in_the_start() -> None:
    done = run_script(STARTED_AMONG_OTHERS)
    deaf_to_stop_signals = in_our_group = True
    assert (done.stdout, done.stderr) == (f"[] {deaf_to_stop_signals} {in_our_group}\n", "")


def test_java_is_asked_once_for_a_name(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    def describe() -> None:
        spark.range(1).select(F.col("id"), F.array(F.lit(1), F.coalesce("id", F.lit(2))))

    asked: list[str] = []
    client = spark._jvm._gateway_client
    send = client.send_command

    def noted(command: str, *words: object, **named: object) -> str:
        asked.append(command)
        answer: str = send(command, *words, **named)
        return answer

    describe()
    monkeypatch.setattr(client, "send_command", noted)
    describe()
    assert asked
    assert not [command for command in asked if command.startswith(REFLECTION_COMMAND_NAME)]


def test_times_are_utc(spark: SparkSession) -> None:
    for key, value in settings().items():
        assert spark.conf.get(key) == value


@pytest.mark.parametrize("zone", ZONES)
def test_what_commands_print_and_write_is_utc_in_any_zone(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str], zone: str
) -> None:
    path = ["--path", str(small_log(tmp_path / "c").root)]
    table = [*path, "--format", "json", "--table", "elections"]
    begins = ["2026-01-05T00:00:00.000Z", "2026-01-05T00:00:10.000Z"]

    def starts(lines: str) -> list[str]:
        return sorted(json.loads(line)["start"] for line in lines.splitlines())

    with submitted_in(zone, spark):
        assert main(["elections", *table]) == 0
        assert starts(capsys.readouterr().out) == begins
        assert main(["elections", *table, "--output", str(tmp_path / "tables")]) == 0
        parts = (tmp_path / "tables/elections").glob("part-*.json")
        assert starts("".join(part.read_text() for part in parts)) == begins
        assert main(["health", *path]) == 0
        assert "in the hour before 2026-01-05T00:00:10Z" in capsys.readouterr().out
        assert main(["ingest", *path, "--output", str(tmp_path / "lake")]) == 0
    assert [each.name for each in (tmp_path / "lake").glob("day=*")] == ["day=2026-01-05"]


def test_memory_is_a_share_within_bounds(tmp_path: Path) -> None:
    limit = tmp_path / "memory.max"
    assert 1024 <= memory_share_mib(limit) <= 8192
    of_the_machine = memory_share_mib(limit)
    limit.write_text("max\n")
    assert memory_share_mib(limit) == of_the_machine
    limit.write_text(f"{3 << 30}\n")
    assert memory_share_mib(limit) == 1024
    assert local_settings("scratch", 2048)["spark.driver.memory"] == "2048m"


@pytest.mark.parametrize(
    ("cores", "gib", "heap_mib"),
    [(1, 64, 1024), (2, 64, 1024), (8, 64, 4096), (8, 8, 2048), (64, 64, 8192), (2, 2, 1024)],
)
def test_memory_is_by_core_and_at_most_a_quarter(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, cores: int, gib: int, heap_mib: int
) -> None:
    machine = {"SC_PAGE_SIZE": 4096, "SC_PHYS_PAGES": (gib << 30) // 4096}
    monkeypatch.setattr("os.sysconf", machine.__getitem__)
    monkeypatch.setattr("os.sched_getaffinity", lambda _: set(range(cores)))
    assert memory_share_mib(tmp_path / "absent") == heap_mib
