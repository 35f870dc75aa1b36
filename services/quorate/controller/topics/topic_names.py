"""Validation of topic names, including collisions of '.' and '_'."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from quorate.controller.authorization.authorizer import LOG

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

NAME_LENGTH_MAX: Final = 249
_LEGAL = re.compile(r"[a-zA-Z0-9._-]+")


def name_problem(name: str) -> str | None:
    """The problem with the name of a new topic, with the remedy; None if it is valid."""
    if not name:
        return "The topic name is empty; give it at least one character."
    if name in {".", ".."}:
        return f"The topic name may not be {name!r}; choose another."
    if len(name) > NAME_LENGTH_MAX:
        return (
            f"The topic name has {len(name)} characters; at most {NAME_LENGTH_MAX} are allowed,"
            " shorten it."
        )
    if not _LEGAL.fullmatch(name):
        return (
            f"The topic name {name!r} contains characters other than letters, digits, '.', '_' and"
            " '-'; leave them out."
        )
    if name == LOG.name:
        return f"The topic name {name!r} belongs to the metadata log; choose another."
    return None


def has_similar_form(name: str) -> bool:
    """True if another name could collide with this one: metrics write dots as underscores."""
    return "." in name or "_" in name


def similar_form(name: str) -> str:
    """The common form of names that would share a metric."""
    return name.replace(".", "_")


def similar_problem(name: str, others: Sequence[str], tells: Callable[[str], bool]) -> str | None:
    """The problem with a new name given `others` of the same form; None without one.

    `tells` decides which names may be reported.
    """
    for other in others:
        if other != name:
            existing = f"the existing {other!r}" if tells(other) else "an existing one"
            return (
                f"The topic name {name!r} differs from {existing} only in '.' and '_', which"
                " metrics do not tell apart; choose another."
            )
    return None
