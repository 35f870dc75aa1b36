"""Our own quorum: with opaque records, or with metadata."""

from __future__ import annotations

import socket
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

import grpc

from quorate.cli.local_quorum import prepare
from quorate.rpc.gen.raft.v1 import raft_pb2, raft_pb2_grpc
from quorate.settings.transport import DEFAULT_TRANSPORT, TRANSPORT, Transport
from tests.bench.processes import Members
from tests.integration.quorum import free_quorum

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


class QuorateMembers(Members):
    """Controllers on loopback, with the settings that `quorate up` gives them."""

    def __init__(
        self,
        root: Path,
        count: int = 3,
        *,
        is_raw: bool = False,
        overrides: Mapping[str, str] | None = None,
        transport: Transport = DEFAULT_TRANSPORT,
    ) -> None:
        super().__init__(root, count)
        self.name = "quorate-raw" if is_raw else "quorate"
        if transport is not DEFAULT_TRANSPORT:
            self.name += f"-{transport}"
        self._is_raw = is_raw
        self.quorum = free_quorum(root / self.name, count)
        prepare(self.quorum, {TRANSPORT: transport, **(overrides or {})})

    def command(self, member: int) -> list[str]:
        path = str(self.quorum.nodes[member].properties_path)
        program = "tests.bench.raw_controller" if self._is_raw else "quorate.server"
        return [sys.executable, "-m", program, "--config", path]

    def address(self, member: int) -> tuple[str, int]:
        return self.quorum.nodes[member].address

    def find_leader(self) -> int | None:
        """The leader that says so itself: the others may name the last one."""
        for member in range(self.count):
            described = self.describe(member)
            if described is None or described.error_code != 0:
                continue
            if described.high_watermark > 0:
                return member
        return None

    def describe(self, member: int) -> raft_pb2.DescribeQuorumResponse | None:
        """The quorum as a member describes it; None when it does not answer."""
        host, port = self.address(member)
        with suppress(grpc.RpcError), grpc.insecure_channel(f"{host}:{port}") as channel:
            stub = raft_pb2_grpc.RaftStub(channel)
            return stub.DescribeQuorum(raft_pb2.DescribeQuorumRequest(), timeout=1)
        return None

    def clock_ms(self, member: int) -> int:
        """The clock by which a member tells when it was fetched from."""
        described = self.describe(member)
        if described is None:
            raise ConnectionError(f"{self.name}: member {member} does not answer; see {self.root}")
        return described.now_ms


def is_listening(address: tuple[str, int]) -> bool:
    """True if a process accepts connections there."""
    with suppress(OSError), socket.create_connection(address, timeout=0.1):
        return True
    return False
