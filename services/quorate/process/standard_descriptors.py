"""Standard descriptors: 0, 1 and 2 lead to /dev/null where the parent closed them.

The kernel gives the lowest free descriptor to the next file. Without this the lock, the log or a
socket would become "standard error", into which C libraries write. uvloop aborts the process when
it closes such a descriptor.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import Final

_STANDARD: Final = (0, 1, 2)


def open_standard_descriptors() -> None:
    """Open those that are closed. Call this before the process opens any file of its own."""
    for descriptor in _STANDARD:
        try:
            os.fstat(descriptor)
        except OSError:
            # A machine without /dev/null must still be able to start.
            with suppress(OSError):
                opened = os.open(os.devnull, os.O_RDWR)
                # Child processes have the same need.
                os.set_inheritable(opened, True)  # noqa: FBT003 - it has no keyword
                if opened != descriptor:
                    os.dup2(opened, descriptor)
                    os.close(opened)
