"""kafka-dump-log and kafka-metadata-shell on a generated week.

Part of it are records of requests that our controllers do not take yet, made as a stock controller
makes them: stock itself has to follow them.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from quorate.controller.image import LogPosition, MetadataImage
from quorate.controller.replay import Replayer
from quorate.records.batch import iter_batches, read_records
from quorate.records.ids import Epoch, Offset
from quorate.records.metadata import decode_record
from quorate.sim.log_generator.generator import generate
from quorate.sim.log_generator.options import WeekOptions
from tests.interop.comparison import content, healthy_files, messages, ours, said_of
from tests.interop.metadata_shell import show

if TYPE_CHECKING:
    from pathlib import Path

    from tests.interop.stock_kafka import StockKafka

OPTIONS = WeekOptions(
    seed=5, days=1, brokers=4, topics=6, records=1500, segment_bytes=50_000, snapshot_bytes=50_000
)


@pytest.fixture(scope="module")
def log_dir(stock: StockKafka, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log directory that is made only for tests that read it."""
    del stock
    folder = tmp_path_factory.mktemp("week") / "node"
    generate(str(folder), OPTIONS, lambda _count, _ms: None)
    return folder / "__cluster_metadata-0"


@pytest.fixture(scope="module")
def whole_log(log_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All segments in one file, since the shell reads one."""
    logs = sorted(log_dir.glob("*.log"))
    assert len(logs) > 2
    whole = tmp_path_factory.mktemp("whole") / logs[0].name
    whole.write_bytes(b"".join(log.read_bytes() for log in logs))
    return whole


def image_of(log: Path) -> MetadataImage:
    replayer = Replayer(MetadataImage())
    data = log.read_bytes()
    for position, header in iter_batches(data):
        values = () if header.is_control else read_records(data, position, header)
        end = LogPosition(Offset(header.last_offset + 1), Epoch(header.epoch), 0)
        records = [decode_record(record.value or b"")[0] for record in values]
        replayer.replay(records, base_offset=Offset(header.base_offset), position=end)
    return replayer.image


def without_our_field(line: str) -> str:
    """The line without the field of decommissioned brokers, which stock does not know."""
    return re.sub(r',"decommissioned":\[[^]]*\]', "", line)


def test_both_dump_the_same_of_every_file(stock: StockKafka, log_dir: Path) -> None:
    files = sorted([*log_dir.glob("*.log"), *log_dir.glob("*.checkpoint")])
    mine = [without_our_field(line) for line in ours(*files)]
    said = stock.dump_log(*files)
    assert mine == content(said.stdout)
    assert len(mine) > 1000


def test_dump_log_says_nothing_that_it_does_not_say_of_its_own_files(
    stock: StockKafka, log_dir: Path, kafka_fixtures: Path
) -> None:
    ordinary = said_of(stock.dump_log(*healthy_files(kafka_fixtures)))
    said = stock.dump_log(*sorted(log_dir.glob("*.log")))
    assert said.status == 0
    assert said_of(said) - ordinary == set()
    assert len(content(said.stdout)) > 1000


def test_stock_follows_every_change_of_a_partition(stock: StockKafka, whole_log: Path) -> None:
    shown = show(stock, whole_log)
    # The shell says so of its own logs, too: it has no use for control records.
    useless = re.compile("Ignoring control record with type KRAFT_(VERSION|VOTERS)")
    errors = [message for message in messages(shown.messages) if "ERROR" in message]
    assert [message for message in errors if not useless.search(message)] == []
    image = image_of(whole_log)
    checked = 0
    for topic in image.topics.by_id.values():
        under = f"/image/topics/byName/{topic.name}"
        for partition_id, partition in image.topics.partitions_of(topic.topic_id):
            text = shown.image[f"{under}/{partition_id}"]
            for name, value in (
                ("replicas", list(partition.replicas)),
                ("isr", list(partition.isr)),
                ("removingReplicas", list(partition.removing_replicas)),
                ("addingReplicas", list(partition.adding_replicas)),
                ("leader", partition.leader),
                ("leaderEpoch", partition.leader_epoch),
                ("partitionEpoch", partition.partition_epoch),
            ):
                wanted = rf"\b{name}={re.escape(str(value))}[,)]"
                assert re.search(wanted, text), (topic.name, partition_id, name, value, text)
            checked += 1
    assert checked == image.topics.partition_count > 20
    found = {path.split("/")[4] for path in shown.image if "/topics/byName/" in path}
    assert found == {topic.name for topic in image.topics.by_id.values()}
    acls = [path for path in shown.image if path.startswith("/image/acls/")]
    assert len(acls) > 5
