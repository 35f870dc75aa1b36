"""One number of a process that runs, as a scrape of its metrics shows it."""

from __future__ import annotations

import asyncio
import re
import urllib.request
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from quorate.cli.local_quorum import NodePlan


async def scraped(node: NodePlan, name: str) -> float:
    """The value of a metric without labels of its own, named without `quorate_` and `_total`."""
    url = f"http://{node.host}:{node.metrics_port}/metrics"
    text = await asyncio.to_thread(lambda: urllib.request.urlopen(url).read().decode())
    found = re.search(rf"^quorate_{name}(?:_total)?\{{[^}}]*\}} (\S+)$", text, re.MULTILINE)
    assert found is not None, text
    return float(found[1])
