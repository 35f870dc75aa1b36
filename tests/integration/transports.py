"""Who speaks gRPC in the servers of a test: every test of a folder that asks runs with both."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from quorate.settings.transport import Transport

if TYPE_CHECKING:
    from collections.abc import Iterator

_chosen = [Transport.GRPCIO]


def chosen() -> Transport:
    """The transport of the test that runs."""
    return _chosen[-1]


@pytest.fixture(params=list(Transport), autouse=True)
def transport(request: pytest.FixtureRequest) -> Iterator[Transport]:
    """Every test where this is imported runs once for each."""
    _chosen.append(request.param)
    yield request.param
    _chosen.pop()
