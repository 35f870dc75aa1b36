"""What gRPC makes of interop.proto when it is asked for: messages, stubs, and what adds a servicer.

Nothing is generated into the tree: the names of the package are gRPC's own, not ours.
"""

from __future__ import annotations

from typing import Any, Final

import grpc

_made = grpc.protos_and_services("tests/conformance/interop.proto")
messages: Final[Any] = _made[0]
services: Final[Any] = _made[1]
