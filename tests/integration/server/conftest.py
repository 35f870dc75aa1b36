"""Directories and properties of a single controller on free ports."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from quorate.records.ids import UUID_BYTES, ClusterId, DirectoryId, NodeId, ReplicaKey
from quorate.records.voters import Endpoint, Voter, VoterSet
from quorate.settings.transport import TRANSPORT
from quorate.storage.file_system import OsFileSystem
from quorate.storage.formatter import Formatting, format_directory
from quorate.storage.meta_properties import MetaProperties
from tests.integration.transports import chosen
from tests.ports import HOST, free_ports
from tests.unit.server.conftest import open_stack

if TYPE_CHECKING:
    from pathlib import Path

# The same controller without sockets, for requests by the thousand.
__all__ = ["open_stack", "properties"]

DIRECTORY = DirectoryId(b"d" * UUID_BYTES)


@pytest.fixture
def properties(tmp_path: Path) -> dict[str, str]:
    """The settings of a voter that is alone, its directory formatted."""
    port, health, metrics = free_ports(3)
    directory = str(tmp_path / "log")
    voter = Voter(ReplicaKey(NodeId(1), DIRECTORY), (Endpoint("GRPC", HOST, port),))
    meta = MetaProperties(NodeId(1), ClusterId("cluster"), DIRECTORY)
    formatting = Formatting(meta=meta, records=(), voters=VoterSet((voter,)))
    format_directory(OsFileSystem(), directory, formatting, timestamp_ms=0)
    return {
        "node.id": "1",
        "listeners": f"GRPC://{HOST}:{port}",
        "controller.quorum.bootstrap.servers": f"{HOST}:{port}",
        "metadata.log.dir": directory,
        "health.port": str(health),
        "metrics.port": str(metrics),
        "grpc.reflection.enable": "true",
        TRANSPORT: chosen(),
    }
