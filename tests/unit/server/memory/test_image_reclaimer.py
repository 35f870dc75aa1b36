"""An image that was kept for long and is given up is freed in slices."""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING

import pytest

from quorate.controller.image import MetadataImage
from quorate.controller.partitions.partition import PartitionCounts
from quorate.controller.topics.image import Topics
from quorate.controller.topics.messages import DeleteTopics, ListTopics, ListTopicsReply
from quorate.server.memory import image_reclaimer
from quorate.server.memory.image_reclaimer import IMAGES_MAX, ImageReclaimer
from tests.unit.server.conftest import CALLER, eventually

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from quorate.controller.authorization.authorizer import Caller
    from quorate.controller.slices import Slices
    from tests.unit.server.conftest import Stack

    Open = Callable[..., Awaitable[Stack]]


@pytest.fixture
def walked(monkeypatch: pytest.MonkeyPatch) -> list[MetadataImage]:
    """The images that were taken apart in slices; few changes count as many."""
    images: list[MetadataImage] = []

    def walk(image: MetadataImage) -> Slices[None]:
        images.append(image)
        yield

    monkeypatch.setattr(image_reclaimer, "dispose_in_slices", walk)
    monkeypatch.setattr(image_reclaimer, "REPLACED_MAX", 0)
    return images


def image_after(replaced: int) -> MetadataImage:
    return MetadataImage(topics=Topics(tally=PartitionCounts(replaced=replaced)))


async def test_what_differs_little_goes_at_once(
    walked: list[MetadataImage], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(image_reclaimer, "REPLACED_MAX", 5)
    going = ImageReclaimer(lambda: image_after(10))
    for replaced in (4, 5, 10):
        going.reclaim(image_after(replaced))
    await eventually(lambda: going._task is None)
    assert [image.replaced for image in walked] == [4]


async def test_what_shares_nothing_is_always_walked(walked: list[MetadataImage]) -> None:
    going = ImageReclaimer(lambda: image_after(0))
    going.reclaim(image_after(0), is_other=True)
    await eventually(lambda: going._task is None)
    assert len(walked) == 1


async def test_nobody_holds_an_image_that_waits_for_ever(walked: list[MetadataImage]) -> None:
    going = ImageReclaimer(lambda: image_after(0))
    for number in range(IMAGES_MAX + 5):
        going.reclaim(image_after(1 + number))
    assert len(going._images) == IMAGES_MAX
    await going.close()
    assert not walked


async def test_the_image_of_a_snapshot_is_let_go_when_it_is_over(open_stack: Open) -> None:
    stack = await open_stack()
    await stack.register()
    await stack.create("a", "b")
    assert stack.snapshotter.let_go == stack.application._images.reclaim
    images: list[MetadataImage] = []
    stack.snapshotter.let_go = images.append
    image = stack.application.controller.image
    stack.snapshotter.on_committed(1 << 40)
    stack.snapshotter.maybe_snapshot(image)
    del image
    await stack.write(DeleteTopics(("a", "b")))
    await eventually(lambda: len(images) == 1)
    held = sys.getrefcount(images[0])
    assert held == 2, "by the list, and for the count"


async def test_the_image_of_a_read_is_let_go_when_it_is_over(
    open_stack: Open, walked: list[MetadataImage], monkeypatch: pytest.MonkeyPatch
) -> None:
    stack = await open_stack()
    await stack.register()
    await stack.create("a", "b")
    controller = stack.application.controller
    image = controller.image
    goes_on = asyncio.Event()
    answer_in_slices = controller.answer_in_slices

    def slow(request: ListTopics, caller: Caller) -> Slices[object]:
        slices = answer_in_slices(request, caller)
        while not goes_on.is_set():
            yield
        return (yield from slices)

    monkeypatch.setattr(controller, "answer_in_slices", slow)
    monkeypatch.setattr("quorate.rpc.time_slicer.SLICE_S", 0.0)
    reading = asyncio.create_task(
        stack.application.read(ListTopics(), CALLER, min_offset=0, current=False, timeout_ms=60_000)
    )
    await eventually(lambda: stack.application._read_handler._has_been_up_to_date)
    await stack.write(DeleteTopics(("a",)))
    walked.clear()
    goes_on.set()
    reply = await reading
    assert isinstance(reply, ListTopicsReply)
    await eventually(lambda: image in walked)
