"""Authorities and certificates that tests make for themselves, with quick elliptic keys."""

from __future__ import annotations

import datetime as dt
import ipaddress
import ssl
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

if TYPE_CHECKING:
    from pathlib import Path

_SEQUENCE: Final = 0x30
_BIT_STRING: Final = 0x03
_ECDSA_WITH_SHA256: Final = bytes.fromhex("300a06082a8648ce3d040302")
# The common name of `leaf("Mxller")`, and names instead of it that cryptography refuses to read: a
# T61String in Latin-1, and bits.
COMMON_NAME: Final = b"\x0c\x06Mxller"
UNREADABLE: Final = (b"\x14\x06M\xfcller", b"\x03\x06\x00xller")
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
        """The certificate as a trust store takes it."""
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

    def patched(self, leaf: Leaf, before: bytes, after: bytes) -> Leaf:
        """The same certificate with other bytes of the same length in it, signed again.

        It may be one that cryptography would never make, as other authorities do.
        """
        assert len(before) == len(after)
        signed = x509.load_pem_x509_certificate(leaf.certificate).tbs_certificate_bytes
        assert signed.count(before) == 1
        signed = signed.replace(before, after)
        signature = self._key.sign(signed, ec.ECDSA(hashes.SHA256()))
        bits = _der(_BIT_STRING, b"\0" + signature)
        der = _der(_SEQUENCE, signed + _ECDSA_WITH_SHA256 + bits)
        return Leaf(ssl.DER_cert_to_PEM_cert(der).encode(), leaf.key)

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


def _der(tag: int, content: bytes) -> bytes:
    """A value of ASN.1 as DER writes it."""
    size = len(content)
    if size < 0x80:
        return bytes([tag, size]) + content
    length = size.to_bytes((size.bit_length() + 7) // 8, "big")
    return bytes([tag, 0x80 | len(length)]) + length + content
