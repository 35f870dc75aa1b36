"""Draws the roles of a replica and the transitions between them into docs/protocol.md.

python tools/draw_state_diagram.py  writes the diagram between its two marks
python tools/draw_state_diagram.py --check  compares only; exit status 1 when the document is stale
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from quorate.raft.roles import TRANSITIONS, Initializing

DOCUMENT = Path(__file__).resolve().parent.parent / "docs" / "protocol.md"
BEGIN = "<!-- roles: drawn by tools/draw_state_diagram.py -->\n"
END = "<!-- end of roles -->\n"


def diagram() -> str:
    """The state diagram in Mermaid, one line a transition."""
    lines = ["```mermaid", "stateDiagram-v2", "    direction LR"]
    # A semicolon would end Mermaid's statement.
    lines += [
        f"    {_name(old)} --> {_name(new)}: {why.replace(';', ',')}"
        for (old, new), why in TRANSITIONS.items()
    ]
    return "\n".join([*lines, "```", ""])


def _name(role: type) -> str:
    """As Mermaid calls a state; the start of a process is none."""
    return "[*]" if role is Initializing else role.__name__


def redrawn(text: str) -> str:
    """The document with a fresh diagram. Raises ValueError where a mark is missing."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"the document lacks {BEGIN.strip()!r} or {END.strip()!r}")
    return before + BEGIN + diagram() + END + after


def main(arguments: list[str] | None = None, document: Path = DOCUMENT) -> int:
    """Draw, or with --check compare; the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="compare only, change nothing")
    text = document.read_text(encoding="utf-8")
    fresh = redrawn(text)
    if not parser.parse_args(arguments).check:
        document.write_text(fresh, encoding="utf-8")
        return 0
    if fresh != text:
        print(f"{document.name}: the diagram of roles is stale: run make gen", file=sys.stderr)
    return int(fresh != text)


if __name__ == "__main__":
    raise SystemExit(main())
