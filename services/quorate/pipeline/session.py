"""Creates the Spark session: local by default, or as spark-submit configures it.

Under spark-submit that command's settings apply, including the master, but times are UTC. Otherwise
the session is local, for one small machine: one process with as many task threads as cores, memory
for each of them but at most a quarter of the machine's, no web UI, ports on loopback only, and the
output of Spark and Java in a file that is shown if they fail.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
import tempfile
from contextlib import contextmanager, suppress
from pathlib import Path
from shutil import rmtree
from subprocess import Popen, TimeoutExpired
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final

from py4j.java_gateway import JavaClass, JavaMember
from py4j.protocol import Py4JError, Py4JJavaError, Py4JNetworkError
from pyspark import SparkConf, SparkContext, java_gateway
from pyspark.core import context
from pyspark.errors import PySparkException
from pyspark.logger import PySparkLogger
from pyspark.sql import SparkSession

from quorate.pipeline.jobs.registry import PipelineError
from quorate.pipeline.jobs.spark_errors import out_of_memory
from quorate.pipeline.spark_environment import prepare_environment
from quorate.pipeline.spark_home import find_home, link_home
from quorate.process.stop_signals import deferred

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

LOCAL: Final = "local[*]"
CONTAINER_LIMIT: Final = Path("/sys/fs/cgroup/memory.max")
_MIB: Final = 1 << 20
_MEMORY_MIB_MIN: Final = 1024
_MEMORY_MIB_MAX: Final = 8192
# Heap per core. With more, Java collects later and Spark sorts more in memory; neither makes a job
# over ten million records faster.
_MEMORY_MIB_PER_CORE: Final = 512
_LAST_WORDS: Final = 5
_END_S_MAX: Final = 5
# The exit status of a Java process that ran out of memory in a task (Spark's SparkExitCode).
_OUT_OF_MEMORY: Final = 52
# Settings of a single process, which do not apply to a remote master.
_OF_ONE_PROCESS: Final = ("spark.driver", "spark.local", "spark.python.daemon")
_CAUSES: Final = ("Exception in thread", "Caused by:")
# Texts of the shell, of Spark's script and of Java about a missing or outdated Java.
_ABOUT_JAVA: Final = ("JAVA_HOME", "java: not found", "/java: ", "UnsupportedClassVersionError")
_JAVA: Final = "; it needs Java 17 or newer, found by JAVA_HOME or PATH"
# A message of Spark's script that follows the actual reason why Java does not start.
_SHELL_NOISE: Final = "bad array subscript"
_DAEMON: Final = "quorate.pipeline.worker_daemon"
# A stop signal often goes to all processes of a group, but the command must decide the order: Java
# ends with its stdin, and the Python processes end with Java. Java handles blocked signals, but
# keeps ignored ones ignored. The Python processes that Java starts handle ignored signals and keep
# blocked ones blocked; one of them ends others by SIGHUP.
_DEAF: Final = ("/bin/sh", "-c", 'trap "" HUP INT TERM; exec "$0" "$@"')
_BLOCKED: Final = (signal.SIGINT, signal.SIGTERM)
_SUBMITTED: Final = "PYSPARK_GATEWAY_PORT"
# All jobs label their times as UTC, and `ingest` sorts by the days of UTC.
_TIME_ZONE: Final = "spark.sql.session.timeZone"
_UTC: Final = "UTC"
_LOGGERS: Final = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
# Names that PySpark looks up in Java again for each column and each list of columns.
_ASKED_OFTEN: Final = ("PythonUtils", "functions", "org.apache.spark.sql.functions")
# JVM options for a process that ends before the second compiler pays off. The first compiler alone
# gets so small a code cache by default that it discards all code after some hundred queries.
SHORT_LIVED: Final = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m -XX:+UseSerialGC"
# Spark's settings for small logs, on which a plan runs faster than it is compiled or adapted.
SMALL_LOG_SETTINGS: Final = {
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    # Constraints skip rows early, which saves nothing if rows are few.
    "spark.sql.constraintPropagation.enabled": "false",
}
# Spark first starts another Java, which only assembles a command line. The Python processes that
# Spark starts by `python -m` would import modules from the working directory before those of the
# standard library.
_OF_JAVA: Final = {
    "SPARK_LAUNCHER_OPTS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xshare:auto",
    "PYTHONSAFEPATH": "1",
    # Java cannot handle file names that the locale's charset cannot encode.
    "LC_ALL": "C.UTF-8",
}


class _Remembered(JavaClass):
    """A Java class whose methods are looked up only once."""

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever Java has there
        found = super().__getattr__(name)
        if isinstance(found, JavaMember):
            setattr(self, name, found)
        return found


@contextmanager
def session(
    master: str | None = None, *, memory_mib: int | None = None, is_small: bool = False
) -> Iterator[SparkSession]:
    """Open a session for the block; `master` is a Spark master's URL, None for local[*].

    A session for a small log (`is_small`) starts faster and compiles no plans.

    Raises PipelineError if Spark or Java does not start.
    """
    if _SUBMITTED in os.environ:
        opened = _submitted()
        try:
            yield opened
        finally:
            # If Java has exited, nothing is left to stop.
            with suppress(Py4JError, ConnectionError):
                opened.stop()
        return
    scratch = tempfile.mkdtemp(prefix="quorate-pipeline-")
    java: list[Popen[bytes]] = []
    opened = None
    try:
        memory = memory_mib or memory_share_mib()
        opened = _local(scratch, master or LOCAL, memory, java, is_small=is_small)
        yield opened
    except KeyboardInterrupt:
        # A response of Java may be in flight, and its work would be finished before the next call.
        with deferred():
            _kill(java)
        raise
    finally:
        with deferred():
            try:
                with _stderr_in(f"{scratch}/spark.log"):
                    _end(opened, java)
            finally:
                rmtree(scratch, ignore_errors=True)


def settings() -> dict[str, str]:
    """Settings of every session."""
    return {
        _TIME_ZONE: _UTC,
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        # The default, INT96, has no time zone and no statistics, and its nanoseconds overflow in
        # other readers in the year 2262.
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
        # Rows are sent to Python in batches of thousands. By default Java sums up their size after
        # each row, which takes as long as the rest of their processing.
        "spark.sql.execution.arrow.maxBytesPerBatch": str((1 << 31) - 1),
        # PySpark records where each column is created in Python, for messages that are not shown
        # here, at a fifth of the planning time of the larger jobs.
        "spark.python.sql.dataFrameDebugging.enabled": "false",
        # The newest list or struct per key is kept in a map of objects, from which Spark falls back
        # to sorting everything at 128 keys by default.
        "spark.sql.objectHashAggregate.sortBased.fallbackThreshold": "100000",
    }


def local_settings(scratch: str, memory_mib: int) -> dict[str, str]:
    """Settings of a session in one process, whose files go to the folder `scratch`."""
    return {
        "spark.driver.memory": f"{memory_mib}m",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.local.dir": scratch,
        "spark.sql.warehouse.dir": f"{scratch}/warehouse",
        "spark.python.daemon.module": _DAEMON,
        # The default of 200 is for clusters: a small job would spend its time on empty tasks.
        "spark.sql.shuffle.partitions": str(2 * _core_count()),
    }


def memory_share_mib(limit: Path = CONTAINER_LIMIT) -> int:
    """The heap of Java in MiB: an amount per core, at most a quarter of the machine's memory.

    The source's processes need memory as well. In a container, its limit counts instead of the
    machine's memory; `limit` is the file with it.
    """
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // _MIB
    # The file is absent outside a control group, and contains "max" without a limit.
    with suppress(OSError, ValueError):
        total = min(total, int(limit.read_text()) // _MIB)
    share = min(_MEMORY_MIB_MAX, total // 4, _core_count() * _MEMORY_MIB_PER_CORE)
    return max(_MEMORY_MIB_MIN, share)


def _core_count() -> int:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return cores or 1


def _local(
    scratch: str, master: str, memory_mib: int, java: list[Popen[bytes]], *, is_small: bool
) -> SparkSession:
    """Start Java, which is added to `java` immediately, and open a session in it."""
    is_local = master.startswith("local")
    home = find_home()
    if is_local:
        home = link_home(home, Path(scratch) / "spark")
    _quiet_python()
    prepare_environment(os.environ, master, conf_dir=f"{scratch}/conf")
    conf = SparkConf(loadDefaults=False).setMaster(master).setAppName("quorate")
    chosen = settings() | local_settings(scratch, memory_mib)
    if is_small:
        chosen |= SMALL_LOG_SETTINGS | {"spark.driver.extraJavaOptions": SHORT_LIVED}
    for key, value in chosen.items():
        if is_local or not key.startswith(_OF_ONE_PROCESS):
            conf.set(key, value)
    said = f"{scratch}/spark.log"
    try:
        with _stderr_in(said), _java_by_shell(java, home), _signals_left():
            opened = SparkSession.builder.config(conf=conf).getOrCreate()
    except Exception as error:
        words = Path(said).read_text(encoding="utf-8", errors="replace")
        told = _last_words(words) or str(error)
        remedy = _JAVA if not words or any(word in words for word in _ABOUT_JAVA) else ""
        raise PipelineError(
            f"Spark does not start with --master {master}: {told}{remedy}"
        ) from error
    opened.sparkContext.setLogLevel("OFF")
    _remember_names(opened)
    return opened


def _last_words(said: str) -> str:
    """The last lines of Spark's start; from a stack trace only the exceptions."""
    lines = [line.strip() for line in said.splitlines() if _SHELL_NOISE not in line]
    causes = [line for line in lines if line.startswith(_CAUSES)]
    return "; ".join((causes or lines)[-_LAST_WORDS:])


