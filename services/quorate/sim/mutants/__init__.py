"""Bugs on purpose: each turns a rule off, and the swarm must turn red.

A simulator that nobody has tried to fool proves nothing. `plant` replaces a few methods for as long
as a seed runs.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from quorate.sim.mutants import (
    addresses,
    disks,
    liveness,
    membership,
    queueing,
    replication,
    snapshots,
    votes,
)
from quorate.sim.mutants import corruption as spoiling
from quorate.sim.mutants import decisions as deciding
from quorate.sim.mutants import driver as driving
from quorate.sim.mutants import metadata as controlling
from quorate.sim.mutants import validation as refusing
from quorate.sim.mutants import wiped_disks as wiping

if TYPE_CHECKING:
    from collections.abc import Iterator

    from quorate.sim.mutants.mutant import Bug

BUGS: Final[dict[str, Bug]] = {
    bug.name: bug
    for bug in (
        *votes.BUGS,
        *replication.BUGS,
        *disks.BUGS,
        *snapshots.BUGS,
        *driving.BUGS,
        *liveness.BUGS,
        *controlling.BUGS,
        *membership.BUGS,
        *addresses.BUGS,
        *deciding.BUGS,
        *queueing.BUGS,
        *refusing.BUGS,
        *wiping.BUGS,
        *spoiling.BUGS,
    )
}


@contextmanager
def plant(name: str) -> Iterator[None]:
    """Run with the bug of that name. Raises KeyError when there is none."""
    patches = BUGS[name].patches
    originals = [patch.owner.__dict__[patch.name] for patch in patches]
    for patch in patches:
        setattr(patch.owner, patch.name, patch.replacement)
    try:
        yield
    finally:
        for patch, original in zip(patches, originals, strict=True):
            setattr(patch.owner, patch.name, original)
