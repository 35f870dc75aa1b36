"""The shutdown permits that the leader has issued, and when each one ends."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from quorate.raft.trace_events import TraceEventKind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from quorate.raft.replica import Replica
    from quorate.raft.roles import Leader
    from quorate.records.ids import Millis, ReplicaKey

# Fraction of the fetch timeout after which a silent voter is assumed to have exited. A live one
# fetches twice as often.
SILENCE_SHARE: Final = 2


def holds_permit(replica: Replica, role: Leader, key: ReplicaKey) -> bool:
    """True if this voter has a permit: it may stop at any moment, or has not returned yet."""
    leave = role.shutdown_permits.get(key)
    return leave is not None and leave.until_ms > replica.timers.now


def is_silent(replica: Replica, last_fetch_ms: Millis | None) -> bool:
    """True if a live voter would have sent another Fetch since then."""
    silence_ms = replica.config.fetch_timeout_ms // SILENCE_SHARE
    return last_fetch_ms is None or replica.timers.now - last_fetch_ms >= silence_ms


def on_fetch(replica: Replica, role: Leader, key: ReplicaKey, last_fetch_ms: Millis | None) -> None:
    """Handle a Fetch of a voter: the permit of a voter that has returned ends.

    `last_fetch_ms` is the time of the Fetch before. One Fetch proves nothing: it may have been sent
    before its voter stopped, while this leader was suspended; the next one is sent after the
    answer. A silence that began before the permit proves nothing either: the voter was partitioned
    when it requested the permit.
    """
    leave = role.shutdown_permits.get(key)
    if leave is None:
        return
    silent_from_ms = max(leave.given_ms, last_fetch_ms or leave.given_ms)
    if leave.has_returned:
        del role.shutdown_permits[key]
        text = f"voter {key} is back from its leave"
        replica.out.note(TraceEventKind.LEAVE_ENDED, text, replica_id=key.node_id)
    elif is_silent(replica, silent_from_ms):
        leave.has_returned = True


def permitted_and_running(replica: Replica, role: Leader) -> Iterator[ReplicaKey]:
    """Voters with a permit that still fetch: a later leader could not distinguish them."""
    for key in role.shutdown_permits:
        progress = role.progress.get(key)
        if (
            key in replica.voters
            and key.node_id != replica.node_id
            and holds_permit(replica, role, key)
            and progress is not None
            and not is_silent(replica, progress.last_fetch_ms)
        ):
            yield key
