"""A Spark cluster of real processes: a standalone master and two workers of a core each.

They come from the PySpark that is installed, listen on loopback only, and end with the block that
started them. Programs are submitted with the driver in one process and an executor on each worker,
and leave Spark's own event log, which tells who ran what.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self
from urllib.parse import urlsplit

import pyspark

from quorate.pipeline.session import SHORT_LIVED
from tests.pipeline.log_frames import SMALL_FRAMES
from tests.ports import HOST, free_ports

if TYPE_CHECKING:
    from collections.abc import Sequence

SPARK_HOME: Final = Path(pyspark.__file__).parent
ROOT: Final = Path(__file__).parents[2]
WORKERS: Final = 2
# Six JVMs share whatever machine this is, and Spark has hundreds of small tasks for them.
DEADLINE_S: Final = 1200.0
_TOLD_LINES: Final = 30


class Daemon:
    """A process of Spark's, whose log is read as it writes it."""

    def __init__(self, words: Sequence[str], environ: dict[str, str]) -> None:
        self._process = subprocess.Popen(
            [str(SPARK_HOME / "bin/spark-class"), *words],
            env=environ,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            # A worker's executors are in its group, and end with it.
            start_new_session=True,
        )
        self._lines: list[str] = []
        self._has_ended = False
        self._news = threading.Condition()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def await_line(self, words: str, count: int = 1) -> None:
        """Wait until so many lines have these words. AssertionError with the log if they do not."""

        def is_told() -> bool:
            return self._count(words) >= count or self._has_ended

        with self._news:
            self._news.wait_for(is_told, DEADLINE_S)
            told = "\n".join(self._lines[-_TOLD_LINES:])
            assert self._count(words) >= count, f"{words!r} was not said {count} times:\n{told}"

    def end(self) -> None:
        """End it with all that it started."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._reader.join()

    def _count(self, words: str) -> int:
        return sum(words in line for line in self._lines)

    def _read(self) -> None:
        assert self._process.stderr is not None
        with self._process.stderr as lines:
            for line in lines:
                with self._news:
                    self._lines.append(line.rstrip("\n"))
                    self._news.notify_all()
        with self._news:
            self._has_ended = True
            self._news.notify_all()


@dataclass(frozen=True)
class Submitted:
    """The output of a submitted program, and the number of tasks that each worker's executor ran.

    Workers are distinguished by the port of their page; tasks of the driver itself are at None.
    """

    stdout: str
    tasks: Counter[int | None]


class StandaloneCluster:
    """A context manager; it keeps everything below `folder`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        port, page, *self.worker_pages = free_ports(2 + WORKERS)
        self.master = f"spark://{HOST}:{port}"
        self._master_words = (
            *("org.apache.spark.deploy.master.Master", "--host", HOST),
            *("--port", str(port), "--webui-port", str(page)),
        )
        self._daemons: list[Daemon] = []

    def __enter__(self) -> Self:
        try:
            master = self._start(*self._master_words)
            master.await_line("New state: ALIVE")
            for page in self.worker_pages:
                self._start(
                    *("org.apache.spark.deploy.worker.Worker", "--host", HOST),
                    *("--webui-port", str(page), "--cores", "1", "--memory", "1g"),
                    *("--work-dir", str(self._folder / f"worker-{page}"), self.master),
                )
            master.await_line("Registering worker", WORKERS)
        except BaseException:
            # What was not entered is not left either.
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for daemon in reversed(self._daemons):
            daemon.end()

    def submit(self, name: str, program: Path, *words: str) -> Submitted:
        """Run a program to its end, which has to be a good one; `name` is for its event log."""
        events = self._folder / f"events-{name}"
        events.mkdir()
        settings = SMALL_FRAMES | {
            # The driver begins once an executor of each worker is there, so that both take part.
            "spark.cores.max": str(WORKERS),
            "spark.scheduler.minRegisteredResourcesRatio": "1.0",
            "spark.scheduler.maxRegisteredResourcesWaitingTime": f"{DEADLINE_S:.0f}s",
            "spark.executor.memory": "640m",
            "spark.executor.extraJavaOptions": SHORT_LIVED,
            "spark.sql.warehouse.dir": str(self._folder / "warehouse"),
            "spark.ui.enabled": "false",
            "spark.eventLog.enabled": "true",
            "spark.eventLog.dir": events.as_uri(),
            "spark.eventLog.compress": "false",
            "spark.eventLog.rolling.enabled": "false",
            # As a site's own defaults may have it.
            "spark.sql.session.timeZone": "America/New_York",
        }
        confs = [word for item in settings.items() for word in ("--conf", "=".join(item))]
        done = subprocess.run(
            [
                *(str(SPARK_HOME / "bin/spark-submit"), "--master", self.master),
                *("--deploy-mode", "client", "--driver-memory", "640m", *confs),
                *(str(program), *words),
            ],
            env=self._environ(),
            capture_output=True,
            text=True,
            check=False,
            timeout=DEADLINE_S,
        )
        assert done.returncode == 0, "\n".join(done.stderr.splitlines()[-_TOLD_LINES:])
        (log,) = events.iterdir()
        return Submitted(done.stdout, tasks_by_worker(log))

    def _start(self, *words: str) -> Daemon:
        self._daemons.append(Daemon(words, self._environ()))
        return self._daemons[-1]

    def _environ(self) -> dict[str, str]:
        """The same for all: Spark's own settings on this machine are none of the test's."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith("SPARK_")}
        return kept | {
            "SPARK_HOME": str(SPARK_HOME),
            "SPARK_CONF_DIR": str(self._folder / "no-conf"),
            "SPARK_LOCAL_IP": HOST,
            "SPARK_PUBLIC_DNS": HOST,
            "SPARK_LOCAL_DIRS": str(self._folder / "local"),
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_DAEMON_JAVA_OPTS": SHORT_LIVED,
            "SPARK_SUBMIT_OPTS": SHORT_LIVED,
            "SPARK_MASTER_OPTS": "-Dspark.master.rest.enabled=false",
            "PYSPARK_PYTHON": sys.executable,
            # Programs of tests import what they share.
            "PYTHONPATH": os.pathsep.join((str(ROOT), os.environ.get("PYTHONPATH", ""))),
            "TZ": "Asia/Kathmandu",
        }


def tasks_by_worker(log: Path) -> Counter[int | None]:
    """The number of tasks that ran on each worker, from an application's event log."""
    pages: dict[str, int | None] = {"driver": None}
    tasks: Counter[int | None] = Counter()
    for line in log.read_text(encoding="utf-8").splitlines():
        event = json.loads(line)
        match event["Event"]:
            case "SparkListenerExecutorAdded":
                urls = event["Executor Info"]["Log Urls"]
                pages[event["Executor ID"]] = urlsplit(urls["stderr"]).port
            case "SparkListenerTaskEnd":
                tasks[pages[event["Task Info"]["Executor ID"]]] += 1
    return tasks
