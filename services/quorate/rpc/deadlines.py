"""Time limit of a handler, so that its response arrives before the call's deadline."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import grpc.aio

# Fraction of the time until the call's deadline that is reserved for the response's way back.
MARGIN_SHARE: Final = 0.1
MARGIN_S_MAX: Final = 0.5


def handler_timeout_s(context: grpc.aio.ServicerContext[Any, Any]) -> float | None:
    """Return the time limit in seconds from now; None if the call has no deadline."""
    left_s = context.time_remaining()
    return None if left_s is None else left_s - min(MARGIN_S_MAX, left_s * MARGIN_SHARE)
