"""Purgatory of delayed Fetch requests, indexed by token, replica and deadline.

A commit completes every Fetch that waits for it, and each replica fetches again. To keep that cheap
with a thousand observers, each Fetch is examined at most twice: when the high watermark has passed
it, and when it is answered. Due Fetches are answered in slices of a fixed number per millisecond,
in order of deadline. Voters are found by key and do not wait for a slice.
"""

from __future__ import annotations

from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING, Final

from quorate.records.ids import Millis, ReplyToken

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from quorate.raft.messages import FetchRequest
    from quorate.records.ids import ReplicaKey

# More answers without yielding would delay the voters' next messages.
ANSWERS_PER_MS: Final = 16
# Entries of Fetches that were answered early remain in the heap until they are more than half.
_STALE_MIN: Final = 64


@dataclass(slots=True)
class ParkedFetch:
    """A Fetch that waits for data; answered at `deadline` at the latest."""

    token: ReplyToken
    key: ReplicaKey | None
    request: FetchRequest
    deadline: Millis


class FetchPurgatory:
    """The parked Fetches of one leadership."""

    def __init__(self) -> None:
        self._fetches: dict[ReplyToken, ParkedFetch] = {}
        self._by_key: dict[ReplicaKey, ReplyToken] = {}
        # Fetches that the high watermark has not made due yet.
        self._not_due: dict[ReplyToken, ParkedFetch] = {}
        self._due: list[tuple[Millis, ReplyToken]] = []
        self._slice_ms = Millis(-1)
        self._left = ANSWERS_PER_MS

    def __len__(self) -> int:
        return len(self._fetches)

    def __iter__(self) -> Iterator[ParkedFetch]:
        return iter(self._fetches.values())

    def by_replica(self, key: ReplicaKey) -> ParkedFetch | None:
        """The parked Fetch of this replica, at most one."""
        token = self._by_key.get(key)
        return None if token is None else self._fetches[token]

    def add(self, fetch: ParkedFetch) -> None:
        """Park a Fetch until it is removed, at its deadline at the latest."""
        self._fetches[fetch.token] = self._not_due[fetch.token] = fetch
        if fetch.key is not None:
            self._by_key[fetch.key] = fetch.token
        self._push(fetch)

    def remove(self, token: ReplyToken) -> ParkedFetch | None:
        """Remove a Fetch that is being answered, or whose caller has disconnected."""
        fetch = self._fetches.pop(token, None)
        if fetch is None:
            return None
        self._not_due.pop(token, None)
        if fetch.key is not None and self._by_key.get(fetch.key) == token:
            del self._by_key[fetch.key]
        return fetch

    def rekey(self, known: Callable[[ParkedFetch], ReplicaKey | None]) -> None:
        """Index the Fetches by new replica keys."""
        for fetch in self._fetches.values():
            fetch.key = known(fetch)
        self._by_key = {f.key: f.token for f in self._fetches.values() if f.key is not None}

    # --- time -------------------------------------------------------------------------------------

    def answer_by(self, fetch: ParkedFetch, to: Millis) -> None:
        """Answer this Fetch at `to`, unless it is due earlier."""
        if to < fetch.deadline:
            fetch.deadline = to
            self._push(fetch)

    def not_due(self) -> Iterator[ParkedFetch]:
        """Fetches that no commit has made due yet."""
        return iter(tuple(self._not_due.values()))

    def make_due(self, fetch: ParkedFetch, now: Millis) -> None:
        """Make a Fetch due because there is data for it; it is answered in a slice."""
        self._not_due.pop(fetch.token, None)
        self.answer_by(fetch, now)

    def is_any_due(self, now: Millis) -> bool:
        """True if a Fetch has reached its deadline."""
        due = self._first()
        return due is not None and due <= now

    def take_due(self, now: Millis) -> Iterator[ParkedFetch]:
        """Remove the due Fetches, up to the limit of this millisecond."""
        if now > self._slice_ms:
            self._slice_ms, self._left = now, ANSWERS_PER_MS
        while self._left > 0 and (due := self._first()) is not None and due <= now:
            fetch = self.remove(heappop(self._due)[1])
            assert fetch is not None, "stale entries are skipped"
            self._left -= 1
            yield fetch

    def next_deadline(self) -> Millis | None:
        """Time in ms at which to take due Fetches; None if none is parked."""
        due = self._first()
        if due is None or self._left > 0:
            return due
        return max(due, Millis(self._slice_ms + 1))

    def _first(self) -> Millis | None:
        """The earliest deadline, after dropping entries of already answered Fetches."""
        while self._due:
            due, token = self._due[0]
            fetch = self._fetches.get(token)
            if fetch is not None and fetch.deadline == due:
                return due
            heappop(self._due)
        return None

    def _push(self, fetch: ParkedFetch) -> None:
        if len(self._due) > 2 * len(self._fetches) + _STALE_MIN:
            self._due = [(f.deadline, f.token) for f in self._fetches.values()]
            heapify(self._due)
        else:
            heappush(self._due, (fetch.deadline, fetch.token))
