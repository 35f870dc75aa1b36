"""The sense that is made of the flags of `storage format`; what is written is tested with it."""

from __future__ import annotations

import argparse

import pytest

from quorate.cli.output import CommandError
from quorate.cli.storage_format_plan import make_plan
from quorate.records.ids import DirectoryId
from quorate.server.config import ControllerConfig, read_config
from tests.unit.cli.directories import CLUSTER

ID = DirectoryId(bytes(range(16)))


def flags(**given: object) -> argparse.Namespace:
    """As the parser makes them."""
    none: dict[str, object] = {
        "cluster_id": CLUSTER,
        "feature": [],
        "standalone": False,
        "no_initial_controllers": False,
        "initial_controllers": None,
        "statefulset": None,
        "first_bootstrap": False,
    }
    return argparse.Namespace(**none | given)


def config(**more: str) -> ControllerConfig:
    lines = {
        "node.id": "1",
        "process.roles": "controller",
        "listeners": "GRPC://one:9094",
        "metadata.log.dir": "/d",
        "controller.quorum.bootstrap.servers": "one:9094",
    }
    return read_config(lines | more, {})


def test_a_directory_id_is_drawn_unless_it_is_given() -> None:
    given = make_plan(flags(standalone=True), config(), ID).formatting
    assert given.meta.directory_id == ID
    assert given.voters is not None
    assert [voter.key.directory_id for voter in given.voters] == [ID]
    drawn = {make_plan(flags(standalone=True), config()).formatting.meta for _ in range(2)}
    assert len(drawn) == 2


def test_a_pod_of_a_statefulset_keeps_its_voters_in_the_log() -> None:
    static = config(**{"controller.quorum.voters": "1@one:9094"})
    with pytest.raises(CommandError, match=r"--statefulset is for kraft\.version=1"):
        make_plan(flags(statefulset="ns/q", standalone=True), static)
