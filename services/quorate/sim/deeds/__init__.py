"""Deeds: what is done to a world, each a frozen value that a case can write down.

`KINDS` are all of them, by the word that a case has for each.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from quorate.sim.deeds import asking, disks, files, in_vain, late, network, processes, using

if TYPE_CHECKING:
    from quorate.sim.stage import Deed

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
