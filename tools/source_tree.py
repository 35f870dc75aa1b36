"""The files that the house rules check: text, syntax trees and documents, each parsed once."""

from __future__ import annotations

import ast
import re
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import TypeAlias

SOURCE_ROOT = PurePosixPath("services")
PACKAGE = SOURCE_ROOT / "quorate"
TESTS = PurePosixPath("tests")
# Written by tools/gen_proto.py.
GENERATED = (PACKAGE / "rpc" / "gen", PurePosixPath("tests/bench/gen"))
FENCE = re.compile(r"^(```|~~~).*?^\1\s*$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)\s]*)?\)")


@dataclass(frozen=True)
class Tree:
    """The files to check, by path relative to `root`."""

    root: Path
    paths: tuple[PurePosixPath, ...]

    @cached_property
    def texts(self) -> dict[PurePosixPath, str]:
        """The content of every text file; files that are not UTF-8 are left out."""
        texts = {}
        for path in self.paths:
            try:
                texts[path] = (self.root / path).read_text(encoding="utf-8")
            except UnicodeDecodeError:
                continue
        return texts

    @cached_property
    def modules(self) -> dict[PurePosixPath, ast.Module]:
        """The syntax tree of every hand-written Python file."""
        return {
            path: ast.parse(text, filename=str(path))
            for path, text in self.texts.items()
            if path.suffix == ".py" and not is_generated(path)
        }

    @cached_property
    def nodes(self) -> dict[PurePosixPath, list[ast.AST]]:
        """All nodes of each syntax tree: to walk through a tree takes as long as to parse it."""
        return {path: list(ast.walk(module)) for path, module in self.modules.items()}

    @cached_property
    def documents(self) -> dict[PurePosixPath, str]:
        """Every Markdown file without its fenced blocks, which show output and sketches."""
        return {
            path: FENCE.sub("", text) for path, text in self.texts.items() if path.suffix == ".md"
        }

    def below(self, folder: PurePosixPath) -> Iterator[PurePosixPath]:
        """The hand-written Python files below `folder`."""
        return (path for path in self.modules if path.is_relative_to(folder))


Rule: TypeAlias = Callable[[Tree], Iterator[str]]


def is_generated(path: PurePosixPath) -> bool:
    """True if a tool has written this file."""
    return any(path.is_relative_to(folder) for folder in GENERATED)


def tracked_tree(root: Path) -> Tree:
    """The files that git tracks in `root`, or would track if they were added."""
    listing = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],  # noqa: S607
        cwd=root,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    names = sorted({name for name in listing.split("\0") if name and (root / name).is_file()})
    return Tree(root, tuple(PurePosixPath(name) for name in names))
