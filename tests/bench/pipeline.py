"""The pipeline over a large log: records a second and core, and memory, next to plain loops.

Each measurement is a process of its own (`tests.bench.pipeline_run`) that may use as many
processors as its Spark has task threads, so that a rate by core is one: Java, Python's workers and
the garbage collectors share them.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

from quorate.records.batch import read_records
from quorate.records.metadata import decode_record
from quorate.storage.file_system import OsFileSystem
from quorate.storage.layout import LOG_DIR, LOG_SUFFIX
from quorate.storage.log.batch_scanner import scan_batches
from tests.bench.pipeline_log import base_log, large_log
from tests.bench.result_tables import figure, markdown
from tests.interop.stock_kafka import DUMP_LOG
from tools.fetch_kafka import is_complete

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from quorate.storage.log.batch_scanner import FileBatch

RECORDS: Final = 10_000_000
CORES: Final = (1, 2)
FOLDER: Final = Path("build/bench")
# What would take too long over the large log is measured over the week that it begins with.
_WEEK_ONLY: Final = ("ingest",)
_MEASURES: Final = {
    "count": "source, counted",
    "typed": "typed source, records of partitions",
    "typed-count": "the same, counted",
    "ingest": "ingest",
    "partitions": "partitions",
    "image": "image, from the newest snapshot",
    "image-of-all": "image, out of every record",
}
# As Kafka's own scripts start a tool.
_JVM_OF_TOOLS: Final = ("-Xmx256M", "-server", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20")
_WATCH_S: Final = 0.1
# The field of /proc/PID/stat behind the name, before that of the system's time.
_UTIME: Final = 11
_KIB_OF_MIB: Final = 1024


@dataclass(frozen=True, slots=True)
class Measured:
    """One row: how many records in what time on how many processors; memory in MiB.

    `cpu_s` is what all processes of it took of them, which says more than the time where others use
    the machine, too.
    """

    what: str
    cores: int
    records: int
    seconds: float
    cpu_s: float
    start_s: float | None = None
    worker_mib: float | None = None
    java_mib: float | None = None

    def cells(self) -> tuple[str, ...]:
        rate = self.records / self.seconds
        return (
            self.what,
            str(self.cores),
            f"{self.records:,}",
            f"{self.seconds:.1f} s",
            f"{figure(rate)} /s",
            f"{self.cpu_s:.1f} s",
            f"{figure(self.records / self.cpu_s)} /s",
            *(
                "" if value is None else f"{figure(value)} {unit}"
                for value, unit in (
                    (self.worker_mib, "MiB"),
                    (self.java_mib, "MiB"),
                    (self.start_s, "s"),
                )
            ),
        )


_HEAD: Final = (
    "",
    "cores",
    "records",
    "time",
    "rate",
    "CPU",
    "by CPU",
    "worker, peak",
    "Java, peak",
    "start of Spark",
)


def run(jars: Path, *, records: int = RECORDS, only: Sequence[str] = ()) -> None:
    """Measure and print; the log stays in build/ for the next time."""
    if find_spec("pyspark") is None:
        print("the pipeline is left out: `make pipeline` installs Spark\n", file=sys.stderr)
        return
    FOLDER.mkdir(parents=True, exist_ok=True)
    week, log = base_log(FOLDER), large_log(FOLDER, records)
    sizes = {path: _record_count(path) for path in (week, log)}
    chosen = [name for name in _MEASURES if not only or name in only]
    found = []
    if not only or "loops" in only:
        found += _loops(week, log, sizes)
        found += _dump_log(week, jars)
    for name in chosen:
        place = week if name in _WEEK_ONLY else log
        for cores in CORES:
            found.append(_measured(name, place, sizes[place], cores))
            print(" | ".join(found[-1].cells()), file=sys.stderr, flush=True)
    size_mib = sum(path.stat().st_size for path in _segments(log)) / (1 << 20)
    print(f"## The pipeline: {sizes[log]:,} records, {size_mib:,.0f} MiB\n")
    print("\n".join(markdown(_HEAD, [row.cells() for row in found])))
    print(f"\nload when it ended: {', '.join(f'{load:.1f}' for load in os.getloadavg())}\n")
    for line in _ratios(found):
        print(line)


def _ratios(found: Sequence[Measured]) -> Iterator[str]:
    """From one core to two, by measurement."""
    for row in found:
        for other in found:
            if row.what == other.what and (row.cores, other.cores) == CORES:
                yield f"{row.what}: {row.seconds / other.seconds:.2f} from one core to two"


# --- without Spark --------------------------------------------------------------------------------


def _segments(log: Path) -> list[Path]:
    return sorted((log / LOG_DIR).glob(f"*{LOG_SUFFIX}"))


def _batches(paths: Sequence[Path]) -> Iterator[FileBatch]:
    for path in paths:
        file = OsFileSystem().open(str(path))
        try:
            yield from scan_batches(file, file.size())
        finally:
            file.close()


def _record_count(log: Path) -> int:
    return sum(batch.header.record_count for batch in _batches(_segments(log)))


def _loop(paths: Sequence[Path], decode: Callable[[bytes], object] | None) -> int:
    count = 0
    for batch in _batches(paths):
        for record in read_records(batch.buffer, batch.at, batch.header):
            count += 1
            if decode is not None and not batch.header.is_control:
                decode(record.value or b"")
    return count


def _loops(week: Path, log: Path, sizes: Mapping[Path, int]) -> list[Measured]:
    """Our decoder in a loop that makes an object of each record."""
    rows = []
    for what, path, decode in (
        ("loop, records", log, None),
        ("loop, records decoded", week, decode_record),
    ):
        begun_s, begun_cpu_s = time.monotonic(), time.process_time()
        count = _loop(_segments(path), decode)
        assert count == sizes[path]
        cpu_s = time.process_time() - begun_cpu_s
        rows.append(Measured(what, 1, count, time.monotonic() - begun_s, cpu_s))
    return rows


def _dump_log(week: Path, jars: Path) -> list[Measured]:
    java = shutil.which("java")
    if java is None or not is_complete(jars):
        print(f"kafka-dump-log is left out: no jars in {jars} (`make kafka`)\n", file=sys.stderr)
        return []
    segment = _segments(week)[0]
    words = ("--cluster-metadata-decoder", "--files", str(segment))
    command = [java, *_JVM_OF_TOOLS, "-cp", f"{jars}/*", DUMP_LOG, *words]
    begun_s, begun_cpu_s = time.monotonic(), _children_cpu_s()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    took_s, cpu_s = time.monotonic() - begun_s, _children_cpu_s() - begun_cpu_s
    count = _loop([segment], None)
    return [Measured("kafka-dump-log", len(os.sched_getaffinity(0)), count, took_s, cpu_s)]


def _children_cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


# --- with Spark -----------------------------------------------------------------------------------


def _measured(name: str, log: Path, records: int, cores: int) -> Measured:
    output = FOLDER / "output"
    shutil.rmtree(output, ignore_errors=True)
    processors = sorted(os.sched_getaffinity(0))[:cores]
    command = [sys.executable, "-m", "tests.bench.pipeline_run"]
    command += [name, f"local[{cores}]", str(log), str(output)]
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        text=True,
        preexec_fn=partial(os.sched_setaffinity, 0, processors),
    )
    watch = _Watch(process.pid)
    watch.start()
    assert process.stdout is not None
    # The first line says that Spark has started, the second what was measured.
    process.stdout.readline()
    started_cpu_s = watch.cpu_s()
    said = process.stdout.read()
    process.wait()
    watch.end()
    shutil.rmtree(output, ignore_errors=True)
    if process.returncode:
        raise RuntimeError(f"{' '.join(command)} ended with {process.returncode}")
    told = json.loads(said.splitlines()[-1])
    return Measured(
        _MEASURES[name],
        cores,
        records if told["rows"] is None else told["rows"],
        told["run_s"],
        watch.cpu_s() - started_cpu_s,
        told["start_s"],
        watch.worker_kib / _KIB_OF_MIB,
        watch.java_kib / _KIB_OF_MIB,
    )


class _Watch(threading.Thread):
    """Use of the processes below one: the most memory of Java and any worker; CPU of all."""

    def __init__(self, root: int) -> None:
        super().__init__(daemon=True)
        self.worker_kib = 0
        self.java_kib = 0
        self._root = root
        self._ticks: dict[int, int] = {}
        self._is_over = threading.Event()

    def run(self) -> None:
        while not self._is_over.wait(_WATCH_S):
            for pid in _below(self._root):
                self._look_at(pid)

    def cpu_s(self) -> float:
        """Their CPU time so far; the last moments of one that has ended may be missing."""
        return sum(list(self._ticks.values())) / os.sysconf("SC_CLK_TCK")

    def end(self) -> None:
        self._is_over.set()
        self.join()

    def _look_at(self, pid: int) -> None:
        try:
            words = Path(f"/proc/{pid}/cmdline").read_bytes()
            status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
            # The name, in brackets, may hold blanks.
            stat = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
        except OSError:
            return
        self._ticks[pid] = int(stat[_UTIME]) + int(stat[_UTIME + 1])
        peak = next((int(line.split()[1]) for line in status.splitlines() if "VmHWM" in line), 0)
        # Java's command names the daemon of workers, too.
        if words.partition(b"\0")[0].endswith(b"java"):
            self.java_kib = max(self.java_kib, peak)
        elif b"worker_daemon" in words:
            self.worker_kib = max(self.worker_kib, peak)


def _below(root: int) -> list[int]:
    """The processes that descend from one, as far as they are there."""
    found, waiting = [], [root]
    while waiting:
        pid = waiting.pop()
        try:
            for thread in os.listdir(f"/proc/{pid}/task"):
                children = Path(f"/proc/{pid}/task/{thread}/children").read_text(encoding="ascii")
                waiting += map(int, children.split())
        except OSError:
            continue
        found.append(pid)
    return found
