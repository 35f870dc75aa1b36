"""Each load of the bench for fairness reaches a controller, counts, and ends in its time."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import TYPE_CHECKING, Any, Final

import pytest

from tests.bench.attacker import HEALTH_LOADS
from tests.bench.client_loads import CLIENT_LOADS
from tests.bench.floods import FLOODS, PLAIN_CALLS
from tests.integration.quorum import DEADLINE_S, Quorum

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

CONNECTIONS: Final = 2
# Of a load without answers.
SECONDS: Final = 3.0
# Loads of which no call is answered.
WITHOUT_ANSWERS: Final = frozenset(
    {"wide-headers", "headers-byte-reset", "headers-byte-window-zero", "non-grpc"}
)


@pytest.fixture
async def quorum(tmp_path: Path) -> AsyncIterator[Quorum]:
    async with Quorum(tmp_path / "quorum", controllers=1) as quorum:
        await quorum.leader()
        yield quorum


async def attack(quorum: Quorum, load: str) -> dict[str, Any]:
    """The bytes that a client has sent and got."""
    node = quorum.nodes[1]
    port = node.health_port if load in HEALTH_LOADS else node.port
    seconds = SECONDS if load in WITHOUT_ANSWERS else DEADLINE_S
    client = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.bench.attacker", load, node.host, str(port)),
        *("--connections", str(CONNECTIONS), "--seconds", str(seconds)),
        *("--answers", "1", "--source", "127.0.0.2"),
        stdout=asyncio.subprocess.PIPE,
    )
    output, _ = await client.communicate()
    assert client.returncode == 0
    counts: dict[str, Any] = json.loads(output)
    return counts


@pytest.mark.parametrize("loads", [tuple(FLOODS), tuple(CLIENT_LOADS)], ids=["floods", "calls"])
async def test_each_load_reaches_a_controller_and_ends(
    quorum: Quorum, loads: tuple[str, ...]
) -> None:
    counts = {load: await attack(quorum, load) for load in loads}
    answered = {load for load in loads if counts[load]["answers"]}
    assert answered == set(loads) - WITHOUT_ANSWERS, counts
    sending = {load for load in loads if counts[load]["sent_bytes"]}
    assert sending == set(loads) & set(FLOODS)
    await quorum.leader()


async def test_calls_that_are_not_grpc_are_bounded_by_count(quorum: Quorum) -> None:
    counts = await attack(quorum, "non-grpc")
    # A frame of headers takes 15 bytes; the preface, SETTINGS and its acknowledgement 48.
    assert counts["sent_bytes"] == CONNECTIONS * (PLAIN_CALLS * 15 + 48)
    assert counts["ended"] == 0
