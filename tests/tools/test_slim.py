"""deploy/images/quorate/slim.py: what an image loses still runs, and is the same each time."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import uvloop

if TYPE_CHECKING:
    from types import ModuleType

SLIM = Path(__file__).resolve().parents[2] / "deploy" / "images" / "quorate" / "slim.py"


def load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("slim", SLIM)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def package(folder: Path) -> Path:
    """A folder of packages with one that has a module in a package of its own."""
    inner = folder / "big" / "inner"
    inner.mkdir(parents=True)
    (folder / "big" / "__init__.py").write_text("from big.inner import leaf\n")
    (folder / "big" / "py.typed").touch()
    (inner / "__init__.py").touch()
    (inner / "leaf.py").write_text('"""A leaf."""\nNAMES = frozenset({"a", "b", "c"})\n')
    return folder


def test_a_library_without_debugging_is_smaller_and_loads(tmp_path: Path) -> None:
    copy = tmp_path / "uvloop"
    shutil.copytree(Path(uvloop.__file__).parent, copy)
    library = next(copy.glob("loop*.so"))
    before = library.stat().st_size

    load().cut_debugging(library)
    once = library.read_bytes()
    load().cut_debugging(library)

    assert len(once) < before
    assert library.read_bytes() == once
    program = "import asyncio, uvloop; uvloop.run(asyncio.sleep(0)); print(uvloop.__file__)"
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env={"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == str(copy / "__init__.py")


def test_what_is_no_library_stays_as_it_is(tmp_path: Path) -> None:
    script = tmp_path / "libfoo.so"
    script.write_text("INPUT(libfoo.so.1)\n")

    load().cut_debugging(script)

    assert script.read_text() == "INPUT(libfoo.so.1)\n"


def test_an_archived_package_is_imported_from_its_archive(tmp_path: Path) -> None:
    folder = package(tmp_path)

    load().archive(folder, "big")

    assert not (folder / "big").exists()
    program = f"import site; site.addsitedir({str(folder)!r}); import big; print(big.leaf.__file__)"
    done = subprocess.run(
        [sys.executable, "-I", "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == str(folder / "big.zip" / "big" / "inner" / "leaf.pyc")


def test_an_archive_is_the_same_wherever_and_whenever_it_is_made(tmp_path: Path) -> None:
    one, other = package(tmp_path / "one"), package(tmp_path / "other")
    load().archive(one, "big")
    load().archive(other, "big")

    assert (one / "big.zip").read_bytes() == (other / "big.zip").read_bytes()


def test_a_package_with_files_to_read_is_not_archived(tmp_path: Path) -> None:
    folder = package(tmp_path)
    (folder / "big" / "table.json").write_text("{}")

    with pytest.raises(SystemExit, match=r"table\.json could not be read from an archive"):
        load().archive(folder, "big")
