"""Mutants of the driver: effects performed too early or out of order."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, TypeVar

from quorate.raft.api import SendReply, SendRequest
from quorate.server.disk import log_flusher
from quorate.server.disk.log_flusher import LogFlusher
from quorate.server.driver.barriers import Barriers
from quorate.server.driver.raft_driver import RaftDriver
from quorate.sim.mutants.mutant import Mutant, Patch, constant

if TYPE_CHECKING:
    from quorate.raft.api import Event, SaveElection, Update
    from quorate.storage.log.metadata_log import FlushTicket

T = TypeVar("T")

_save = Barriers._save
_take = RaftDriver._take
_finish = LogFlusher._finish


def _save_beside(self: Barriers, effect: SaveElection) -> asyncio.Future[None]:
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


def _tell_at_once(self: LogFlusher, flight: asyncio.Future[None], ticket: FlushTicket) -> None:
    del flight
    ticket.is_done = True
    self._finish(ticket)
    self._driver_handle.pump()


def _hear_last(self: RaftDriver, event: Event) -> None:
    self._inbox.append(event)


def _finish_with_all(self: LogFlusher, ticket: FlushTicket) -> None:
    if ticket.generation == self._log.generation:
        ticket.end = self._log.end
    _finish(self, ticket)


BUGS: Final = (
    Mutant(
        "votes-before-saved",
        "the driver goes on while the election state is on its way to the disk",
        (2,),
        (Patch(Barriers, "_save", _save_beside),),
    ),
    Mutant(
        "messages-overtake-the-disk",
        "the driver sends the messages of a step before it performs its other effects",
        (2, 5),
        (Patch(RaftDriver, "_take", _send_first),),
    ),
    Mutant(
        "flush-told-at-its-beginning",
        "the driver tells of a flush when it has begun",
        (1,),
        (Patch(LogFlusher, "_await", _tell_at_once),),
    ),
    Mutant(
        "cut-told-last",
        "the core hears of what was cut or cleaned only after what came meanwhile "
        "(rule log_generation)",
        (41,),
        (Patch(RaftDriver, "deliver_first", _hear_last),),
    ),
    Mutant(
        "flush-told-with-what-came-since",
        "a flush counts for what was appended while it was under way",
        (1795522677160,),
        (Patch(LogFlusher, "_finish", _finish_with_all),),
    ),
    Mutant(
        "changes-overtake-decisions",
        "a change of the voters goes before what was decided and is not proposed yet",
        (4,),
        (Patch(RaftDriver, "_is_first", constant(answer=True)),),
    ),
    Mutant(
        "flushed-end-synced-rarely",
        "the flushed end is carried to the disk every twenty seconds only (rule flushed_end_file)",
        (1,),
        (Patch(log_flusher, "SYNC_AFTER_MS", 20_000),),
    ),
)
