"""Contexts of our own transport: what is in the files when a handshake begins is what holds."""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING

import pytest

from quorate.rpc.security.ssl_contexts import client_context, server_context
from quorate.rpc.security.tls_files import TlsFiles
from quorate.settings.tls import ClientAuth, TlsSettings
from tests.certificates import Authority, Leaf

if TYPE_CHECKING:
    from pathlib import Path

OURS, THEIRS = Authority("ours"), Authority("theirs")


class Party:
    """A server's files, changed by the test, and clients that shake hands with it in memory."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._now_s = 0.0
        self.put(OURS.leaf("first"))
        keystore = str(folder / "tls.pem")
        settings = TlsSettings(
            certificate_chain_file=keystore,
            key_file=keystore,
            ca_file=str(folder / "ca.pem"),
            client_auth=ClientAuth.REQUIRED,
        )
        self.context = server_context(TlsFiles(settings, monotonic_s=lambda: self._now_s))

    def put(self, leaf: Leaf, authority: Authority = OURS) -> None:
        leaf.write(self._folder / "tls.pem")
        (self._folder / "ca.pem").write_bytes(authority.pem)
        self._now_s += 10

    def shake_hands(self, authority: Authority = OURS, protocol: str = "h2") -> ssl.SSLObject:
        """The server's end. Raises SSLError where it does not trust the client."""
        client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        client.check_hostname = False
        client.verify_mode = ssl.CERT_NONE
        client.set_alpn_protocols([protocol])
        client.load_cert_chain(authority.leaf("client").write(self._folder / "client.pem"))
        to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
        ends = (
            client.wrap_bio(to_client, to_server),
            self.context.wrap_bio(to_server, to_client, server_side=True),
        )
        for _ in range(4):
            for end in ends:
                try:
                    end.do_handshake()
                except ssl.SSLWantReadError:
                    continue
        self.shown = ends[0].getpeercert(binary_form=True)
        return ends[1]


@pytest.fixture
def party(tmp_path: Path) -> Party:
    return Party(tmp_path)


def test_h2_is_agreed_on_and_the_client_is_known(party: Party) -> None:
    session = party.shake_hands()
    assert session.selected_alpn_protocol() == "h2"
    assert session.getpeercert(binary_form=True)


def test_who_does_not_offer_h2_has_agreed_on_nothing(party: Party) -> None:
    assert party.shake_hands(protocol="http/1.1").selected_alpn_protocol() is None


def test_the_newest_certificate_is_shown(party: Party) -> None:
    party.shake_hands()
    before = party.shown
    party.put(OURS.leaf("second"))
    party.shake_hands()
    assert party.shown != before


def test_an_authority_that_is_taken_away_is_trusted_no_more(party: Party) -> None:
    with pytest.raises(ssl.SSLCertVerificationError):
        party.shake_hands(THEIRS)
    party.put(OURS.leaf("second"), THEIRS)
    party.shake_hands(THEIRS)
    with pytest.raises(ssl.SSLCertVerificationError):
        party.shake_hands(OURS)


def test_a_server_is_not_known_by_its_common_name(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_bytes(OURS.pem)
    context = client_context(TlsFiles(TlsSettings(ca_file=str(tmp_path / "ca.pem"))))
    assert context.check_hostname
    assert not context.hostname_checks_common_name
