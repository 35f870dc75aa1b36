"""Interfaces between the driver and its peers, state machine and disk."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from quorate.raft import api
    from quorate.raft import messages as m
    from quorate.records.ids import ReplyToken


class DriverHandle(Protocol):
    """The driver, as seen by the parts that call the disk on its behalf.

    All calls come from the event loop.
    """

    @property
    def has_ended(self) -> bool:
        """True if the core will never be stepped again."""
        ...

    @property
    def has_exclusive_log(self) -> bool:
        """True if an exclusive change of the log is in progress; nothing else may flush it."""
        ...

    @property
    def deadline_ms(self) -> int:
        """The time limit of a disk call in milliseconds (rule `disk_call_deadline`)."""
        ...

    def pump(self) -> None:
        """Continue: an operation has completed, and work may have waited for it."""
        ...

    def deliver_first(self, event: api.Event) -> None:
        """Pass the event to the core before any other event."""
        ...

    def flushed(self, event: api.LogFlushed) -> None:
        """Take the event of a completed flush."""
        ...

    def on_disk_stalled(self) -> None:
        """A disk call exceeded its deadline; reject requests until it returns."""
        ...

    def on_disk_resumed(self) -> None:
        """Resume: the operation that changed the log has completed, or the disk is back."""
        ...

    def on_damage(self, message: str) -> None:
        """Take the report that a read found the log damaged."""
        ...

    def fail(self, error: Exception) -> None:
        """Take an error of the disk or a defect of this program."""
        ...


class PeerTransport(Protocol):
    """The transport to the peers; responses come back by `deliver`."""

    def send(self, effect: api.SendRequest) -> None: ...

    def probe(self, effect: api.ProbeLeader) -> None: ...


class StateMachineCallbacks(Protocol):
    """The state machine, as seen by the driver.

    All calls come from the event loop; none may block.
    """

    def on_appended(self, effect: api.AppendToLog, timestamp_ms: int) -> None: ...

    def on_progress(self, progress: api.PublishProgress) -> None: ...

    def on_response(self, token: ReplyToken, response: m.ProposalResponse | m.ReadResponse) -> None:
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

    async def suspend_storage_access(self) -> None:
        """Leave storage until `resume_storage_access`: an installed snapshot replaces it."""
        ...

    def resume_storage_access(
        self, installed: api.SnapshotInstalled | api.SnapshotRefused
    ) -> None: ...

    def on_disk_stalled(self) -> None:
        """Step down: the disk is stalled, so the core cannot be stepped and no request answered."""
        ...

    def on_log_changed(self) -> None:
        """Continue: the log was truncated or cleaned, or the disk is back."""
        ...
