"""Makes what an image holds small, and always the same for the same sources.

    python slim.py packages /opt/quorate modules   the environment; notes what services import
    python slim.py system modules                  the image that it runs in, with Python itself

At a read-only root nobody can keep byte code, and every start would make it anew. So what services
import is compiled here, the standard library too, and nothing else is. Byte code is checked against
nothing when it is read, as the files of an image do not change, and holds no times.
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

# What only the tests and the builds of others read.
SUPERFLUOUS = ("tests", "include", "f2py", "__pycache__")
SUFFIXES = (".pyi", ".pyx", ".pxd", ".c", ".h", ".a")
# Generated, some 2,000 modules of which an operator imports a few: kept as one compressed file,
# from which Python imports, with the byte code of all.
ARCHIVED = ("kubernetes",)
PURE = (".py", "py.typed")
# Of the standard library: what installs, teaches, tests and draws.
STANDARD = ("ensurepip", "idlelib", "lib2to3", "pydoc_data", "test", "tkinter", "turtledemo")
INSTALLERS = ("pip", "pip-*", "setuptools", "setuptools-*", "wheel", "wheel-*", "pkg_resources")
INSTALLERS += ("_distutils_hack", "distutils-precedence.pth")
PROGRAMS = ("pip", "pip3*", "idle*", "pydoc*", "2to3*", "wheel", "python*-config")
# Of the system: what installs packages, Perl, which does that too, and character sets but Unicode.
SYSTEM = (
    *("usr/bin/apt*", "usr/lib/apt", "usr/lib/*/libapt-*", "var/lib/apt"),
    *("usr/bin/perl*", "usr/lib/*/perl*", "usr/share/perl*", "usr/lib/*/gconv"),
    *("usr/share/doc", "usr/share/info", "usr/share/man", "usr/share/locale", "usr/share/i18n"),
    "usr/share/python-wheels",
)
# Whatever commands and services import, at once or when they need it: one file a line. The operator
# and what reads the log in Spark need more than every image has: it says so where it lacks.
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
# Of an ELF file of 64 bits, little endian: offsets of its header, and of a program header.
ELF = b"\x7fELF\x02\x01"
PROGRAM_HEADERS, SECTION_HEADERS, SIZES_AND_COUNTS = 32, 40, 54
SEGMENT_OFFSET, SEGMENT_SIZE = 8, 32


def packages(root: Path, learned: Path) -> None:
    """Slim an environment; `learned` gets the modules of the standard library that it imports."""
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
    """Take away of this Python what no service uses, and compile what they do."""
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
    """Take away what no service reads."""
    for package in folder.iterdir():
        for name in SUPERFLUOUS:
            for found in sorted(package.rglob(name)) if package.is_dir() else ():
                if found.is_dir():
                    shutil.rmtree(found)
    for path in folder.rglob("*"):
        if path.is_file() and (path.suffix in SUFFIXES or path.name == "direct_url.json"):
            path.unlink()


def archive(folder: Path, name: str) -> None:
    """Put a package of nothing but Python into one file that is on the path."""
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
    """What Python reads instead of a module; `shown` stands in tracebacks."""
    with tempfile.NamedTemporaryFile() as file:
        compile_one(path, file.name, shown)
        return Path(file.name).read_bytes()


def compile_all(modules: list[Path]) -> None:
    """Put byte code beside each."""
    for path in modules:
        compile_one(path, None, str(path))


def compile_one(path: Path, target: str | None, shown: str) -> None:
    """Compile; a module that does not compile ends the build."""
    mode = py_compile.PycInvalidationMode.UNCHECKED_HASH
    py_compile.compile(str(path), target, shown, doraise=True, invalidation_mode=mode)


def cut_debugging(path: Path) -> None:
    """Cut off what follows the last segment, for debuggers: nobody loads it."""
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
    """The modules that commands and services import, where they lie as files."""
    python = root / "bin" / "python"
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [python, "-c", LEARN], check=True, stdout=subprocess.PIPE, text=True, env=environment
    )
    return sorted(path for line in done.stdout.splitlines() if (path := Path(line)).is_file())


def set_times(*paths: Path) -> None:
    """Give all the same time."""
    time_s = int(os.environ.get("SOURCE_DATE_EPOCH", "0"))
    for path in paths:
        os.utime(path, (time_s, time_s), follow_symlinks=False)


if __name__ == "__main__":
    if sys.argv[1] == "packages":
        packages(Path(sys.argv[2]), Path(sys.argv[3]))
    else:
        system(Path(sys.argv[2]))
