"""What storage raises is one family, so that a caller can stop on all of it."""

from __future__ import annotations

from quorate.storage.errors import DamagedLogError, DamagedSnapshotError, StorageError


def test_damage_is_a_storage_error() -> None:
    assert issubclass(DamagedLogError, StorageError)
    assert issubclass(DamagedSnapshotError, StorageError)
