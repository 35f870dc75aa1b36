"""Listeners, read as Kafka reads them."""

from __future__ import annotations

import socket

import pytest

from quorate.records.voters import Endpoint
from quorate.settings.listeners import ListenerSettings, SecurityProtocol, read_listeners
from quorate.settings.properties import ConfigError, Settings
from quorate.settings.tls import TlsSettings

STORES = {"ssl.keystore.location": "/tls.pem", "ssl.truststore.location": "/ca.pem"}
TLS = TlsSettings(certificate_chain_file="/tls.pem", key_file="/tls.pem", ca_file="/ca.pem")
TWO = {
    "listeners": "PEERS://10.0.0.1:9094,LOCAL://127.0.0.1:9095",
    "controller.listener.names": "PEERS,LOCAL",
    "listener.security.protocol.map": "PEERS:GRPC_SSL,LOCAL:GRPC",
}


def read(
    given: dict[str, str], *, is_controller_alone: bool = True
) -> tuple[tuple[ListenerSettings, ...], tuple[str, ...]]:
    """The served endpoints, and the warnings."""
    return read_listeners(Settings(given, {}), is_controller_alone=is_controller_alone)


def test_without_settings_grpc_is_spoken_on_every_address() -> None:
    bound, shown = Endpoint("GRPC", "", 9094), Endpoint("GRPC", socket.getfqdn(), 9094)
    assert read({}) == ((ListenerSettings(SecurityProtocol.GRPC, bound, shown),), ())


def test_each_listener_has_its_own_protocol_address_and_certificates() -> None:
    given = {
        **TWO,
        **STORES,
        "advertised.listeners": "PEERS://pod-1:9194",
        "listener.name.peers.ssl.client.auth": "required",
    }
    (peers, local), warnings = read(given)
    assert (peers.name, peers.protocol) == ("PEERS", SecurityProtocol.GRPC_SSL)
    assert peers.bound == Endpoint("PEERS", "10.0.0.1", 9094)
    assert peers.advertised == Endpoint("PEERS", "pod-1", 9194)
    assert peers.tls is not None
    assert peers.tls.client_auth == "required"
    assert local == ListenerSettings(SecurityProtocol.GRPC, local.bound, local.bound)
    assert warnings == ()


def test_peers_are_called_on_the_first_name_whatever_the_order_of_listeners() -> None:
    given = {**TWO, **STORES, "controller.listener.names": "LOCAL,PEERS"}
    served, _ = read(given)
    assert [listener.name for listener in served] == ["LOCAL", "PEERS"]


def test_a_name_that_is_a_protocol_speaks_it_until_the_map_says_otherwise() -> None:
    named = {"listeners": "GRPC_SSL://a:1", "controller.listener.names": "GRPC_SSL", **STORES}
    ((listener,), _) = read(named)
    assert (listener.protocol, listener.tls) == (SecurityProtocol.GRPC_SSL, TLS)
    ((listener,), _) = read({**named, "listener.security.protocol.map": "GRPC_SSL:GRPC"})
    assert (listener.protocol, listener.tls) == (SecurityProtocol.GRPC, None)


def test_names_are_told_apart_without_regard_to_case_and_kept_as_listeners_has_them() -> None:
    given = {
        "listeners": "Peers://a:1",
        "advertised.listeners": "PEERS://b:2",
        "controller.listener.names": "peers",
        "listener.security.protocol.map": "pEERS:GRPC",
    }
    ((listener,), _) = read(given)
    assert (listener.bound, listener.advertised) == (
        Endpoint("Peers", "a", 1),
        Endpoint("Peers", "b", 2),
    )


def test_what_speaks_kafkas_protocol_is_not_served_and_said_so() -> None:
    given = {
        "listeners": "CONTROLLER://a:1,GRPC://a:2",
        "controller.listener.names": "CONTROLLER,GRPC",
    }
    served, warnings = read(given)
    assert [listener.name for listener in served] == ["GRPC"]
    assert warnings == (
        "listeners has CONTROLLER://a:1, where PLAINTEXT is spoken: this release serves GRPC and "
        "GRPC_SSL only",
    )


def test_a_file_that_a_broker_shares_may_have_its_listeners_too() -> None:
    given = {"listeners": "GRPC://a:1,PLAINTEXT://a:2"}
    served, warnings = read(given, is_controller_alone=False)
    assert ([listener.name for listener in served], warnings) == (["GRPC"], ())
    with pytest.raises(ConfigError, match="listeners has PLAINTEXT, which is none of a controller"):
        read(given)


def test_an_ipv4_and_an_ipv6_address_may_share_a_port() -> None:
    given = {
        "listeners": "A://127.0.0.1:1,B://[::1]:1",
        "controller.listener.names": "A,B",
        "listener.security.protocol.map": "A:GRPC,B:GRPC",
    }
    assert len(read(given)[0]) == 2


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        ({"listeners": "127.0.0.1:9094"}, "write NAME://HOST:PORT"),
        ({"listeners": "PEERS://a:1,peers://b:2"}, "peers twice"),
        ({"listeners": "LOCAL://a:1"}, "listeners has no PEERS: add PEERS://HOST:PORT"),
        ({"listeners": "PEERS://a:1,LOCAL://b:1"}, "has port 1 for PEERS and for LOCAL"),
        ({"listeners": "PEERS://a:1,LOCAL://a:2,C://a:3"}, "has C, which is none of a controller"),
        ({"controller.listener.names": "CONTROLLER"}, "needs the protocol GRPC or GRPC_SSL"),
        ({"listener.security.protocol.map": "PEERS"}, "write NAME:PROTOCOL"),
        ({"listener.security.protocol.map": "PEERS:HTTP"}, "write NAME:PROTOCOL with one of GRPC"),
        ({"advertised.listeners": "PEERS://0.0.0.0:1"}, "an address to call"),
        ({"advertised.listeners": "OTHER://a:1"}, "has OTHER, which listeners has not"),
        ({"ssl.keystore.location": ""}, "ssl.keystore.location is missing"),
    ],
)
def test_what_cannot_be_listened_on_is_refused_by_name(
    changed: dict[str, str], problem: str
) -> None:
    with pytest.raises(ConfigError, match=problem):
        read({**TWO, **STORES, **changed})
