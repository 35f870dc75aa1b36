"""Silences a logger for a while."""

from __future__ import annotations

import logging
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def silenced(name: str) -> Iterator[None]:
    """Keep the logger of this name, and those below it without a level of their own, from output.

    Its level is as it was at the end of the block.
    """
    logger = logging.getLogger(name)
    level = logger.level
    logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        logger.setLevel(level)
