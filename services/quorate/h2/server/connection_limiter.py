"""Limits on the connections of a listener, by address, established or not.

One address may hold half of the slots. Addresses are named by `client_of` in h2/peer_name.py: hosts
in an IPv6 network of 64 bits share one. A few slots are reserved for preferred addresses, from
which voters have called: if others use all other slots, the voters can still reach each other.
Connections that are not established have separate slots, so that clients without a certificate that
never finish their handshake do not keep out those that do.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Container

# Seconds after which a handshake may be ended for a newer one if slots are exhausted.
PATIENCE_S: Final = 1.0


@dataclass(slots=True)
class ConnectionStats:
    """Counters of one process since its start."""

    refused_connections: int = 0
    failed_handshakes: int = 0


class AddressSlots:
    """Slots for connections; one address may hold half of them."""

    def __init__(
        self, slots_max: int, *, reserved: int = 0, preferred: Container[str] = ()
    ) -> None:
        """Addresses in `preferred` may also hold the `reserved` slots."""
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
        """True if an address may take one more slot."""
        kept = 0 if address in self._preferred else self._reserved
        return self.count < self._slots_max - kept and not self.is_at_limit(address)

    def take(self, address: str) -> None:
        """Acquire a slot."""
        self._held[address] += 1
        self.count += 1

    def give_back(self, address: str) -> None:
        """Release a slot."""
        self.count -= 1
        self._held[address] -= 1
        if not self._held[address]:
            del self._held[address]


class PendingHandshakes:
    """Connections that are not established yet. Times are arguments."""

    def __init__(self, slots: AddressSlots) -> None:
        self._slots = slots
        # The oldest is the first.
        self._pending: dict[asyncio.Task[None], tuple[str, float]] = {}

    @property
    def tasks(self) -> list[asyncio.Task[None]]:
        """The handshakes in progress."""
        return list(self._pending)

    def make_room(self, address: str, now_s: float) -> bool:
        """True if one more may begin; if necessary, end a slow one for it."""
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
        """Register the handshake that runs in this task."""
        self._slots.take(address)
        self._pending[task] = (address, now_s)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        pending = self._pending.pop(task, None)
        if pending is not None:
            self._slots.give_back(pending[0])
