"""Addresses to listen on, and explanations why a port cannot be bound."""

from __future__ import annotations

import contextlib
import errno
import socket
from typing import TYPE_CHECKING, Final, TypeAlias

from quorate.settings.properties import ConfigError
from quorate.settings.regular_files import MORE_FILES

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

# One host, or the addresses of one.
Hosts: TypeAlias = str | tuple[str, ...]
# The address belongs to another machine, or to a family that this machine lacks.
_FOREIGN: Final = (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT)


def each_of(hosts: Hosts) -> tuple[str, ...]:
    """One host, or each of several addresses."""
    return (hosts,) if isinstance(hosts, str) else hosts


def any_address() -> str:
    """The wildcard address of this machine: `::`, which accepts IPv4 as well.

    0.0.0.0 if the machine has no IPv6.
    """
    try:
        with socket.socket(socket.AF_INET6, socket.SOCK_STREAM) as probe:
            probe.bind(("::", 0))
    except OSError:
        return "0.0.0.0"  # noqa: S104 - what was asked for, on a machine without IPv6
    return "::"


def own_addresses(addresses: Sequence[str]) -> tuple[str, ...]:
    """The IP addresses among these that this machine can listen on."""
    return tuple(each for each in addresses if not _is_foreign(each))


def _is_foreign(address: str) -> bool:
    refusal = _refusal(address, 0)
    return refusal is not None and refusal.errno in _FOREIGN


@contextlib.contextmanager
def binding_port(setting: str, hosts: Hosts, port: int) -> Iterator[None]:
    """Turn a failure in this block into a ConfigError with setting, address and remedy."""
    try:
        yield
    except (OSError, RuntimeError) as error:
        refusals = [(host, _refusal(host, port)) for host in each_of(hosts)]
        host, refusal = next((each for each in refusals if each[1] is not None), refusals[0])
        shown = f"[{host}]" if ":" in host else host
        where = f"{shown}:{port}" if host else f"port {port}"
        cause = refusal or error
        remedy = "stop what listens there, or choose another address"
        if isinstance(cause, OSError) and cause.errno == errno.EMFILE:
            remedy = MORE_FILES
        raise ConfigError(
            f"{setting}: {where} cannot be listened on: {_words(cause)}: {remedy}"
        ) from cause


def require_free(hosts: Hosts, port: int) -> None:
    """Raises OSError if the system lets no process listen on one of these addresses."""
    for host in each_of(hosts):
        refusal = _refusal(host, port)
        if refusal is not None:
            raise refusal


def bind_problem(host: str, port: int) -> str | None:
    """The system's error text for this address; None if it is free."""
    refusal = _refusal(host, port)
    return None if refusal is None else _words(refusal)


def _refusal(host: str, port: int) -> OSError | None:
    """The system's error for this address, which gRPC does not report."""
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
