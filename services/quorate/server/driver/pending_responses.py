"""What callers of the core wait for, and the bytes of the log that some of their answers need."""

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


class Answers:
    """The answers that one core owes, by the tokens of their requests."""

    def __init__(self, store: LogStore, access: LogAccess) -> None:
        self._store = store
        self._access = access
        self._loop = asyncio.get_running_loop()
        self._owed: dict[ReplyToken, asyncio.Future[m.Response]] = {}

    def owe(self, token: ReplyToken) -> asyncio.Future[m.Response]:
        """The answer to a request that the core is about to be told."""
        answer = self._owed[token] = self._loop.create_future()
        return answer

    def drop(self, token: ReplyToken) -> bool:
        """Nobody waits for that answer any more; whether somebody did."""
        return self._owed.pop(token, None) is not None

    def give(self, token: ReplyToken, response: m.Response) -> None:
        """The core has answered; what lies in the log or in a snapshot is read now, in order."""
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
        """Nobody gets an answer."""
        for answer in self._owed.values():
            answer.cancel()
        self._owed.clear()
