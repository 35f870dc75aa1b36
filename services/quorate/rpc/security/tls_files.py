"""TLS credentials from files that are reloaded while the process runs.

The contents are compared about once a second, on use: a server checks before each handshake, a
client before a call. So a mount whose symbolic links are swapped (a Secret of Kubernetes) is
detected like a file that was written. Unusable files are logged, and those read before stay in use.
"""

from __future__ import annotations

import codecs
import datetime as dt
import logging
import threading
import time
from typing import TYPE_CHECKING, Final

import grpc

from quorate.records.value_types import value_type
from quorate.rpc.security.certificates import (
    CertificateError,
    ExpiryWatch,
    KeyPair,
    PrivateKeyError,
    check_dates,
    format_time,
    read_certificates,
    read_pair,
)
from quorate.settings.regular_files import NotRegularFileError, read_regular
from quorate.settings.tls import ClientAuth, TlsError, TlsSettings

if TYPE_CHECKING:
    from collections.abc import Callable

log = logging.getLogger(__name__)
POLL_S: Final = 1.0


@value_type
class TlsMaterial:
    """The contents of the files when they were last usable. `generation` rises with each change."""

    generation: int
    pair: KeyPair | None
    authorities_pem: bytes | None


def _now() -> dt.datetime:
    return dt.datetime.now(dt.UTC)


class TlsFiles:
    """The certificates of one party; thread-safe, because gRPC's threads use them, too."""

    def __init__(
        self,
        settings: TlsSettings,
        *,
        now: Callable[[], dt.datetime] = _now,
        monotonic_s: Callable[[], float] = time.monotonic,
    ) -> None:
        """Read the files. Raises TlsError."""
        self.settings = settings
        self._now = now
        self._monotonic_s = monotonic_s
        self._lock = threading.Lock()
        self._looked_s = monotonic_s()
        self._contents = _read(settings)
        self._tls_material = _understood(settings, self._contents, generation=1, now=now())
        self._complaint: str | None = None
        self._expiry = ExpiryWatch()

    def current(self) -> TlsMaterial:
        """Return the newest usable contents; the files are checked at most once a second."""
        if self._monotonic_s() - self._looked_s >= POLL_S:
            with self._lock:
                self._look()
        return self._tls_material

    def _look(self) -> None:
        self._looked_s = self._monotonic_s()
        try:
            contents = _read(self.settings)
            # If two reads differ a write is in progress: the next check sees its end.
            if contents == self._contents or contents != _read(self.settings):
                return
            generation = self._tls_material.generation + 1
            material = _understood(self.settings, contents, generation=generation, now=self._now())
        except TlsError as error:
            if str(error) != self._complaint:
                self._complaint = str(error)
                log.error("new certificates are not used, the old ones stay: %s", error)  # noqa: TRY400
            return
        self._contents, self._tls_material, self._complaint = contents, material, None
        until = "-" if material.pair is None else format_time(material.pair.not_after)
        log.info("certificates were read anew", extra={"valid_until": until})

    @property
    def requires_client_certificates(self) -> bool:
        """True if a listener requires client certificates, so that callers have principals."""
        return self.settings.client_auth is ClientAuth.REQUIRED

    def server_credentials(self) -> grpc.ServerCredentials:
        """Create the credentials of a listener: new connections use the current certificate."""
        given = self.current()

        def newer() -> grpc.ServerCertificateConfiguration | None:
            nonlocal given
            material = self.current()
            if material is given:
                return None
            given = material
            return _server_configuration(material)

        return grpc.dynamic_ssl_server_credentials(
            _server_configuration(given),
            newer,  # type: ignore[arg-type]  # the stubs do not know that None is "no change"
            require_client_authentication=self.requires_client_certificates,
        )

    def channel_credentials(self) -> grpc.ChannelCredentials:
        """Create the credentials of a channel, which keeps them for its lifetime."""
        material = self.current()
        pair = material.pair
        return grpc.ssl_channel_credentials(
            material.authorities_pem,
            None if pair is None else pair.key_pem,
            None if pair is None else pair.chain_pem,
        )

    @property
    def expires_s(self) -> float | None:
        """The expiry of the own certificate in seconds since 1970; None without one."""
        pair = self.current().pair
        return None if pair is None else pair.not_after.timestamp()

    def expiry_warning(self) -> str | None:
        """Return a warning once for each threshold: expiry within 14, 7 or 1 days, or expired."""
        pair = self.current().pair
        if pair is None:
            return None
        threshold = self._expiry.check(pair.not_after, self._now())
        if threshold is None:
            return None
        when = format_time(pair.not_after)
        if threshold == 0:
            said = f"expired on {when}: nobody accepts it any more"
        else:
            unit = "day" if threshold == 1 else "days"
            said = f"expires within {threshold} {unit}, on {when}"
        return f"the certificate in {self.settings.named_chain} {said}; renew it in place"


_Contents = tuple[bytes, bytes, bytes]


def _read(settings: TlsSettings) -> _Contents:
    """Return the bytes of chain, key and authorities; empty for files that are not set."""
    return (
        _read_file(settings.certificate_chain_file, settings.named_chain),
        _read_file(settings.key_file, settings.named_key),
        _read_file(settings.ca_file, settings.named_authorities),
    )


def _read_file(path: str, named: str) -> bytes:
    if not path:
        return b""
    try:
        # A parser that looks for a line with `-----BEGIN` would miss the first one after a BOM.
        return read_regular(path).removeprefix(codecs.BOM_UTF8)
    except (OSError, NotRegularFileError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise TlsError(f"{named}: {reason}: name a readable PEM file") from error


def _understood(
    settings: TlsSettings, contents: _Contents, *, generation: int, now: dt.datetime
) -> TlsMaterial:
    chain, key, authorities = contents
    pair, named = None, settings.named_chain
    try:
        if settings.certificate_chain_file:
            pair = read_pair(chain, key, settings.key_password)
            check_dates(pair, now)
        if settings.ca_file:
            named = settings.named_authorities
            read_certificates(authorities)
    except PrivateKeyError as error:
        raise TlsError(f"{settings.named_key}: {error}") from error
    except CertificateError as error:
        raise TlsError(f"{named}: {error}") from error
    return TlsMaterial(generation, pair, authorities if settings.ca_file else None)


def _server_configuration(tls_material: TlsMaterial) -> grpc.ServerCertificateConfiguration:
    assert tls_material.pair is not None, "a listener without a certificate"
    return grpc.ssl_server_certificate_configuration(
        [(tls_material.pair.key_pem, tls_material.pair.chain_pem)], tls_material.authorities_pem
    )
