"""The settings of a controller, their defaults and what is refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from quorate.records.ids import NodeId, ReplicaKey
from quorate.records.voters import Endpoint, Voter
from quorate.server.config import load_config, read_config
from quorate.settings.listeners import ListenerSettings, SecurityProtocol
from quorate.settings.properties import ConfigError

if TYPE_CHECKING:
    from pathlib import Path

LEAST = {
    "node.id": "1",
    "controller.quorum.bootstrap.servers": "a:9094,[::1]:9095",
    "metadata.log.dir": "/data",
    "listeners": "GRPC://127.0.0.1:9094",
}


def test_the_least_settings_get_kafkas_defaults() -> None:
    config = read_config(LEAST, {})
    assert config.quorum.bootstrap_servers == (("a", 9094), ("::1", 9095))
    assert config.quorum.fetch_timeout_ms == 2000
    assert config.quorum.append_linger_ms == 0
    assert config.log.snapshot_bytes == 20 * 1024 * 1024
    listening = Endpoint("GRPC", "127.0.0.1", 9094)
    assert config.listeners == (ListenerSettings(SecurityProtocol.GRPC, listening, listening),)
    assert (config.peers, config.endpoints) == (config.listeners[0], (listening,))
    assert config.warnings == ()


def test_who_speaks_grpc_is_a_setting() -> None:
    assert read_config(LEAST, {}).transport == "h2"
    assert read_config({**LEAST, "grpc.transport": "grpcio"}, {}).transport == "grpcio"


def test_unknown_keys_warn() -> None:
    config = read_config({**LEAST, "broker.rack": "a"}, {})
    assert config.warnings == ("broker.rack is not a setting of this release: it is ignored",)


def test_static_voters_and_log_dirs_are_read() -> None:
    given = {**LEAST, "controller.quorum.voters": "2@b:9094,1@a:9094", "log.dirs": "/x,/y"}
    del given["metadata.log.dir"], given["controller.quorum.bootstrap.servers"]
    config = read_config(given, {})
    assert config.log.directory == "/x"
    assert list(config.quorum.voters) == [
        Voter(ReplicaKey(NodeId(1)), (Endpoint("GRPC", "a", 9094),)),
        Voter(ReplicaKey(NodeId(2)), (Endpoint("GRPC", "b", 9094),)),
    ]


def test_peers_are_called_on_the_first_listener_with_grpc() -> None:
    config = read_config(
        {
            **LEAST,
            "listeners": "CONTROLLER://:9093,PEERS://:9094,LOCAL://127.0.0.1:9095",
            "advertised.listeners": "PEERS://pod-1:9194",
            "controller.listener.names": "CONTROLLER,PEERS,LOCAL",
            "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PEERS:GRPC,LOCAL:GRPC",
        },
        {},
    )
    assert config.peers.bound == Endpoint("PEERS", "", 9094)
    local = Endpoint("LOCAL", "127.0.0.1", 9095)
    assert config.endpoints == (Endpoint("PEERS", "pod-1", 9194), local)
    assert config.warnings == (
        "listeners has CONTROLLER://:9093, where PLAINTEXT is spoken: this release serves GRPC and "
        "GRPC_SSL only",
    )


def test_the_ports_of_all_listeners_differ_from_those_for_health_and_metrics() -> None:
    given = {
        **LEAST,
        "listeners": "GRPC://127.0.0.1:9094,LOCAL://127.0.0.1:9090",
        "controller.listener.names": "GRPC,LOCAL",
        "listener.security.protocol.map": "LOCAL:GRPC",
    }
    with pytest.raises(ConfigError, match=r"health\.port has port 9090 and so has listeners"):
        read_config(given, {})


def test_callers_without_names_and_brokers_that_may_vote_are_warned_about() -> None:
    given = {
        **LEAST,
        "listener.security.protocol.map": "GRPC:GRPC_SSL",
        "ssl.keystore.location": "/tls.pem",
        "ssl.truststore.location": "/ca.pem",
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:CN=controller",
        "authorizer.forwarders": "User:CN=admin",
    }
    config = read_config(given, {})
    assert config.access is not None
    assert config.access.forwarders == {"User:CN=admin"}
    assert "so that every caller is User:ANONYMOUS" in "".join(config.warnings)
    given = given | {"ssl.client.auth": "required"}
    assert read_config(given, {}).warnings == ()
    one_list = given | {"authorizer.allow.cluster.action": "User:CN=controller;User:CN=broker"}
    (warning,) = read_config(one_list, {}).warnings
    assert warning.startswith("authorizer.allow.quorum.action is missing: every identity in ")
    two_lists = one_list | {"authorizer.allow.quorum.action": "User:CN=controller"}
    assert read_config(two_lists, {}).warnings == ()


@pytest.mark.parametrize(
    ("key", "value", "problem"),
    [
        ("node.id", "", "node.id is missing"),
        ("node.id", "one", "a whole number is needed"),
        ("process.roles", "broker", "must contain controller"),
        ("metadata.log.dir", "", "metadata.log.dir is missing"),
        ("controller.quorum.bootstrap.servers", "", "is missing: list"),
        ("controller.quorum.bootstrap.servers", "a", "write HOST:PORT"),
        ("controller.quorum.voters", "a:1", "write ID@HOST:PORT"),
        ("listeners", "OTHER://a:1", "listeners has no GRPC"),
        ("log.format", "xml", "must be one of key-value, json"),
        ("num.partitions", "2147483648", "num.partitions.*2147483647"),
        ("default.replication.factor", "32768", "default.replication.factor.*32767"),
    ],
)
def test_what_cannot_be_used_is_refused_by_name(key: str, value: str, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        read_config({**LEAST, key: value}, {})


def test_a_file_is_loaded(tmp_path: Path) -> None:
    path = tmp_path / "c.properties"
    path.write_text("".join(f"{key}={value}\n" for key, value in LEAST.items()))
    assert load_config(str(path), {}) == read_config(LEAST, {})
    with pytest.raises(ConfigError, match="name a readable properties file"):
        load_config(str(tmp_path / "none"), {})
