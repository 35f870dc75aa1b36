"""Weeks as they come out, read back as an analysis would read them."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

import pytest

from quorate.controller.image import LogPosition, MetadataImage
from quorate.controller.partitions.partition import UNASSIGNED_DIR
from quorate.controller.replay import Replayer
from quorate.controller.snapshot import SnapshotLoader
from quorate.records.batch import BatchHeader, iter_batches, read_records
from quorate.records.control import (
    ControlRecord,
    KRaftVersion,
    KRaftVoters,
    LeaderChange,
    control_records,
)
from quorate.records.ids import Epoch, NodeId, Offset, ReplicaKey, TopicId
from quorate.records.metadata import (
    BrokerRegistrationChangeRecord,
    MetadataRecord,
    PartitionChangeRecord,
    PartitionRecord,
    decode_record,
)
from quorate.sim.log_generator.generator import generate
from quorate.sim.log_generator.options import DAY_MS, START_MS, WeekOptions
from quorate.storage.file_system import OsFileSystem
from quorate.storage.meta_properties import read_meta
from quorate.storage.recovery.recovery import recover
from quorate.storage.storage_config import StorageConfig

if TYPE_CHECKING:
    from pathlib import Path

    from quorate.storage.recovery.recovery import Recovered

Batch: TypeAlias = tuple[BatchHeader, list[MetadataRecord], tuple[ControlRecord, ...]]

SMALL = WeekOptions(seed=11, brokers=6, topics=8, records=4000, snapshot_bytes=60_000)
SEGMENTED = WeekOptions(
    seed=12, days=1, brokers=4, topics=4, records=1500, segment_bytes=20_000, snapshot_bytes=20_000
)
QUORUM = WeekOptions(
    seed=3, days=1, brokers=4, topics=6, records=2500, voters=3, snapshot_bytes=30_000
)


def write(folder: Path, options: WeekOptions) -> Path:
    generate(str(folder), options, lambda _count, _ms: None)
    return folder


@pytest.fixture(scope="module")
def week(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("week") / "node", SMALL)


@pytest.fixture(scope="module")
def segmented(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("segmented") / "node", SEGMENTED)


@pytest.fixture(scope="module")
def batches(week: Path) -> list[Batch]:
    return batches_of(week)


def batches_of(folder: Path) -> list[Batch]:
    found: list[Batch] = []
    for log in sorted((folder / "__cluster_metadata-0").glob("*.log")):
        data = log.read_bytes()
        for position, header in iter_batches(data):
            controls = control_records(data, position, header)
            values = () if controls else read_records(data, position, header)
            records = [decode_record(record.value or b"")[0] for record in values]
            found.append((header, records, controls))
    return found


def opened(folder: Path) -> Recovered:
    """The directory as a controller opens it; it has nothing to complain of."""
    fs = OsFileSystem()
    meta = read_meta(fs, str(folder / "meta.properties"))
    assert meta is not None
    recovered = recover(fs, str(folder), StorageConfig(node_id=meta.node_id))
    assert recovered.findings == ()
    assert not recovered.is_damaged
    return recovered


def bytes_of(folder: Path) -> dict[str, bytes]:
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def replayed(batches: list[Batch]) -> MetadataImage:
    replayer = Replayer(MetadataImage())
    for header, records, _ in batches:
        end = LogPosition(
            Offset(header.last_offset + 1), Epoch(header.epoch), header.max_timestamp_ms
        )
        replayer.replay(records, base_offset=Offset(header.base_offset), position=end)
    return replayer.image


def test_offsets_have_no_gap_and_neither_epochs_nor_times_go_back(batches: list[Batch]) -> None:
    offset = epoch = 0
    time_ms = START_MS
    for header, _, _ in batches:
        assert header.base_offset == offset
        assert header.epoch >= epoch
        assert header.max_timestamp_ms >= time_ms
        offset, epoch, time_ms = header.last_offset + 1, header.epoch, header.max_timestamp_ms
    assert START_MS + 6 * DAY_MS < time_ms < START_MS + 7 * DAY_MS


def test_about_as_many_records_come_out_as_were_wished_for(batches: list[Batch]) -> None:
    count = batches[-1][0].last_offset + 1
    assert 0.9 * 4000 < count < 1.3 * 4000


def test_an_epoch_begins_with_its_leader_and_several_lead(batches: list[Batch]) -> None:
    epoch = 0
    leaders = []
    for header, _, controls in batches:
        begins = [record for record in controls if isinstance(record, LeaderChange)]
        assert (header.epoch > epoch) == bool(begins)
        epoch = header.epoch
        leaders += begins
    assert len(leaders) >= 6
    assert len({change.leader_id for change in leaders}) >= 3
    for change in leaders:
        assert change.leader_id in change.granting_voters
        assert set(change.granting_voters) <= set(change.voters)
        assert len(change.granting_voters) > len(change.voters) // 2


def test_voters_come_go_change_their_disk_and_their_address(batches: list[Batch]) -> None:
    controls = [record for _, _, records in batches for record in records]
    assert [r.kraft_version for r in controls if isinstance(r, KRaftVersion)] == [1]
    sets = [record.voters for record in controls if isinstance(record, KRaftVoters)]
    ids = [[voter.key.node_id for voter in voters] for voters in sets]
    assert ids == [[1, 2, 3], [1, 2, 3, 4], [2, 3, 4], [3, 4], [2, 3, 4], [2, 3, 4]]
    first, last = sets[0].by_id(NodeId(2)), sets[-1].by_id(NodeId(2))
    assert first is not None
    assert last is not None
    assert first.key.directory_id != last.key.directory_id
    assert sets[-1].by_id(NodeId(4)) != sets[-2].by_id(NodeId(4))


def test_records_of_every_kind_are_there(batches: list[Batch]) -> None:
    kinds = Counter(type(record).__name__ for _, records, _ in batches for record in records)
    assert set(kinds) >= {
        "AccessControlEntryRecord",
        "BrokerRegistrationChangeRecord",
        "ClientQuotaRecord",
        "ConfigRecord",
        "DelegationTokenRecord",
        "FeatureLevelRecord",
        "PartitionChangeRecord",
        "PartitionRecord",
        "ProducerIdsRecord",
        "RegisterBrokerRecord",
        "RegisterControllerRecord",
        "RemoveAccessControlEntryRecord",
        "RemoveDelegationTokenRecord",
        "RemoveTopicRecord",
        "RemoveUserScramCredentialRecord",
        "TopicRecord",
        "UnregisterBrokerRecord",
        "UserScramCredentialRecord",
    }


def test_partitions_change_in_every_way(batches: list[Batch]) -> None:
    """ISRs that shrink and grow, leaders that change, replicas that move and have moved."""
    image = MetadataImage()
    ways: Counter[str] = Counter()
    replayer = Replayer(image)
    for header, records, _ in batches:
        image = replayer.image
        for record in records:
            if not isinstance(record, PartitionChangeRecord):
                continue
            old = image.topics.partition(record.topic_id, record.partition_id)
            if old is None or old.partition_epoch < 0:
                continue
            if record.isr is not None:
                ways["shrinks" if len(record.isr) < len(old.isr) else "grows"] += 1
            ways["leader changes"] += record.leader >= 0
            ways["offline"] += record.leader == -1
            ways["begins to move"] += bool(record.adding_replicas)
            ways["has moved"] += record.adding_replicas == ()
        end = LogPosition(Offset(header.last_offset + 1), Epoch(header.epoch), 0)
        replayer.replay(records, base_offset=Offset(header.base_offset), position=end)
    assert min(ways.values()) > 0, ways
    assert len(ways) == 6, ways


def test_no_partition_is_ever_as_it_could_not_be(batches: list[Batch]) -> None:
    """A leader is in sync, replicas in sync are assigned, a dead broker soon leaves each ISR."""
    replayer = Replayer(MetadataImage())
    changed = 0
    for header, records, _ in batches:
        end = LogPosition(Offset(header.last_offset + 1), Epoch(header.epoch), 0)
        replayer.replay(records, base_offset=Offset(header.base_offset), position=end)
        for record in records:
            if not isinstance(record, PartitionRecord | PartitionChangeRecord):
                continue
            topic_id = TopicId(record.topic_id)
            if topic_id not in replayer.image.topics.by_id:
                continue
            partition = replayer.image.topics.partition(topic_id, record.partition_id)
            assert partition is not None
            assert len(set(partition.replicas)) == len(partition.replicas)
            assert set(partition.isr) <= set(partition.replicas)
            assert partition.isr
            assert partition.leader == -1 or partition.leader in partition.isr
            assert set(partition.adding_replicas) <= set(partition.replicas)
            assert UNASSIGNED_DIR not in partition.directories
            changed += 1
    assert changed > 2000
    image = replayer.image
    for topic in image.topics.by_id.values():
        for partition_id, partition in image.topics.partitions_of(topic.topic_id):
            is_fine = set(partition.isr) <= image.brokers.active or partition.leader == -1
            assert is_fine, (topic.name, partition_id, partition)


def test_brokers_flap_and_shut_down_in_order(batches: list[Batch]) -> None:
    fenced: Counter[int] = Counter()
    orderly = 0
    for _, records, _ in batches:
        for record in records:
            if isinstance(record, BrokerRegistrationChangeRecord):
                fenced[record.broker_id] += record.fenced == 1
                orderly += record.in_controlled_shutdown
    assert max(fenced.values()) >= 6
    assert orderly >= 2 * SMALL.brokers - 2


def test_our_storage_opens_it_without_a_word(week: Path, batches: list[Batch]) -> None:
    recovered = opened(week)
    header = batches[-1][0]
    assert recovered.state.end.offset == header.last_offset + 1
    assert recovered.state.end.epoch == header.epoch
    election = recovered.state.election
    assert election is not None
    assert election.leader_id is not None
    assert recovered.meta.node_id == 3
    recovered.log.close()


def test_snapshots_are_the_state_at_their_offsets(week: Path, batches: list[Batch]) -> None:
    recovered = opened(week)
    stored = [info.snapshot_id for info in recovered.snapshots.stored()]
    recovered.log.close()
    taken = [snapshot_id for snapshot_id in stored if snapshot_id.offset > 0]
    assert len(taken) >= 3
    for snapshot_id in (taken[0], taken[-1]):
        content = recovered.snapshots.content(snapshot_id)
        time_ms = next(
            h.max_timestamp_ms for h, _, _ in batches if h.last_offset + 1 == snapshot_id.offset
        )
        loader = SnapshotLoader(LogPosition(snapshot_id.offset, snapshot_id.epoch, time_ms))
        loader.add([decode_record(value)[0] for value in content.records])
        below = [batch for batch in batches if batch[0].last_offset < snapshot_id.offset]
        assert loader.finish() == replayed(below)


def test_the_same_seed_gives_the_same_bytes_and_another_one_does_not(
    segmented: Path, tmp_path: Path
) -> None:
    one = bytes_of(segmented)
    assert len(one) > 8
    assert bytes_of(write(tmp_path / "two", SEGMENTED)) == one
    other = bytes_of(write(tmp_path / "other", replace(SEGMENTED, seed=13)))
    assert other.keys() >= {"meta.properties"}
    assert all(other.get(name) != data for name, data in one.items() if name.endswith(".log"))


def test_what_retention_does_not_keep_is_gone(segmented: Path, tmp_path: Path) -> None:
    cleaned = write(tmp_path / "cleaned", replace(SEGMENTED, retention_bytes=60_000))
    names = {path.name for path in (cleaned / "__cluster_metadata-0").iterdir()}
    all_names = {path.name for path in (segmented / "__cluster_metadata-0").iterdir()}
    assert len(all_names - names) >= 3
    assert names < all_names
    assert f"{0:020d}.log" in all_names - names
    recovered = opened(cleaned)
    assert recovered.state.log_start > 0
    recovered.log.close()


def test_voters_agree_on_what_is_committed_and_differ_in_what_they_have(tmp_path: Path) -> None:
    root = write(tmp_path / "quorum", QUORUM)
    folders = sorted(root.iterdir())
    assert [folder.name for folder in folders] == ["2", "3", "4"]
    logs = {}
    for folder in folders:
        recovered = opened(folder)
        recovered.log.close()
        assert recovered.meta.node_id == int(folder.name)
        voters = recovered.state.voters[-1].voters
        assert ReplicaKey(recovered.meta.node_id, recovered.meta.directory_id) in voters
        assert len(voters) == 3
        logs[folder.name] = batches_of(folder)
    starts = {name: log[0][0].base_offset for name, log in logs.items()}
    assert starts["3"] == 0 < starts["4"] < starts["2"]
    whole = {batch[0].base_offset: batch for batch in logs["3"]}
    assert logs["4"] == [whole[header.base_offset] for header, *_ in logs["4"]]
    assert logs["4"][-1] == logs["3"][-1]
    *agreed, alone = logs["2"]
    assert agreed == [whole[header.base_offset] for header, *_ in agreed]
    # It died with what it had just decided, and where that lies its successor began its epoch.
    mine, theirs = alone[0], whole[alone[0].base_offset][0]
    assert theirs.is_control
    assert not mine.is_control
    assert theirs.epoch == mine.epoch + 1
    assert theirs.base_offset < logs["3"][-1][0].base_offset
