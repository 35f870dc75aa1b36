"""Our channels against our listeners, each transport with each."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.conformance.cases import CASES
from tests.conformance.transports import TRANSPORTS

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conformance.served import Served

every_case = pytest.mark.parametrize("case", CASES)


@every_case
@pytest.mark.parametrize("server", TRANSPORTS)
async def test_our_client_and_our_server(
    case: str, transport: str, server: str, folder: Path | None, listeners: dict[str, Served]
) -> None:
    async with listeners[server].address.connect(transport) as channel:
        await CASES[case](channel)
