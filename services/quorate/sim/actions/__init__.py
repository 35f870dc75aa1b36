"""Actions on a simulated cluster, by the keyword each has in a case.

Each is a frozen value that a case can record. `KINDS` has all of them by keyword.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from quorate.sim.actions import (
    admin_requests,
    client_requests,
    delayed_messages,
    disks,
    files,
    invalid_requests,
    network,
    processes,
)

if TYPE_CHECKING:
    from quorate.sim.action_runner import Action

KINDS: Final[dict[str, type[Action]]] = {
    **processes.KINDS,
    **disks.KINDS,
    **files.KINDS,
    **network.KINDS,
    **admin_requests.KINDS,
    **client_requests.KINDS,
    **invalid_requests.KINDS,
    **delayed_messages.KINDS,
}
