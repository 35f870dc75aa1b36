"""The record of a rescue: what it says, and that a directory with one is not to be used."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from quorate.records.ids import ClusterId, DirectoryId, Epoch, NodeId, ReplicaKey
from quorate.sim.engine.disk import SimulatedDisk
from quorate.storage.disaster_recovery.recovery_plan import (
    ConsultedLog,
    RecoveryKind,
    RecoveryPlan,
    check_no_unfinished_recovery,
    complete_plan,
    decode_plan,
    encode_plan,
    read_plan,
    write_plan,
)
from quorate.storage.errors import StorageError
from quorate.storage.file_system import write_atomically
from quorate.storage.meta_properties import MetaProperties
from tests.unit.storage.conftest import CLUSTER_ID, DIRECTORY, THREE, at, voter

PLAN = RecoveryPlan(
    kind=RecoveryKind.RECOVER,
    started_ms=1_700_000_000_000,
    before=MetaProperties(NodeId(1), CLUSTER_ID, DirectoryId(b"\x01" * 16)),
    after=MetaProperties(NodeId(1), ClusterId("another"), DirectoryId(b"\x09" * 16)),
    end=at(18, 4),
    epoch=Epoch(1007),
    endpoints=voter(1).endpoints,
    voters_before=replace(THREE, decommissioned=(voter(8).key,)),
    witnesses=(
        ConsultedLog(
            source="/data",
            key=voter(1).key,
            epoch=Epoch(7),
            end=at(18, 4),
            highest_end=at(20, 4),
        ),
        ConsultedLog(
            source="/copy",
            key=ReplicaKey(NodeId(2)),
            epoch=Epoch(6),
            end=at(9, 2),
            highest_end=at(9, 2),
        ),
    ),
)


def a_disk() -> SimulatedDisk:
    disk = SimulatedDisk()
    disk.make_dirs(DIRECTORY)
    return disk


def test_a_plan_is_read_as_it_was_written() -> None:
    assert decode_plan(encode_plan(PLAN)) == PLAN


def test_the_old_voters_are_decommissioned() -> None:
    keys = [voter(node_id).key for node_id in (8, 1, 2, 3)]
    assert PLAN.voters.decommissioned == tuple(keys)
    assert [v.key for v in PLAN.voters] == [PLAN.key]


def test_the_file_says_when_and_from_what_to_what() -> None:
    fields = json.loads(encode_plan(PLAN))
    assert fields["started"] == "2023-11-14T22:13:20+00:00"
    assert fields["before"]["directoryId"] == "AQEBAQEBAQEBAQEBAQEBAQ"
    assert fields["before"]["logEnd"] == {"offset": 18, "epoch": 4}
    assert [row["id"] for row in fields["before"]["voters"]] == [1, 2, 3]
    assert fields["after"] == {
        "clusterId": "another",
        "directoryId": "CQkJCQkJCQkJCQkJCQkJCQ",
        "epoch": 1007,
        "endpoints": [{"name": "GRPC", "host": "node-1", "port": 9094}],
    }


def test_a_directory_without_a_plan_may_be_used() -> None:
    disk = a_disk()
    assert read_plan(disk, DIRECTORY) is None
    check_no_unfinished_recovery(disk, DIRECTORY)


def test_a_directory_with_a_plan_is_refused_until_the_plan_is_over() -> None:
    disk = a_disk()
    write_plan(disk, DIRECTORY, PLAN)
    assert read_plan(disk, DIRECTORY) == PLAN
    with pytest.raises(StorageError, match="storage recover` was interrupted here"):
        check_no_unfinished_recovery(disk, DIRECTORY)
    assert complete_plan(disk, DIRECTORY, PLAN) == f"{DIRECTORY}/rescue-1007.json"
    check_no_unfinished_recovery(disk, DIRECTORY)
    assert disk.files(DIRECTORY).keys() == {"rescue-1007.json"}


@pytest.mark.parametrize("data", [b"", b"{}", b"[]", b'{"version": 2}'])
def test_a_malformed_plan_is_refused_by_name(data: bytes) -> None:
    disk = a_disk()
    write_atomically(disk, f"{DIRECTORY}/rescue", data)
    with pytest.raises(StorageError, match="/data/rescue: malformed"):
        read_plan(disk, DIRECTORY)
