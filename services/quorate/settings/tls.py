"""Parses Kafka's `ssl.*` settings, and two of our own.

A key may be given for one listener, as in Kafka: `listener.name.grpc.ssl.keystore.location`. The
files themselves are read later: the user that formats a directory may lack access to them.
"""

from __future__ import annotations

from dataclasses import field
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from quorate.records.value_types import keyword_value_type
from quorate.settings.properties import ConfigError

if TYPE_CHECKING:
    from quorate.settings.properties import Settings

KEYSTORE: Final = "ssl.keystore.location"
CHAIN: Final = "ssl.keystore.certificate.chain.location"
KEY: Final = "ssl.keystore.key.location"
TRUSTSTORE: Final = "ssl.truststore.location"
# Kafka takes the PEM itself here; a file can be exchanged while the process runs.
_INLINE: Final = {
    "ssl.keystore.key": KEYSTORE,
    "ssl.keystore.certificate.chain": KEYSTORE,
    "ssl.truststore.certificates": TRUSTSTORE,
}


class TlsError(Exception):
    """The files cannot be used; the message names the setting, the file and the remedy."""


class ClientAuth(StrEnum):
    """`ssl.client.auth`. gRPC for Python does not support Kafka's third value, `requested`."""

    NONE = "none"
    REQUIRED = "required"


@keyword_value_type
class TlsSettings:
    """Paths of PEM files; "" is none.

    The chain begins with the own certificate; the key may be in the same file. The CA file holds
    the certificates that authenticate the other side; without one a client uses its transport's
    list.
    """

    certificate_chain_file: str = ""
    key_file: str = ""
    key_password: str = field(default="", repr=False)
    ca_file: str = ""
    client_auth: ClientAuth = ClientAuth.NONE

    @property
    def named_chain(self) -> str:
        """The setting and the path of the certificate chain, for errors."""
        is_one_file = self.certificate_chain_file == self.key_file
        return f"{KEYSTORE if is_one_file else CHAIN} {self.certificate_chain_file}"

    @property
    def named_key(self) -> str:
        """The setting and the path of the private key, for errors."""
        is_one_file = self.certificate_chain_file == self.key_file
        return f"{KEYSTORE if is_one_file else KEY} {self.key_file}"

    @property
    def named_authorities(self) -> str:
        """The setting and the path of the trusted certificates, for errors."""
        return f"{TRUSTSTORE} {self.ca_file}"


def read_listener_tls(settings: Settings, listener_name: str) -> TlsSettings:
    """The files for a listener and for calls to its peers. Raises ConfigError."""
    return _whole(_read(settings, f"listener.name.{listener_name.lower()}."))


def read_service_tls(settings: Settings) -> TlsSettings | None:
    """The files for a process with one port that calls controllers, by `security.protocol`.

    None is plaintext. Raises ConfigError.
    """
    tls = read_client_tls(settings)
    return None if tls is None else _whole(tls)


def _whole(tls: TlsSettings) -> TlsSettings:
    """The same files, checked to be complete for a server. Raises ConfigError."""
    if not tls.certificate_chain_file:
        raise ConfigError(
            f"{KEYSTORE} is missing: name a PEM file with the certificate chain and the private key"
            f" of this node, or two files by {CHAIN} and {KEY}"
        )
    if not tls.ca_file:
        raise ConfigError(
            f"{TRUSTSTORE} is missing: name a PEM file with the certificates of the CAs that "
            "issued those of peers and clients"
        )
    return tls


def read_client_tls(settings: Settings) -> TlsSettings | None:
    """The files for a tool, by `security.protocol`; None is plaintext. Raises ConfigError."""
    protocol = settings.text("security.protocol", "PLAINTEXT")
    if protocol in ("PLAINTEXT", "GRPC"):
        return None
    if protocol not in ("SSL", "GRPC_SSL"):
        raise ConfigError(
            f"security.protocol is {protocol!r}: it must be one of PLAINTEXT, GRPC, SSL, GRPC_SSL"
        )
    return _read(settings, "")


def _read(settings: Settings, prefix: str) -> TlsSettings:
    def text(key: str, default: str = "") -> str:
        specific = prefix + key
        return settings.text(specific if prefix and settings.has(specific) else key, default)

    for inline, instead in _INLINE.items():
        if settings.has(inline) or settings.has(prefix + inline):
            raise ConfigError(f"{inline} holds PEM itself: put it into a file and set {instead}")
    for key in ("ssl.keystore.type", "ssl.truststore.type"):
        kind = text(key, "PEM")
        if kind != "PEM":
            raise ConfigError(f"{key} is {kind!r}: only PEM is read; convert the store")
    chain, key = _keystore(text(KEYSTORE), text(CHAIN), text(KEY))
    client_auth = text("ssl.client.auth", ClientAuth.NONE)
    if client_auth not in list(ClientAuth):
        remedy = f"it must be one of {', '.join(ClientAuth)}"
        if client_auth == "requested":
            remedy += "; gRPC requires a certificate or asks for none"
        raise ConfigError(f"ssl.client.auth is {client_auth!r}: {remedy}")
    return TlsSettings(
        certificate_chain_file=chain,
        key_file=key,
        key_password=text("ssl.key.password"),
        ca_file=text(TRUSTSTORE),
        client_auth=ClientAuth(client_auth),
    )


def _keystore(both: str, chain: str, key: str) -> tuple[str, str]:
    """The files of the chain and of the key, "" for neither."""
    if both and (chain or key):
        raise ConfigError(f"{KEYSTORE} and {CHAIN if chain else KEY} are both set: choose one way")
    if bool(chain) != bool(key):
        missing, given = (KEY, CHAIN) if chain else (CHAIN, KEY)
        raise ConfigError(f"{missing} is missing: {given} needs it beside itself")
    return (both, both) if both else (chain, key)
