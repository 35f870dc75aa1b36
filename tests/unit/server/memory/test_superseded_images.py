"""The end of an image when another one has taken its place."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from quorate.controller.topics.messages import DeleteTopics
from quorate.server.memory import image_reclaimer
from quorate.server.memory.gc_tuning import GcTrigger
from tests.unit.server.conftest import eventually, newest_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from quorate.controller.image import MetadataImage
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


async def test_what_a_commit_takes_the_place_of_is_let_go(
    open_stack: Open, walked: list[MetadataImage]
) -> None:
    stack = await open_stack()
    await stack.register()
    await stack.create("a")
    image = stack.application.controller.image
    walked.clear()
    await stack.write(DeleteTopics(("a",)))
    await eventually(lambda: image in walked)


async def test_what_a_replay_takes_the_place_of_is_let_go(
    open_stack: Open, walked: list[MetadataImage]
) -> None:
    stack = await open_stack()
    await stack.register()
    await stack.create("a")
    await stack.write(DeleteTopics(("a",)))
    await stack.close()
    walked.clear()
    again = await open_stack()
    # Nothing was decided since: these are from before what the log says.
    await eventually(lambda: len(walked) > 0)
    end = again.application.controller.image.position.end_offset
    assert all(image.position.end_offset < end for image in walked)


async def test_what_a_loaded_snapshot_takes_the_place_of_is_let_go(
    open_stack: Open, walked: list[MetadataImage]
) -> None:
    stack = await open_stack(snapshot_bytes=1)
    newest = await newest_of(stack)
    image = stack.application.controller.image
    walked.clear()
    stack.application._standby.load(newest)
    await eventually(lambda: any(other is image for other in walked))


async def test_a_commit_and_a_replay_tell_how_much_was_replaced(
    open_stack: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    noted: list[int] = []
    monkeypatch.setattr(GcTrigger, "note", lambda _, replaced: noted.append(replaced))
    stack = await open_stack()
    await stack.register()
    await stack.create("a")
    await stack.write(DeleteTopics(("a",)))
    replaced = stack.application.controller.image.replaced
    assert replaced > 0
    assert noted[-1] == replaced
    await stack.close()
    noted.clear()
    await open_stack()
    await eventually(lambda: replaced in noted)
