"""Parses certificates: principal, validity, matching private key.

Nothing here reads a file or a clock.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import field
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization

from quorate.records.value_types import keyword_value_type

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes

# Days before the expiry at which a warning is due; 0 is the expiry itself.
EXPIRY_DAYS: Final = (0, 1, 7, 14)
_SHOWN_MAX: Final = 200


class CertificateError(ValueError):
    """PEM that cannot be used; the message gives reason and remedy, and names no file."""


class PrivateKeyError(CertificateError):
    """A private key that cannot be used."""


@keyword_value_type
class KeyPair:
    """A certificate chain with the key of its first certificate, as PEM; times are UTC."""

    chain_pem: bytes
    key_pem: bytes = field(repr=False)
    principal: str
    not_before: dt.datetime
    not_after: dt.datetime


def read_pair(chain: bytes, key: bytes, password: str = "") -> KeyPair:
    """Parse PEM, ignoring other content. Raises CertificateError, PrivateKeyError."""
    certificates = read_certificates(chain)
    private = _read_key(key, password)
    try:
        return _pair(certificates, private)
    except CertificateError:
        raise
    except (ValueError, UnsupportedAlgorithm) as error:
        # Some parts of a certificate are parsed only when they are accessed.
        raise CertificateError(f"the certificate is of no use: {error}") from error


def _pair(certificates: list[x509.Certificate], private: PrivateKeyTypes) -> KeyPair:
    own = certificates[0]
    if own.public_key() != private.public_key():
        raise CertificateError(
            "the certificate does not belong to the private key: put the own certificate "
            "first, and the key that it was made for beside it"
        )
    return KeyPair(
        chain_pem=b"".join(c.public_bytes(serialization.Encoding.PEM) for c in certificates),
        key_pem=private.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        ),
        principal=_principal(own),
        not_before=own.not_valid_before_utc,
        not_after=own.not_valid_after_utc,
    )


def read_certificates(pem: bytes) -> list[x509.Certificate]:
    """Parse all certificates of a PEM file, at least one. Raises CertificateError."""
    try:
        return x509.load_pem_x509_certificates(pem)
    except ValueError:
        raise CertificateError(
            "there is no certificate in it: PEM is needed, with BEGIN CERTIFICATE"
        ) from None


def _read_key(pem: bytes, password: str) -> PrivateKeyTypes:
    is_encrypted = b"ENCRYPTED" in pem
    if is_encrypted and not password:
        raise PrivateKeyError("the private key is encrypted: set ssl.key.password")
    try:
        return serialization.load_pem_private_key(pem, password.encode() if is_encrypted else None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        reason = (
            "the private key cannot be decrypted: check ssl.key.password"
            if is_encrypted
            else "there is no private key in it: PEM is needed, with BEGIN PRIVATE KEY"
        )
        raise PrivateKeyError(reason) from None


def check_dates(pair: KeyPair, now: dt.datetime) -> None:
    """Raise CertificateError for a certificate that has expired or is not valid yet."""
    if now >= pair.not_after:
        raise CertificateError(
            f"the certificate of {pair.principal} expired on {format_time(pair.not_after)}: "
            "renew it"
        )
    if now < pair.not_before:
        raise CertificateError(
            f"the certificate of {pair.principal} is not valid before "
            f"{format_time(pair.not_before)}: check the clock of this machine"
        )


def format_time(moment: dt.datetime) -> str:
    """Format a time in UTC, to the second, as `2026-11-21T09:00:00Z`."""
    return moment.astimezone(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


# --- expiry ---------------------------------------------------------------------------------------


def expiry_threshold(not_after: dt.datetime, now: dt.datetime) -> int | None:
    """Return the least of EXPIRY_DAYS that covers the time left; None if none does."""
    left = not_after - now
    return next((days for days in EXPIRY_DAYS if left <= dt.timedelta(days=days)), None)


class ExpiryWatch:
    """Remembers the last reported threshold, so that each is reported once."""

    def __init__(self) -> None:
        self._told: tuple[dt.datetime, int] | None = None

    def check(self, not_after: dt.datetime, now: dt.datetime) -> int | None:
        """Return the threshold that has been reached since the last call, or None."""
        threshold = expiry_threshold(not_after, now)
        if threshold is None or (not_after, threshold) == self._told:
            return None
        self._told = (not_after, threshold)
        return threshold


# --- identity -------------------------------------------------------------------------------------


def principal_of(pem: bytes) -> str:
    """Return Kafka's principal of a certificate: `User:` and its subject as of RFC 2253.

    Raises CertificateError for a subject that cannot be read.
    """
    principal = _principal_or_problem(pem)
    if isinstance(principal, CertificateError):
        raise CertificateError(str(principal))
    return principal


@lru_cache(maxsize=1024)
def _principal_or_problem(pem: bytes) -> str | CertificateError:
    """Return the principal or the error; both are cached.

    A client may call any number of times with an unusable certificate.
    """
    try:
        return _principal(x509.load_pem_x509_certificate(pem))
    except CertificateError as error:
        return error.with_traceback(None)
    except (ValueError, TypeError) as error:
        return CertificateError(f"the certificate cannot be read: {str(error)[:_SHOWN_MAX]}")


def _principal(certificate: x509.Certificate) -> str:
    try:
        return f"User:{certificate.subject.rfc4514_string()}"
    except (ValueError, TypeError) as error:
        # Old CAs write text of their own country as T61String, and bits instead of text.
        raise CertificateError(
            "the subject of the certificate cannot be read as text "
            f"({str(error)[:_SHOWN_MAX]}): issue it with a subject of UTF8String"
        ) from None
