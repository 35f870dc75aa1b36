"""What a damaged voter remembers."""

from __future__ import annotations

import pytest

from quorate.records.ids import NodeId, ReplicaKey
from quorate.storage.errors import StorageError
from quorate.storage.files import write_atomically
from quorate.storage.healing import Healing, encode_healing, read_healing, write_healing

from .conftest import THREE, Replica, at

PATH = "/data/healing"
KEYS = (*(v.key for v in THREE), ReplicaKey(NodeId(9)))


@pytest.mark.parametrize(
    "healing",
    [Healing(at(10, 2), KEYS), Healing(abstains=True), Healing(at(1, 1), (), abstains=True)],
)
def test_what_is_remembered_is_durable(healing: Healing) -> None:
    disk = Replica().disk
    write_healing(disk, PATH, healing)
    assert disk.first_unsafe("/data", "healing") is None
    assert read_healing(disk, PATH) == healing


def test_the_file_goes_when_there_is_nothing_to_remember() -> None:
    disk = Replica().disk
    write_healing(disk, PATH, Healing(at(10, 2), KEYS))
    write_healing(disk, PATH, Healing())
    assert not disk.exists(PATH)
    assert read_healing(disk, PATH) == Healing()


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{}",
        encode_healing(Healing(at(1, 1))).replace(b'"version": 1', b'"version": 2'),
        encode_healing(Healing(at(1, 1))).replace(b'"offset": 1', b'"offset": "x"'),
    ],
)
def test_a_malformed_file_is_refused(data: bytes) -> None:
    disk = Replica().disk
    write_atomically(disk, PATH, data)
    with pytest.raises(StorageError, match=r"/data/healing: malformed.*restore it"):
        read_healing(disk, PATH)
