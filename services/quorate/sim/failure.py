"""A failure: the violated property and its message."""

from __future__ import annotations

import re
import traceback
from typing import TYPE_CHECKING, Final

from quorate.records.value_types import value_type
from quorate.sim.checkers.oracle import Violation
from quorate.sim.invariants import ALL

if TYPE_CHECKING:
    from collections.abc import Iterator

_INVARIANTS: Final = frozenset(invariant.__name__ for invariant in ALL)
_PLACES: Final = 3
# The start of details in a message: the state of each node, or the place of an error.
_DETAILS: Final = re.compile(r";|: node| \(")
_NUMBERS: Final = re.compile(r"\[[^\]]*\]|\d+")


@value_type
class Failure:
    """`name` is the name of an invariant, of another checker, or of an exception."""

    name: str
    words: str

    def __str__(self) -> str:
        return f"{self.name}: {self.words}"

    @property
    def kind(self) -> str:
        """The part that equal failures share, without nodes and offsets.

        An invariant is one property; other checkers have several, each with its own message.
        """
        if self.name in _INVARIANTS:
            return self.name
        return f"{self.name}: {_NUMBERS.sub('', _DETAILS.split(self.words)[0])}"

    @classmethod
    def of(cls, error: Exception) -> Failure:
        """The message of a violation; of any other error, message and innermost stack frames."""
        if isinstance(error, Violation):
            judges = list(_classes(error))
            invariants = [name for name in judges if name in _INVARIANTS]
            return cls((invariants or judges or ["Violation"])[-1], str(error))
        if isinstance(error, AssertionError) and type(error) is not AssertionError:
            return cls(type(error).__name__, str(error))
        frames = traceback.extract_tb(error.__traceback__)[-_PLACES:]
        places = " < ".join(
            f"{f.filename.rpartition('/')[2]}:{f.lineno} {f.name}" for f in frames[::-1]
        )
        return cls(type(error).__name__, f"{error} ({places})")


def _classes(error: Exception) -> Iterator[str]:
    """The classes of the methods in the traceback; the class that raised the error is last."""
    for frame, _ in traceback.walk_tb(error.__traceback__):
        owner, dot, _ = frame.f_code.co_qualname.partition(".")
        if dot and owner.isidentifier():
            yield owner
