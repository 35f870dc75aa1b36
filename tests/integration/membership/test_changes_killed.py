"""kill -9 in the middle of changes: afterwards the old set is in force, or the new one.

The simulator kills at each effect (tests/simulation); here real processes die somewhere on the way,
the leader, the one that joins or leaves, or both.
"""

from __future__ import annotations

import asyncio
import random
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from quorate.client.calls import OutcomeUnknownError, QuorumUnavailableError, RequestRefusedError
from quorate.raft import messages as m
from tests.integration.membership.members import CALL_S, CHANGE_MS, Load, Members

if TYPE_CHECKING:
    from pathlib import Path

KILLS: Final = 20
NEWCOMER: Final = 4
# From the request to the commit it takes some milliseconds here.
DELAY_MS_MAX: Final = 12.0


async def test_every_kill_leaves_the_old_set_or_the_new_one(tmp_path: Path) -> None:
    draws = random.Random(853)
    old, new = [1, 2, 3], [1, 2, 3, NEWCOMER]
    seen: set[bool] = set()
    async with Members(tmp_path, voters=3) as members:
        await members.register_brokers()
        await members.bring_up(NEWCOMER)
        async with Load(members) as load:
            for number in range(KILLS):
                await load.goes_on(2)
                is_add = number % 2 == 0
                await members.voters_become(*(old if is_add else new))
                await members.ready_to_change(NEWCOMER, is_voter=not is_add)
                victims = await _victims(members, draws)
                await _change_and_kill(members, victims, draws, is_add=is_add)
                for victim in victims:
                    await members.start(victim)
                quorum = await members.settled()
                ids = [int(voter.key.node_id) for voter in quorum.voters]
                assert ids in (old, new)
                seen.add(ids == new)
                # Bring about what the next round begins with.
                if is_add:
                    await members.add(NEWCOMER)
                else:
                    await members.remove(NEWCOMER)
        await load.nothing_is_lost()
        await members.assert_logs_agree()
        for ids in members.sets_in_log(1):
            assert ids in (old, new)
    assert seen == {False, True}


async def _victims(members: Members, draws: random.Random) -> list[int]:
    leader_id = await members.leader_id()
    return draws.choice([[leader_id], [leader_id], [NEWCOMER], sorted({leader_id, NEWCOMER})])


async def _change_and_kill(
    members: Members, victims: list[int], draws: random.Random, *, is_add: bool
) -> None:
    cluster_id, voter = members.plan.cluster_id, members.voter(NEWCOMER)
    request: m.MembershipRequest
    if is_add:
        request = m.AddRaftVoterRequest(cluster_id, voter.key, voter.endpoints, CHANGE_MS)
    else:
        request = m.RemoveRaftVoterRequest(cluster_id, voter.key, CHANGE_MS)
    address = members.all_nodes[await members.leader_id()].address
    asked = asyncio.ensure_future(members.client.change_at(address, request, CALL_S))
    await asyncio.sleep(draws.uniform(0, DELAY_MS_MAX) / 1000)
    await members.kill(*victims)
    with suppress(OutcomeUnknownError, QuorumUnavailableError, RequestRefusedError):
        await asked
