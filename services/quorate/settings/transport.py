"""Which code speaks gRPC for a process: grpcio's, or our own; on the wire both are the same."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from quorate.settings.properties import Settings

TRANSPORT: Final = "grpc.transport"


class Transport(StrEnum):
    """The default comes first."""

    H2 = "h2"
    GRPCIO = "grpcio"


DEFAULT_TRANSPORT: Final = Transport.H2


def read_transport(settings: Settings) -> Transport:
    """The transport of a process: of its listeners, and of its channels. Raises ConfigError."""
    return Transport(settings.choice(TRANSPORT, tuple(Transport)))
