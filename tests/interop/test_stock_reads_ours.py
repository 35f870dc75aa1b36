"""kafka-dump-log and kafka-metadata-shell on the files of a quorum of ours.

They show every record that we show, the image that our leader described, and complain of nothing of
which they do not complain in files of their own.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from quorate.records.batch import encode_batch, iter_batches, read_records
from quorate.records.control import (
    KRaftVersion,
    KRaftVoters,
    LeaderChange,
    encode_control_batch,
)
from quorate.records.ids import DirectoryId, NodeId, ReplicaKey, format_uuid
from quorate.records.metadata import PartitionRecord, decode_record, encode_record
from quorate.records.voters import Endpoint, Voter, VoterSet
from tests.interop.comparison import content, differences, healthy_files, messages, ours, said_of
from tests.interop.metadata_shell import show
from tests.interop.our_files import ALL_BROKERS, GOING, make_files

if TYPE_CHECKING:
    from pathlib import Path

    from quorate.controller.client_quotas.messages import DescribedEntity
    from tests.interop.metadata_shell import Image
    from tests.interop.our_files import OurFiles
    from tests.interop.stock_kafka import StockKafka


@pytest.fixture(scope="module")
def files(stock: StockKafka, tmp_path_factory: pytest.TempPathFactory) -> OurFiles:
    """Files that are made only for tests that read them."""
    return make_files(tmp_path_factory.mktemp("ours") / "quorum")


@pytest.fixture(scope="module")
def whole_log(files: OurFiles, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All segments of controller 1 in one file, since the shell reads one."""
    logs = files.logs(files.plan.nodes[0])
    assert len(logs) > 2
    whole = tmp_path_factory.mktemp("whole") / logs[0].name
    whole.write_bytes(b"".join(log.read_bytes() for log in logs))
    return whole


@pytest.fixture(scope="module")
def image(stock: StockKafka, whole_log: Path) -> Image:
    """The metadata at the end of our log, as stock reads it."""
    return show(stock, whole_log).image


def has_metadata(path: Path) -> bool:
    return any(not header.is_control for _, header in iter_batches(path.read_bytes()))


def test_both_dump_the_same_of_every_file(stock: StockKafka, files: OurFiles) -> None:
    for node in files.plan.nodes:
        assert differences(stock, *files.logs(node), *files.checkpoints(node)) == []


def test_the_files_hold_records_of_every_kind_that_we_write(files: OurFiles) -> None:
    """Otherwise the comparison above says little."""
    node = files.plan.nodes[0]
    shown = "\n".join(ours(*files.logs(node), *files.checkpoints(node)))
    assert set(re.findall(r'"type":"([A-Z_]+)"', shown)) == {
        "BROKER_REGISTRATION_CHANGE_RECORD",
        "CLIENT_QUOTA_RECORD",
        "CONFIG_RECORD",
        "FEATURE_LEVEL_RECORD",
        "PARTITION_CHANGE_RECORD",
        "PARTITION_RECORD",
        "REGISTER_BROKER_RECORD",
        "REMOVE_TOPIC_RECORD",
        "TOPIC_RECORD",
        "UNREGISTER_BROKER_RECORD",
    }
    controls = r"(LeaderChange|KRaftVersion|KRaftVoters|SnapshotHeader|SnapshotFooter):? ?\{"
    assert len(set(re.findall(controls, shown))) == 5


def test_dump_log_says_nothing_that_it_does_not_say_of_its_own_files(
    stock: StockKafka, files: OurFiles, kafka_fixtures: Path
) -> None:
    ordinary = said_of(stock.dump_log(*healthy_files(kafka_fixtures)))
    for node in files.plan.nodes:
        said = stock.dump_log(*files.logs(node), *files.checkpoints(node))
        assert said.status == 0
        assert said_of(said) - ordinary == set()
        assert len(content(said.stdout)) > 100


def test_the_shell_reads_the_log_and_every_checkpoint_and_says_nothing_unusual(
    stock: StockKafka, files: OurFiles, whole_log: Path, kafka_fixtures: Path
) -> None:
    """A segment from the middle of a log is not an image: it changes what is not in it."""
    folder = kafka_fixtures / "dynamic" / "node-3" / "__cluster_metadata-0"
    ordinary: set[str] = set()
    for path in sorted(folder.iterdir()):
        if path.suffix in (".log", ".checkpoint") and has_metadata(path):
            ordinary |= messages(show(stock, path).messages)
    node = files.plan.nodes[0]
    for path in (whole_log, *files.checkpoints(node)):
        if has_metadata(path):
            shown = show(stock, path)
            assert messages(shown.messages) - ordinary == set(), path
            assert shown.image["/image/features/metadataVersion"] == "Optional[4.3-IV0]"


def topic_problems(files: OurFiles, image: Image) -> list[str]:
    """Differences of stock's image of the topics from what our leader said of them."""
    found = {path.split("/")[4] for path in image if path.startswith("/image/topics/byName/")}
    problems = sorted(found ^ {topic.name for topic in files.topics})
    for topic in files.topics:
        under = f"/image/topics/byName/{topic.name}"
        wanted = {f"{under}/id": format_uuid(topic.topic_id or b""), f"{under}/name": topic.name}
        problems += [f"{path}: {image.get(path)}" for path in wanted if image[path] != wanted[path]]
        if sum(path.startswith(f"{under}/") for path in image) != len(topic.partitions) + 2:
            problems.append(f"{under} has not {len(topic.partitions)} partitions")
        for partition in topic.partitions:
            text = image[f"{under}/{partition.partition}"]
            for name, value in (
                ("replicas", list(partition.replicas)),
                ("isr", list(partition.isr)),
                ("leader", partition.leader),
                ("leaderEpoch", partition.leader_epoch),
                ("partitionEpoch", partition.partition_epoch),
            ):
                if not re.search(rf"\b{name}={re.escape(str(value))}[,)]", text):
                    problems.append(f"{under}/{partition.partition}: not {name}={value}: {text}")
    return problems


