"""A unary call that runs through grpc.aio client interceptors."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import grpc
import grpc.aio

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence


class InterceptedCall(grpc.aio.UnaryUnaryCall[Any, Any]):
    """Runs the interceptors in a task; the call that they return is used."""

    def __init__(
        self,
        interceptors: Sequence[grpc.aio.UnaryUnaryClientInterceptor],
        begin: Callable[..., grpc.aio.UnaryUnaryCall[Any, Any]],
        method: str,
        request: Any,  # noqa: ANN401 - a message of any service
        how: dict[str, Any],
    ) -> None:
        details = grpc.aio.ClientCallDetails(
            method=method,
            timeout=how.get("timeout"),
            metadata=how.get("metadata"),
            credentials=how.get("credentials"),
            wait_for_ready=how.get("wait_for_ready"),
        )
        self._interceptors, self._begin = interceptors, begin
        self._task = asyncio.get_running_loop().create_task(self._from(0, details, request))

    async def _from(self, at: int, details: grpc.aio.ClientCallDetails, request: Any) -> Any:  # noqa: ANN401
        if at == len(self._interceptors):
            return self._begin(request, timeout=details.timeout, metadata=details.metadata)

        async def proceed(further: grpc.aio.ClientCallDetails, message: Any) -> Any:  # noqa: ANN401
            return await self._from(at + 1, further, message)

        return await self._interceptors[at].intercept_unary_unary(proceed, details, request)

    async def _answer(self) -> Any:  # noqa: ANN401 - a message of any service
        try:
            call = await self._task
        except asyncio.CancelledError:
            self._task.cancel()
            raise
        return await call

    def __await__(self) -> Generator[Any, None, Any]:
        return self._answer().__await__()

    async def initial_metadata(self) -> Any:  # noqa: ANN401
        return await (await self._task).initial_metadata()

    async def trailing_metadata(self) -> Any:  # noqa: ANN401
        return await (await self._task).trailing_metadata()

    async def code(self) -> grpc.StatusCode:
        code: grpc.StatusCode = await (await self._task).code()
        return code

    async def details(self) -> str:
        details: str = await (await self._task).details()
        return details

    async def wait_for_connection(self) -> None:
        await (await self._task).wait_for_connection()

    def cancel(self) -> bool:
        if not self._task.done():
            return self._task.cancel()
        return not self._task.cancelled() and bool(self._task.result().cancel())

    def cancelled(self) -> bool:
        return self._task.cancelled() or (
            self._task.done() and bool(self._task.result().cancelled())
        )

    def done(self) -> bool:
        return self._task.done() and (self._task.cancelled() or bool(self._task.result().done()))

    def time_remaining(self) -> float | None:
        if not self._task.done() or self._task.cancelled():
            return None
        left: float | None = self._task.result().time_remaining()
        return left

    def add_done_callback(self, callback: Any) -> None:  # noqa: ANN401
        self._task.add_done_callback(lambda _: callback(self))
