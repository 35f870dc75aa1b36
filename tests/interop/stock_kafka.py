"""Stock Kafka in processes of its own: tools that run to their end, and servers on loopback.

Each of them has a bounded heap and a bounded time, and is ended by the test that started it.
"""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from types import TracebackType

DUMP_LOG: Final = "org.apache.kafka.tools.DumpLogSegments"
METADATA_SHELL: Final = "org.apache.kafka.shell.MetadataShell"
STORAGE: Final = "kafka.tools.StorageTool"
SERVER: Final = "kafka.Kafka"

DEADLINE_S: Final = 300
_LOG4J2: Final = Path(__file__).parent / "stock" / "log4j2.xml"
# The serial collector and the first compiler alone: these processes live for seconds.
_JVM: Final = ("-Xmx384M", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto")


@dataclass(frozen=True)
class Said:
    """The output of a tool, and its exit status."""

    status: int
    stdout: str
    stderr: str


@dataclass(frozen=True)
class StockKafka:
    """Apache Kafka from the jars in one folder, which load faster from an archive of classes."""

    jars: Path
    archive: Path | None = None

    def command(
        self, main: str, *arguments: str, level: str = "WARN", flags: Sequence[str] = ()
    ) -> list[str]:
        """The command line of a main class; from `level` on the logs go to stderr."""
        java = shutil.which("java")
        assert java is not None, "java is not on the PATH"
        jvm = [*_JVM, *flags]
        if self.archive is not None:
            # Java's message about an archive that does not fit is not output of the tool.
            jvm += [f"-XX:SharedArchiveFile={self.archive}", "-Xlog:disable"]
        logging = [f"-Dlog4j2.configurationFile={_LOG4J2}", f"-Dlevel={level}"]
        return [java, *jvm, *logging, "-cp", f"{self.jars}/*", main, *arguments]

    def run(self, main: str, *arguments: str, stdin: str = "") -> Said:
        """Run a tool to its end."""
        done = subprocess.run(
            self.command(main, *arguments),
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
            timeout=DEADLINE_S,
        )
        return Said(done.returncode, done.stdout, done.stderr)

    def dump_log(self, *files: Path, flags: tuple[str, ...] = ()) -> Said:
        """The output of kafka-dump-log for files of the metadata log, one after the other."""
        names = ",".join(map(str, files))
        return self.run(DUMP_LOG, "--cluster-metadata-decoder", *flags, "--files", names)

    def format(self, properties: Path, cluster_id: str, *arguments: str) -> None:
        """Format the log directory of a server; it has to succeed."""
        config = ("--config", str(properties), "--cluster-id", cluster_id)
        said = self.run(STORAGE, "format", *config, *arguments)
        assert said.status == 0, said


class StockServer:
    """One stock server, alive inside `with`. What it logs is in `lines`; `flags` are for Java."""

    def __init__(self, kafka: StockKafka, properties: Path, *flags: str) -> None:
        self._process = subprocess.Popen(
            kafka.command(SERVER, str(properties), level="INFO", flags=flags),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        )
        self.lines: list[str] = []
        self._heard = threading.Condition()
        self._has_ended = False
        self._reader = threading.Thread(target=self._read)

    def __enter__(self) -> Self:
        self._reader.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        if error is not None:
            error.add_note("".join(self.lines[-30:]))
        self._end(signal.SIGKILL)

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            with self._heard:
                self.lines.append(line)
                self._heard.notify_all()
        with self._heard:
            self._has_ended = True
            self._heard.notify_all()

    def hears(self, pattern: str) -> bool:
        """Wait until a line matches; False when the process has ended without such a line."""
        wanted = re.compile(pattern)
        deadline = time.monotonic() + DEADLINE_S
        seen = 0
        with self._heard:
            while True:
                if any(wanted.search(line) for line in self.lines[seen:]):
                    return True
                seen = len(self.lines)
                if self._has_ended:
                    return False
                remaining_s = deadline - time.monotonic()
                assert self._heard.wait(remaining_s), f"no line like {pattern!r}"

    def has_started(self) -> bool:
        """Wait for the end of the start-up; False when the process ended instead."""
        return self.hears("Kafka Server started")

    def stop(self) -> None:
        """SIGTERM, and wait until it is gone."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """kill -9, and wait until it is gone."""
        self._end(signal.SIGKILL)

    def _end(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError):
            self._process.send_signal(number)
        try:
            self._process.wait(DEADLINE_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
            raise
        finally:
            self._reader.join()
            assert self._process.stdout is not None
            self._process.stdout.close()


def write_properties(path: Path, properties: Mapping[str, object]) -> Path:
    """A properties file; `path`, for the next that needs it."""
    path.write_text("".join(f"{key}={value}\n" for key, value in properties.items()))
    return path
