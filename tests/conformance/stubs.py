"""gRPC's generated code of interop.proto: messages, stubs, and the functions to add servicers.

Nothing is generated into the tree: the names of the package are gRPC's own, not ours.
"""

from __future__ import annotations

from typing import Any, Final

import grpc

_made = grpc.protos_and_services("tests/conformance/interop.proto")
messages: Final[Any] = _made[0]
services: Final[Any] = _made[1]
