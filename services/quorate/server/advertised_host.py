"""Resolves the host that a controller advertises; the controller is not ready until it resolves.

Only callers notice a name that does not resolve. The controller itself calls its peers and is in
contact with them, so it would appear healthy while a roll-out breaks the whole quorum.
"""

from __future__ import annotations

import asyncio
import logging
import time
from typing import TYPE_CHECKING, Final

from quorate.h2.name_resolver import RESOLVER, NameLookupError, NameResolver, is_address

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from quorate.raft.api import Random

log = logging.getLogger(__name__)
FIRST_WAIT_S: Final = 0.1
LONGEST_WAIT_S: Final = 5.0
# The time limit of one lookup in seconds.
LOOKUP_S: Final = 10.0
# Seconds: the name of a new pod may take a while to propagate.
WARNED_AFTER_S: Final = 10.0


class AdvertisedHost:
    """Looks the advertised host up until it has resolved once. Later failures do not matter."""

    def __init__(
        self,
        host: str,
        random: Random,
        *,
        resolver: NameResolver = RESOLVER,
        clock: Callable[[], float] = time.monotonic,
        pause: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._host, self._random = host, random
        self._resolver, self._clock, self._pause = resolver, clock, pause
        # An address needs no lookup.
        self.is_resolved = is_address(host)

    async def resolve(self) -> None:
        """Look the host up until it resolves, with growing randomized waits."""
        begun_s, wait_s = self._clock(), FIRST_WAIT_S
        while not self.is_resolved:
            try:
                await self._resolver.resolve(self._host, limit_s=LOOKUP_S)
            except Exception as error:
                # Another exception is a defect of this program: it must not end the lookups
                # silently.
                is_known = isinstance(error, NameLookupError)
                if self._clock() - begun_s >= WARNED_AFTER_S:
                    log.warning(
                        "advertised.listeners: %s: peers and clients cannot call this controller, "
                        "and it is not ready until they can: is this host right (on Kubernetes: "
                        "clusterDomain; after a correction delete the pods of the old revision, "
                        "pod 0 first)?",
                        error if is_known else f"{self._host} cannot be resolved: {error!r}",
                        extra={"repeats": ("advertised host", self._host)},
                    )
                await self._pause(wait_s / 2 * (1 + self._random.random()))
                wait_s = min(2 * wait_s, LONGEST_WAIT_S)
            else:
                self.is_resolved = True
