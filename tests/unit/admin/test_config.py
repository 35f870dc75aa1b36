"""The sidecar's settings and their defaults."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from quorate.admin.config import load_config, read_config
from quorate.api.authorization_settings import STANDARD_AUTHORIZER
from quorate.settings.properties import ConfigError

if TYPE_CHECKING:
    from pathlib import Path


def test_a_node_id_is_enough() -> None:
    config = read_config({"node.id": "2"}, {})
    assert config.node_id == 2
    assert (config.host, config.port) == ("", 9095)
    assert config.servers == (("127.0.0.1", 9094),)
    assert (config.health_port, config.metrics_port) == (9091, 9465)
    assert (config.request_timeout_ms, config.shutdown_timeout_ms) == (30_000, 5_000)
    assert (config.tls, config.access) == (None, None)
    assert not config.has_reflection
    assert config.transport == "h2"
    assert (config.log_level, config.log_format, config.warnings) == ("INFO", "key-value", ())


def test_the_controller_beside_it_is_asked_first(tmp_path: Path) -> None:
    path = tmp_path / "admin.properties"
    path.write_text(
        "node.id=2\nadmin.listener=127.0.0.1:19095\nadmin.controller=b:1\nx=y\n"
        "controller.quorum.bootstrap.servers=a:1,b:1,c:1\n",
        encoding="utf-8",
    )
    config = load_config(str(path), {"QUORATE_NODE_ID": "7"})
    assert config.node_id == 7
    assert (config.host, config.port) == ("127.0.0.1", 19095)
    assert config.servers == (("b", 1), ("a", 1), ("c", 1))
    assert config.warnings == ("x is not a setting of this release: it is ignored",)


def test_an_authoriser_that_learns_no_names_is_warned_about() -> None:
    properties = {"node.id": "1", "authorizer.class.name": STANDARD_AUTHORIZER}
    config = read_config(properties, {})
    assert config.access is not None
    assert len(config.warnings) == 1
    assert config.warnings[0].startswith("authorizer.class.name is set, but")


@pytest.mark.parametrize(
    "bad",
    [
        {"node.id": ""},
        {"node.id": "-1"},
        {"admin.listener": ":0"},
        {"admin.controller": "127.0.0.1"},
        {"controller.quorum.bootstrap.servers": "a"},
        {"admin.request.timeout.ms": "0"},
        {"log.format": "xml"},
        {"security.protocol": "SASL"},
    ],
)
def test_bad_values_name_their_key(bad: dict[str, str]) -> None:
    (key,) = bad
    with pytest.raises(ConfigError, match=key):
        read_config({"node.id": "1"} | bad, {})
