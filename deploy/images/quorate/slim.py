"""Makes the contents of an image small, and identical for identical sources.

    python slim.py packages /opt/quorate modules   the environment; lists the imported modules
    python slim.py system modules                  the image that it runs in, with Python itself

With a read-only root file system Python cannot store byte code, and every start would compile all
modules again. So this script compiles the modules that services import, including those of the
standard library, and no others. Python does not compare this byte code with its source, since the
files of an image do not change. The byte code contains no timestamps.
"""

from __future__ import annotations

import os
import py_compile
import shutil
import site
import struct
import subprocess
import sys
import sysconfig
import tempfile
import zipfile
from pathlib import Path

# Folders and suffixes of files that only tests of third-party packages or builds need.
SUPERFLUOUS = ("tests", "include", "f2py", "__pycache__")
SUFFIXES = (".pyi", ".pyx", ".pxd", ".c", ".h", ".a")
# Packages of some 2,000 generated modules, of which the operator imports a few. The byte code of
# all of them is stored in one compressed file, from which Python imports.
ARCHIVED = ("kubernetes",)
PURE = (".py", "py.typed")
# Packages of the standard library for installation, teaching, tests and graphics.
STANDARD = ("ensurepip", "idlelib", "lib2to3", "pydoc_data", "test", "tkinter", "turtledemo")
INSTALLERS = ("pip", "pip-*", "setuptools", "setuptools-*", "wheel", "wheel-*", "pkg_resources")
INSTALLERS += ("_distutils_hack", "distutils-precedence.pth")
PROGRAMS = ("pip", "pip3*", "idle*", "pydoc*", "2to3*", "wheel", "python*-config")
# Files of the system: the package manager, Perl (which packages use for their installation),
# documentation, and character sets other than Unicode.
SYSTEM = (
    *("usr/bin/apt*", "usr/lib/apt", "usr/lib/*/libapt-*", "var/lib/apt"),
    *("usr/bin/perl*", "usr/lib/*/perl*", "usr/share/perl*", "usr/lib/*/gconv"),
    *("usr/share/doc", "usr/share/info", "usr/share/man", "usr/share/locale", "usr/share/i18n"),
    "usr/share/python-wheels",
)
# Prints the files of all modules that commands and services import, at the start or later, one a
# line. The operator and the pipeline need packages that not every image has: without these packages
# they are left out.
LEARN = """
import ast, contextlib, importlib, importlib.util, pathlib, sys
import quorate
root = pathlib.Path(quorate.__file__).parent
names = {"quorate"}
needs = {"autojoin": "kopf", "pipeline": "pyspark"}
left_out = {root / part for part, name in needs.items() if importlib.util.find_spec(name) is None}
for path in sorted(root.rglob("*.py")):
    if not left_out.isdisjoint(path.parents):
        continue
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    if path.name != "__main__.py":
        importlib.import_module(".".join(path.relative_to(root.parent).with_suffix("").parts))
for name in sorted(names):
    with contextlib.suppress(ImportError):
        importlib.import_module(name)
for module in list(sys.modules.values()):
    file = getattr(module, "__file__", None) or ""
    if file.endswith(".py"):
        print(file)
"""
# Offsets in the header of a 64-bit little-endian ELF file, and in a program header.
ELF = b"\x7fELF\x02\x01"
PROGRAM_HEADERS, SECTION_HEADERS, SIZES_AND_COUNTS = 32, 40, 54
SEGMENT_OFFSET, SEGMENT_SIZE = 8, 32


def packages(root: Path, learned: Path) -> None:
    """Slim an environment; write the imported modules of the standard library to `learned`."""
    folder = next(root.glob("lib/python3*/site-packages"))
    take_away(folder)
    for name in ARCHIVED:
        if (folder / name).is_dir():
            archive(folder, name)
    for path in sorted(folder.rglob("*.so*")):
        cut_debugging(path)
    modules = imported_by(root)
    own = [path for path in modules if path.is_relative_to(root)]
    compile_all(own)
    learned.write_text("".join(f"{path}\n" for path in modules if path not in own))
    set_times(root, *root.rglob("*"))


