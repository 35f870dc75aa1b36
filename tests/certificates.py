"""Authorities and certificates that tests make for themselves, with quick elliptic keys."""

from __future__ import annotations

import datetime as dt
import ipaddress
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

if TYPE_CHECKING:
    from pathlib import Path

DAY: Final = dt.timedelta(days=1)
LOOPBACK: Final = "127.0.0.1"


@dataclass(frozen=True)
class Leaf:
    """A certificate with its key, as PEM."""

    certificate: bytes
    key: bytes

    @property
    def pem(self) -> bytes:
        """Both in one, as Kafka's `ssl.keystore.location` has them."""
        return self.certificate + self.key

    def write(self, path: Path) -> Path:
        """Put both into one file; returns its path."""
        path.write_bytes(self.pem)
        return path


class Authority:
    """A certificate authority that lives as long as the test."""

    def __init__(self, name: str = "test authority") -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])

    @cached_property
    def pem(self) -> bytes:
        """What goes into a trust store."""
        now = dt.datetime.now(dt.UTC)
        key_id = x509.SubjectKeyIdentifier.from_public_key(self._key.public_key())
        return (
            x509.CertificateBuilder()
            .subject_name(self._name)
            .issuer_name(self._name)
            .public_key(self._key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - 400 * DAY)
            .not_valid_after(now + 400 * DAY)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(key_id, critical=False)
            .sign(self._key, hashes.SHA256())
            .public_bytes(serialization.Encoding.PEM)
        )

    def leaf(
        self,
        subject: x509.Name | str,
        *,
        valid_for: dt.timedelta = 90 * DAY,
        age: dt.timedelta = 100 * DAY,
    ) -> Leaf:
        """A certificate for 127.0.0.1, both as server and as client.

        `subject` is a name, or the common name; `valid_for` may be negative, up to `age`.
        """
        if isinstance(subject, str):
            subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, subject)])
        key = ec.generate_private_key(ec.SECP256R1())
        now = dt.datetime.now(dt.UTC)
        loopback = x509.IPAddress(ipaddress.ip_address(LOOPBACK))
        usages = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
        certificate = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - age)
            .not_valid_after(now + valid_for)
            .add_extension(x509.SubjectAlternativeName([loopback]), critical=False)
            .add_extension(x509.ExtendedKeyUsage(usages), critical=False)
            .sign(self._key, hashes.SHA256())
        )
        return Leaf(
            certificate.public_bytes(serialization.Encoding.PEM),
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            ),
        )
