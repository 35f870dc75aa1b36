"""Observer hooks on the driver: events in, effects out, with trace events and tokens.

Logs, spans and metrics are made by observers. Observers do not change what the driver does: an
exception of an observer is logged, and the driver continues.
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

# Trace events are logged under the driver's name, although this module writes them.
log = logging.getLogger("quorate.server.driver.raft_driver")
# Trace events are our own sentences; some contain names and reasons that a peer chose.
NOTE_SHOWN_MAX: Final = 1000


class Observer:
    """An observer of the driver; all calls come from the loop, in the order of the events.

    A step is reported in full, before the first of its effects is performed. There are thousands of
    steps a second, so an observer must quickly skip those that do not concern it.
    """

    def submitted(self, token: ReplyToken, request: m.Request) -> None:
        """A request of a peer or a client arrived, in the context of its call; its step follows."""

    def stepped(self, event: api.Event | None, update: api.Update) -> None:
        """The core's update for an event; the event is None when the core starts."""

    def saving(self, effect: api.SaveElection) -> None:
        """A save of the election state has started; no other effect is performed until it ends."""

    def saved(self) -> None:
        """The election state is durable."""

    def ended(self) -> None:
        """The core will never be stepped again."""


class Observers:
    """Several observers as one that never raises; each is called in order."""

    def __init__(self, *observers: Observer) -> None:
        self._observers = list(observers)

    def add(self, observer: Observer) -> None:
        """Add an observer, called after all others."""
        self._observers.append(observer)

    def submitted(self, token: ReplyToken, request: m.Request) -> None:
        for observer in self._observers:
            try:
                observer.submitted(token, request)
            except Exception as error:
                log_observer_error(observer, error)

    def stepped(self, event: api.Event | None, update: api.Update) -> None:
        for observer in self._observers:
            try:
                observer.stepped(event, update)
            except Exception as error:
                log_observer_error(observer, error)

    def saving(self, effect: api.SaveElection) -> None:
        self._tell(lambda observer: observer.saving(effect))

    def saved(self, saving: asyncio.Future[None]) -> None:
        """Report that the save in progress succeeded; after a failed save the core ends."""
        if not saving.cancelled() and saving.exception() is None:
            self._tell(lambda observer: observer.saved())

    def ended(self) -> None:
        self._tell(lambda observer: observer.ended())

    def _tell(self, what: Callable[[Observer], None]) -> None:
        for observer in self._observers:
            try:
                what(observer)
            except Exception as error:
                log_observer_error(observer, error)


def log_observer_error(observer: Observer, error: Exception) -> None:
    """Log the error once a minute: an observer that fails at one step fails at most others."""
    key = ("observer", type(observer), type(error))
    log.error("an observer failed", exc_info=error, extra={"repeats": key})


class TraceEventLogger(Observer):
    """Logs the text of every trace event, with the epoch that the replica is in after the step."""

    def __init__(
        self,
        epoch: Callable[[], Epoch],
        context: Callable[[], AbstractContextManager[object]] = nullcontext,
    ) -> None:
        """Write the lines of one step in `context`, so that they can name its trace."""
        self._epoch = epoch
        self._context = context

    def stepped(self, event: api.Event | None, update: api.Update) -> None:
        del event
        if not update.trace:
            return
        epoch = self._epoch()
        with self._context():
            for note in update.trace:
                about = {"epoch": epoch, REPEATS: (epoch, note.text), TOPIC: note.kind}
                log.info(shown(note.text, NOTE_SHOWN_MAX), extra=about)
