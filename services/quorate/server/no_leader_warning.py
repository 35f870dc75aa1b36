"""Warns once a minute while a controller is in contact with no leader, and gives the reasons.

Elections and discovery continue without an operator. The warning shows what makes them fail: names
that do not resolve, ports on which no process listens, servers of another kind.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final, Protocol

from quorate.rpc.channels import target

if TYPE_CHECKING:
    from collections.abc import Callable

    from quorate.raft.api import Peer
    from quorate.raft.core import RaftCore

# Longer than an election takes, and than the pods of a quorum need to start one after the other.
FIRST_AFTER_S: Final = 15.0
EVERY_S: Final = 60.0
# The most servers that one line names.
SERVERS_MAX: Final = 16


class Outcomes(Protocol):
    """The results of calls to peers."""

    def last(self, host: str, port: int) -> str | None:
        """The outcome of the newest call to an address; None before there is one."""
        ...


class LeaderSearch:
    """Checks once a second whether a controller is in contact with a leader."""

    def __init__(
        self, core: RaftCore, outcomes: Outcomes, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._core, self._outcomes, self._clock = core, outcomes, clock
        self._since_s = self._clock()
        self._next_s = self._since_s + FIRST_AFTER_S

    def look(self) -> str | None:
        """Return the warning that is due now, or None."""
        core, now_s = self._core, self._clock()
        replica = core.replica
        # A leader that contradicts this log is in contact, and has a warning of its own.
        is_contradicted = replica.leader_contradictions.unresolved(replica.epoch) is not None
        # So has another quorum (rule `sole_voter_conflict`).
        is_second = replica.rival is not None or replica.second_quorum.is_met
        if core.has_live_leader or is_contradicted or is_second:
            self._since_s, self._next_s = now_s, now_s + FIRST_AFTER_S
            return None
        if now_s < self._next_s:
            return None
        self._next_s = now_s + EVERY_S
        leader_id = replica.election.leader_id
        known = "no leader is known" if leader_id is None else f"leader {leader_id} does not answer"
        head = f"{known} in epoch {replica.epoch}, for {now_s - self._since_s:.0f} s"
        return f"{head}: {self._reasons()}"

    def _reasons(self) -> str:
        """The last outcome of each voter and bootstrap server, by its address."""
        by_address: dict[str, str] = {}
        for peer in self._core.servers():
            last = self._outcomes.last(peer.host, peer.port) or "not asked yet"
            by_address.setdefault(target(peer.host, peer.port), f"({_role(peer)}): {last}")
        if not by_address:
            return "there is no other voter and no server in controller.quorum.bootstrap.servers"
        shown = [f"{address} {reason}" for address, reason in by_address.items()][:SERVERS_MAX]
        left_out = len(by_address) - len(shown)
        return "; ".join(shown) + (f"; and {left_out} more" if left_out else "")


def _role(peer: Peer) -> str:
    return f"voter {peer.node_id}" if peer.node_id >= 0 else "bootstrap server"
