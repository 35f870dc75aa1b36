"""All mutants by name, and their application to a run.

A simulator that has never been shown to catch a bug proves nothing. `apply_mutant`
replaces a few methods while a seed runs.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from quorate.sim.mutants import (
    addresses,
    corruption,
    decisions,
    disks,
    driver,
    liveness,
    membership,
    metadata,
    queueing,
    replication,
    snapshots,
    validation,
    votes,
    wiped_disks,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from quorate.sim.mutants.mutant import Mutant

MUTANTS: Final[dict[str, Mutant]] = {
    bug.name: bug
    for bug in (
        *votes.BUGS,
        *replication.BUGS,
        *disks.BUGS,
        *snapshots.BUGS,
        *driver.BUGS,
        *liveness.BUGS,
        *metadata.BUGS,
        *membership.BUGS,
        *addresses.BUGS,
        *decisions.BUGS,
        *queueing.BUGS,
        *validation.BUGS,
        *wiped_disks.BUGS,
        *corruption.BUGS,
    )
}


@contextmanager
def apply_mutant(name: str) -> Iterator[None]:
    """Apply a mutant within the block. Raises KeyError for an unknown name."""
    patches = MUTANTS[name].patches
    originals = [patch.owner.__dict__[patch.name] for patch in patches]
    for patch in patches:
        setattr(patch.owner, patch.name, patch.replacement)
    try:
        yield
    finally:
        for patch, original in zip(patches, originals, strict=True):
            setattr(patch.owner, patch.name, original)
