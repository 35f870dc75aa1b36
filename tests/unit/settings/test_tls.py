"""The settings of TLS, what is refused, and how errors name the files."""

from __future__ import annotations

import pytest

from quorate.settings.properties import ConfigError, Settings
from quorate.settings.tls import (
    ClientAuth,
    TlsSettings,
    read_client_tls,
    read_listener_tls,
    read_service_tls,
)

ONE_FILE = {"ssl.keystore.location": "/tls.pem", "ssl.truststore.location": "/ca.pem"}
CHAIN = "ssl.keystore.certificate.chain.location"
KEY = "ssl.keystore.key.location"


def tls(properties: dict[str, str], listener: str = "GRPC") -> TlsSettings:
    return read_listener_tls(Settings(properties, {}), listener)


def test_kafkas_keys_name_one_pem_file() -> None:
    given = ONE_FILE | {"ssl.keystore.type": "PEM", "ssl.client.auth": "required"}
    assert tls(given | {"ssl.key.password": "p"}) == TlsSettings(
        certificate_chain_file="/tls.pem",
        key_file="/tls.pem",
        key_password="p",  # noqa: S106
        ca_file="/ca.pem",
        client_auth=ClientAuth.REQUIRED,
    )


def test_chain_and_key_may_be_two_files() -> None:
    given = {CHAIN: "/tls.crt", KEY: "/tls.key", "ssl.truststore.location": "/ca.crt"}
    assert tls(given) == TlsSettings(
        certificate_chain_file="/tls.crt", key_file="/tls.key", ca_file="/ca.crt"
    )


def test_a_key_of_the_listener_comes_before_that_of_all() -> None:
    given = ONE_FILE | {"listener.name.peers.ssl.keystore.location": "/peers.pem"}
    assert tls(given, "PEERS").key_file == "/peers.pem"
    assert tls(given, "GRPC").key_file == "/tls.pem"


@pytest.mark.parametrize(
    ("properties", "problem"),
    [
        ({}, "ssl.keystore.location is missing: name a PEM file"),
        ({"ssl.keystore.location": "/a"}, "ssl.truststore.location is missing"),
        (ONE_FILE | {"ssl.keystore.type": "JKS"}, "ssl.keystore.type is 'JKS': only PEM"),
        (ONE_FILE | {"ssl.truststore.type": "PKCS12"}, "ssl.truststore.type is 'PKCS12'"),
        (ONE_FILE | {KEY: "/k"}, f"ssl.keystore.location and {KEY} are both set"),
        ({CHAIN: "/c"}, f"{KEY} is missing"),
        ({KEY: "/k"}, f"{CHAIN} is missing"),
        (ONE_FILE | {"ssl.client.auth": "requested"}, "gRPC requires a certificate or asks for no"),
        (ONE_FILE | {"ssl.client.auth": "maybe"}, "'maybe': it must be one of none, required$"),
        ({"ssl.keystore.key": "-----BEGIN"}, "ssl.keystore.key holds PEM itself: put it into a"),
    ],
)
def test_what_cannot_be_used_is_refused_by_name(properties: dict[str, str], problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        tls(properties)


def test_a_tool_speaks_plaintext_unless_it_is_told() -> None:
    def client(**properties: str) -> TlsSettings | None:
        given = {key.replace("_", "."): value for key, value in properties.items()}
        return read_client_tls(Settings(given, {}))

    assert client() is client(security_protocol="GRPC") is None
    # A certificate of its own is nothing that a server has to ask for.
    assert client(security_protocol="SSL") == TlsSettings()
    assert client(security_protocol="GRPC_SSL", ssl_truststore_location="/ca") == TlsSettings(
        ca_file="/ca"
    )
    with pytest.raises(ConfigError, match=r"security.protocol is 'SASL_SSL': it must be one of"):
        client(security_protocol="SASL_SSL")


def test_a_service_that_speaks_tls_needs_both_stores() -> None:
    def service(properties: dict[str, str]) -> TlsSettings | None:
        return read_service_tls(Settings(properties, {}))

    assert service({}) is None
    assert service(ONE_FILE | {"security.protocol": "SSL"}) == tls(ONE_FILE)
    with pytest.raises(ConfigError, match=r"ssl.truststore.location is missing"):
        service({"security.protocol": "SSL", "ssl.keystore.location": "/a"})


def test_one_file_goes_by_kafkas_name() -> None:
    settings = TlsSettings(certificate_chain_file="/tls.pem", key_file="/tls.pem", ca_file="/ca")
    assert settings.named_chain == settings.named_key == "ssl.keystore.location /tls.pem"
    assert settings.named_authorities == "ssl.truststore.location /ca"


def test_two_files_go_by_names_of_their_own() -> None:
    settings = TlsSettings(certificate_chain_file="/tls.crt", key_file="/tls.key")
    assert settings.named_chain == "ssl.keystore.certificate.chain.location /tls.crt"
    assert settings.named_key == "ssl.keystore.key.location /tls.key"


def test_the_password_is_not_shown() -> None:
    assert "hush" not in repr(TlsSettings(key_password="hush"))  # noqa: S106