@contextmanager
def _java_by_shell(java: list[Popen[bytes]], home: Path) -> Iterator[None]:
    """Let PySpark start Java with stop signals ignored, and without fork handlers.

    PySpark runs Python code between fork and exec, and with it the fork handlers of libraries: if
    the process has an open gRPC channel, they abort one start in twenty. `home` is Spark's home.

    Started processes are added to `java`.
    """

    def started(command: Sequence[str], **words: Any) -> Popen[bytes]:  # noqa: ANN401 - Popen's
        del words["preexec_fn"]
        words["env"] = words["env"] | _OF_JAVA | {"SPARK_HOME": str(home)}
        with deferred():
            before = signal.pthread_sigmask(signal.SIG_BLOCK, _BLOCKED)
            try:
                java.append(Popen([*_DEAF, *command], **words))  # noqa: S603 - PySpark's command
            finally:
                signal.pthread_sigmask(signal.SIG_SETMASK, before)
        return java[-1]

    theirs = java_gateway.Popen, java_gateway._find_spark_home
    java_gateway.Popen, java_gateway._find_spark_home = started, lambda: str(home)
    try:
        yield
    finally:
        java_gateway.Popen, java_gateway._find_spark_home = theirs


@contextmanager
def _signals_left() -> Iterator[None]:
    """Keep PySpark from handling Ctrl-C.

    Its handler calls Java while another call may be in progress.
    """
    theirs = context.signal
    context.signal = SimpleNamespace(SIGINT=signal.SIGINT, signal=lambda *_: None)
    try:
        yield
    finally:
        context.signal = theirs


