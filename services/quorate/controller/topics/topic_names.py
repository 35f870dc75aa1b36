"""Which names a topic may have: Kafka's rules, and the clash of dots with underscores."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from quorate.controller.authorization.authorizer import LOG

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

NAME_LENGTH_MAX: Final = 249
_LEGAL = re.compile(r"[a-zA-Z0-9._-]+")


def name_problem(name: str) -> str | None:
    """What is wrong with the name of a new topic, with the remedy; None when it is fine."""
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
    """Whether some other name could look like this one: metrics write dots as underscores."""
    return "." in name or "_" in name


def similar_form(name: str) -> str:
    """What names that would share a metric have in common."""
    return name.replace(".", "_")


def similar_problem(name: str, others: Sequence[str], tells: Callable[[str], bool]) -> str | None:
    """What is wrong with a new name beside `others` of the same form; None when nothing is.

    `tells` says whose names may be told.
    """
    for other in others:
        if other != name:
            existing = f"the existing {other!r}" if tells(other) else "an existing one"
            return (
                f"The topic name {name!r} differs from {existing} only in '.' and '_', which"
                " metrics do not tell apart; choose another."
            )
    return None
