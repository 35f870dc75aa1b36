"""A lake over the log of one week, with faults in between: each committed record exactly once.

What it has to hold follows from the bytes of the voters' directories, read by Kafka's definitions;
neither the product's source nor its decoder has a part in that.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC
from typing import TYPE_CHECKING, Final

from pyspark.errors import StreamingQueryException

from quorate.pipeline.jobs.ingest import DAMAGED, start_ingest
from quorate.sim.log_generator.generator import generate
from quorate.sim.log_generator.options import WeekOptions
from tests.chaos.disks import SmallDisk
from tests.lacking import lack
from tests.pipeline.growing import GrowingVoter, Kept, committed
from tests.pipeline.kafka_bytes import Definitions
from tests.pipeline.log_frames import clock_seed
from tests.pipeline.source.logs import flip

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

DISK_BYTES: Final = 96 << 20
BATCH: Final = 120
# A JVM starts on whatever machine this is.
DEADLINE_S: Final = 600.0


def week(root: Path, seed: int) -> list[Path]:
    """The directories of three voters after a week; the last leader's own tail is in one."""
    options = WeekOptions(
        seed=seed, days=7, brokers=4, topics=6, records=3000, voters=3, segment_bytes=32_768
    )
    generate(str(root), options, lambda *_: None)
    found = sorted(path.parent for path in root.rglob("meta.properties"))
    assert len(found) == 3
    return found


