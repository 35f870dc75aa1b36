"""A controller's disk is wiped while it is down: with auto-join it votes again without a hand."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.integration.membership.members import Load, Members

if TYPE_CHECKING:
    from pathlib import Path

AUTO_JOIN = {"controller.quorum.auto.join.enable": "true"}


async def test_a_wiped_controller_comes_back_under_a_new_directory_id(tmp_path: Path) -> None:
    async with Members(tmp_path, AUTO_JOIN, voters=3) as members:
        await members.register_brokers()
        async with Load(members) as load:
            await load.goes_on()
            victim = await members.follower_id()
            before = members.key(victim)
            await members.kill(victim)
            await members.wipe(victim)
            assert members.key(victim) != before
            await members.bring_up(victim)
            await members.voters_become(1, 2, 3)
            await load.goes_on()
        await load.nothing_is_lost()
        quorum = await members.leader()
        assert quorum.decommissioned == (before,)
        await members.assert_logs_agree()


async def test_a_voter_that_was_removed_by_hand_stays_away_until_it_is_added_by_hand(
    tmp_path: Path,
) -> None:
    async with Members(tmp_path, AUTO_JOIN, voters=3) as members:
        await members.register_brokers()
        victim = await members.follower_id()
        left = [i for i in (1, 2, 3) if i != victim]
        await members.remove(victim)
        await members.voters_become(*left)
        # Its place is free and it may join by itself; a newcomer that joins shows that time enough
        # has passed for it, too.
        await members.bring_up(4)
        await members.voters_become(*left, 4)
        await members.add(victim)
        await members.voters_become(*sorted([*left, 4, victim]))
