"""What the driver has on its two sides: the way to the peers, and the state machine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from quorate.raft import api
    from quorate.raft import messages as m
    from quorate.records.ids import ReplyToken


class Transport(Protocol):
    """The way to the peers; answers come back by `deliver`."""

    def send(self, effect: api.SendRequest) -> None: ...

    def probe(self, effect: api.ProbeLeader) -> None: ...


class Application(Protocol):
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