@dataclass
class Lake:
    """The output of `ingest` over three directories, and what it has to be."""

    spark: SparkSession
    voters: list[GrowingVoter]
    truth: dict[int, Kept]
    output: Path
    share: float = 0.0
    faults: list[str] = field(default_factory=list)

    def grow(self, share: float) -> None:
        """Every directory holds about this share of its log, and each a little more or less."""
        self.share = share
        for voter in self.voters:
            self.bring_back(voter)

    def bring_back(self, voter: GrowingVoter) -> None:
        """Make a directory what it would be without faults."""
        # No two have flushed the same bytes.
        voter.grow(self.size_of(voter))

    def size_of(self, voter: GrowingVoter) -> int:
        """The bytes that a directory has by now."""
        lag = self.voters.index(voter) * 97 if self.share < 1 else 0
        return max(int(self.share * voter.size_bytes) - lag, 1)

    def committed_end(self) -> int:
        """The offset up to which most of the directories hold whole batches by now."""
        ends = sorted(voter.end_at(self.size_of(voter)) for voter in self.voters)
        return min(ends[len(ends) // 2], max(self.truth) + 1)

    def ingest(self) -> str | None:
        """Take all that is there; the error that ended it."""
        stream = self.spark.readStream.format("kraft").option("path", self.paths())
        log = stream.option("maxOffsetsPerTrigger", BATCH).load()
        query = start_ingest(log, str(self.output), None, every_s=None)
        try:
            query.awaitTermination()
        except StreamingQueryException as error:
            return str(error)
        finally:
            query.stop()
        return None

    def paths(self) -> str:
        """The directories as the source takes them."""
        return ",".join(str(voter.path) for voter in self.voters)

    def notes(self, folder: str) -> int:
        """The number of batches that have begun, or are done, as the checkpoint notes."""
        return len(list((self.output / "_checkpoint" / folder).glob("[0-9]*")))

    def check(self, *, is_whole: bool) -> None:
        """Each record of the lake is committed and there once; all are there if it is whole."""
        table = self.spark.read.parquet(str(self.output))
        rows = table.where(table.record_type != DAMAGED).collect()
        offsets = [row.offset for row in rows]
        assert len(offsets) == len(set(offsets)), self.faults
        for row in rows:
            at = row.timestamp.astimezone(UTC)
            found = Kept(row.offset, row.leader_epoch, row.record_type, bytes(row.value), at)
            assert found == self.truth[row.offset], self.faults
            assert row.day == at.date(), self.faults
        if is_whole:
            assert set(offsets) >= set(range(self.committed_end())), self.faults


@contextmanager
def mounted(target: Path) -> Iterator[SmallDisk]:
    disk = SmallDisk(target, DISK_BYTES)
    try:
        yield disk
    finally:
        disk.unmount()


def test_a_lake_holds_each_committed_record_once_whatever_happens(
    spark: SparkSession, tmp_path: Path, kafka_fixtures: Path
) -> None:
    if os.geteuid() != 0:
        lack("a file system of its own is filled, and mounting one takes root: run it as root")
    draws = random.Random(clock_seed())
    whole = week(tmp_path / "whole", draws.randrange(1 << 30))
    voters = [GrowingVoter(path, tmp_path / "now" / path.name) for path in whole]
    truth = committed(voters, Definitions(kafka_fixtures / "schemas.json"))
    faults = {
        "a directory is taken away": taken_away,
        "the query is killed": killed,
        "a tail is truncated": truncated,
        "a bit flips": flipped,
        "the disk is full": full,
    }
    order = draws.sample(list(faults), len(faults))
    with mounted(tmp_path / "disk") as disk:
        lake = Lake(spark, voters, truth, tmp_path / "disk" / "lake")
        lake.grow(0.1)
        assert lake.ingest() is None
        lake.check(is_whole=True)
        for number, name in enumerate(order, 1):
            lake.faults.append(name)
            lake.grow((number + 1) / (len(order) + 2))
            faults[name](lake, draws, disk)
            for voter in voters:
                lake.bring_back(voter)
            assert lake.ingest() is None, lake.faults
            lake.check(is_whole=True)
        lake.grow(1)
        assert lake.ingest() is None
        lake.check(is_whole=True)
        installed_again(lake, week(tmp_path / "another", draws.randrange(1 << 30)))


def taken_away(lake: Lake, draws: random.Random, _: SmallDisk) -> None:
    """The mount of one voter's directory is gone for a while."""
    voter = draws.choice(lake.voters)
    aside = voter.path.with_name("aside")
    voter.path.rename(aside)
    error = lake.ingest()
    assert error is not None
    assert str(voter.path) in error
    aside.rename(voter.path)
    lake.check(is_whole=False)


def killed(lake: Lake, _: random.Random, __: SmallDisk) -> None:
    """The process is killed while a batch has begun and is not done."""
    words = [word for voter in lake.voters for word in ("--path", str(voter.path))]
    words += ["--master", "local[1]", "--output", str(lake.output), "--every-s", "1"]
    done = lake.notes("commits")
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "quorate.cli.main", "pipeline", "ingest", *words),
            *("--max-offsets-per-batch", str(BATCH)),
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        deadline = time.monotonic() + DEADLINE_S
        while lake.notes("offsets") <= done + 1 and time.monotonic() < deadline:
            if process.poll() is not None:
                break
            time.sleep(0.02)
        has_begun = lake.notes("offsets") > done + 1
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        said, _unused = process.communicate()
    assert has_begun, said.decode(errors="replace")[-4000:]
    lake.check(is_whole=False)


def truncated(lake: Lake, draws: random.Random, _: SmallDisk) -> None:
    """One voter led alone: what it wrote is there for a while, and then is not."""
    voter = draws.choice(lake.voters)
    voter.diverge(lake.size_of(voter))
    assert lake.ingest() is None
    lake.check(is_whole=False)


def flipped(lake: Lake, draws: random.Random, _: SmallDisk) -> None:
    """A bit of what is to be read has flipped on one disk; no other has."""
    voter = draws.choice(lake.voters)
    read = lake.spark.read.parquet(str(lake.output)).count()
    low = next(place.end for place in voter.places if place.base >= read)
    file, position = voter.file_at(draws.randrange(low, lake.size_of(voter)))
    flip(file, position, draws.randrange(8))
    lake.ingest()
    lake.check(is_whole=False)


def full(lake: Lake, _: random.Random, disk: SmallDisk) -> None:
    """The disk of the output has no room."""
    disk.fill()
    error = lake.ingest()
    assert error is not None
    assert "No space left on device" in error
    disk.drain()
    lake.check(is_whole=False)


def installed_again(lake: Lake, others: list[Path]) -> None:
    """Another cluster's directories are in the same places."""
    before = lake.spark.read.parquet(str(lake.output)).count()
    for voter, other in zip(lake.voters, others, strict=True):
        shutil.rmtree(voter.path)
        shutil.copytree(other, voter.path)
    error = lake.ingest()
    assert error is not None
    assert "cluster" in error
    assert lake.spark.read.parquet(str(lake.output)).count() == before
