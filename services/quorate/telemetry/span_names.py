"""The attribute that says of which kind a span is, because its name says what came of it.

Jaeger writes names on rows and into lists: `vote 2: granted`. Searches need what stays the same; a
call has `rpc.method` for that. Nothing of OpenTelemetry is loaded here.
"""

from __future__ import annotations

from typing import Final

KIND: Final = "kraft.span"