def test_stock_reads_the_topics_that_our_leader_described(files: OurFiles, image: Image) -> None:
    assert len(files.topics) > 15
    assert topic_problems(files, image) == []


def with_one_byte_changed(log: Path, folder: Path) -> Path:
    """The log with another leader in one partition of `orders`, and a checksum that fits."""
    data = log.read_bytes()
    for position, header in iter_batches(data):
        values = [record.value or b"" for record in read_records(data, position, header)]
        for at, value in enumerate(() if header.is_control else values):
            record, version = decode_record(value)
            if isinstance(record, PartitionRecord):
                wrong = replace(record, leader=record.leader ^ 1)
                values[at] = encode_record(wrong, version)
                assert sum(a != b for a, b in zip(value, values[at], strict=True)) == 1
                batch = encode_batch(
                    values,
                    timestamp_ms=header.base_timestamp_ms,
                    base_offset=header.base_offset,
                    epoch=header.epoch,
                )
                end = position + header.size_bytes
                assert position + len(batch) == end
                changed = folder / log.name
                changed.write_bytes(data[:position] + batch + data[end:])
                return changed
    raise AssertionError(f"{log} has no partition")


def test_one_byte_of_the_log_makes_another_image(
    stock: StockKafka, files: OurFiles, whole_log: Path, tmp_path: Path
) -> None:
    """Both tools dump the same of it: what was meant is what the leader said."""
    changed = with_one_byte_changed(whole_log, tmp_path)
    assert differences(stock, changed) == []
    (problem,) = topic_problems(files, show(stock, changed).image)
    assert "not leader=" in problem


def test_stock_reads_the_brokers_that_our_leader_listed(files: OurFiles, image: Image) -> None:
    found = {path.split("/")[4] for path in image if path.startswith("/image/cluster/brokers/")}
    assert found == {str(broker.broker_id) for broker in files.brokers}
    assert str(GOING) in found
    for broker in files.brokers:
        text = image[f"/image/cluster/brokers/{broker.broker_id}"]
        rack = "Optional.empty" if broker.rack is None else f"Optional[{broker.rack}]"
        for part in (
            f"epoch={broker.broker_epoch},",
            f"incarnationId={format_uuid(broker.incarnation_id)},",
            f"rack={rack},",
            f"fenced={str(broker.is_fenced).lower()},",
            f"inControlledShutdown={str(broker.in_controlled_shutdown).lower()},",
            *(f"host='{x.host}', port={x.port}" for x in broker.listeners),
            *(format_uuid(directory) for directory in broker.log_dirs),
        ):
            assert part in text, (part, text)


def test_stock_reads_the_configs_that_our_leader_described(files: OurFiles, image: Image) -> None:
    wanted = {
        f"/image/configs/TOPIC:{topic.name}/{name}": value
        for topic in files.topics
        for name, value in topic.configs
    }
    wanted |= {
        f"/image/configs/BROKER/{name}": value or ""
        for (resource, name), value in files.configs.items()
        if resource == ALL_BROKERS
    }
    found = {path: text for path, text in image.items() if path.startswith("/image/configs/")}
    assert found == wanted
    assert len(found) >= 3


def test_stock_reads_the_quotas_that_our_leader_described(files: OurFiles, image: Image) -> None:
    wanted = {
        f"/image/clientQuotas/{quota_path(described)}/{each.key}": each.value
        for described in files.quotas
        for each in described.values
    }
    found = {
        path: float(text) for path, text in image.items() if path.startswith("/image/clientQuotas/")
    }
    assert found == wanted
    assert len(found) >= 4


def quota_path(described: DescribedEntity) -> str:
    """`clientId(c)_user(u)`."""
    words = {"client-id": "clientId"}
    return "_".join(
        f"{words.get(part.entity_type, part.entity_type)}({part.entity_name})"
        for part in described.entity
    )


def test_stock_skips_what_is_ours_in_a_voter_set(stock: StockKafka, tmp_path: Path) -> None:
    """A decommissioned voter stands in a tagged field that stock does not know."""
    one, gone = (
        Voter(ReplicaKey(NodeId(i), DirectoryId(bytes([i]) * 16)), (Endpoint("GRPC", "h", 9094),))
        for i in (1, 2)
    )
    records = (
        LeaderChange(one.key.node_id, (one.key.node_id,), (one.key.node_id,)),
        KRaftVersion(1),
        KRaftVoters(VoterSet((one,), (gone.key,))),
    )
    log = tmp_path / "00000000000000000000.log"
    log.write_bytes(encode_control_batch(records, timestamp_ms=1, epoch=1))
    theirs = content(stock.dump_log(log).stdout)
    mine = ours(log)
    said = ',"decommissioned":[{"voterId":2,"voterDirectoryId":"AgICAgICAgICAgICAgICAg"}]'
    assert any(said in line for line in mine)
    assert [line.replace(said, "") for line in mine] == theirs
