"""Deeds: what is done to a world, each a frozen value that a case can write down.

`KINDS` are all of them, by the word that a case has for each.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from quorate.sim.actions import admin_requests as asking
from quorate.sim.actions import client_requests as using
from quorate.sim.actions import delayed_messages as late
from quorate.sim.actions import disks, files, network, processes
from quorate.sim.actions import invalid_requests as in_vain

if TYPE_CHECKING:
    from quorate.sim.action_runner import Deed

KINDS: Final[dict[str, type[Deed]]] = {
    **processes.KINDS,
    **disks.KINDS,
    **files.KINDS,
    **network.KINDS,
    **asking.KINDS,
    **using.KINDS,
    **in_vain.KINDS,
    **late.KINDS,
}
