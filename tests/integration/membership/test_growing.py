"""A quorum grows from one voter to five and shrinks back to one, under load."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.integration.membership.members import Load, Members
from tests.integration.transports import EACH

if TYPE_CHECKING:
    from pathlib import Path


@EACH
async def test_one_to_five_and_back_without_a_lost_write(tmp_path: Path) -> None:
    async with Members(tmp_path) as members:
        await members.register_brokers()
        async with Load(members) as load:
            await load.goes_on()
            for node_id in (2, 3, 4, 5):
                await members.bring_up(node_id)
                await members.add(node_id)
                await members.voters_become(*range(1, node_id + 1))
                await load.goes_on()
            # The leader goes first: it leads until its removal is committed, then resigns in favour
            # of a successor.
            left = [1, 2, 3, 4, 5]
            removed: list[int] = []
            while len(left) > 1:
                leader_id = await members.leader_id()
                node_id = leader_id if not removed else left[-1]
                await members.remove(node_id)
                left.remove(node_id)
                removed.append(node_id)
                await members.voters_become(*left)
                await load.goes_on()
        await load.nothing_is_lost()
        await members.assert_logs_agree()
        sets = members.sets_in_log(left[0])
    grown = [[1], [1, 2], [1, 2, 3], [1, 2, 3, 4], [1, 2, 3, 4, 5]]
    shrunk = [
        [node_id for node_id in grown[-1] if node_id not in removed[:count]]
        for count in range(1, len(removed) + 1)
    ]
    assert sets == grown + shrunk
