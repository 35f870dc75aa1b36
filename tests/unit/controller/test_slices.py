from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.controller.slices import SORTED_TOGETHER_MAX, run_to_end, sorted_in_slices

if TYPE_CHECKING:
    from quorate.controller.slices import Slices


def counted(pauses: int) -> Slices[str]:
    for _ in range(pauses):
        yield
    return f"after {pauses}"


def test_what_has_pauses_can_be_done_at_once() -> None:
    assert run_to_end(counted(0)) == "after 0"
    assert run_to_end(counted(3)) == "after 3"


def test_what_was_sorted_is_freed_one_by_one() -> None:
    """A list of all that goes with the last of them would be freed in one turn."""
    freed: list[int] = []

    class Item:
        def __init__(self, number: int) -> None:
            self.number = number

        def __lt__(self, other: Item) -> bool:
            return self.number < other.number

        def __del__(self) -> None:
            freed.append(self.number)

    count = 2 * SORTED_TOGETHER_MAX
    steps = sorted_in_slices(Item(number) for number in range(count))
    for number, item in enumerate(item for item in steps if item is not None):
        assert item.number == number
        # Those that were merged last may be held by the merge.
        assert len(freed) >= number - 3
