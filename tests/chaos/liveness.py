"""Times in which commits were possible, times of commits, and the longest time without one.

The promise is about every moment at which a majority is up and connected: its members answer, their
disks are intact and have room, and each reaches each other one. A gap runs from one commit to the
next, or from when such a majority came to be; what happens to the others, or the death of a leader
with such a majority left, does not restart it. A second loss while the leader is still away does:
the lost node may have been about to win the election, and the others need another one.

A leader whose disk hangs commits what a majority without it has flushed. Where too few others reach
it, it has the time of rule `disk_call_deadline` to find that out, and nothing is promised before
that is over. The same is so of a leader that too few others reach to commit, while each majority
that could commit without it has a member in contact with it: that member gives no pre-vote before
check-quorum has ended the leader, and without it the logs of the others may be too short.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import combinations, pairwise
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

SECOND: Final = 1_000_000_000
# 1.5 fetch timeouts, which are two seconds where nothing else is set.
CHECK_QUORUM_NS: Final = 3 * SECOND


def has_majority(nodes: int, up: Iterable[int], blocked: Iterable[tuple[int, int]]) -> bool:
    """True if a majority of so many nodes is up and connected, each with each, both ways."""
    return bool(majorities(nodes, up, blocked))


def majorities(
    nodes: int, up: Iterable[int], blocked: Iterable[tuple[int, int]]
) -> list[tuple[int, ...]]:
    """The smallest majorities that are up and connected."""
    cut = set(blocked)
    return [
        members
        for members in combinations(sorted(up), nodes // 2 + 1)
        if all((a, b) not in cut and (b, a) not in cut for a, b in combinations(members, 2))
    ]


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
    """The running nodes and the cut links, as the nemesis left them, and the times of changes."""

    nodes: int
    up: set[int] = field(default_factory=set)
    blocked: set[tuple[int, int]] = field(default_factory=set)
    leader: int | None = None
    # A leader whose disk hangs, and until when it may lead on.
    hanging: tuple[int, int] | None = None
    changes: list[tuple[int, bool]] = field(default_factory=list)
    # A leader that cannot commit but is heard, and until when it may lead on.
    stranded: tuple[int, int] | None = None
    # As it was noted last.
    had_majority: bool = False
    lacked_leader: bool = False
    had_majorities: frozenset[tuple[int, ...]] = frozenset()

    def note(self, now: int) -> None:
        """Something has changed."""
        self._look_back(now)
        found = frozenset(majorities(self.nodes, self.up, self.blocked))
        if self.lacked_leader and self.had_majorities - found:
            # The wait for the next leader ends here and begins here.
            self._change(now, is_healthy=False)
        self.lacked_leader = self.leader is not None and self.leader not in self.up
        self.had_majorities = found
        if not self._is_stranded():
            self.stranded = None
        elif self.stranded is None or self.stranded[0] != self.leader:
            assert self.leader is not None
            self.stranded = self.leader, now + CHECK_QUORUM_NS
        self.had_majority = bool(found)
        self._change(now, is_healthy=self.had_majority and not self._finds_out(now))

    def _change(self, now: int, *, is_healthy: bool) -> None:
        if not self.changes or self.changes[-1][1] != is_healthy:
            self.changes.append((now, is_healthy))

    def _look_back(self, now: int) -> None:
        """The time of a stranded leader may have run out since the last change.

        Until now there was the majority that was noted then.
        """
        if self.stranded is not None and self.stranded[1] <= now:
            at = max(self.stranded[1], self.changes[-1][0])
            self._change(at, is_healthy=self.had_majority and not self._finds_out(at))

    def _is_stranded(self) -> bool:
        """True if the leader cannot commit, and each majority that could has one in contact."""
        if self.leader not in self.up:
            return False
        hearing = self._hearing(self.leader)
        found = majorities(self.nodes, self.up, self.blocked)
        return len(hearing) < self.nodes // 2 and all(hearing & set(members) for members in found)

    def _hearing(self, leader: int) -> set[int]:
        """Those that are up and exchange messages with the leader."""
        return {
            node
            for node in self.up - {leader}
            if not self.blocked & {(node, leader), (leader, node)}
        }

    def _finds_out(self, now: int) -> bool:
        """True if a leader has yet to find out that it commits nothing any more."""
        if self.stranded is not None and now < self.stranded[1]:
            return True
        if self.hanging is None or now >= self.hanging[1]:
            return False
        return len(self._hearing(self.hanging[0])) <= self.nodes // 2

    def intervals(self, end: int) -> list[tuple[int, int]]:
        """The intervals in which a majority was up and connected."""
        self._look_back(end)
        moments = [*self.changes, (end, False)]
        return [(a, b) for (a, is_healthy), (b, _) in pairwise(moments) if is_healthy]
