"""Who could commit when, when somebody did, and the longest time in which nobody did.

The promise is about every moment at which a majority is up and connected: its members answer, their
disks are whole and have room, and each reaches each other one. A gap runs from one commit to the
next, or from when such a majority came to be; what happens to the others, or the death of a leader
with such a majority left, does not begin it anew.

A leader whose disk hangs commits what a majority without it has flushed. Where too few others reach
it, it has the time of rule 24 to find that out, and nothing is promised before that is over.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import combinations, pairwise
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

SECOND: Final = 1_000_000_000


def has_majority(nodes: int, up: Iterable[int], blocked: Iterable[tuple[int, int]]) -> bool:
    """Whether a majority of so many nodes is up and connected, each with each, both ways."""
    cut = set(blocked)
    return any(
        all((a, b) not in cut and (b, a) not in cut for a, b in combinations(members, 2))
        for members in combinations(sorted(up), nodes // 2 + 1)
    )


@dataclass(frozen=True, slots=True)
class Gap:
    """No commit from `begin` to `end`, in monotonic nanoseconds; `stolen` is time of this process.

    While this process got no processor nothing can be said about the others on the same machine.
    """

    begin: int
    end: int
    stolen: int = 0

    @property
    def seconds(self) -> float:
        return (self.end - self.begin - self.stolen) / SECOND


def gaps(
    healthy: Sequence[tuple[int, int]], commits: Sequence[int], stolen: Sequence[tuple[int, int]]
) -> list[Gap]:
    """The times without commits within the healthy intervals, longest first."""
    found = []
    for begin, end in healthy:
        moments = [begin, *sorted(at for at in commits if begin < at < end), end]
        for a, b in pairwise(moments):
            lost = sum(max(0, min(b, until) - max(a, since)) for since, until in stolen)
            found.append(Gap(a, b, lost))
    return sorted(found, key=lambda gap: gap.seconds, reverse=True)


@dataclass(slots=True)
class Health:
    """Which nodes are up and which links are cut, as the nemesis left them, and since when."""

    nodes: int
    up: set[int] = field(default_factory=set)
    blocked: set[tuple[int, int]] = field(default_factory=set)
    # A leader whose disk hangs, and until when it may lead on.
    hanging: tuple[int, int] | None = None
    changes: list[tuple[int, bool]] = field(default_factory=list)

    def note(self, now: int) -> None:
        """Something has changed."""
        is_healthy = has_majority(self.nodes, self.up, self.blocked) and not self._finds_out(now)
        if not self.changes or self.changes[-1][1] != is_healthy:
            self.changes.append((now, is_healthy))

    def _finds_out(self, now: int) -> bool:
        """Whether nothing can be committed without the leader's own disk, which hangs."""
        if self.hanging is None or now >= self.hanging[1]:
            return False
        leader = self.hanging[0]
        others = [
            node
            for node in self.up - {leader}
            if not self.blocked & {(node, leader), (leader, node)}
        ]
        return len(others) <= self.nodes // 2

    def intervals(self, end: int) -> list[tuple[int, int]]:
        """When a majority was up and connected."""
        moments = [*self.changes, (end, False)]
        return [(a, b) for (a, is_healthy), (b, _) in pairwise(moments) if is_healthy]
