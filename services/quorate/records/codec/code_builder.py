"""Functions whose text is put together from a schema, and compiled where they are first needed.

A message is converted field by field. A loop over its fields spends most of its time on finding out
again what each of them is; here that is done once, and what is left are straight lines.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_INDENT = "    "


class CodeBuilder:
    """One function while its text grows. Names of schemas may be in it, never words of a peer."""

    def __init__(self, name: str, *parameters: str) -> None:
        """`name` is what tracebacks and profiles call it."""
        self._name = name
        self._lines = [f"def made({', '.join(parameters)}):"]
        self._depth = 1
        self._names: dict[str, Any] = {}
        self._count = 0

    def line(self, text: str) -> None:
        """One statement more."""
        self._lines.append(_INDENT * self._depth + text)

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """Lines that are added meanwhile stand under `head`."""
        self.line(head)
        self._depth += 1
        yield
        self._depth -= 1

    def local(self, hint: str) -> str:
        """A variable that nothing else in the function is called."""
        self._count += 1
        return f"{hint}_{self._count}"

    def bind(self, value: Any, hint: str) -> str:  # noqa: ANN401 - whatever a function needs
        """The name by which the function finds this object."""
        name = self.local(hint)
        self._names[name] = value
        return name

    def instance(self, shape: type, values: Mapping[str, str]) -> str:
        """Adds the making of a value (records/value_types.py) of expressions for all its fields.

        Its fields are set one by one, which takes a third of what its __init__ would.
        """
        made = self.local("made")
        self.line(f"{made} = {self.bind(object.__new__, 'new')}({self.bind(shape, 'shape')})")
        for name, value in values.items():
            self.line(f"{made}.{name} = {value}")
        return made

    def compiled(self) -> Any:  # noqa: ANN401 - a function of any type
        """The function."""
        code = compile("\n".join(self._lines) + "\n", f"<{self._name}>", "exec")
        exec(code, self._names)  # noqa: S102 - made of our own schemas
        made = self._names.pop("made")
        made.__name__ = made.__qualname__ = self._name
        return made
