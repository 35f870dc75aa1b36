"""Names of nodes, as each node resolves them: a hosts file for each, mounted over /etc/hosts.

Each address that a node may have has a name of its own, so that a node that moves has another name,
as it has another address. A file is overwritten in place, because the mount is of the file and not
of its path; all versions have one size, so that no reader sees a part of one.
"""

from __future__ import annotations

import os
import socket
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

# No real network has names of this domain (RFC 6761).
DOMAIN: Final = "chaos.test"
# The clients of a run, as if they were a node; they are never misled.
CLIENTS: Final = 0
_FILE_BYTES: Final = 16_384
_MOUNT: Final = 'mount --bind "$0" /etc/hosts && exec "$@"'


def name_of(address: str) -> str:
    """The name that stands for an address."""
    return f"a{address.replace('.', '-')}.{DOMAIN}"


class Names:
    """The hosts files of all nodes. `close` takes the names from this process again."""

    def __init__(self, folder: Path, nodes: Iterable[int], addresses: Iterable[str]) -> None:
        self._right = {name_of(address): address for address in addresses}
        self._paths = {node: folder / f"{node}.hosts" for node in (CLIENTS, *nodes)}
        for node, path in self._paths.items():
            path.touch()
            self.set_right(node)
        self._getaddrinfo = socket.getaddrinfo
        socket.getaddrinfo = self._resolve

    def _resolve(self, host: Any, *arguments: Any, **named: Any) -> Any:  # noqa: ANN401
        """In place of `socket.getaddrinfo`: the clients of this process know the right names."""
        return self._getaddrinfo(self._right.get(host, host), *arguments, **named)

    def close(self) -> None:
        socket.getaddrinfo = self._getaddrinfo

    def enter(self, node: int) -> list[str]:
        """The words before a command that sees the names of a node; its pid is the command's."""
        return ["unshare", "--mount", "sh", "-c", _MOUNT, str(self._paths[node])]

    def set_right(self, node: int) -> None:
        """From now on every name leads this node where it should."""
        self._write(node, self._right)

    def mislead(self, node: int, wrong: Mapping[str, str]) -> None:
        """From now on names lead this node elsewhere: addresses by the address that is right."""
        self._write(node, self._right | {name_of(right): to for right, to in wrong.items()})

    def _write(self, node: int, addresses: Mapping[str, str]) -> None:
        lines = ["127.0.0.1 localhost", *(f"{to} {name}" for name, to in addresses.items())]
        data = "\n".join(lines).encode() + b"\n"
        assert len(data) <= _FILE_BYTES, "too many names"
        file = os.open(self._paths[node], os.O_WRONLY)
        try:
            os.pwrite(file, data.ljust(_FILE_BYTES, b"\n"), 0)
        finally:
            os.close(file)
