"""Planted bugs of the driver: what is told, sent or done before the disk has what it rests on."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, TypeVar

from quorate.consensus.driver import RaftDriver
from quorate.consensus.flushing import LogFlushing
from quorate.raft.api import SendReply, SendRequest
from quorate.sim.planted.bug import Bug, Patch

if TYPE_CHECKING:
    from collections.abc import Callable

    from quorate.raft.api import Event, SaveElection, TruncateLog, Update
    from quorate.storage.log import FlushTicket

T = TypeVar("T")

_save = RaftDriver._save
_take = RaftDriver._take


def _save_beside(self: RaftDriver, effect: SaveElection) -> asyncio.Future[None]:
    _save(self, effect)
    done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    done.set_result(None)
    return done


def _send_first(self: RaftDriver, event: Event | None, update: Update) -> None:
    before = len(self._effects)
    _take(self, event, update)
    new = [self._effects.pop() for _ in range(len(self._effects) - before)][::-1]
    self._effects.extend(e for e in new if isinstance(e, SendReply | SendRequest))
    self._effects.extend(e for e in new if not isinstance(e, SendReply | SendRequest))


async def _with_others(self: RaftDriver, what: str, work: Callable[[], T]) -> T:
    return await self._disk.run(what, work)


async def _truncate_and_tell_in_turn(self: RaftDriver, effect: TruncateLog) -> None:
    event = await self._alone("cutting the log", lambda: self.store.truncate(effect))
    self._inbox.append(event)


def _tell_at_once(self: LogFlushing, flight: asyncio.Future[None], ticket: FlushTicket) -> None:
    del flight
    ticket.is_done = True
    self._finish(ticket)
    self._driver.pump()


BUGS: Final = (
    Bug(
        "votes-before-saved",
        "the driver goes on while the election state is on its way to the disk",
        (),
        (Patch(RaftDriver, "_save", _save_beside),),
    ),
    Bug(
        "messages-overtake-the-disk",
        "the driver sends the messages of a step before it performs its other effects",
        (),
        (Patch(RaftDriver, "_take", _send_first),),
    ),
    Bug(
        "cut-beside-flush",
        "the log is cut and cleaned while it is flushed and read (rule 14)",
        (),
        (Patch(RaftDriver, "_alone", _with_others),),
    ),
    Bug(
        "cut-told-in-turn",
        "the core hears of a cut only after what came while the log was cut",
        (),
        (Patch(RaftDriver, "_truncate", _truncate_and_tell_in_turn),),
    ),
    Bug(
        "flush-told-at-its-beginning",
        "the driver tells of a flush when it has begun",
        (),
        (Patch(LogFlushing, "_await", _tell_at_once),),
    ),
)
