"""Lookups of names that hang, as with a DNS server that is silent."""

from __future__ import annotations

import socket
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pytest


@contextmanager
def hanging_lookups(
    monkeypatch: pytest.MonkeyPatch, host: str = "dead.example"
) -> Iterator[threading.Event]:
    """Let each lookup of this host hang until the end; the event is set when one has begun."""
    system, has_begun, may_end = socket.getaddrinfo, threading.Event(), threading.Event()

    def look_up(name: Any, *args: Any, **options: Any) -> Any:  # noqa: ANN401
        if name == host:
            has_begun.set()
            may_end.wait()
            raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")
        return system(name, *args, **options)

    with monkeypatch.context() as patched:
        patched.setattr(socket, "getaddrinfo", look_up)
        try:
            yield has_begun
        finally:
            may_end.set()
