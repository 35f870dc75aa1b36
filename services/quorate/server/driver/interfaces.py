"""What the driver has on its sides: the way to the peers, the state machine, and the disk."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from quorate.raft import api
    from quorate.raft import messages as m
    from quorate.records.ids import ReplyToken


class Owner(Protocol):
    """The driver, for those that call the disk on its behalf. All calls come from the loop."""

    @property
    def has_ended(self) -> bool:
        """Whether the core is never stepped again."""
        ...

    @property
    def has_log_alone(self) -> bool:
        """Whether something changes the log, so that nobody else may flush it."""
        ...

    @property
    def deadline_ms(self) -> int:
        """How long a call to the disk may take (rule 24)."""
        ...

    def pump(self) -> None:
        """Something is over: go on with what waited for it."""
        ...

    def hears_first(self, event: api.Event) -> None:
        """The core has to hear of it before anything else."""
        ...

    def flushed(self, event: api.LogFlushed) -> None:
        """A flush is over."""
        ...

    def stands(self) -> None:
        """The disk takes too long: nobody can be answered."""
        ...

    def goes_on(self) -> None:
        """The operation that changed the log is over, or the disk is back."""
        ...

    def damaged(self, message: str) -> None:
        """The log was found damaged while it was read."""
        ...

    def fail(self, error: Exception) -> None:
        """The disk failed, or this program did."""
        ...


class PeerSide(Protocol):
    """The way to the peers; answers come back by `deliver`."""

    def send(self, effect: api.SendRequest) -> None: ...

    def probe(self, effect: api.ProbeLeader) -> None: ...


class MachineSide(Protocol):
    """The state machine's side. All calls come from the loop; none may block."""

    def appended(self, effect: api.AppendToLog, timestamp_ms: int) -> None: ...

    def progressed(self, progress: api.PublishProgress) -> None: ...

    def answered(self, token: ReplyToken, response: m.ProposalResponse | m.ReadResponse) -> None:
        """What became of its own RecordsProposed or ReadRequested."""
        ...

    def flushed(self) -> None:
        """A flush is over; what gathered meanwhile may be proposed."""
        ...

    def drain(self) -> None:
        """Propose what has gathered now: control records may come next."""
        ...

    def check_snapshot(self, effect: api.CheckSnapshot) -> None:
        """Have a snapshot read beside everything else, and tell the core what was found."""
        ...

    async def pause(self) -> None:
        """Leave the storage alone until `resume`: a fetched snapshot takes its place."""
        ...

    def resume(self, installed: api.SnapshotInstalled | api.SnapshotRefused) -> None: ...

    def disk_hangs(self) -> None:
        """The core stands still: step down, nobody can be answered."""
        ...

    def advance(self) -> None:
        """The log was cut or cleaned, or the disk is back: go on."""
        ...
