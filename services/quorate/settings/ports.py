"""Words for a port that cannot be had: which, why, and which setting names it."""

from __future__ import annotations

import contextlib
import socket
from typing import TYPE_CHECKING

from quorate.settings.properties import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextlib.contextmanager
def taking_port(setting: str, host: str, port: int) -> Iterator[None]:
    """Whatever fails in here becomes a ConfigError that names the setting, address and remedy."""
    try:
        yield
    except (OSError, RuntimeError) as error:
        shown = f"[{host}]" if ":" in host else host
        where = f"{shown}:{port}" if host else f"port {port}"
        cause = _refusal(host, port) or error
        raise ConfigError(
            f"{setting}: {where} cannot be listened on: {_words(cause)}: stop what listens there, "
            "or choose another address"
        ) from cause


def require_free(host: str, port: int) -> None:
    """Raises OSError where the system lets nobody listen there."""
    refusal = _refusal(host, port)
    if refusal is not None:
        raise refusal


def why_not(host: str, port: int) -> str | None:
    """The system's words against this address; None when it is free."""
    refusal = _refusal(host, port)
    return None if refusal is None else _words(refusal)


def _refusal(host: str, port: int) -> OSError | None:
    """What the system says against this address, which gRPC keeps to itself."""
    try:
        found = socket.getaddrinfo(
            host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        for family, kind, protocol, _, address in found:
            with socket.socket(family, kind, protocol) as probe:
                # A port that a finished process left in TIME_WAIT is free.
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                probe.bind(address)
                probe.listen()
    except OSError as error:
        return error
    return None


def _words(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)