def system(learned: Path) -> None:
    """Remove what no service uses of this system, and compile the modules in `learned`."""
    standard = Path(sysconfig.get_path("stdlib"))
    gone = [standard / name for name in STANDARD]
    places = [*map(Path, site.getsitepackages()), Path("/usr/lib/python3/dist-packages")]
    for place in places:
        gone += [path for name in INSTALLERS for path in place.glob(name)]
    for place in (Path("/usr/bin"), Path("/usr/local/bin")):
        gone += [path for name in PROGRAMS for path in place.glob(name)]
    gone += [path for name in SYSTEM for path in Path("/").glob(name)]
    for path in gone:
        if path.is_symlink() or path.is_file():
            path.unlink()
        elif path.is_dir():
            shutil.rmtree(path)
    modules = [Path(line) for line in learned.read_text().splitlines()]
    compile_all(modules)
    folders = {path.parent for path in (*gone, *modules)}
    caches = {folder / "__pycache__" for folder in folders}
    there = [path for path in (*folders, *caches) if path.is_dir()]
    set_times(*there, *(file for path in caches if path.is_dir() for file in path.iterdir()))


def take_away(folder: Path) -> None:
    """Remove the files of third-party packages that no service reads."""
    for package in folder.iterdir():
        for name in SUPERFLUOUS:
            for found in sorted(package.rglob(name)) if package.is_dir() else ():
                if found.is_dir():
                    shutil.rmtree(found)
    for path in folder.rglob("*"):
        if path.is_file() and (path.suffix in SUFFIXES or path.name == "direct_url.json"):
            path.unlink()


def archive(folder: Path, name: str) -> None:
    """Move a pure Python package into a zip file on the path, as byte code."""
    files = sorted(path for path in (folder / name).rglob("*") if path.is_file())
    for path in files:
        if not path.name.endswith(PURE):
            sys.exit(f"{path} could not be read from an archive: take {name} out of ARCHIVED")
    with zipfile.ZipFile(folder / f"{name}.zip", "w", zipfile.ZIP_DEFLATED) as target:
        for path in files:
            if path.suffix == ".py":
                within = path.relative_to(folder)
                target.writestr(
                    zipfile.ZipInfo(f"{within}c"),
                    byte_code(path, f"{name}.zip/{within}"),
                    zipfile.ZIP_DEFLATED,
                    compresslevel=9,
                )
    (folder / f"{name}.pth").write_text(f"{name}.zip\n")
    shutil.rmtree(folder / name)


def byte_code(path: Path, shown: str) -> bytes:
    """Compile a module to byte code; tracebacks show the path `shown`."""
    with tempfile.NamedTemporaryFile() as file:
        compile_one(path, file.name, shown)
        return Path(file.name).read_bytes()


def compile_all(modules: list[Path]) -> None:
    """Compile modules to byte code files in their `__pycache__`."""
    for path in modules:
        compile_one(path, None, str(path))


def compile_one(path: Path, target: str | None, shown: str) -> None:
    """Compile a module. Raises PyCompileError, which ends the build."""
    mode = py_compile.PycInvalidationMode.UNCHECKED_HASH
    py_compile.compile(str(path), target, shown, doraise=True, invalidation_mode=mode)


def cut_debugging(path: Path) -> None:
    """Remove the part of an ELF file after its last segment: only debuggers read it."""
    data = bytearray(path.read_bytes())
    if path.is_symlink() or data[: len(ELF)] != ELF:
        return
    (table,) = struct.unpack_from("<Q", data, PROGRAM_HEADERS)
    size, count = struct.unpack_from("<HH", data, SIZES_AND_COUNTS)
    end = table + size * count
    for header in range(table, end, size):
        (offset,) = struct.unpack_from("<Q", data, header + SEGMENT_OFFSET)
        (length,) = struct.unpack_from("<Q", data, header + SEGMENT_SIZE)
        end = max(end, offset + length)
    struct.pack_into("<Q", data, SECTION_HEADERS, 0)
    struct.pack_into("<HHH", data, SIZES_AND_COUNTS + 4, 0, 0, 0)
    path.write_bytes(data[:end])


def imported_by(root: Path) -> list[Path]:
    """The files of the modules that commands and services import."""
    python = root / "bin" / "python"
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [python, "-c", LEARN], check=True, stdout=subprocess.PIPE, text=True, env=environment
    )
    return sorted(path for line in done.stdout.splitlines() if (path := Path(line)).is_file())


def set_times(*paths: Path) -> None:
    """Set the same modification time for all paths."""
    time_s = int(os.environ.get("SOURCE_DATE_EPOCH", "0"))
    for path in paths:
        os.utime(path, (time_s, time_s), follow_symlinks=False)


if __name__ == "__main__":
    if sys.argv[1] == "packages":
        packages(Path(sys.argv[2]), Path(sys.argv[3]))
    else:
        system(Path(sys.argv[2]))
