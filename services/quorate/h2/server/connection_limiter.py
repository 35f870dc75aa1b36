"""Bounds for the connections of a listener, by address, established or not.

One address may hold half of the slots. Addresses are named by `client_of` in h2/peer_name.py: hosts
in an IPv6 network of 64 bits share one. A few slots are reserved for preferred addresses, from
which voters have called: others may take all other slots, and the voters still reach each other.
Connections that are not established have slots of their own, so that clients which never finish
their handshake, and have no certificate, keep out none that does.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Container

# A handshake that has had this long may be ended for a newer one where slots are short.
PATIENCE_S: Final = 1.0


@dataclass(slots=True)
class ConnectionStats:
    """Counts of one process since it was started."""

    refused_connections: int = 0
    failed_handshakes: int = 0


class AddressSlots:
    """Slots for connections, of which one address may hold half."""

    def __init__(
        self, slots_max: int, *, reserved: int = 0, preferred: Container[str] = ()
    ) -> None:
        """Addresses in `preferred` may hold the `reserved` ones beside the others."""
        self._slots_max = slots_max
        self._reserved = reserved
        self._preferred = preferred
        self._of_one_max = max(1, slots_max // 2)
        self._held: Counter[str] = Counter()
        self.count = 0

    def held_by(self, address: str) -> int:
        """The number of slots that an address holds."""
        return self._held.get(address, 0)

    def is_at_limit(self, address: str) -> bool:
        """True if an address holds as many slots as one may."""
        extra = self._reserved if address in self._preferred else 0
        return self.held_by(address) >= self._of_one_max + extra

    def has_room(self, address: str) -> bool:
        """True if an address may take one more."""
        kept = 0 if address in self._preferred else self._reserved
        return self.count < self._slots_max - kept and not self.is_at_limit(address)

    def take(self, address: str) -> None:
        """Take a slot."""
        self._held[address] += 1
        self.count += 1

    def give_back(self, address: str) -> None:
        """Give a slot back."""
        self.count -= 1
        self._held[address] -= 1
        if not self._held[address]:
            del self._held[address]


class PendingHandshakes:
    """Connections that are not established yet. Times are handed in."""

    def __init__(self, slots: AddressSlots) -> None:
        self._slots = slots
        # The oldest is the first.
        self._pending: dict[asyncio.Task[None], tuple[str, float]] = {}

    @property
    def tasks(self) -> list[asyncio.Task[None]]:
        """The handshakes under way."""
        return list(self._pending)

    def make_room(self, address: str, now_s: float) -> bool:
        """True if one more may begin; a slow one is ended for it if there is need."""
        if self._slots.has_room(address):
            return True
        is_own_limit = self._slots.is_at_limit(address)
        for task, (client, begun_s) in self._pending.items():
            if is_own_limit and client != address:
                continue
            if now_s - begun_s < PATIENCE_S:
                return False
            task.cancel()
            self._ended(task)
            return self._slots.has_room(address)
        return False

    def begin(self, task: asyncio.Task[None], address: str, now_s: float) -> None:
        """A handshake has begun, in this task."""
        self._slots.take(address)
        self._pending[task] = (address, now_s)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        pending = self._pending.pop(task, None)
        if pending is not None:
            self._slots.give_back(pending[0])
