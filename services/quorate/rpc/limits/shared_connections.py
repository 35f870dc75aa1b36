"""State about connections that the listeners of a process share: voter addresses, statistics."""

from __future__ import annotations

from dataclasses import field
from typing import Final

from quorate.h2.peer_name import client_of
from quorate.h2.server.connection_limiter import ConnectionStats
from quorate.records.value_types import value_type

# A quorum has far fewer voters; each may come from several addresses over time.
ADDRESSES_MAX: Final = 32


class VoterAddresses:
    """The most recent addresses from which voters have called.

    A listener cannot identify a caller before the first request, so it reserves some connections
    for addresses that it knows.
    """

    def __init__(self) -> None:
        # The newest is the last.
        self._known: dict[str, None] = {}

    def note(self, peer: str) -> None:
        """Note that a voter has called from `peer`, in gRPC's format."""
        client = client_of(peer)
        self._known.pop(client, None)
        self._known[client] = None
        if len(self._known) > ADDRESSES_MAX:
            del self._known[next(iter(self._known))]

    def __contains__(self, client: object) -> bool:
        """True if a voter has called from this address, named as `client_of` names it."""
        return client in self._known


@value_type
class Connections:
    """Connection state shared by all listeners of a process."""

    preferred: VoterAddresses = field(default_factory=VoterAddresses)
    stats: ConnectionStats = field(default_factory=ConnectionStats)
