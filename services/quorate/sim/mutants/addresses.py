"""Mutants of leader discovery and voter addresses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from quorate.raft.election.leader_discovery import LeaderDiscovery
from quorate.raft.roles import Unattached
from quorate.raft.voter_addresses import VoterAddresses
from quorate.sim.mutants.mutant import SHORT_TIMEOUTS, Mutant, Patch

if TYPE_CHECKING:
    from quorate.raft.api import Peer
    from quorate.records.voters import Voter

_known = VoterAddresses.all_known


def _believe_the_dead(self: LeaderDiscovery) -> bool:
    return isinstance(self.replica.role, Unattached)


def _by_the_set(self: VoterAddresses, voter: Voter) -> list[Peer]:
    return _known(self, voter)[:1]


BUGS: Final = (
    Mutant(
        "dead-leader-is-believed",
        "a node that knows a leader's name asks nobody else, whether it answers or not "
        "(rule leader_discovery)",
        (1, 3),
        (Patch(LeaderDiscovery, "has_no_leader", _believe_the_dead),),
        world={
            **SHORT_TIMEOUTS,
            "voters": 2,
            "move_every_ms": 4000,
            "wipe_every_ms": 5800,
            "kill_every_ms": 7300,
            "power_every_ms": 6400,
            "restart_ms": 3300,
            "voters_every_ms": 3300,
            "upgrade_every_ms": 4000,
        },
    ),
    Mutant(
        "stated-address-ignored",
        "a voter is called only where the set says, although it says itself where it is "
        "(rule leader_discovery)",
        (2, 5),
        (Patch(VoterAddresses, "all_known", _by_the_set),),
    ),
)
