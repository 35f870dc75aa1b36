"""Snapshots that outlive a cleaning."""

from __future__ import annotations

import pytest

from quorate.raft.messages import SnapshotInfo
from quorate.records.ids import Offset
from quorate.storage.retention import snapshots_to_keep
from tests.unit.storage.conftest import at

STORED = [SnapshotInfo(at(offset, 1), 10) for offset in (100, 200, 300)]


@pytest.mark.parametrize(
    ("retention_bytes", "replayed", "too_old", "kept"),
    [
        (-1, 999, (), (100, 200, 300)),
        (10_000, 999, (), (100, 200, 300)),
        (930, 999, (), (100, 200, 300)),  # 900 bytes of log and 30 of snapshots
        (929, 999, (), (200, 300)),
        (800, 999, (), (300,)),
        (0, 999, (), (300,)),  # one is always kept
        (0, 299, (), (200, 300)),  # never past what has been replayed
        (0, 199, (), (100, 200, 300)),
        (-1, 999, (100,), (200, 300)),
        (-1, 999, (100, 200, 300), (300,)),
        (-1, 999, (200,), (100, 200, 300)),  # oldest first, the first that is kept ends it
    ],
)
def test_by_size_then_by_age_one_at_least(
    retention_bytes: int, replayed: int, too_old: tuple[int, ...], kept: tuple[int, ...]
) -> None:
    remaining = snapshots_to_keep(
        STORED,
        replayed=Offset(replayed),
        retention_bytes=retention_bytes,
        log_bytes_from=lambda offset: 1000 - offset,
        is_too_old=lambda info: info.snapshot_id.offset in too_old,
    )
    assert tuple(info.snapshot_id.offset for info in remaining) == kept


def test_nothing_stored_is_nothing_to_clean() -> None:
    kept = snapshots_to_keep(
        [], replayed=Offset(9), retention_bytes=0, log_bytes_from=int, is_too_old=bool
    )
    assert list(kept) == []
