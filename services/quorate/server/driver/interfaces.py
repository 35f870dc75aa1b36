"""Interfaces between the driver and its peers, state machine and disk."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from quorate.raft import api
    from quorate.raft import messages as m
    from quorate.records.ids import ReplyToken


class Owner(Protocol):
    """The driver, as seen by the parts that call the disk on its behalf.

    All calls come from the event loop.
    """

    @property
    def has_ended(self) -> bool:
        """True if the core will never be stepped again."""
        ...

    @property
    def has_log_alone(self) -> bool:
        """True if an exclusive change of the log is in progress; nothing else may flush it."""
        ...

    @property
    def deadline_ms(self) -> int:
        """The time limit of a disk call in milliseconds (rule `disk_call_deadline`)."""
        ...

    def pump(self) -> None:
        """Continue: an operation has completed, and work may have waited for it."""
        ...

    def hears_first(self, event: api.Event) -> None:
        """Pass the event to the core before any other event."""
        ...

    def flushed(self, event: api.LogFlushed) -> None:
        """Take the event of a completed flush."""
        ...

    def stands(self) -> None:
        """A disk call exceeded its deadline; reject requests until it returns."""
        ...

    def goes_on(self) -> None:
        """Resume: the operation that changed the log has completed, or the disk is back."""
        ...

    def damaged(self, message: str) -> None:
        """Take the report that a read found the log damaged."""
        ...

    def fail(self, error: Exception) -> None:
        """Take an error of the disk or a defect of this program."""
        ...


class PeerSide(Protocol):
    """The transport to the peers; responses come back by `deliver`."""

    def send(self, effect: api.SendRequest) -> None: ...

    def probe(self, effect: api.ProbeLeader) -> None: ...


class MachineSide(Protocol):
    """The state machine, as seen by the driver.

    All calls come from the event loop; none may block.
    """

    def appended(self, effect: api.AppendToLog, timestamp_ms: int) -> None: ...

    def progressed(self, progress: api.PublishProgress) -> None: ...

    def answered(self, token: ReplyToken, response: m.ProposalResponse | m.ReadResponse) -> None:
        """Take the response to a RecordsProposed or ReadRequested of the state machine."""
        ...

    def flushed(self) -> None:
        """A flush has completed; decisions accumulated during it may be proposed."""
        ...

    def drain(self) -> None:
        """Propose all accumulated decisions now: control records may come next."""
        ...

    def check_snapshot(self, effect: api.CheckSnapshot) -> None:
        """Verify a snapshot concurrently with other work, and report the result to the core."""
        ...

    async def pause(self) -> None:
        """Leave the storage alone until `resume`: a fetched snapshot replaces the log."""
        ...

    def resume(self, installed: api.SnapshotInstalled | api.SnapshotRefused) -> None: ...

    def disk_hangs(self) -> None:
        """Step down: the disk is stalled, so the core cannot be stepped and no request answered."""
        ...

    def advance(self) -> None:
        """Continue: the log was truncated or cleaned, or the disk is back."""
        ...
