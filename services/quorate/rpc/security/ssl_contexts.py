"""ssl contexts for our own HTTP/2 transport.

A server's context checks the files before each handshake, like gRPC's credentials: every new
connection uses the newest certificates, and existing connections continue.
"""

from __future__ import annotations

import os
import ssl
import tempfile
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from quorate.h2.tls_alerts import AlertingContext

if TYPE_CHECKING:
    from collections.abc import Iterator

    from quorate.rpc.security.tls_files import TlsFiles, TlsMaterial

_PROTOCOLS: Final = ["h2"]
_CIPHERS: Final = "ECDHE+AESGCM:ECDHE+CHACHA20"


def server_context(tls: TlsFiles) -> ssl.SSLContext:
    """Create the context of a listener."""
    given = tls.current()
    context = newest = _server_context(given, asks_clients=tls.requires_client_certificates)

    def choose(session: ssl.SSLObject, _: str | None, __: ssl.SSLContext) -> None:
        nonlocal given, newest
        material = tls.current()
        if material is not given:
            newest = _server_context(material, asks_clients=tls.requires_client_certificates)
            given = material
        session.context = newest

    # Called for every handshake, also if the client names no server.
    context.sni_callback = choose
    return context


def _server_context(tls_material: TlsMaterial, *, asks_clients: bool) -> ssl.SSLContext:
    context = AlertingContext(ssl.PROTOCOL_TLS_SERVER)
    # A resumed session would present no certificate.
    context.num_tickets = 0
    context.options |= ssl.OP_NO_TICKET
    _prepare(context, tls_material)
    if asks_clients:
        context.verify_mode = ssl.CERT_REQUIRED
        if tls_material.authorities_pem is not None:
            context.load_verify_locations(cadata=tls_material.authorities_pem.decode())
    return context


def client_context(tls: TlsFiles) -> ssl.SSLContext:
    """Create the context of a channel, which keeps its certificates for its lifetime."""
    material = tls.current()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    # A host name that is only in the subject does not count (RFC 9525, section 2).
    context.hostname_checks_common_name = False
    _prepare(context, material)
    if material.authorities_pem is None:
        context.load_default_certs()
    else:
        context.load_verify_locations(cadata=material.authorities_pem.decode())
    return context


def _prepare(context: ssl.SSLContext, tls_material: TlsMaterial) -> None:
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_ciphers(_CIPHERS)
    context.set_alpn_protocols(_PROTOCOLS)
    pair = tls_material.pair
    if pair is not None:
        with _file_of(pair.key_pem + b"\n" + pair.chain_pem) as path:
            context.load_cert_chain(path)


@contextmanager
def _file_of(data: bytes) -> Iterator[str]:
    """Provide a private file with these bytes: ssl reads keys from files only."""
    if hasattr(os, "memfd_create"):
        with open(os.memfd_create("pair"), "wb") as file:
            file.write(data)
            file.flush()
            yield f"/proc/self/fd/{file.fileno()}"
        return
    with tempfile.NamedTemporaryFile() as file:
        file.write(data)
        file.flush()
        yield file.name
