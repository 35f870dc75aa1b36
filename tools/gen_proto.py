"""Generate code from .proto files, or prove with --check that what is committed is fresh.

The files of proto/quorate/<area>/<version>/ become modules quorate.rpc.gen.<area>.<version>, those
of tests/bench/proto likewise tests.bench.gen.<area>.<version>, with type stubs next to
them. Generated code is committed, so that an installation needs no protobuf compiler.
"""

from __future__ import annotations

import argparse
import filecmp
import os
import re
import shutil
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from grpc_tools import protoc

ROOT = Path(__file__).resolve().parent.parent

# A generated module imports its neighbours by the path of their .proto file.
IMPORT = re.compile(r"\bquorate\.(?=\w+\.v\d+\b)")


@dataclass(frozen=True)
class Package:
    """A folder of .proto files, and the package that is made of them."""

    proto: Path
    generated: Path
    name: str


PACKAGES = (
    Package(ROOT / "proto", ROOT / "services" / "quorate" / "rpc" / "gen", "quorate.rpc.gen"),
    Package(
        ROOT / "tests" / "bench" / "proto", ROOT / "tests" / "bench" / "gen", "tests.bench.gen"
    ),
)


def generate(package: Package, target: Path) -> None:
    """Write the modules of every .proto file of a package below `target`."""
    proto = package.proto
    sources = sorted(str(path.relative_to(proto)) for path in proto.rglob("*.proto"))
    # The compiler finds the plugin next to the interpreter that runs this file.
    os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    with tempfile.TemporaryDirectory() as folder:
        status = protoc.main(
            [
                "protoc",
                f"--proto_path={proto}",
                f"--python_out={folder}",
                f"--pyi_out={folder}",
                f"--grpc_python_out={folder}",
                f"--mypy_grpc_out={folder}",
                *sources,
            ]
        )
        if status != 0:
            raise SystemExit(f"protoc failed with status {status}")
        made = Path(folder) / "quorate"
        for path in sorted(made.rglob("*.py*")):
            _adopt(path, target / path.relative_to(made), package.name)
    for part in [target, *sorted(path for path in target.rglob("*") if path.is_dir())]:
        (part / "__init__.py").write_text("", encoding="utf-8")


def _adopt(source: Path, target: Path, package: str) -> None:
    """Copy one generated file; its imports become those of the package that it moves to."""
    lines = source.read_text(encoding="utf-8").splitlines(keepends=True)
    moved = [
        IMPORT.sub(f"{package}.", line) if re.match(r"\s*(from|import) ", line) else line
        for line in lines
    ]
    text = "".join(moved)
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text, encoding="utf-8")


def files_below(folder: Path) -> set[Path]:
    """All files below `folder`, by relative path, without what running them leaves behind."""
    paths = (path for path in folder.rglob("*.py*") if "__pycache__" not in path.parts)
    return {path.relative_to(folder) for path in paths if path.is_file()}


def stale_files(package: Package) -> list[Path]:
    """The files that are missing, left over or different in the committed code."""
    with tempfile.TemporaryDirectory() as folder:
        fresh, committed = Path(folder), package.generated
        generate(package, fresh)
        wanted, present = files_below(fresh), files_below(committed)
        both = (str(path) for path in wanted & present)
        _, different, errors = filecmp.cmpfiles(fresh, committed, both, shallow=False)
        stale = (wanted ^ present) | {Path(name) for name in (*different, *errors)}
        return sorted(committed / path for path in stale)


def main() -> int:
    """Generate, or with --check compare; the exit status is 1 when anything is stale."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="compare only, change nothing")
    if not parser.parse_args().check:
        for package in PACKAGES:
            shutil.rmtree(package.generated, ignore_errors=True)
            generate(package, package.generated)
        return 0
    stale = [path for package in PACKAGES for path in stale_files(package)]
    for path in stale:
        print(f"{path.relative_to(ROOT)} is stale: run make gen", file=sys.stderr)
    return 1 if stale else 0


if __name__ == "__main__":
    raise SystemExit(main())
