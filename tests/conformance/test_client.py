"""Our channels against our listeners, each transport with each."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from tests.conformance.cases import CASES
from tests.conformance.served import Served
from tests.conformance.transports import TRANSPORTS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

every_case = pytest.mark.parametrize("case", CASES)


@every_case
@pytest.mark.parametrize("server", TRANSPORTS)
async def test_our_client_and_our_server(
    case: str, transport: str, server: str, folder: Path | None, listeners: dict[str, Served]
) -> None:
    async with listeners[server].address.connect(transport) as channel:
        await CASES[case](channel)


@pytest.fixture(scope="module")
def listeners(folder: Path | None) -> Iterator[dict[str, Served]]:
    """One listener of each transport: both ends mix."""
    with ExitStack() as stack:
        yield {name: stack.enter_context(Served(name, folder)) for name in TRANSPORTS}
