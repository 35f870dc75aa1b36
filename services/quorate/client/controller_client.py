"""ControllerClient: follows the leader and retries within a deadline.

Errors name the servers that were tried. Reads may be pinned to one controller. A change whose
outcome is unknown raises OutcomeUnknownError: only the caller can know if it may be repeated.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Self, TypeVar

from quorate.client import pagination
from quorate.client.backoff import ATTEMPT_MIN_S, Backoff
from quorate.client.controller_calls import (
    ATTEMPT_TIMEOUT_S,
    ApiVersions,
    ControllerCalls,
    NoAnswerError,
    OutcomeUnknownError,
    QuorumUnavailableError,
    RedirectError,
    name_of,
)
from quorate.client.leader_finder import LeaderFinder
from quorate.client.unresponsive_servers import LeaderReplacedError
from quorate.settings.transport import DEFAULT_TRANSPORT, Transport

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine, Sequence

    from quorate.client.controller_calls import Address
    from quorate.controller.request_types import (
        ReadReply,
        ReadRequestOf,
        WriteReply,
        WriteRequestOf,
    )
    from quorate.raft.messages import DescribeQuorumResponse
    from quorate.rpc.security.tls_files import TlsFiles

T = TypeVar("T")
W = TypeVar("W", bound="WriteReply")
R = TypeVar("R", bound="ReadReply")


class ControllerClient(ControllerCalls):
    """Use as an async context manager. `timeout_ms` bounds every call."""

    def __init__(
        self,
        servers: Sequence[Address],
        *,
        timeout_ms: int = 30_000,
        tls: TlsFiles | None = None,
        transport: Transport = DEFAULT_TRANSPORT,
        forwards: bool = False,
    ) -> None:
        """Plaintext without `tls`. With `forwards`, calls are made for callers of this process."""
        if not servers:
            raise ValueError("no server to ask: give at least one HOST:PORT")
        self._timeout_s = timeout_ms / 1000
        super().__init__(drain_s=self._timeout_s, tls=tls, transport=transport, forwards=forwards)
        self.finder = LeaderFinder(self, servers)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    # --- calls ------------------------------------------------------------------------------------

    async def write(self, request: WriteRequestOf[W]) -> W:
        """Write through the leader; the reply comes after the commit.

        Raises OutcomeUnknownError, RequestRefusedError, QuorumUnavailableError.
        """

        async def attempt(server: Address, timeout_s: float) -> W:
            reply = await self.write_to(server, request, timeout_s)
            self.finder.on_leader(server)
            return reply

        return await self._through_leader(attempt, is_repeatable=False)

    async def read(
        self,
        request: ReadRequestOf[R],
        *,
        min_offset: int = 0,
        current: bool = False,
        controller: Address | None = None,
        even_if_behind: bool = False,
    ) -> R:
        """Read from any server, or only from `controller`; a linearizable read goes to the leader.

        `even_if_behind` accepts servers that have not caught up since their start. The pages of a
        long answer are joined here (client/pagination.py).
        """

        whole: R | None = None
        for page in pagination.first_pages(request):
            asked: ReadRequestOf[R] | None = page
            while asked is not None:
                reply = await self._read_page(
                    asked,
                    min_offset=min_offset,
                    current=current,
                    controller=controller,
                    even_if_behind=even_if_behind,
                )
                whole = reply if whole is None else pagination.joined(request, whole, reply)
                min_offset = max(min_offset, whole.offset)
                asked = pagination.next_page(page, whole)
        assert whole is not None
        return whole

    async def read_pages(
        self, request: ReadRequestOf[R], *, current: bool = False
    ) -> AsyncIterator[R]:
        """The pages of a long answer as they arrive, so that no caller has to hold all of it.

        A `current` read begins with what is committed now. A topic that is replaced between two of
        its pages has a part of each.
        """
        min_offset = 0
        for page in pagination.first_pages(request):
            asked: ReadRequestOf[R] | None = page
            while asked is not None:
                reply = await self._read_page(
                    asked,
                    min_offset=min_offset,
                    current=current and not min_offset,
                    controller=None,
                    even_if_behind=False,
                )
                yield reply
                min_offset = max(min_offset, reply.offset)
                asked = pagination.next_page(page, reply)

    async def _read_page(
        self,
        request: ReadRequestOf[R],
        *,
        min_offset: int,
        current: bool,
        controller: Address | None,
        even_if_behind: bool,
    ) -> R:
        async def attempt(server: Address, timeout_s: float) -> R:
            reply = await self.read_from(
                server,
                request,
                timeout_s,
                min_offset=min_offset,
                current=current,
                even_if_behind=even_if_behind,
            )
            if current:
                self.finder.on_leader(server)
            return reply

        if controller is None:
            return await self._through_leader(attempt)
        try:
            return await attempt(controller, self._timeout_s)
        except (NoAnswerError, RedirectError) as error:
            raise QuorumUnavailableError(f"tried {name_of(controller)}: {error}") from error

    async def describe_quorum(self) -> DescribeQuorumResponse:
        """The leader's view of all replicas."""

        async def attempt(server: Address, timeout_s: float) -> DescribeQuorumResponse:
            answer = await self.describe_leader_at(server, timeout_s)
            self.finder.on_leader(server)
            return answer

        return await self._through_leader(attempt)

    async def api_versions(self) -> ApiVersions:
        """The identity and features of the first server that answers."""
        return await self._through_leader(self.api_versions_at)

    # --- following the leader ---------------------------------------------------------------------

    async def _through_leader(
        self,
        attempt: Callable[[Address, float], Coroutine[Any, Any, T]],
        *,
        is_repeatable: bool = True,
    ) -> T:
        """Try the servers in turn and every leader that they name, until the deadline.

        A call that is not repeatable may take effect without an answer, so it is not sent with
        hardly any time left.
        """
        finder = self.finder
        backoff = Backoff(asyncio.get_running_loop().time() + self._timeout_s)
        said: dict[Address, str] = {}
        asked: set[Address] = set()
        while backoff.left_s > 0:
            server = finder.next_server()
            # No server is asked twice without a pause, not even two servers that name each other.
            if server in asked:
                asked.clear()
                if not await backoff.wait():
                    break
            if said and not is_repeatable and backoff.left_s <= ATTEMPT_MIN_S:
                break
            asked.add(server)
            timeout_s = min(backoff.left_s, ATTEMPT_TIMEOUT_S)
            calling = attempt(server, timeout_s)
            try:
                return await finder.call(server, calling, is_repeatable=is_repeatable)
            except LeaderReplacedError as replaced:
                said[server] = str(replaced)
                if not is_repeatable:
                    raise OutcomeUnknownError(f"{name_of(server)}: {replaced}") from replaced
            except RedirectError as redirect:
                said[server] = str(redirect)
                finder.on_redirect(server, redirect)
            except OutcomeUnknownError:
                # The leader may hang: the next attempt begins with the next server.
                finder.on_leader_lost()
                raise
            except NoAnswerError as error:
                if error.refusal is not None:
                    # No other server would authorize the caller.
                    raise error.refusal from error
                if error.is_silence and timeout_s < ATTEMPT_TIMEOUT_S:
                    # It did not answer in the remaining time, and may have answered before.
                    said.setdefault(server, str(error))
                else:
                    said[server] = str(error)
                finder.on_leader_lost()
        tried = "; ".join(f"{name_of(server)}: {words}" for server, words in said.items())
        raise QuorumUnavailableError(
            f"no answer within {self._timeout_s:g} s; tried {tried or 'nobody'}"
        )
