"""The one place from which a driver's work is seen: events in, effects out, with notes and ids.

Logs, spans and metrics are made by observers. None of them changes what the driver does: what one
raises is logged, and everything goes on.
"""

from __future__ import annotations

import logging
from contextlib import nullcontext
from typing import TYPE_CHECKING, Final

from quorate.records.escaping import shown
from quorate.telemetry.logs import REPEATS, TOPIC

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from quorate.raft import api
    from quorate.raft import messages as m
    from quorate.records.ids import Epoch, ReplyToken

# Notes are the driver's own words, although they are written down here.
log = logging.getLogger("quorate.server.driver.raft_driver")
# Notes are sentences of ours, some with names and reasons that a peer chose.
NOTE_SHOWN_MAX: Final = 1000


class Observer:
    """One that looks on; all calls come from the loop, in the order in which things happen.

    A step is told as a whole, before the first of its effects is performed. There are thousands a
    second, so an observer finds out quickly that it does not care for one.
    """

    def submitted(self, token: ReplyToken, request: m.Request) -> None:
        """A request of a peer or a client came, in the context of its call; its step follows."""

    def stepped(self, event: api.Event | None, update: api.Update) -> None:
        """What the core answered to an event, which is None at its start."""

    def saving(self, effect: api.SaveElection) -> None:
        """The election state is on its way to the disk; nothing else happens before it is there."""

    def saved(self) -> None:
        """It is there."""

    def ended(self) -> None:
        """The core is never stepped again."""


class Observers:
    """Several observers as one that never raises; each is told in its turn."""

    def __init__(self, *observers: Observer) -> None:
        self._observers = list(observers)

    def add(self, observer: Observer) -> None:
        """One more, told after all others."""
        self._observers.append(observer)

    def submitted(self, token: ReplyToken, request: m.Request) -> None:
        for observer in self._observers:
            try:
                observer.submitted(token, request)
            except Exception as error:
                complain(observer, error)

    def stepped(self, event: api.Event | None, update: api.Update) -> None:
        for observer in self._observers:
            try:
                observer.stepped(event, update)
            except Exception as error:
                complain(observer, error)

    def saving(self, effect: api.SaveElection) -> None:
        self._tell(lambda observer: observer.saving(effect))

    def saved(self, saving: asyncio.Future[None]) -> None:
        """The save that was under way is over; where it failed, the core ends."""
        if not saving.cancelled() and saving.exception() is None:
            self._tell(lambda observer: observer.saved())

    def ended(self) -> None:
        self._tell(lambda observer: observer.ended())

    def _tell(self, what: Callable[[Observer], None]) -> None:
        for observer in self._observers:
            try:
                what(observer)
            except Exception as error:
                complain(observer, error)


def complain(observer: Observer, error: Exception) -> None:
    """Once a minute: what fails at one step fails at most others."""
    key = ("observer", type(observer), type(error))
    log.error("an observer failed", exc_info=error, extra={"repeats": key})


class NoteLog(Observer):
    """Logs every note as it reads, with the epoch that the replica is in after the step."""

    def __init__(
        self,
        epoch: Callable[[], Epoch],
        context: Callable[[], AbstractContextManager[object]] = nullcontext,
    ) -> None:
        """The lines of one step are written in `context`, so that they can name its trace."""
        self._epoch = epoch
        self._context = context

    def stepped(self, event: api.Event | None, update: api.Update) -> None:
        del event
        if not update.notes:
            return
        epoch = self._epoch()
        with self._context():
            for note in update.notes:
                about = {"epoch": epoch, REPEATS: (epoch, note.text), TOPIC: note.kind}
                log.info(shown(note.text, NOTE_SHOWN_MAX), extra=about)
