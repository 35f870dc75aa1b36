"""A handshake that fails sends its alert before the socket is closed."""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING, Any

import pytest

from quorate.h2.tls_alerts import ACCEPTED, AlertingContext, cause_of_failure
from tests.certificates import Authority

if TYPE_CHECKING:
    from pathlib import Path

_ALERT = 21


class Accepted:
    """A socket by hand."""

    def __init__(self, *, is_broken: bool = False) -> None:
        self.sent = b""
        self._is_broken = is_broken

    def send(self, data: bytes) -> int:
        if self._is_broken:
            raise BrokenPipeError
        self.sent += data
        return len(data)


@pytest.fixture
def context(tmp_path: Path) -> AlertingContext:
    """A server that wants a certificate of its clients."""
    authority = Authority()
    made = AlertingContext(ssl.PROTOCOL_TLS_SERVER)
    made.load_cert_chain(authority.leaf("server").write(tmp_path / "server.pem"))
    made.verify_mode = ssl.CERT_REQUIRED
    made.load_verify_locations(cadata=authority.pem.decode())
    return made


class Handshake:
    """Both ends of one handshake; the server's socket is the test's."""

    def __init__(self, context: AlertingContext, accepted: Any) -> None:  # noqa: ANN401
        client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        client.check_hostname, client.verify_mode = False, ssl.CERT_NONE
        client.maximum_version = ssl.TLSVersion.TLSv1_2
        self.to_server, self.to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.client = client.wrap_bio(self.to_client, self.to_server)
        ACCEPTED.set(accepted)
        self.server = context.wrap_bio(self.to_server, self.to_client, server_side=True)
        ACCEPTED.set(None)

    def shake(self) -> None:
        for _ in range(4):
            for end in (self.client, self.server):
                try:
                    end.do_handshake()
                except ssl.SSLWantReadError:
                    continue


def test_a_failed_handshake_sends_its_alert(context: AlertingContext) -> None:
    accepted = Accepted()
    with pytest.raises(ssl.SSLError) as raised:
        Handshake(context, accepted).shake()
    assert accepted.sent[0] == _ALERT
    assert cause_of_failure(raised.value) == "peer did not return a certificate"


@pytest.mark.parametrize("accepted", [None, Accepted(is_broken=True)])
def test_a_socket_that_takes_nothing_is_no_error(
    accepted: Accepted | None, context: AlertingContext
) -> None:
    with pytest.raises(ssl.SSLError):
        Handshake(context, accepted).shake()


def test_a_handshake_that_is_done_sends_nothing_beside_it(context: AlertingContext) -> None:
    context.verify_mode = ssl.CERT_NONE
    accepted = Accepted()
    Handshake(context, accepted).shake()
    assert accepted.sent == b""


@pytest.mark.parametrize(
    ("error", "cause"),
    [
        (ssl.SSLError(1, "words"), "sslerror"),
        (ConnectionAbortedError("SSL handshake is taking longer"), "it took too long"),
        (ConnectionResetError(), None),
        (RuntimeError("what uvloop says of a closed socket"), None),
    ],
)
def test_a_failure_has_a_cause_unless_the_client_has_gone(
    error: Exception, cause: str | None
) -> None:
    assert cause_of_failure(error) == cause


def test_what_is_wrong_with_a_certificate_is_part_of_the_cause() -> None:
    error = ssl.SSLCertVerificationError(1, "words")
    error.verify_message = "certificate has expired"
    assert cause_of_failure(error) == "certificate verify failed: certificate has expired"
