"""The end of a test on a machine where something is absent."""

from __future__ import annotations

import os
from typing import NoReturn

import pytest


def lack(problem: str) -> NoReturn:
    """Skip a test, or fail it in CI, where everything has to be there.

    `problem` says what is missing, with the command that provides it.
    """
    if os.environ.get("CI") == "true":
        pytest.fail(problem)
    pytest.skip(problem)
