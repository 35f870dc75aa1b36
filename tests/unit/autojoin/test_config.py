"""Settings of the operator."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from quorate.autojoin.config import own_namespace, read_config
from quorate.settings.properties import ConfigError

if TYPE_CHECKING:
    from pathlib import Path


def test_the_environment_is_enough() -> None:
    config = read_config(
        {}, {"QUORATE_AUTOJOIN_STATEFULSET": "q", "HOSTNAME": "me"}, namespace="ns"
    )
    assert (config.stateful_set, config.namespace, config.identity) == ("q", "ns", "me")
    assert (config.admin_port, config.controller_port) == (9095, 9094)
    assert (config.ghost_delay_ms, config.interval_ms) == (60_000, 5_000)
    assert config.tls is None
    assert config.transport == "h2"
    assert config.warnings == ()


def test_who_speaks_to_the_quorum_may_be_said() -> None:
    named = {"autojoin.statefulset": "q", "grpc.transport": "grpcio"}
    assert read_config(named, {}, namespace="ns").transport == "grpcio"


def test_a_namespace_may_be_named() -> None:
    named = {"autojoin.statefulset": "q", "autojoin.namespace": "other"}
    assert read_config(named, {}, namespace="ns").namespace == "other"


@pytest.mark.parametrize(
    ("properties", "message"),
    [
        ({"autojoin.namespace": "ns"}, "autojoin.statefulset is missing"),
        ({"autojoin.statefulset": "q"}, "autojoin.namespace is missing"),
        (
            {"autojoin.statefulset": "q", "autojoin.namespace": "ns", "autojoin.lease.ms": "5"},
            "autojoin.lease.ms",
        ),
    ],
)
def test_what_is_missing_or_wrong_is_named(properties: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        read_config(properties, {})


def test_unknown_keys_warn() -> None:
    config = read_config({"autojoin.statefulset": "q", "autojoin.x": "1"}, {}, namespace="ns")
    assert any("autojoin.x" in each for each in config.warnings)


def test_the_own_namespace(tmp_path: Path) -> None:
    file = tmp_path / "namespace"
    file.write_text("mine\n", encoding="utf-8")
    assert own_namespace(str(file)) == "mine"
    assert own_namespace(str(tmp_path / "none")) == ""
