"""The gRPC transport of a test: of its servers, its channels, and the processes it starts.

All tests have one transport, that of `--transport`. Where that is not given, those that ask for the
fixture `transport`, or stand in a folder that does, run once with each.
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import pytest

from quorate.settings.environment import environment_name
from quorate.settings.transport import DEFAULT_TRANSPORT, TRANSPORT, Transport

if TYPE_CHECKING:
    from collections.abc import Iterator

# What is set here reaches every process, whatever its file of properties says.
VARIABLE: Final = environment_name(TRANSPORT)
EACH: Final = pytest.mark.usefixtures("transport")


def chosen() -> Transport:
    """The transport of the test that runs."""
    return Transport(os.environ.get(VARIABLE, DEFAULT_TRANSPORT))


@contextmanager
def speaking(transport: Transport) -> Iterator[None]:
    """Give this transport to all that is started in the block."""
    before = os.environ.get(VARIABLE)
    os.environ[VARIABLE] = transport
    try:
        yield
    finally:
        if before is None:
            del os.environ[VARIABLE]
        else:
            os.environ[VARIABLE] = before


@pytest.fixture(autouse=True)
def each_transport(transport: Transport) -> Transport:
    """Every test of a folder that imports this runs with each."""
    return transport
