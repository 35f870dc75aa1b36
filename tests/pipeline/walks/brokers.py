"""The states of each broker, by walking through its records."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.pipeline.walks.past import Bound, Cells, Event, Past, ordered

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass
class Session:
    """One registration while it lasts."""

    event: Event
    end: Bound | None = None
    ended_by: str | None = None
    unfenced: int | None = None
    stopping: int | None = None
    fence_count: int = 0


@dataclass
class Fence:
    """A time in which a broker was fenced."""

    broker: int
    epoch: int
    cause: str | None
    start: Bound
    end: Bound | None = None
    ended_by: str | None = None


class Brokers:
    """Goes through a log once; what it saw is in its tables."""

    def __init__(self, past: Past) -> None:
        self.past = past
        self.events: list[Cells] = []
        self.all_sessions: list[Session] = []
        self.fences: list[Fence] = []
        self._sessions: dict[int, Session] = {}
        self._open: dict[int, Fence] = {}
        self._is_fenced: dict[int, bool] = {}
        self._stops: set[int] = set()
        for event in past.effective:
            match event.kind:
                case "RegisterBrokerRecord":
                    self._register(event)
                case "UnregisterBrokerRecord":
                    self._unregister(event)
                case "FenceBrokerRecord" | "UnfenceBrokerRecord":
                    self._change(event, event.data["id"], event.data["epoch"])
                case "BrokerRegistrationChangeRecord":
                    self._change(event, event.data["brokerId"], event.data["brokerEpoch"])

    def _tell(self, event: Event, broker: int, epoch: int, word: str) -> None:
        row = event.row
        self.events.append((row.offset, event.at_ms, broker, epoch, word, row.from_snapshot))

    def _register(self, event: Event) -> None:
        data = event.data
        broker, epoch = data["brokerId"], data["brokerEpoch"]
        self._tell(event, broker, epoch, "registered")
        if broker in self._sessions:
            self._sessions[broker].end = event.bound
            self._sessions[broker].ended_by = "registered again"
        self._sessions[broker] = session = Session(event)
        self.all_sessions.append(session)
        self._stops.discard(broker)
        if data.get("inControlledShutdown"):
            self._stops.add(broker)
        was_unfenced = self._is_fenced.get(broker) is False
        cause = "registered again" if was_unfenced else "registered"
        self._set_fenced(event, broker, epoch, fenced=data["fenced"], cause=cause)

    def _unregister(self, event: Event) -> None:
        broker, epoch = event.data["brokerId"], event.data["brokerEpoch"]
        self._tell(event, broker, epoch, "unregistered")
        session = self._sessions.pop(broker)
        session.end, session.ended_by = event.bound, "unregistered"
        self._is_fenced.pop(broker)
        if broker in self._open:
            fence = self._open.pop(broker)
            fence.end, fence.ended_by = event.bound, "unregistered"

    def _change(self, event: Event, broker: int, epoch: int) -> None:
        session = self._sessions[broker]
        if event.data.get("inControlledShutdown") == 1:
            self._tell(event, broker, epoch, "controlled shutdown")
            self._stops.add(broker)
            if session.stopping is None:
                session.stopping = event.at_ms
        says = {"FenceBrokerRecord": 1, "UnfenceBrokerRecord": -1}.get(
            event.kind, event.data.get("fenced", 0)
        )
        if says == 1:
            self._tell(event, broker, epoch, "fenced")
            session.fence_count += 1
            cause = "controlled shutdown" if broker in self._stops else "session ended"
            self._set_fenced(event, broker, epoch, fenced=True, cause=cause)
        elif says == -1:
            self._tell(event, broker, epoch, "unfenced")
            if session.unfenced is None:
                session.unfenced = event.at_ms
            self._set_fenced(event, broker, epoch, fenced=False, cause="")

    def _set_fenced(
        self, event: Event, broker: int, epoch: int, *, fenced: bool, cause: str
    ) -> None:
        if self._is_fenced.get(broker) == fenced:
            return
        self._is_fenced[broker] = fenced
        if fenced:
            told = None if event.row.from_snapshot else cause
            self._open[broker] = Fence(broker, epoch, told, event.bound)
            self.fences.append(self._open[broker])
        elif broker in self._open:
            fence = self._open.pop(broker)
            fence.end, fence.ended_by = event.bound, "unfenced"

    def tables(self, window_ms: int, fence_count: int) -> dict[str, list[Cells]]:
        """All five."""
        return {
            "events": ordered(self.events),
            "sessions": ordered(self._session_rows()),
            "fencing": ordered(
                (
                    each.broker,
                    each.epoch,
                    each.cause,
                    *self.past.known_interval(each.start, each.end),
                    each.ended_by,
                )
                for each in self.fences
            ),
            "flapping": ordered(self._flapping(window_ms, fence_count)),
            "totals": ordered(self._totals(window_ms, fence_count)),
        }

    def _totals(self, window_ms: int, fence_count: int) -> Iterator[Cells]:
        """Everything that happened to a broker, counted."""
        flaps = [row[0] for row in self._flapping(window_ms, fence_count)]
        for broker in {row[2] for row in self.events}:
            words = [row[4] for row in self.events if row[2] == broker and not row[5]]
            fences = [fence for fence in self.fences if fence.broker == broker]
            spans = [self.past.known_interval(fence.start, fence.end)[5] for fence in fences]
            lasted = [span for span in spans if isinstance(span, int)]
            yield (
                broker,
                words.count("registered"),
                sum(row[2] == broker and row[4] == "controlled shutdown" for row in self.events),
                # A snapshot that begins with a fenced broker does not tell why it was fenced.
                sum(fence.cause not in (None, "registered") for fence in fences),
                flaps.count(broker),
                sum(lasted),
                max(lasted, default=0),
                any(fence.end is None for fence in fences),
                broker in self._sessions,
            )

    def _session_rows(self) -> Iterator[Cells]:
        for session in self.all_sessions:
            data = session.event.data
            _, start, _, end, is_open, lasted_ms = self.past.known_interval(
                session.event.bound, session.end
            )
            yield (
                data["brokerId"],
                data["brokerEpoch"],
                data["incarnationId"],
                start,
                end,
                is_open,
                lasted_ms,
                session.ended_by,
                session.unfenced,
                session.stopping,
                session.fence_count,
                data["rack"],
                tuple((at["name"], at["host"], at["port"]) for at in data["endPoints"]),
            )

    def _flapping(self, window_ms: int, fence_count: int) -> Iterator[Cells]:
        """Fences that are among enough others within a window, put together while close."""
        for broker in sorted({fence.broker for fence in self.fences}):
            times = [
                fence.start.at_ms
                for fence in self.fences
                if fence.broker == broker and fence.cause not in (None, "registered")
            ]
            windows = [[at for at in times if end - window_ms <= at <= end] for end in times]
            crowded = sorted({at for each in windows if len(each) >= fence_count for at in each})
            inside = sorted(at for at in times if at in crowded)
            while inside:
                size = 1
                while size < len(inside) and inside[size] - inside[size - 1] <= window_ms:
                    size += 1
                episode, inside = inside[:size], inside[size:]
                most = max(
                    len(window)
                    for end, window in zip(times, windows, strict=True)
                    if end in episode
                )
                yield broker, episode[0], episode[-1], size, most
