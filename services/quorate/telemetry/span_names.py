"""The attribute for the kind of a span, whose name says what came of it.

Jaeger writes names on rows and into lists: `vote 2: granted`. Searches need a constant value; for
calls `rpc.method` is one. This module loads nothing of OpenTelemetry.
"""

from __future__ import annotations

from typing import Final

KIND: Final = "kraft.span"
