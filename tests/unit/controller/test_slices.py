from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.controller.slices import finish

if TYPE_CHECKING:
    from quorate.controller.slices import Slices


def counted(pauses: int) -> Slices[str]:
    for _ in range(pauses):
        yield
    return f"after {pauses}"


def test_what_has_pauses_can_be_done_at_once() -> None:
    assert finish(counted(0)) == "after 0"
    assert finish(counted(3)) == "after 3"
