"""The metadata lag of real controllers that lose their leader, and find one again."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING
from urllib.error import URLError

from tests.integration.quorum import DEADLINE_S, FAST, Quorum
from tests.integration.scraping import scraped

if TYPE_CHECKING:
    from pathlib import Path

FETCH_TIMEOUT_S = int(FAST["controller.quorum.fetch.timeout.ms"]) / 1000


async def lags(quorum: Quorum) -> list[float]:
    """The lag in time of all that run; nothing while one of them has yet to answer."""
    try:
        return [
            await scraped(quorum.nodes[node_id], "last_applied_record_lag_seconds")
            for node_id in quorum.processes
        ]
    except URLError:
        return []


async def none_lags(quorum: Quorum) -> bool:
    return await lags(quorum) == [0.0] * 3


async def grows(quorum: Quorum) -> None:
    """Wait until the lag of the only one that runs has grown twice, above a fetch timeout."""
    least_s = FETCH_TIMEOUT_S

    async def is_longer() -> bool:
        found = await lags(quorum)
        return bool(found) and least_s < found[0] < DEADLINE_S

    await quorum.eventually("a lag", is_longer)
    (least_s,) = await lags(quorum)
    await quorum.eventually("a longer lag", is_longer)


async def test_a_controller_lags_for_as_long_as_it_hears_no_leader(tmp_path: Path) -> None:
    async with Quorum(tmp_path / "quorum") as quorum:
        await quorum.eventually("no lag", partial(none_lags, quorum))
        leader_id = await quorum.leader_id()
        survivor, other = (node_id for node_id in quorum.nodes if node_id != leader_id)
        await quorum.kill(leader_id, other)
        await grows(quorum)
        # Nothing is known of what others may have committed since.
        assert await scraped(quorum.nodes[survivor], "metadata_log_lag") == 0
        await quorum.start(other)
        await quorum.start(leader_id)
        await quorum.eventually("no lag again", partial(none_lags, quorum))


async def test_a_leader_that_lost_its_majority_lags(tmp_path: Path) -> None:
    async with Quorum(tmp_path / "quorum") as quorum:
        leader_id = await quorum.leader_id()
        others = [node_id for node_id in quorum.nodes if node_id != leader_id]
        await quorum.kill(*others)
        await grows(quorum)
        for node_id in others:
            await quorum.start(node_id)
        await quorum.eventually("no lag again", partial(none_lags, quorum))


async def test_a_controller_that_has_heard_no_leader_lags_from_its_start(tmp_path: Path) -> None:
    async with Quorum(tmp_path / "quorum") as quorum:
        await quorum.kill(*quorum.nodes)
        await quorum.start(1)
        await grows(quorum)
        await quorum.start(2)
        await quorum.start(3)
        await quorum.eventually("no lag again", partial(none_lags, quorum))
