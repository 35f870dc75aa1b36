"""The rival of an only voter, as it stands in a directory."""

from __future__ import annotations

import pytest

from quorate.raft.api import SaveRival
from quorate.raft.rival import Rival
from quorate.records.ids import Epoch, NodeId
from quorate.storage.errors import StorageError
from quorate.storage.files import write_atomically
from quorate.storage.rival import read_rival, write_rival

from .conftest import DIRECTORY, Replica

PATH = "/data/rival"
RIVAL = Rival(leader_id=NodeId(4), epoch=Epoch(7), host="node-4.example", port=9094)


def test_a_rival_is_durable() -> None:
    disk = Replica().disk
    write_rival(disk, PATH, RIVAL)
    assert disk.first_unsafe("/data", "rival") is None
    assert read_rival(disk, PATH) == RIVAL


def test_a_directory_without_the_file_has_no_rival() -> None:
    assert read_rival(Replica().disk, PATH) is None


@pytest.mark.parametrize("content", [b"", b"{}", b'{"version": 2}', b"[1]", b'{"version": 1}'])
def test_a_malformed_file_is_refused_with_the_remedy(content: bytes) -> None:
    disk = Replica().disk
    write_atomically(disk, PATH, content)
    with pytest.raises(StorageError, match="quorate storage recover"):
        read_rival(disk, PATH)


def test_rule_34_a_directory_comes_back_with_its_rival() -> None:
    replica = Replica()
    replica.write_history()
    assert replica.open().state.rival is None
    replica.store.save_rival(SaveRival(RIVAL))
    assert replica.disk.first_unsafe(DIRECTORY, "rival") is None
    assert replica.open().state.rival == RIVAL
