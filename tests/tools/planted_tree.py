"""Trees of a few files, on which one rule of tools/lint.py is tried."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

from tools.source_tree import Rule, Tree

PACKAGE = "services/quorate"


def plant(root: Path, files: dict[str, str]) -> Tree:
    """Write these files below `root`."""
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return Tree(root, tuple(PurePosixPath(name) for name in sorted(files)))


def check(root: Path, rule: Rule, files: dict[str, str]) -> list[str]:
    """The findings of `rule` in a tree of these files."""
    return list(rule(plant(root, files)))
