"""Parses `grpc.transport`: our own HTTP/2 transport or grpcio."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from quorate.settings.properties import Settings

TRANSPORT: Final = "grpc.transport"


class Transport(StrEnum):
    """The implementations of gRPC, the same on the wire; the default comes first."""

    H2 = "h2"
    GRPCIO = "grpcio"


DEFAULT_TRANSPORT: Final = Transport.H2


def read_transport(settings: Settings) -> Transport:
    """The transport of a process's listeners and channels. Raises ConfigError."""
    return Transport(settings.choice(TRANSPORT, tuple(Transport)))
