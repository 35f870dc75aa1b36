"""Three controllers that use mutual TLS on every connection, behind an authoriser."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from quorate.api.authorization_settings import STANDARD_AUTHORIZER
from quorate.client.controller_client import ControllerClient
from quorate.settings.transport import TRANSPORT
from tests.integration.quorum import DEADLINE_S, STEADY, Quorum
from tests.integration.transports import chosen

if TYPE_CHECKING:
    from collections.abc import Mapping

    from quorate.cli.local_quorum import NodePlan
    from tests.integration.security.stores import Stores

READ_ANEW: Final = "certificates were read anew"


class SecureQuorum(Quorum):
    """Node i has the certificate `controller-i`; the client here is the super user `root`."""

    def __init__(
        self,
        root: Path,
        stores: Stores,
        *,
        controllers: int = 3,
        settings: Mapping[str, str] = STEADY,
    ) -> None:
        peers = [f"controller-{i}" for i in range(1, controllers + 1)]
        for party in ("root", "broker", *peers):
            if not stores.keystore(party).exists():
                stores.give(party)
        self.stores = stores
        super().__init__(
            root,
            {
                **settings,
                "listener.security.protocol.map": "GRPC:GRPC_SSL",
                "ssl.truststore.location": str(stores.truststore),
                "ssl.client.auth": "required",
                "authorizer.class.name": STANDARD_AUTHORIZER,
                "super.users": "User:CN=root",
                "authorizer.allow.quorum.action": ";".join(f"User:CN={peer}" for peer in peers),
                "authorizer.allow.cluster.action": "User:CN=broker",
                "authorizer.allow.describe": "User:CN=viewer",
                "authorizer.allow.read": "User:CN=reader",
                "authorizer.forwarders": "User:CN=admin",
            },
            controllers=controllers,
        )
        addresses = [node.address for node in self.nodes.values()]
        self.client = ControllerClient(addresses, tls=stores.files("root"), transport=chosen())

    def environment(self, node: NodePlan) -> dict[str, str]:
        """The key store of each node by its environment, which overrides the common settings."""
        store = self.stores.keystore(f"controller-{node.node_id}")
        return super().environment(node) | {"QUORATE_SSL_KEYSTORE_LOCATION": str(store)}

    def _client_properties(self) -> Path:
        return Path(self.command_config("root"))

    def command_config(self, party: str | None) -> str:
        """The file of properties with which a party connects."""
        config = self.stores.folder / f"{party or 'nobody'}.properties"
        lines = ["security.protocol=SSL", f"ssl.truststore.location={self.stores.truststore}"]
        lines.append(f"{TRANSPORT}={chosen()}")
        if party is not None:
            lines.append(f"ssl.keystore.location={self.stores.keystore(party)}")
        config.write_text("\n".join(lines), encoding="utf-8")
        return str(config)

    async def cli_as(self, party: str | None, *arguments: str) -> tuple[int | None, str, str]:
        """Run a command as a party; its exit status, stdout and stderr."""
        config = self.command_config(party)
        command, *rest = arguments
        options = ["--bootstrap-controller", self.bootstrap_servers, "--command-config"]
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "quorate.cli.main", command, *options, config, *rest),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        async with asyncio.timeout(DEADLINE_S):
            stdout, stderr = await process.communicate()
        return process.returncode, stdout.decode(), stderr.decode()

    def said(self, node_id: int, words: str) -> int:
        """The number of lines of a node's log that hold these words."""
        lines = self.nodes[node_id].output_path.read_text(errors="replace").splitlines()
        return sum(words in line for line in lines)

    async def read_anew(self, times: int) -> None:
        """Wait until every node has taken up new files so many times."""

        async def have_read() -> bool:
            return all(self.said(node_id, READ_ANEW) >= times for node_id in self.nodes)

        await self.eventually(f"every node has read its certificates {times} times", have_read)
