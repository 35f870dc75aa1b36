"""Build the programs of others that tests/conformance talks with, into this checkout.

    python -m tools.fetch_grpc

Go builds what tests/conformance/programs/go.mod names: h2spec, grpcurl, and the interop client and
server of grpc-go. The folder is `.grpc`, or the one that QUORATE_GRPC_PROGRAMS names. It appears
whole or not at all, and is built again when the versions have changed.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Final

from tools import fetched_folder

if TYPE_CHECKING:
    from pathlib import Path

MODULE: Final = fetched_folder.ROOT / "tests" / "conformance" / "programs"
# A quarter of the time goes to what only fast or debugged programs need.
QUICK: Final = ("-gcflags=all=-N -l", "-ldflags=-s -w")
SAME_BYTES: Final = ("-trimpath", "-buildvcs=false")
NAMES: Final = ("client", "grpcurl", "h2spec", "server")
PROGRAMS: Final = fetched_folder.Fetched(
    variable="QUORATE_GRPC_PROGRAMS",
    home=".grpc",
    tool="Go",
    needs=(("go", "Go 1.26 or newer"),),
    timeout_s=1800,
    stamp="go.sha256",
)


def _sources(module: Path) -> list[Path]:
    return [module / "go.mod", module / "go.sum"]


def is_complete(folder: Path, module: Path = MODULE) -> bool:
    """True if the folder holds what the module asks for."""
    return PROGRAMS.is_complete(folder, _sources(module))


def fetch(folder: Path, module: Path = MODULE) -> str | None:
    """Let Go build the programs, one package at a time; None, or why it could not be done."""

    def command(fresh: Path) -> list[str]:
        # The bar at the end makes it a folder.
        return ["go", "build", "-p=1", *QUICK, *SAME_BYTES, f"-o={fresh}/", "tool"]

    return PROGRAMS.fill(folder, _sources(module), command, cwd=module)


def main() -> int:
    """Build what is not there yet; the exit status is 1 when that failed."""
    folder = PROGRAMS.folder(os.environ)
    problem = None if is_complete(folder) else fetch(folder)
    if problem is not None:
        print(f"fetch_grpc: {problem}", file=sys.stderr)
        return 1
    print(f"programs in {folder}: {', '.join(NAMES)}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
