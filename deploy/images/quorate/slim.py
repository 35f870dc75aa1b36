"""Makes an installed environment small and always the same: no tests, one byte code, one time.

    python slim.py /opt/quorate

Byte code is checked against nothing when it is read, as the files of an image do not change; it
holds no times, so that the same sources give the same bytes.
"""

from __future__ import annotations

import compileall
import os
import py_compile
import shutil
import sys
from pathlib import Path

# What only the tests and the builds of others read.
SUPERFLUOUS = ("tests", "include", "f2py", "__pycache__")
SUFFIXES = (".pyi", ".pyx", ".pxd", ".c", ".h", ".a")


def main() -> None:
    """Slim, compile, and set the time of every file."""
    root = Path(sys.argv[1])
    packages = next(root.glob("lib/python3*/site-packages"))
    remove(packages)
    compileall.compile_dir(
        packages,
        quiet=1,
        force=True,
        workers=1,
        stripdir=str(root),
        prependdir=str(root),
        invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH,
    )
    time_s = int(os.environ.get("SOURCE_DATE_EPOCH", "0"))
    for path in (root, *root.rglob("*")):
        os.utime(path, (time_s, time_s), follow_symlinks=False)


def remove(packages: Path) -> None:
    """Take away what no service reads."""
    for package in packages.iterdir():
        for name in SUPERFLUOUS:
            for folder in sorted(package.rglob(name)) if package.is_dir() else ():
                if folder.is_dir():
                    shutil.rmtree(folder)
    for path in packages.rglob("*"):
        if path.is_file() and (path.suffix in SUFFIXES or path.name == "direct_url.json"):
            path.unlink()


if __name__ == "__main__":
    main()
