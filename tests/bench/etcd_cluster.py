"""etcd, where its binary is on the machine."""

from __future__ import annotations

import json
import shutil
import urllib.error
import urllib.request
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from tests.bench.processes import Members
from tests.ports import HOST, free_ports

if TYPE_CHECKING:
    from pathlib import Path


def is_there() -> bool:
    """True if etcd can be measured here."""
    return shutil.which("etcd") is not None


class EtcdMembers(Members):
    """Members with etcd's own defaults: fsync on, heartbeats of 100 ms, elections after 1 s."""

    name = "etcd"

    def __init__(self, root: Path, count: int = 3) -> None:
        super().__init__(root, count)
        ports = free_ports(2 * count)
        self._clients, self._peers = ports[:count], ports[count:]

    def command(self, member: int) -> list[str]:
        client = f"http://{HOST}:{self._clients[member]}"
        peer = f"http://{HOST}:{self._peers[member]}"
        cluster = ",".join(f"m{i}=http://{HOST}:{port}" for i, port in enumerate(self._peers))
        flags = {
            "name": f"m{member}",
            "data-dir": str(self.root / f"etcd-{member}"),
            "listen-client-urls": client,
            "advertise-client-urls": client,
            "listen-peer-urls": peer,
            "initial-advertise-peer-urls": peer,
            "initial-cluster": cluster,
        }
        return ["etcd", *(f"--{key}={value}" for key, value in flags.items())]

    def address(self, member: int) -> tuple[str, int]:
        return HOST, self._clients[member]

    def find_leader(self) -> int | None:
        for member in range(self.count):
            status = self.status(member)
            if status is not None and status.get("leader") == status["header"]["member_id"]:
                return member
        return None

    def status(self, member: int) -> dict[str, Any] | None:
        """The status that a member reports; None when it does not answer."""
        host, port = self.address(member)
        request = urllib.request.Request(f"http://{host}:{port}/v3/maintenance/status", data=b"{}")
        with (
            suppress(urllib.error.URLError, ConnectionError, TimeoutError),
            urllib.request.urlopen(request, timeout=1) as answer,  # noqa: S310 - loopback
        ):
            status: dict[str, Any] = json.load(answer)
            return status
        return None

    def revision(self, member: int) -> int:
        """The store's revision: one more for each put."""
        status = self.status(member)
        assert status is not None, "the member does not answer"
        return int(status["header"]["revision"])
