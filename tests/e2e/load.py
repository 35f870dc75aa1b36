"""Runs in a pod: commits one value after the other, and says on stdout which were acknowledged.

    python load.py HOST:PORT

A line is `KEY VALUE MONOTONIC_SECONDS`. A value that fails may have been committed all the same;
the next one of that key is larger, so what is read in the end is at least what was acknowledged.
"""

from __future__ import annotations

import asyncio
import sys
import time

from quorate.client.controller_client import ControllerClient
from quorate.controller.requests import (
    AlterOperation,
    ConfigAlteration,
    ConfigChange,
    ConfigResource,
    IncrementalAlterConfigs,
    ResourceType,
)

KEYS = 50
PAUSE_S = 0.02


async def main() -> None:
    """Until the pod is deleted."""
    host, _, port = sys.argv[1].rpartition(":")
    every_broker = ConfigResource(ResourceType.BROKER, "")
    number = 0
    async with ControllerClient([(host, int(port))], timeout_ms=5_000) as client:
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
