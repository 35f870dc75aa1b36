"""kill -9 in the middle of changes: afterwards the old set is in effect, or the new one.

The simulator kills at each effect (tests/simulation); here real processes die somewhere on the way,
the leader, the one that joins or leaves, or both. What is drawn comes from the clock; a failure
prints it, and SEED repeats it.
"""

from __future__ import annotations

import asyncio
import random
import sys
import time
from typing import TYPE_CHECKING, Final

from quorate.client.controller_calls import (
    OutcomeUnknownError,
    QuorumUnavailableError,
    RequestRefusedError,
)
from quorate.raft import messages as m
from quorate.records.errors import ErrorCode
from tests.integration.membership.members import CALL_S, CHANGE_MS, PASSING, Load, Members
from tests.integration.quorum import DEADLINE_S, STEADY

if TYPE_CHECKING:
    from pathlib import Path

SEED: int | None = None
KILLS: Final = 20
NEWCOMER: Final = 4
OLD: Final = [1, 2, 3]
NEW: Final = [1, 2, 3, NEWCOMER]


async def test_every_kill_leaves_the_old_set_or_the_new_one(tmp_path: Path) -> None:
    seed = time.time_ns() // 1000 if SEED is None else SEED
    sys.stdout.write(f"repeat with SEED = {seed}\n")
    draws = random.Random(seed)
    async with Members(tmp_path, voters=3) as members:
        await members.register_brokers()
        await members.bring_up(NEWCOMER)
        async with Load(members) as load:
            # How long a change takes on this machine, so that the kills fall within one.
            async with asyncio.timeout(DEADLINE_S):
                change_s = await _unhurt(members)
            for number in range(KILLS):
                await load.goes_on(2)
                is_add = number % 2 == 0
                await _may_change(members, is_add=is_add)
                victims = await _victims(members, draws)
                delay_s = draws.uniform(0, 1.5 * change_s)
                answer = await _change_and_kill(members, victims, delay_s, is_add=is_add)
                ids = await _come_back(members, victims)
                assert ids in (OLD, NEW)
                if answer is not None and answer.error is ErrorCode.NONE:
                    assert ids == (NEW if is_add else OLD), f"{answer} was lost"
                # Bring about what the next round begins with.
                if is_add:
                    await members.add(NEWCOMER)
                else:
                    await members.remove(NEWCOMER)
        await load.nothing_is_lost()
        await members.assert_logs_agree()
        for ids in members.sets_in_log(1):
            assert ids in (OLD, NEW)


async def test_a_change_holds_from_its_answer_on(tmp_path: Path) -> None:
    """The leader dies at the very moment in which the change is answered."""
    async with Members(tmp_path, STEADY, voters=3) as members:
        await members.bring_up(NEWCOMER)
        for is_add in (True, False):
            await _may_change(members, is_add=is_add)
            leader_id = await _done_by(members, is_add=is_add)
            await members.kill(leader_id)
            assert await _come_back(members, [leader_id]) == (NEW if is_add else OLD)


async def _done_by(members: Members, *, is_add: bool) -> int:
    """Have the change done; the leader that answers so, as soon as it does."""
    leaders: list[int] = []

    async def is_done() -> bool:
        leaders.append(await members.leader_id())
        return _is_done(await _asked(members, leaders[-1], is_add=is_add))

    await members.eventually("the change is done", is_done)
    return leaders[-1]


async def _may_change(members: Members, *, is_add: bool) -> None:
    await members.voters_become(*(OLD if is_add else NEW))
    await members.ready_to_change(NEWCOMER, is_voter=not is_add)


async def _unhurt(members: Members) -> float:
    """The average time of an addition and a removal without a kill, in seconds."""
    took_s = 0.0
    for is_add in (True, False):
        is_done = False
        while not is_done:
            # One that was refused, or whose leader was lost, says nothing of the time.
            await (members.remove(NEWCOMER) if is_add else members.add(NEWCOMER))
            await _may_change(members, is_add=is_add)
            leader_id = await members.leader_id()
            begin = time.monotonic()
            is_done = _is_done(await _asked(members, leader_id, is_add=is_add))
        took_s += time.monotonic() - begin
    return took_s / 2


def _is_done(answer: m.MembershipResponse | None) -> bool:
    assert answer is None or answer.error is ErrorCode.NONE or answer.reason in PASSING, answer
    return answer is not None and answer.error is ErrorCode.NONE


async def _victims(members: Members, draws: random.Random) -> list[int]:
    leader_id = await members.leader_id()
    return draws.choice([[leader_id], [leader_id], [NEWCOMER], sorted({leader_id, NEWCOMER})])


async def _change_and_kill(
    members: Members, victims: list[int], delay_s: float, *, is_add: bool
) -> m.MembershipResponse | None:
    leader_id = await members.leader_id()
    asked = asyncio.ensure_future(_asked(members, leader_id, is_add=is_add))
    await asyncio.sleep(delay_s)
    await members.kill(*victims)
    return await asked


async def _asked(members: Members, leader_id: int, *, is_add: bool) -> m.MembershipResponse | None:
    """The leader's answer; None if the outcome is unknown."""
    cluster_id, voter = members.plan.cluster_id, members.voter(NEWCOMER)
    request: m.MembershipRequest
    if is_add:
        request = m.AddRaftVoterRequest(
            cluster_id=cluster_id, voter=voter.key, listeners=voter.endpoints, timeout_ms=CHANGE_MS
        )
    else:
        request = m.RemoveRaftVoterRequest(
            cluster_id=cluster_id, voter=voter.key, timeout_ms=CHANGE_MS
        )
    try:
        return await members.client.change_on(members.all_nodes[leader_id].address, request, CALL_S)
    except (OutcomeUnknownError, QuorumUnavailableError, RequestRefusedError):
        return None


async def _come_back(members: Members, victims: list[int]) -> list[int]:
    """Start the victims; return the set that is in effect once nothing is pending."""
    for victim in victims:
        await members.start(victim)
    quorum = await members.settled()
    return [int(voter.key.node_id) for voter in quorum.voters]
