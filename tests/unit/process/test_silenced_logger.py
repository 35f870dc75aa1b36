from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import pytest

from quorate.process.silenced_logger import silenced

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def logger() -> Iterator[logging.Logger]:
    found = logging.getLogger("quorate.test_silenced_logger")
    yield found
    found.setLevel(logging.NOTSET)


def test_nothing_is_logged_in_the_block_and_all_behind_it_as_before(
    logger: logging.Logger, caplog: pytest.LogCaptureFixture
) -> None:
    logger.setLevel(logging.INFO)
    with silenced(logger.name):
        logger.critical("one")
        logger.getChild("below").critical("two")
    logger.info("three")
    logger.debug("four")
    assert caplog.messages == ["three"]


def test_a_block_that_raises_leaves_the_level_as_it_was(logger: logging.Logger) -> None:
    logger.setLevel(logging.WARNING)
    with pytest.raises(KeyError), silenced(logger.name):
        raise KeyError
    assert logger.level == logging.WARNING