def _submitted() -> SparkSession:
    _quiet_python()
    with _signals_left():
        SparkContext._ensure_initialized()
        opened = _submitted_session()
    _remember_names(opened)
    return opened


def _submitted_session() -> SparkSession:
    conf = SparkConf()
    for key, value in settings().items():
        conf.setIfMissing(key, value)
    # A site's defaults often set another time zone.
    conf.set(_TIME_ZONE, _UTC)
    return SparkSession.builder.config(conf=conf).getOrCreate()


def _quiet_python() -> None:
    """Keep PySpark and Py4J from logging the errors that they raise.

    That would be JSON with the complete query plan, and from the root logger the traceback of a
    call that Java did not answer.
    """
    for name in _LOGGERS:
        PySparkLogger.getLogger(name).setLevel(logging.CRITICAL)
    logging.getLogger().addFilter(_is_not_py4js)


def _is_not_py4js(record: logging.LogRecord) -> bool:
    return os.path.basename(os.path.dirname(record.pathname)) != "py4j"


def _remember_names(opened: SparkSession) -> None:
    """Make Java look up frequently used names only once.

    For a name without a package it tries each possible package, and searches all of Spark's jars
    for each package without that name.
    """
    jvm = opened._jvm
    for name in _ASKED_OFTEN:
        found = getattr(jvm, name)
        if not isinstance(found, _Remembered):
            setattr(jvm, name, _Remembered(found._fqn, found._gateway_client))


def java_fault(opened: SparkSession, error: Exception) -> str | None:
    """The message for a call that Java did not answer; None if it did."""
    if isinstance(error, Py4JJavaError | PySparkException):
        return None
    java = _java_of(opened)
    if java is None:
        is_cut_off = isinstance(error, ConnectionError | Py4JNetworkError)
        return f"Spark's Java process does not answer: {error}" if is_cut_off else None
    with suppress(TimeoutExpired):
        # A connection ends slightly before its process.
        java.wait(_END_S_MAX)
    match java.returncode:
        case None:
            return None
        case status if status == -signal.SIGKILL:
            return (
                "Spark's Java process was killed, most likely because the machine or the container"
                " ran out of memory (then `dmesg` or the status of the pod names it): give it more,"
                " stop other programs, or read less, as with --starting-offsets snapshot"
            )
        case status if status == _OUT_OF_MEMORY:
            return out_of_memory()
        case status:
            return f"Spark's Java process ended with status {status}; run the command again"


def _java_of(opened: SparkSession) -> Popen[bytes] | None:
    """The Java process, if this process started it."""
    java: Popen[bytes] | None = getattr(opened.sparkContext._gateway, "proc", None)
    return java


def _kill(java: Sequence[Popen[bytes]]) -> None:
    for process in java:
        process.kill()
        process.wait()


def _end(opened: SparkSession | None, java: Sequence[Popen[bytes]]) -> None:
    """End the session and then its Java, which would log an error if Python ended first."""
    gateway = SparkContext._gateway
    if opened is None or gateway is None:
        _kill(java)
    else:
        # If Java has exited, nothing is left to stop.
        with suppress(Py4JError, ConnectionError):
            opened.stop()
        with suppress(Py4JError, ConnectionError):
            gateway.shutdown()
    for process in java:
        if process.stdin is not None:
            process.stdin.close()
        try:
            process.wait(_END_S_MAX)
        except TimeoutExpired:
            _kill([process])
        SparkContext._gateway = SparkContext._jvm = None


@contextmanager
def _stderr_in(path: str) -> Iterator[None]:
    """Redirect the stderr of processes that start in the block to a file."""
    sys.stderr.flush()
    kept = os.dup(2)
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        os.dup2(file, 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(file)
