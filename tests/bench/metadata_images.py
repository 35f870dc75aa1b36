"""Images of very many partitions: loaded, replayed, written as a snapshot, a broker of them fenced.

    python -m tests.bench.metadata_images [--topics N] [--partitions N]
        [--beside CHECKOUT] [--rounds N]

Three replicas on thirty brokers, of which one is fenced. Processor time of one thread, a record and
for the longest slice: what lies between two pauses of a loop. Memory is what a process grows by
when it loads the snapshot, a partition. With another checkout the two take turns in one run, each
round in a process of its own, and the ratio tells. The garbage collector is off: what it costs
depends on the loop that it runs in, and `tests.bench.loop_latency` measures it.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from random import Random
from statistics import median
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from quorate.controller.controller import Controller
from quorate.controller.decision import ControllerSettings
from quorate.controller.image import LogPosition, MetadataImage
from quorate.controller.replay import Replayer
from quorate.controller.snapshot import SnapshotLoader, snapshot_slices
from quorate.records.batch import (
    HEADER_BYTES,
    check_batch,
    encode_batch,
    read_header,
    read_runs,
)
from quorate.records.ids import (
    ClusterId,
    DirectoryId,
    Epoch,
    Offset,
    OffsetAndEpoch,
    TopicId,
)
from quorate.records.metadata import (
    BrokerEndpoint,
    FeatureLevelRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    TopicRecord,
    decode_record,
    encode_record,
)
from quorate.storage.file_system import OsFileSystem
from quorate.storage.snapshots.writer import SnapshotWriter
from tests.bench.result_tables import figure, markdown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

BROKERS: Final = 30
REPLICAS: Final = 3
LEVEL: Final = 30
BATCH_RECORDS: Final = 1000
_WRITTEN_TOGETHER_BYTES: Final = 64 * 1024
_LOADED_TOGETHER: Final = 64
_FENCED: Final = 3
_MEASURES: Final = (
    ("loaded from a snapshot, a record", "load_us", "us"),
    ("the longest slice of it", "load_longest_ms", "ms"),
    ("memory, a partition", "memory_bytes", "B"),
    ("replayed from batches of 1,000, a record", "replay_us", "us"),
    ("the longest slice of it", "replay_longest_ms", "ms"),
    ("written as a snapshot, a record", "write_us", "us"),
    ("the loop's part of it", "slices_us", "us"),
    ("the longest slice of that", "slices_longest_ms", "ms"),
    ("one broker of thirty fenced, all", "fence_s", "s"),
    ("of it a partition that changes", "fence_us", "us"),
    ("the longest slice of it", "fence_longest_ms", "ms"),
    ("decisions that it takes", "fence_decisions", ""),
    ("replayed by a follower, a partition that changes", "follow_us", "us"),
)


class Shape(NamedTuple):
    """So many topics, and so many partitions of each."""

    topics: int
    partitions: int

    @property
    def records(self) -> int:
        return self.topics * (1 + self.partitions)


def values_of(shape: Shape) -> Iterator[bytes]:
    """The records of a snapshot with that many topics, on brokers that are up."""
    draw = Random(1)
    directories = [DirectoryId(draw.randbytes(16)) for _ in range(BROKERS)]
    yield encode_record(FeatureLevelRecord(name="metadata.version", feature_level=LEVEL), 0)
    for broker_id, directory in enumerate(directories):
        endpoint = BrokerEndpoint(name="PLAINTEXT", host="host", port=9092, security_protocol=0)
        registration = RegisterBrokerRecord(
            broker_id=broker_id,
            incarnation_id=draw.randbytes(16),
            broker_epoch=1 + broker_id,
            end_points=(endpoint,),
            features=(),
            rack=None,
            fenced=False,
            log_dirs=(directory,),
        )
        yield encode_record(registration, 4)
    for topic in range(shape.topics):
        topic_id = TopicId(draw.randbytes(16))
        yield encode_record(TopicRecord(name=f"topic-{topic:07}", topic_id=topic_id), 0)
        first = draw.randrange(BROKERS)
        for partition in range(shape.partitions):
            replicas = tuple((first + partition + place) % BROKERS for place in range(REPLICAS))
            record = PartitionRecord(
                partition_id=partition,
                topic_id=topic_id,
                replicas=replicas,
                isr=replicas,
                leader=replicas[0],
                leader_epoch=0,
                partition_epoch=0,
                directories=tuple([directories[broker] for broker in replicas]),
            )
            yield encode_record(record, 2)


def write_batches(shape: Shape, path: Path) -> None:
    """All of it in batches, one behind the other in a file."""
    with path.open("wb") as file:
        gathered: list[bytes] = []
        for value in values_of(shape):
            gathered.append(value)
            if len(gathered) == BATCH_RECORDS:
                file.write(encode_batch(gathered, timestamp_ms=1))
                gathered = []
        if gathered:
            file.write(encode_batch(gathered, timestamp_ms=1))


# --- one process ----------------------------------------------------------------------------------


class Clock:
    """Processor time of this thread, and the longest slice since it began."""

    def __init__(self) -> None:
        self._began_s = self._last_s = time.thread_time()
        self._longest_s = 0.0

    def tick(self) -> None:
        """A slice is over."""
        now_s = time.thread_time()
        self._longest_s = max(self._longest_s, now_s - self._last_s)
        self._last_s = now_s

    @property
    def took_s(self) -> float:
        return time.thread_time() - self._began_s

    @property
    def longest_ms(self) -> float:
        return self._longest_s * 1000


def _batches(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while head := file.read(HEADER_BYTES):
            batch = head + file.read(read_header(head).size_bytes - HEADER_BYTES)
            check_batch(batch)
            yield batch


def _items(batch: bytes) -> Iterable[Any]:
    """The parts that the process passes on of a batch: runs, or records if it has no runs yet."""
    with suppress(ModuleNotFoundError):
        runs = import_module("quorate.controller.record_runs")
        found: Iterable[Any] = runs.items_in(batch, 0, read_header(batch))
        return found
    return _decoded(batch)


def _decoded(batch: bytes) -> Iterator[Any]:
    for run in read_runs(batch, 0, read_header(batch)):
        for record in run:
            yield decode_record(record.value or b"")[0]


def _load(path: Path, clock: Clock) -> MetadataImage:
    loader: Any = SnapshotLoader(LogPosition(Offset(1_000_000_000), Epoch(1), 1))
    for batch in _batches(path):
        if hasattr(loader, "add_in_slices"):
            for _ in loader.add_in_slices(_items(batch)):
                clock.tick()
            continue
        records = []
        for record in _decoded(batch):
            records.append(record)
            if len(records) == _LOADED_TOGETHER:
                loader.add(records)
                records = []
                clock.tick()
        loader.add(records)
        clock.tick()
    image: MetadataImage = loader.finish()
    clock.tick()
    return image


def _replay(batches: Iterable[bytes], image: MetadataImage, clock: Clock) -> MetadataImage:
    replayer = Replayer(image)
    for batch in batches:
        base = replayer.end_offset
        end = Offset(base + read_header(batch).record_count)
        slices = replayer.replay_in_slices(
            _items(batch), base_offset=base, position=LogPosition(end, Epoch(1), 1)
        )
        for _ in slices:
            clock.tick()
        clock.tick()
    return replayer.image


def _write(image: MetadataImage, folder: Path, measured: dict[str, float], records: int) -> None:
    clock, loop_s = Clock(), 0.0
    path, snapshot_id = str(folder / "written"), OffsetAndEpoch(epoch=Epoch(1), offset=Offset(9))
    writer = SnapshotWriter(
        OsFileSystem(), path, snapshot_id, timestamp_ms=1, last_contained_log_timestamp_ms=1
    )
    longest_s, gathered, size = 0.0, list[bytes](), 0
    slices = snapshot_slices(image)
    while True:
        began_s = time.thread_time()
        values = next(slices, None)
        took_s = time.thread_time() - began_s
        longest_s, loop_s = max(longest_s, took_s), loop_s + took_s
        if values is None:
            break
        gathered += values
        size += sum(map(len, values))
        if size >= _WRITTEN_TOGETHER_BYTES:
            writer.append(gathered)
            gathered, size = [], 0
    writer.append(gathered)
    writer.freeze()
    measured["write_us"] = clock.took_s / records * 1e6
    measured["slices_us"] = loop_s / records * 1e6
    measured["slices_longest_ms"] = longest_s * 1000


def _fence(image: MetadataImage, measured: dict[str, float]) -> None:
    heartbeat, caller = _named("BrokerHeartbeat"), _named("Caller")("User:broker")
    settings = ControllerSettings(
        cluster_id=ClusterId("cluster"), new_topic_id=lambda: TopicId(b"t" * 16)
    )
    controller = Controller(settings, image=image, gathers=True)
    controller.activate(Epoch(2), image.position.end_offset, 0)
    batches: list[bytes] = []

    def commit(decision: Any) -> None:  # noqa: ANN401 - of either checkout
        if decision is not None and decision.values:
            batches.append(encode_batch(decision.values, timestamp_ms=2))
            controller.end_batch(decision.end_offset)
            controller.commit(decision.end_offset, 2)

    while controller.wake_at_ms == 0:
        commit(controller.expire(0))
    assert not batches, "everything is as it should be before"
    clock = Clock()
    fence = heartbeat(
        broker_id=_FENCED,
        broker_epoch=1 + _FENCED,
        current_metadata_offset=image.position.end_offset,
        want_fence=True,
    )
    commit(controller.decide(fence, caller, 0))
    clock.tick()
    while controller.wake_at_ms == 0:
        commit(controller.expire(0))
        clock.tick()
    changed = sum(read_header(batch).record_count for batch in batches) - 1
    measured["fence_s"], measured["fence_us"] = clock.took_s, clock.took_s / changed * 1e6
    measured["fence_longest_ms"], measured["fence_decisions"] = clock.longest_ms, len(batches)
    clock = Clock()
    after = _replay(batches, image, clock)
    assert after.position.end_offset == controller.end_offset, "a follower is where the leader is"
    measured["follow_us"] = clock.took_s / changed * 1e6


def _named(name: str) -> Any:  # noqa: ANN401 - a class of either checkout
    """A class, wherever that checkout has it."""
    places = (
        "controller.authorizer",
        "controller.requests",
        "controller.brokers.messages",
        "api.caller",
        "api.callers",
    )
    for place in places:
        with suppress(ModuleNotFoundError, AttributeError):
            return getattr(import_module(f"quorate.{place}"), name)
    raise LookupError(name)


def _memory() -> int:
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * os.sysconf(
        "SC_PAGE_SIZE"
    )


def _work(path: Path, shape: Shape) -> None:
    """Everything once; prints what was measured."""
    gc.collect()
    gc.disable()
    measured: dict[str, float] = {}
    before, clock = _memory(), Clock()
    image = _load(path, clock)
    measured["load_us"] = clock.took_s / shape.records * 1e6
    measured["load_longest_ms"] = clock.longest_ms
    measured["memory_bytes"] = (_memory() - before) / (shape.topics * shape.partitions)
    clock = Clock()
    replayed = _replay(_batches(path), MetadataImage(), clock)
    measured["replay_us"] = clock.took_s / shape.records * 1e6
    measured["replay_longest_ms"] = clock.longest_ms
    del replayed
    _write(image, path.parent, measured, shape.records)
    _fence(image, measured)
    print(json.dumps(measured))


# --- both -----------------------------------------------------------------------------------------


def _measured(checkout: Path, path: Path, shape: Shape) -> dict[str, float]:
    words = ["--work", str(path), "--topics", str(shape.topics), "--partitions"]
    done = subprocess.run(
        [sys.executable, __file__, *words, str(shape.partitions)],
        env={**os.environ, "PYTHONPATH": f"{checkout / 'services'}:{Path(__file__).parents[2]}"},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    found: dict[str, float] = json.loads(done.stdout)
    return found


def _cell(values: list[float], unit: str) -> str:
    spread = f" [{figure(min(values))}..{figure(max(values))}]" if len(values) > 1 else ""
    return f"{figure(median(values))}{spread} {unit}".rstrip()


def measure(shape: Shape, checkouts: list[Path], rounds: int) -> None:
    """Measure in turns, and print a table."""
    with tempfile.TemporaryDirectory(prefix="quorate-images-") as folder:
        path = Path(folder) / "batches"
        write_batches(shape, path)
        found: list[list[dict[str, float]]] = [[] for _ in checkouts]
        for _ in range(rounds):
            for checkout, each in zip(checkouts, found, strict=True):
                each.append(_measured(checkout, path, shape))
    lines = []
    for what, name, unit in _MEASURES:
        columns = [[each[name] for each in rounds_of] for rounds_of in found]
        cells = [what, *(_cell(column, unit) for column in columns)]
        if len(columns) > 1:
            cells.append(f"{median(columns[1]) / median(columns[0]):.2f}")
        lines.append(cells)
    title = f"{shape.topics:,} topics of {shape.partitions:,} partitions"
    heads = [title, "here"] if len(checkouts) == 1 else [title, "beside", "here", "ratio"]
    print("\n".join(markdown(heads, lines)), flush=True)


def main(measure_all: Callable[[Shape, list[Path], int], None] = measure) -> int:
    """Measure and print; the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.bench.metadata_images", description=__doc__
    )
    parser.add_argument("--topics", type=int, default=10_000)
    parser.add_argument("--partitions", type=int, default=20, help="of each topic")
    parser.add_argument("--beside", type=Path, help="another checkout of this repository")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--work", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    shape = Shape(arguments.topics, arguments.partitions)
    if arguments.work is not None:
        _work(arguments.work, shape)
        return 0
    here = Path(__file__).parents[2]
    checkouts = [here] if arguments.beside is None else [arguments.beside, here]
    measure_all(shape, checkouts, arguments.rounds)
    return 0


if __name__ == "__main__":
    sys.exit(main())
