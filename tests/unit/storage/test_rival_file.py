"""The rival of an only voter, as it stands in a directory."""

from __future__ import annotations

from dataclasses import replace

import pytest

from quorate.raft.api import SaveRival
from quorate.raft.identity.rival_leader import Rival
from quorate.records.ids import ClusterId, DirectoryId, Epoch, NodeId
from quorate.storage.errors import StorageError
from quorate.storage.file_system import remove_durably, write_atomically
from quorate.storage.formatter import Formatting, format_directory
from quorate.storage.log_store import LogStore
from quorate.storage.meta_properties import MetaProperties
from quorate.storage.rival_file import RememberedRival, read_rival, write_rival
from tests.unit.storage.conftest import ALONE, CLUSTER_ID, DIRECTORY, LOG_DIR, Replica

PATH = "/data/rival"
RIVAL = Rival(leader_id=NodeId(4), epoch=Epoch(7), host="node-4.example", port=9094)
FINDER = MetaProperties(NodeId(1), CLUSTER_ID, DirectoryId(b"\x01" * 16))
REMEMBERED = RememberedRival(FINDER, RIVAL)


def test_a_rival_is_durable() -> None:
    disk = Replica().disk
    write_rival(disk, PATH, REMEMBERED)
    assert disk.first_unsafe("/data", "rival") is None
    assert read_rival(disk, PATH) == REMEMBERED


def test_a_directory_without_the_file_has_no_rival() -> None:
    assert read_rival(Replica().disk, PATH) is None


@pytest.mark.parametrize("content", [b"", b"{}", b'{"version": 2}', b"[1]", b'{"version": 1}'])
def test_a_malformed_file_is_refused_with_the_remedy(content: bytes) -> None:
    disk = Replica().disk
    write_atomically(disk, PATH, content)
    with pytest.raises(StorageError, match="quorate storage recover"):
        read_rival(disk, PATH)


@pytest.mark.rule("sole_voter_conflict")
def test_a_directory_comes_back_with_its_rival() -> None:
    replica = Replica(ALONE)
    assert replica.open().state.rival is None
    replica.store.save_rival(SaveRival(RIVAL))
    assert replica.disk.first_unsafe(DIRECTORY, "rival") is None
    assert replica.open().state.rival == RIVAL


@pytest.mark.rule("sole_voter_conflict")
@pytest.mark.parametrize(
    "finder",
    [
        replace(FINDER, node_id=NodeId(2)),
        replace(FINDER, cluster_id=ClusterId("another")),
        replace(FINDER, directory_id=DirectoryId(b"\x09" * 16)),
    ],
)
def test_what_another_directory_found_is_ignored(finder: MetaProperties) -> None:
    replica = Replica(ALONE)
    write_rival(replica.disk, f"{DIRECTORY}/rival", replace(REMEMBERED, finder=finder))
    recovered = replica.open()
    assert recovered.state.rival is None
    (finding,) = [text for text in recovered.findings if text.startswith(f"{DIRECTORY}/rival")]
    assert finding.endswith("ignored")


@pytest.mark.rule("sole_voter_conflict")
def test_a_voter_among_several_has_no_rival() -> None:
    replica = Replica()
    write_rival(replica.disk, f"{DIRECTORY}/rival", REMEMBERED)
    recovered = replica.open()
    assert recovered.state.rival is None
    assert any("the voters are [1, 2, 3]: ignored" in text for text in recovered.findings)


@pytest.mark.rule("sole_voter_conflict")
def test_a_directory_that_is_formatted_anew_has_no_rival() -> None:
    """The remedy: its identity and its log are deleted, and it is formatted to join."""
    replica = Replica(ALONE)
    replica.open()
    replica.store.save_rival(SaveRival(RIVAL))
    disk = replica.disk
    for name in ("meta.properties", "flushed-end"):
        remove_durably(disk, f"{DIRECTORY}/{name}")
    for name in disk.list_dir(LOG_DIR):
        remove_durably(disk, f"{LOG_DIR}/{name}")
    format_directory(disk, DIRECTORY, Formatting(meta=FINDER, records=[b"b"]), timestamp_ms=2)
    assert not disk.exists(f"{DIRECTORY}/rival")
    _, recovered = LogStore.open(disk, DIRECTORY, replica.config)
    assert recovered.state.rival is None
