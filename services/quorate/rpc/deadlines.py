"""How long a handler may take, so that its answer is back before the call's own deadline."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import grpc.aio

# Of the time until the call's own deadline: what it takes for the answer to get there.
MARGIN_SHARE: Final = 0.1
MARGIN_S_MAX: Final = 0.5


def handling_s(context: grpc.aio.ServicerContext[Any, Any]) -> float | None:
    """In seconds from now; None where the caller waits for as long as it takes."""
    left_s = context.time_remaining()
    return None if left_s is None else left_s - min(MARGIN_S_MAX, left_s * MARGIN_SHARE)
