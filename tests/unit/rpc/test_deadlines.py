"""A handler ends before its caller's deadline."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import pytest

from quorate.rpc.deadlines import MARGIN_S_MAX, handler_timeout_s

if TYPE_CHECKING:
    import grpc.aio


class Call:
    def __init__(self, left_s: float | None) -> None:
        self.left_s = left_s

    def time_remaining(self) -> float | None:
        return self.left_s


@pytest.mark.parametrize(
    ("left_s", "handling"), [(None, None), (1.0, 0.9), (60.0, 60.0 - MARGIN_S_MAX), (0.0, 0.0)]
)
def test_the_answer_has_time_to_get_there(left_s: float | None, handling: float | None) -> None:
    context = cast("grpc.aio.ServicerContext[object, object]", Call(left_s))
    assert handler_timeout_s(context) == handling
