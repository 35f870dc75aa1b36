"""`quorate features` in the shapes of kafka-features."""

from __future__ import annotations

import pytest

from quorate.cli.features import feature_rows, format_row, parse_levels
from quorate.cli.output import CommandError
from quorate.client.controller_calls import ApiVersions
from tests.unit.admin.quorums import quorum
from tests.unit.raft import cores

SUPPORTED = ApiVersions(cores.CLUSTER, 1, "9", (("kraft.version", 0, 1),))


def test_a_feature_is_one_line_of_columns() -> None:
    (row,) = feature_rows(SUPPORTED, quorum())
    assert format_row(row) == "  ".join(
        (
            "Feature: " + "kraft.version".ljust(40),
            "SupportedMinVersion: " + "0".ljust(15),
            "SupportedMaxVersion: " + "1".ljust(15),
            "FinalizedVersionLevel: " + "1".ljust(15),
            "Epoch: 5",
        )
    )


def test_levels_are_numbers_of_features_named_once() -> None:
    assert parse_levels(["kraft.version=1", "other=2"]) == {"kraft.version": 1, "other": 2}
    for bad in (["kraft.version"], ["kraft.version=x"], ["a=1", "a=2"]):
        with pytest.raises(CommandError, match="--feature"):
            parse_levels(bad)
