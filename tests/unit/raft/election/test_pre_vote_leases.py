"""A pre-vote is a promise: to whom, for how long, and whose turn comes next."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.raft.election.pre_vote_leases import LEASE_MAX_SHARE, LEASE_SHARE
from quorate.raft.election.transitions import RoleTransitions
from quorate.raft.last_contact import LastContact
from quorate.raft.trace_events import RoleChangeCause
from quorate.records.ids import Epoch, Millis, NodeId
from tests.unit.raft import cores

if TYPE_CHECKING:
    from quorate.raft.election.pre_vote_leases import PreVoteLeases

TURN = cores.config().election_timeout_ms // LEASE_MAX_SHARE
MOMENT = cores.config().election_timeout_ms // LEASE_SHARE


def promised(nominee: int, *, at: int) -> PreVoteLeases:
    promises = cores.unattached(1, 1, 2, 3, 4).campaign.pre_vote_leases
    give(promises, nominee, at=at)
    return promises


def give(pre_vote_leases: PreVoteLeases, nominee: int, *, at: int) -> None:
    pre_vote_leases.replica.timers.now = Millis(at)
    pre_vote_leases.grant(NodeId(nominee))


def is_free(
    pre_vote_leases: PreVoteLeases, nominee: int, *, at: int, is_rival: bool = False
) -> bool:
    pre_vote_leases.replica.timers.now = Millis(at)
    return pre_vote_leases.reason_to_refuse(NodeId(nominee), is_rival=is_rival) is None


def test_a_pre_vote_is_nobody_elses_for_a_while() -> None:
    promises = promised(2, at=1)
    assert not is_free(promises, 3, at=MOMENT)
    assert is_free(promises, 3, at=1 + MOMENT)


def test_who_asks_again_keeps_it_for_its_turn() -> None:
    promises = promised(2, at=0)
    give(promises, 2, at=MOMENT - 1)
    assert not is_free(promises, 3, at=MOMENT)
    assert is_free(promises, 3, at=2 * MOMENT - 1)


def test_after_its_turn_a_nominee_leaves_room_for_those_who_wait() -> None:
    """One that reaches too few must not hold the others' votes for as long as it asks."""
    promises = promised(2, at=0)
    give(promises, 2, at=TURN - 1)
    assert not is_free(promises, 3, at=TURN - 1)
    assert not is_free(promises, 2, at=TURN)
    assert is_free(promises, 3, at=TURN - 1 + MOMENT)
    assert is_free(promises, 2, at=2 * TURN)


def test_with_nobody_waiting_its_turn_begins_anew() -> None:
    promises = promised(2, at=0)
    assert is_free(promises, 2, at=TURN)
    give(promises, 2, at=TURN)
    assert promises.quiet_until == 2 * TURN


def test_a_rival_waits_for_its_own_turn() -> None:
    promises = promised(2, at=0)
    assert not is_free(promises, 2, at=TURN, is_rival=True)


def test_two_voters_that_both_are_needed_meet_whenever_their_turns_began() -> None:
    """One supports a nominee for a turn, the other but for rests: no rest may cover a turn."""
    rest = [at for at in range(3 * TURN) if not is_free(promised(2, at=0), 2, at=at, is_rival=True)]
    assert 0 < len(rest) < TURN
    assert TURN - len(rest) >= MOMENT


def test_a_voter_with_a_promise_asks_nobody_for_that_turn() -> None:
    promises = promised(2, at=10)
    assert promises.quiet_until == 10 + TURN
    promises.replica.timers.now = Millis(10 + TURN)
    assert promises.quiet_until is None


def test_a_promise_ends_with_its_epoch() -> None:
    promises = promised(2, at=0)
    RoleTransitions(promises.replica, LastContact(promises.replica)).become_unattached(
        Epoch(1), RoleChangeCause.HIGHER_EPOCH, "test"
    )
    assert is_free(promises, 3, at=1)
    assert promises.quiet_until is None
