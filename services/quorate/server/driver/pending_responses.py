"""Responses the core owes to callers, completed with data read from the log."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final

from quorate.raft import messages as m

if TYPE_CHECKING:
    from quorate.records.ids import ReplyToken
    from quorate.server.disk.log_access import LogAccess
    from quorate.storage.log_store import LogStore

_FOR_FETCH: Final = "a read for a Fetch"


class PendingResponses:
    """The pending responses of one core, by the tokens of their requests."""

    def __init__(self, store: LogStore, access: LogAccess) -> None:
        self._store = store
        self._access = access
        self._loop = asyncio.get_running_loop()
        self._owed: dict[ReplyToken, asyncio.Future[m.Response]] = {}

    def register(self, token: ReplyToken) -> asyncio.Future[m.Response]:
        """Return the future response to a request that is about to be passed to the core."""
        answer = self._owed[token] = self._loop.create_future()
        return answer

    def discard(self, token: ReplyToken) -> bool:
        """Forget a response because its caller is gone; True if it was pending."""
        return self._owed.pop(token, None) is not None

    def complete(self, token: ReplyToken, response: m.Response) -> None:
        """Complete a response; data of the log or of a snapshot is read now, in order."""
        answer = self._owed.pop(token, None)
        if answer is None or answer.done():
            return
        match response:
            case m.FetchResponse(records=m.LogRange() as span):
                cached = self._store.cached_range(span)
                if cached is None:
                    fill = partial(self._with_records, response, span)
                    self._access.read(_FOR_FETCH, fill, answer)
                else:
                    answer.set_result(response.with_records(cached))
            case m.FetchSnapshotResponse(chunk=m.SnapshotRange() as part):
                self._access.read(_FOR_FETCH, partial(self._with_chunk, response, part), answer)
            case _:
                answer.set_result(response)

    def _with_records(self, response: m.FetchResponse, span: m.LogRange) -> m.Response:
        return response.with_records(self._store.read_range(span))

    def _with_chunk(self, response: m.FetchSnapshotResponse, part: m.SnapshotRange) -> m.Response:
        return replace(response, chunk=self._store.read_chunk(part))

    def cancel(self) -> None:
        """Cancel all pending responses."""
        for answer in self._owed.values():
            answer.cancel()
        self._owed.clear()
