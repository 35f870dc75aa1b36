"""The production classes fit what the driver asks of its two sides."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from quorate.rpc.raft.transport import RaftTransport
from quorate.server.driver import interfaces
from quorate.server.metadata.application import MetadataApplication

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.mark.parametrize(
    ("side", "fits"),
    [
        (interfaces.StateMachineCallbacks, MetadataApplication),
        (interfaces.PeerTransport, RaftTransport),
    ],
)
def test_whoever_stands_on_a_side_has_all_that_is_called(side: type, fits: type) -> None:
    calls: list[Callable[..., object]] = [
        call for name, call in vars(side).items() if callable(call) and not name.startswith("_")
    ]
    assert calls
    assert [call for call in calls if not callable(getattr(fits, call.__name__, None))] == []
