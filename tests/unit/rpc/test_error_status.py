"""The words for errors of gRPC, as its C library writes them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import grpc
import pytest
from grpc.aio import AioRpcError, Metadata

from quorate.rpc.error_status import error_info_of, explain_error, explain_handshake_failure
from quorate.rpc.security.tls_files import TlsFiles
from quorate.settings.tls import TlsSettings
from tests.certificates import Authority

if TYPE_CHECKING:
    from pathlib import Path

AUTHORITY = Authority()
TO = "failed to connect to all addresses; last error: "
CLOSED = TO + "UNAVAILABLE: ipv4:127.0.0.1:39085: Socket closed"
HANDSHAKE = TO + "UNKNOWN: ipv4:127.0.0.1:1: Tls handshake failed (TSI_PROTOCOL_FAILURE): SSL_ERROR"
UNTRUSTED = (
    HANDSHAKE
    + "_SSL: error:1000007d:SSL routines:OPENSSL_internal:CERTIFICATE_VERIFY_FAILED: unable to get "
    "local issuer certificate: OK"
)
NO_TLS = (
    HANDSHAKE + "_SSL: error:100000f7:SSL routines:OPENSSL_internal:WRONG_VERSION_NUMBER: x: OK"
)


def error(code: grpc.StatusCode, details: str) -> AioRpcError:
    return AioRpcError(code, Metadata(), Metadata(), details)


@pytest.fixture
def own(tmp_path: Path) -> TlsFiles:
    store = str(AUTHORITY.leaf("alice").write(tmp_path / "tls.pem"))
    return TlsFiles(TlsSettings(certificate_chain_file=store, key_file=store))


def test_plaintext_that_is_hung_up_on_may_want_tls() -> None:
    words = explain_handshake_failure(CLOSED, None)
    assert words == (
        "the server closed the connection: it may want TLS, or have too many connections"
    )


def test_a_handshake_that_is_hung_up_on_wants_a_certificate_or_another_one(own: TlsFiles) -> None:
    nobody = explain_handshake_failure(CLOSED, TlsFiles(TlsSettings()))
    assert nobody is not None
    assert nobody.startswith("the server closed the TLS handshake: it wants a client certificate")
    somebody = explain_handshake_failure(CLOSED, own)
    assert somebody is not None
    assert "may not trust the certificate of User:CN=alice in ssl.keystore.location" in somebody


@pytest.mark.parametrize(
    "alert", ["TLSV13_ALERT_CERTIFICATE_REQUIRED", "SSLV3_ALERT_HANDSHAKE_FAILURE"]
)
def test_an_alert_says_that_a_certificate_is_wanted(alert: str) -> None:
    words = explain_handshake_failure(f"{TO}TLS: {alert}", TlsFiles(TlsSettings()))
    assert words is not None
    assert "it wants a client certificate, set ssl.keystore.location" in words
    assert "too many" not in words


def test_an_alert_says_what_is_wrong_with_the_certificate(own: TlsFiles) -> None:
    details = f"{TO}TLS: SSLV3_ALERT_CERTIFICATE_EXPIRED"
    words = explain_handshake_failure(details, own)
    assert words is not None
    assert words.startswith(
        "the server refused the TLS handshake (certificate expired): it may not"
    )
    assert explain_handshake_failure(details, TlsFiles(TlsSettings())) == (
        "the server refused the TLS handshake (certificate expired)"
    )


def test_certificates_that_do_not_fit_say_why(own: TlsFiles) -> None:
    untrusted = explain_handshake_failure(UNTRUSTED, own)
    assert untrusted is not None
    assert "not trusted (unable to get local issuer certificate): ssl.truststore.loc" in untrusted
    assert explain_handshake_failure(NO_TLS, own) == "the server does not speak TLS"


@pytest.mark.parametrize("details", ["Socket closed", TO + "Connection refused", "", "x"])
def test_other_errors_are_no_matter_of_handshakes(details: str, own: TlsFiles) -> None:
    assert explain_handshake_failure(details, own) is None
    assert explain_handshake_failure(details, None) is None


def test_common_errors_have_short_words() -> None:
    refused = error(grpc.StatusCode.UNAVAILABLE, TO + "Connection refused")
    assert explain_error(refused, None) == "connection refused"
    late = error(grpc.StatusCode.DEADLINE_EXCEEDED, "Deadline Exceeded")
    assert explain_error(late, None) == "no answer in time"
    assert explain_error(error(grpc.StatusCode.INTERNAL, "x"), None) == "INTERNAL: x"
    assert explain_error(error(grpc.StatusCode.UNAVAILABLE, CLOSED), None).startswith(
        "the server closed the connection: it may want TLS"
    )


def test_an_error_of_somebody_else_is_no_refusal_of_ours() -> None:
    assert error_info_of(error(grpc.StatusCode.PERMISSION_DENIED, "no")) is None
