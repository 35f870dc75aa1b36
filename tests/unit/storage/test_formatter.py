"""A formatted directory."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from quorate.records.ids import ClusterId, DirectoryId, NodeId
from quorate.sim.engine.disk import SimulatedDisk, Survival
from quorate.storage.errors import StorageError
from quorate.storage.file_system import write_atomically
from quorate.storage.formatter import Formatting, format_directory
from quorate.storage.layout import BOOTSTRAP_ID, checkpoint_name
from quorate.storage.meta_properties import MetaProperties, read_meta
from quorate.storage.pod_domain import PodDomain, read_pod_domain
from quorate.storage.snapshots.snapshot_store import SnapshotStore, read_content
from tests.unit.storage.conftest import DIRECTORY, LOG_DIR, THREE, Crashed, Replica, crash_after

META = MetaProperties(NodeId(4), ClusterId("c"), DirectoryId(b"\x04" * 16))
JOINING = Formatting(meta=META, records=[b"metadata.version"])


def formatted(formatting: Formatting) -> SimulatedDisk:
    disk = SimulatedDisk()
    format_directory(disk, DIRECTORY, formatting, timestamp_ms=88)
    return disk


def test_the_first_voters_get_identity_metadata_and_voters() -> None:
    disk = formatted(replace(JOINING, voters=THREE))
    assert read_meta(disk, f"{DIRECTORY}/meta.properties") == META
    bootstrap = read_content(disk, f"{DIRECTORY}/bootstrap.checkpoint", BOOTSTRAP_ID.epoch)
    assert (bootstrap.records, bootstrap.voters) == ([b"metadata.version"], None)
    assert bootstrap.summary.last_contained_log_timestamp_ms == 0
    summary = SnapshotStore(disk, LOG_DIR).check(BOOTSTRAP_ID)
    assert (summary.voters, summary.kraft_version) == (THREE, 1)
    assert sorted(disk.files(LOG_DIR)) == [
        "00000000000000000000-0000000000.checkpoint",
        "partition.metadata",
    ]


def test_a_node_that_will_join_gets_no_voters() -> None:
    disk = formatted(JOINING)
    assert sorted(disk.files(LOG_DIR)) == ["partition.metadata"]
    assert sorted(disk.files(DIRECTORY)) == ["bootstrap.checkpoint", "meta.properties"]


def test_the_first_bootstrap_of_a_static_quorum_is_marked() -> None:
    disk = formatted(replace(JOINING, is_first_bootstrap=True))
    assert "first-bootstrap" in disk.files(DIRECTORY)


def test_the_pod_of_a_directory_is_written_before_its_identity() -> None:
    domain = PodDomain(pod="q-4", service="s", namespace="ns")
    for calls in range(100):
        disk = SimulatedDisk()
        crash_after(disk, calls)
        is_done = True
        try:
            format_directory(disk, DIRECTORY, replace(JOINING, pod_domain=domain), timestamp_ms=1)
        except Crashed:
            is_done = False
        disk.hook = lambda operation, path: None
        disk.lose_power(Random(0), Survival.NOTHING)
        if disk.exists(f"{DIRECTORY}/meta.properties"):
            assert read_pod_domain(disk, DIRECTORY) == domain
        if is_done:
            break
    assert disk.exists(f"{DIRECTORY}/meta.properties")


def test_a_directory_that_is_formatted_for_no_pod_belongs_to_none() -> None:
    disk = SimulatedDisk()
    disk.make_dirs(DIRECTORY)
    write_atomically(disk, f"{DIRECTORY}/pod-domain", b"q-0.s.ns.svc\n")
    format_directory(disk, DIRECTORY, JOINING, timestamp_ms=1)
    assert read_pod_domain(disk, DIRECTORY) is None


def test_a_formatted_directory_is_not_formatted_again() -> None:
    disk = formatted(JOINING)
    before = disk.read(f"{DIRECTORY}/meta.properties")
    other = replace(JOINING, meta=replace(META, node_id=NodeId(5)))
    with pytest.raises(StorageError, match=r"meta\.properties: .* formatted already, for .*4"):
        format_directory(disk, DIRECTORY, other, timestamp_ms=1)
    assert disk.read(f"{DIRECTORY}/meta.properties") == before


def test_a_directory_in_use_without_its_identity_is_not_formatted() -> None:
    replica = Replica()
    replica.write_history()
    replica.disk.remove(f"{DIRECTORY}/meta.properties")
    before = replica.files()
    with pytest.raises(StorageError, match="this directory has been in use"):
        format_directory(replica.disk, DIRECTORY, JOINING, timestamp_ms=1)
    assert replica.files() == before


def test_formatting_that_was_interrupted_can_be_done_again() -> None:
    for calls in range(100):
        disk = SimulatedDisk()
        crash_after(disk, calls)
        try:
            format_directory(disk, DIRECTORY, replace(JOINING, voters=THREE), timestamp_ms=1)
        except Crashed:
            disk.hook = lambda operation, path: None
        else:
            break
        if not disk.exists(f"{DIRECTORY}/meta.properties"):
            format_directory(disk, DIRECTORY, JOINING, timestamp_ms=1)
            assert checkpoint_name(BOOTSTRAP_ID) not in disk.files(LOG_DIR)
    assert calls > 20


def test_a_directory_with_an_interrupted_rescue_is_not_formatted() -> None:
    disk = SimulatedDisk()
    disk.make_dirs(DIRECTORY)
    write_atomically(disk, f"{DIRECTORY}/rescue", b"{}")
    with pytest.raises(StorageError, match="/data/rescue"):
        format_directory(disk, DIRECTORY, JOINING, timestamp_ms=1)
    assert disk.files(DIRECTORY).keys() == {"rescue"}
