"""Records that gather while a batch is on its way become the next one."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

from quorate.controller.decision import Decision
from quorate.raft import api
from quorate.records.batch import BATCH_BYTES_MAX, read_header, read_records
from quorate.records.ids import Epoch, Offset, ReplyToken
from quorate.server.host import Host
from quorate.server.metadata.proposer import Proposer

if TYPE_CHECKING:
    from quorate.server.driver.raft_driver import RaftDriver


@dataclass
class Recorder:
    """A driver whose log and progress the test moves by hand."""

    end: int = 0
    high_watermark: int = 0
    is_stopping: bool = False
    max_wait_s: float = 0.0
    proposed: list[api.RecordsProposed] = field(default_factory=list)
    host: Host = field(default_factory=Host)
    ends: list[int] = field(default_factory=list)

    @property
    def access(self) -> SimpleNamespace:
        return SimpleNamespace(flushing=SimpleNamespace(max_wait_s=self.max_wait_s))

    @property
    def store(self) -> SimpleNamespace:
        return SimpleNamespace(log=SimpleNamespace(end=SimpleNamespace(offset=self.end)))

    def next_token(self) -> ReplyToken:
        return ReplyToken(len(self.proposed) + 1)

    def deliver(self, event: api.Event) -> None:
        assert isinstance(event, api.RecordsProposed)
        self.proposed.append(event)

    def values(self) -> list[list[bytes | None]]:
        batches = [proposed.batch.data for proposed in self.proposed]
        return [[r.value for r in read_records(b, 0, read_header(b))] for b in batches]


def decision(base: int, *values: bytes) -> Decision:
    return Decision(values, None, Offset(base), Offset(base + len(values)))


def leading(driver: Recorder, *, linger_ms: int = 0) -> Proposer:
    proposer = Proposer(cast("RaftDriver", driver), linger_ms=linger_ms, on_cut=driver.ends.append)
    proposer.epoch = Epoch(3)
    return proposer


async def turns() -> None:
    """Let what is due in the loop run."""
    for _ in range(3):
        await asyncio.sleep(0)


async def test_requests_of_one_turn_share_a_batch() -> None:
    driver = Recorder()
    proposer = leading(driver)
    for base, value in enumerate((b"a", b"b")):
        proposer.add(decision(base, value))
        proposer.propose_if_due()
    await turns()
    assert driver.values() == [[b"a", b"b"]]
    assert driver.proposed[0].epoch == 3
    assert driver.ends == [2]
    assert proposer.base_offset is None


async def test_what_comes_while_a_batch_is_open_waits_for_its_commit() -> None:
    driver = Recorder()
    proposer = leading(driver)
    proposer.add(decision(0, b"a"))
    proposer.propose_if_due()
    await turns()
    proposer.add(decision(1, b"b"))
    for driver.end in (0, 1):
        proposer.propose_if_due()
        await turns()
        assert len(driver.proposed) == 1
        if driver.end == 0:
            batch = proposer.answered(ReplyToken(1))
            assert batch is not None
            assert (batch.base_offset, batch.end_offset) == (0, 1)
    driver.high_watermark = 1
    proposer.propose_if_due()
    await turns()
    assert driver.values() == [[b"a"], [b"b"]]


async def until_proposed(driver: Recorder, count: int) -> None:
    async with asyncio.timeout(60):
        while len(driver.proposed) < count:  # noqa: ASYNC110 - the loop has no event for it
            await asyncio.sleep(0)


async def test_as_many_as_were_in_flight_are_cut_at_once() -> None:
    driver = Recorder()
    proposer = leading(driver)
    for base in (0, 1):
        proposer.add(decision(base, b"a"))
    proposer.drain()
    proposer.add(decision(2, b"b"))
    proposer.answered(ReplyToken(1))
    proposer.propose_if_due()
    # Two of the last batch and one that waited behind it make three.
    for base in (3, 4):
        proposer.add(decision(base, b"b"))
    await turns()
    assert [len(values) for values in driver.values()] == [2, 3]


async def test_who_does_not_come_again_is_not_waited_for() -> None:
    driver = Recorder()
    proposer = leading(driver)
    for base in (0, 1):
        proposer.add(decision(base, b"a"))
    proposer.drain()
    proposer.add(decision(2, b"b"))
    proposer.answered(ReplyToken(1))
    proposer.propose_if_due()
    await until_proposed(driver, 2)
    assert [len(values) for values in driver.values()] == [2, 1]


async def test_a_decision_that_does_not_fit_any_more_begins_the_next_batch() -> None:
    driver = Recorder()
    proposer = leading(driver)
    proposer.add(decision(0, bytes(5 << 20)))
    proposer.add(decision(1, bytes(5 << 20)))
    assert [len(values) for values in driver.values()] == [1]
    proposer.drain()
    assert [len(values) for values in driver.values()] == [1, 1]


async def test_the_next_batch_waits_for_the_flush_of_the_last_one_but_not_for_a_hung_one() -> None:
    driver = Recorder(max_wait_s=0.001)
    proposer = leading(driver)
    proposer.add(decision(0, b"a"))
    proposer.propose_if_due()
    await turns()
    assert driver.values() == []
    # The flush does not end, and no further call comes.
    driver.max_wait_s = 0.0
    await until_proposed(driver, 1)
    assert driver.values() == [[b"a"]]


async def test_the_end_of_the_flush_ends_the_wait_for_it() -> None:
    driver = Recorder(max_wait_s=3600.0)
    proposer = leading(driver)
    proposer.add(decision(0, b"a"))
    proposer.propose_if_due()
    driver.max_wait_s = 0.0
    proposer.propose_if_due()
    await turns()
    assert driver.values() == [[b"a"]]
    proposer.stop()


async def test_a_linger_gathers_whatever_is_open() -> None:
    driver = Recorder(end=5)
    proposer = leading(driver, linger_ms=1)
    proposer.add(decision(5, b"a"))
    proposer.propose_if_due()
    assert driver.proposed == []
    await until_proposed(driver, 1)


async def test_who_stops_leading_forgets_everything() -> None:
    driver = Recorder()
    proposer = leading(driver)
    proposer.add(decision(0, b"a"))
    proposer.drain()
    proposer.add(decision(1, b"b"))
    proposer.stop()
    assert proposer.answered(ReplyToken(1)) is None
    assert proposer.base_offset is None
    proposer.drain()
    await turns()
    assert driver.values() == [[b"a"]]


async def test_a_batch_that_is_full_ends_before_what_does_not_fit() -> None:
    driver = Recorder()
    proposer = leading(driver)
    proposer.add(decision(0, b"a"))
    proposer.add(decision(1, b"b" * BATCH_BYTES_MAX))
    assert driver.ends == [1]
    assert driver.values() == [[b"a"]]
