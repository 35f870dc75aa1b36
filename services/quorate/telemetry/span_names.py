"""The attribute that says of which kind a span is, because its name says what came of it."""

from __future__ import annotations

from typing import Final

KIND: Final = "kraft.span"
