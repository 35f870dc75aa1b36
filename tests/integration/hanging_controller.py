"""A controller whose disk can be made to hang, and released again, from outside.

    QUORATE_HANG=FILE python -m tests.integration.hanging_controller --config FILE

As long as FILE exists, the calls to the disk whose names stand in it do not return. A device that
hangs needs a device mapper; what the controller sees of it is a call that does not return.
"""

from __future__ import annotations

import functools
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from quorate.server.__main__ import main
from quorate.storage.file_system import OsFile, OsFileSystem

if TYPE_CHECKING:
    from collections.abc import Callable

HANG: Final = "QUORATE_HANG"
POLL_S: Final = 0.005
CALLS: Final = {
    OsFile: ("fdatasync", "read_at", "truncate"),
    OsFileSystem: ("open", "read", "sync_dir", "rename", "remove", "list_dir"),
}


def _hanging(name: str, call: Callable[..., Any], gate: Path) -> Callable[..., Any]:
    @functools.wraps(call)
    def hung(*arguments: Any, **named: Any) -> Any:  # noqa: ANN401 - whatever it wraps
        while gate.exists() and name in gate.read_text(encoding="ascii").split():
            time.sleep(POLL_S)
        return call(*arguments, **named)

    return hung


if __name__ == "__main__":
    gate_ = Path(os.environ[HANG])
    for owner, names in CALLS.items():
        for name_ in names:
            setattr(owner, name_, _hanging(name_, getattr(owner, name_), gate_))
    sys.exit(main())
