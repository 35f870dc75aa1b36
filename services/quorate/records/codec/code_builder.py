"""Functions generated as text from a schema, and compiled when they are first needed.

A message is converted field by field. A loop over its fields spends most of its time on finding the
type of each field again. A generated function does that once, and is straight-line code.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_INDENT = "    "


class CodeBuilder:
    """The text of one function. It may contain names of schemas, but never data of a peer."""

    def __init__(self, name: str, *parameters: str) -> None:
        """`name` is its name in tracebacks and profiles."""
        self._name = name
        self._lines = [f"def made({', '.join(parameters)}):"]
        self._depth = 1
        self._names: dict[str, Any] = {}
        self._count = 0

    def line(self, text: str) -> None:
        """Add a statement."""
        self._lines.append(_INDENT * self._depth + text)

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """Indent the lines that are added within the block under `head`."""
        self.line(head)
        self._depth += 1
        yield
        self._depth -= 1

    def local(self, hint: str) -> str:
        """A new variable name, unique in the function."""
        self._count += 1
        return f"{hint}_{self._count}"

    def bind(self, value: Any, hint: str) -> str:  # noqa: ANN401 - whatever a function needs
        """The name under which the function can access this object."""
        name = self.local(hint)
        self._names[name] = value
        return name

    def instance(self, shape: type, values: Mapping[str, str]) -> str:
        """Add the creation of a value (records/value_types.py) from expressions for all its fields.

        Its fields are set one by one, which takes a third of the time of its __init__.
        """
        made = self.local("made")
        self.line(f"{made} = {self.bind(object.__new__, 'new')}({self.bind(shape, 'shape')})")
        for name, value in values.items():
            self.line(f"{made}.{name} = {value}")
        return made

    def compiled(self) -> Any:  # noqa: ANN401 - a function of any type
        """Compile the function."""
        code = compile("\n".join(self._lines) + "\n", f"<{self._name}>", "exec")
        exec(code, self._names)  # noqa: S102 - made of our own schemas
        made = self._names.pop("made")
        made.__name__ = made.__qualname__ = self._name
        return made
