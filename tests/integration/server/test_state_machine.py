"""State machines that a controller hosts, and the records that `format` left for them."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest

from quorate.rpc.health import HealthServer
from quorate.server import node
from quorate.server.config import read_config
from quorate.server.node import Node
from quorate.server.state_machine import read_bootstrap
from quorate.storage.errors import StorageError
from quorate.storage.log_store import LogStore
from tests.integration.transports import chosen


def test_a_directory_without_bootstrap_records_has_none(properties: dict[str, str]) -> None:
    assert read_bootstrap(properties["metadata.log.dir"]) == ()
    assert read_bootstrap("/nowhere") == ()


def test_damaged_bootstrap_records_matter_only_while_the_log_has_none(
    properties: dict[str, str],
) -> None:
    path = Path(properties["metadata.log.dir"]) / "bootstrap.checkpoint"
    path.write_bytes(b"\0" * 100)
    with pytest.raises(StorageError, match="copy the file from another controller"):
        read_bootstrap(properties["metadata.log.dir"])
    assert read_bootstrap(properties["metadata.log.dir"], is_needed=False) == ()


async def test_bootstrap_records_are_read_beside_the_loop(
    properties: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A disk that hangs leaves signals and probes heard."""
    lets_go = threading.Event()

    def hangs(*_: object, is_needed: bool) -> tuple[()]:
        assert is_needed
        assert lets_go.wait(60)
        return ()

    monkeypatch.setattr(node, "read_bootstrap", hangs)
    opening = Node(read_config(properties, {}), HealthServer(chosen())).open()
    turned = asyncio.Event()
    asyncio.get_running_loop().call_soon(turned.set)
    await turned.wait()
    assert not opening.done()
    lets_go.set()
    (await opening).store.close()


async def test_a_directory_whose_bootstrap_records_are_damaged_is_closed_again(
    properties: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (Path(properties["metadata.log.dir"]) / "bootstrap.checkpoint").write_bytes(b"\0" * 100)
    closed: list[LogStore] = []
    monkeypatch.setattr(LogStore, "close", lambda store: closed.append(store))
    with pytest.raises(StorageError, match="copy the file from another controller"):
        await Node(read_config(properties, {}), HealthServer(chosen())).open()
    assert len(closed) == 1
