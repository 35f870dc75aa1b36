"""Runs in a pod: commits one value after the other, and says on stdout which were acknowledged.

    python load.py HOST:PORT [PROPERTIES]

PROPERTIES are those of the connection, where it has certificates. A line is `KEY VALUE
MONOTONIC_SECONDS`. A value that fails may have been committed all the same; the next one of that
key is larger, so what is read in the end is at least what was acknowledged.
"""

from __future__ import annotations

import asyncio
import sys
import time
from typing import TYPE_CHECKING

from quorate.client.controller_client import ControllerClient
from quorate.controller.configs.messages import (
    AlterOperation,
    ConfigAlteration,
    ConfigChange,
    ConfigResource,
    IncrementalAlterConfigs,
    ResourceType,
)
from quorate.rpc.channels import open_tls
from quorate.settings.properties import Settings
from quorate.settings.property_files import read_properties
from quorate.settings.tls import read_client_tls

if TYPE_CHECKING:
    from quorate.rpc.security.tls_files import TlsFiles

KEYS = 50
PAUSE_S = 0.02


def certificates() -> TlsFiles | None:
    """Those that the second argument names."""
    if len(sys.argv) < 3:
        return None
    return open_tls(read_client_tls(Settings(read_properties(sys.argv[2]), {})))


async def main() -> None:
    """Until the pod is deleted."""
    host, _, port = sys.argv[1].rpartition(":")
    server = (host, int(port))
    every_broker = ConfigResource(ResourceType.BROKER, "")
    number = 0
    async with ControllerClient([server], timeout_ms=5_000, tls=certificates()) as client:
        while True:
            number += 1
            key = f"e2e.load.{number % KEYS}"
            change = ConfigChange(key, AlterOperation.SET, str(number))
            request = IncrementalAlterConfigs((ConfigAlteration(every_broker, (change,)),))
            try:
                await client.write(request)
            except Exception as error:
                # Whatever it is, the next one is tried.
                sys.stderr.write(f"{error}\n")
            else:
                sys.stdout.write(f"{key} {number} {time.monotonic()}\n")
                sys.stdout.flush()
            await asyncio.sleep(PAUSE_S)


if __name__ == "__main__":
    asyncio.run(main())
