"""Logs of stock Kafka, replayed, give the images of stock's own snapshots and lose no row."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pytest

from quorate.controller.features.levels import METADATA_VERSION
from quorate.controller.image import LogPosition, MetadataImage
from quorate.controller.replay import Replayer
from quorate.controller.snapshot import SnapshotLoader, snapshot_records, snapshot_slices
from quorate.records.batch import iter_batches, read_records
from quorate.records.ids import Epoch, Offset
from quorate.records.metadata import (
    BeginTransactionRecord,
    MetadataRecord,
    ProducerIdsRecord,
    RegisterBrokerRecord,
    decode_record,
)

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True)
class Batch:
    base_offset: Offset
    position: LogPosition
    records: tuple[MetadataRecord, ...]


def batches_of(path: Path) -> list[Batch]:
    data = path.read_bytes()
    return [
        Batch(
            base_offset=Offset(header.base_offset),
            position=LogPosition(
                Offset(header.last_offset + 1), Epoch(header.epoch), header.max_timestamp_ms
            ),
            records=()
            if header.is_control
            else tuple(
                decode_record(record.value or b"")[0]
                for record in read_records(data, position, header)
            ),
        )
        for position, header in iter_batches(data)
    ]


def replay_batch(replayer: Replayer, batch: Batch) -> None:
    replayer.replay(batch.records, base_offset=batch.base_offset, position=batch.position)


def log_of(folder: Path) -> list[Batch]:
    return [batch for path in sorted(folder.glob("*.log")) for batch in batches_of(path)]


def images_of(batches: list[Batch], start: MetadataImage | None = None) -> dict[int, MetadataImage]:
    """The image at the end of every batch, by end offset."""
    replayer = Replayer(start or MetadataImage())
    images: dict[int, MetadataImage] = {}
    for batch in batches:
        if batch.base_offset >= replayer.end_offset:
            replay_batch(replayer, batch)
            images[batch.position.end_offset] = replayer.image
    return images


def checkpoints_of(folder: Path) -> list[tuple[Path, LogPosition]]:
    found = []
    for path in sorted(folder.glob("*.checkpoint")):
        end_offset, epoch = map(int, path.stem.split("-"))
        if end_offset:
            found.append((path, LogPosition(Offset(end_offset), Epoch(epoch), 0)))
    return found


def load(path: Path, position: LogPosition) -> MetadataImage:
    loader = SnapshotLoader(position)
    for batch in batches_of(path):
        loader.add(batch.records)
    return loader.finish()


def comparable(record: MetadataRecord) -> MetadataRecord:
    """The record without what stock leaves to chance, or out, in its snapshots."""
    if isinstance(record, RegisterBrokerRecord):
        return replace(
            record,
            end_points=tuple(sorted(record.end_points, key=repr)),
            features=tuple(sorted(record.features, key=repr)),
        )
    if isinstance(record, ProducerIdsRecord):
        return replace(record, broker_id=-1, broker_epoch=-1)
    return record


@pytest.fixture(params=["dynamic", "segments", "upgraded"])
def folders(kafka_fixtures: Path, request: pytest.FixtureRequest) -> list[Path]:
    """The metadata folders of every node of one quorum of stock Kafka."""
    found = sorted((kafka_fixtures / request.param).glob("**/__cluster_metadata-0"))
    assert found
    return found


def test_a_log_from_its_start_gives_the_image_that_stocks_snapshot_holds(
    kafka_fixtures: Path,
) -> None:
    compared = 0
    for folder in sorted((kafka_fixtures / "dynamic").glob("**/__cluster_metadata-0")):
        log = log_of(folder)
        if log[0].base_offset:
            continue
        images = images_of(log)
        for path, position in checkpoints_of(folder):
            image = images[position.end_offset]
            assert load(path, image.position) == image
            stock = Counter(
                comparable(record) for batch in batches_of(path) for record in batch.records
            )
            assert Counter(map(comparable, snapshot_records(image))) == stock
            compared += 1
    assert compared >= 6


def test_a_snapshot_and_the_rest_of_the_log_give_what_the_whole_log_gives(
    folders: list[Path],
) -> None:
    for folder in folders:
        log = log_of(folder)
        ends = [
            images_of(log, load(path, position))[log[-1].position.end_offset]
            for path, position in checkpoints_of(folder)
            if position.end_offset < log[-1].position.end_offset
        ]
        if not log[0].base_offset:
            ends.append(images_of(log)[log[-1].position.end_offset])
        assert ends
        assert all(end == ends[0] for end in ends)
        assert ends[0].topics.by_id or "segments" in folder.parts


def test_our_snapshot_of_every_fixture_loads_as_the_same_image(folders: list[Path]) -> None:
    for folder in folders:
        log = log_of(folder)
        checkpoints = checkpoints_of(folder)
        start = load(*checkpoints[0]) if log[0].base_offset else None
        image = images_of(log, start)[log[-1].position.end_offset]
        loader = SnapshotLoader(image.position)
        for values in snapshot_slices(image):
            loader.add([decode_record(value)[0] for value in values])
        assert loader.finish() == image


def test_a_log_cut_inside_its_bootstrap_transaction_shows_nothing_of_it(
    kafka_fixtures: Path,
) -> None:
    """Stock writes its bootstrap metadata as one transaction; before its end there is none."""
    log = log_of(kafka_fixtures / "dynamic" / "node-1" / "__cluster_metadata-0")
    first = next(batch for batch in log if batch.records)
    assert isinstance(first.records[0], BeginTransactionRecord)
    replayer = Replayer(MetadataImage())
    for batch in log[: log.index(first)]:
        replay_batch(replayer, batch)
    cut_at = Offset(first.position.end_offset - 1)
    before_cut = replace(first.position, end_offset=cut_at)
    replayer.replay(first.records[:-1], base_offset=first.base_offset, position=before_cut)
    assert replayer.is_in_transaction
    assert replayer.image.position.end_offset == first.base_offset
    assert not replayer.image.features
    replayer.replay(first.records[-1:], base_offset=cut_at, position=first.position)
    assert not replayer.is_in_transaction
    assert replayer.image == images_of(log)[first.position.end_offset]
    assert METADATA_VERSION in replayer.image.features
