"""Properties syntax and typed settings with environment overrides.

A key may be overridden by the environment: `QUORATE_` and the key in upper case, dots as
underscores. Every key that is read is known; each other one, in the file or in the environment,
makes a warning.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from quorate.records.escaping import CONTROL
from quorate.settings.environment import environment_name, unread_variables
from quorate.settings.integers import INT32_MAX, INT64_MAX, is_whole_number, whole_number

if TYPE_CHECKING:
    from collections.abc import Mapping

PORT_MAX: Final = 65_535
NODE_ID_MAX: Final = INT32_MAX
_PAIR: Final = re.compile(r"\s*((?:\\.|[^\s=:\\])+)(?:\s*[=:]\s*|\s+|\s*$)(.*)", re.DOTALL)
# At most as long as a DNS name; no blank, none of the characters around a host in a URL or between
# list items, and no surrogate. Only an IPv6 address has colons.
_NAME: Final = re.compile(r"[^\s/\[\]@,;:\ud800-\udfff]{1,255}")
_IN_BRACKETS: Final = re.compile(r"[^\s/\[\]@,;\ud800-\udfff]{1,255}")
_SHOWN_MAX: Final = 300
_COMMENTS: Final = ("#", "!")
_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r", "f": "\f"}
_ESCAPED: Final = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_RATIO: Final = re.compile(r"[0-9]{1,9}(\.[0-9]{1,18})?", re.ASCII)
_SECRETS: Final = ("password", "secret", "key")


class ConfigError(ValueError):
    """A setting cannot be used; the message names the key and the remedy."""


def parse_properties(text: str) -> dict[str, str]:
    """Parse a properties file as Java does; the last value of a key counts."""
    pairs: dict[str, str] = {}
    pending = ""
    for line in text.splitlines():
        if not pending and (not line.strip() or line.lstrip().startswith(_COMMENTS)):
            continue
        joined = pending + (line.lstrip() if pending else line)
        backslashes = len(joined) - len(joined.rstrip("\\"))
        if backslashes % 2:
            pending = joined[:-1]
            continue
        pending = ""
        _add(pairs, joined)
    if pending:
        _add(pairs, pending)
    return pairs


def format_properties(pairs: Mapping[str, str]) -> str:
    """The text of a file from which `parse_properties` and Java read the same values.

    Keys are written unescaped. Blanks at either end of a value are lost on reading.
    """
    return "".join(f"{key}={_escaped(value)}\n" for key, value in pairs.items())


def _escaped(value: str) -> str:
    doubled = value.replace("\\", "\\\\")
    return CONTROL.sub(lambda found: f"\\u{ord(found[0]):04x}", doubled)


def _add(pairs: dict[str, str], line: str) -> None:
    match = _PAIR.fullmatch(line)
    if match is None:
        raise ConfigError(f"{line!r} is no property: write key=value")
    pairs[_unescaped(match[1])] = _unescaped(match[2]).strip()


def _unescaped(text: str) -> str:
    units = _ESCAPED.sub(_character, text)
    try:
        # Java writes a character beyond U+FFFF as two escapes, which are valid only together.
        return units.encode("utf-16", "surrogatepass").decode("utf-16")
    except UnicodeDecodeError:
        problem = f"{text!r} has half of a character: write both of its escapes, or itself"
        raise ConfigError(problem) from None


def _character(match: re.Match[str]) -> str:
    code = match[1]
    return chr(int(code[1:], 16)) if len(code) > 1 else _ESCAPES.get(code, code)


def parse_address(key: str, text: str, *, may_lack_host: bool = False) -> tuple[str, int]:
    """Parse `HOST:PORT`, an IPv6 host in brackets. Raises ConfigError that names the key."""
    before, _, port = text.rpartition(":")
    host = "" if may_lack_host and not before else host_in(before)
    is_port = is_whole_number(port, minimum=1, maximum=PORT_MAX)
    if host is None or not is_port:
        shown = repr(text if len(text) <= _SHOWN_MAX else f"{text[:_SHOWN_MAX]}...")
        raise ConfigError(
            f"{key} has {shown}: write HOST:PORT with a port of 1 to {PORT_MAX}, IPv6 in brackets, "
            "and a comma between two of them"
        )
    return host, int(port)


def host_in(text: str) -> str | None:
    """The host part before a port, IPv6 without its brackets; None if it is not a host."""
    is_bracketed = text.startswith("[") and text.endswith("]")
    host, form = (text[1:-1], _IN_BRACKETS) if is_bracketed else (text, _NAME)
    return host if form.fullmatch(host) else None


def format_settings(effective: Mapping[str, str]) -> str:
    """All values on one line for the log, secrets hidden."""
    return ", ".join(f"{key}={_masked(key, value)}" for key, value in effective.items())


def _masked(key: str, value: str) -> str:
    last = key.rpartition(".")[2]
    return "[hidden]" if any(word in last for word in _SECRETS) and value else value


class Settings:
    """Typed access to properties; records which keys were read and their effective values."""

    def __init__(self, properties: Mapping[str, str], environment: Mapping[str, str]) -> None:
        self._properties = properties
        self._environment = environment
        self.effective: dict[str, str] = {}
        self._remarks: list[str] = []

    def text(self, key: str, default: str) -> str:
        """The environment's value, the file's, or the default."""
        value = self._environment.get(environment_name(key), self._properties.get(key, default))
        self.effective[key] = value.strip()
        return self.effective[key]

    def has(self, key: str) -> bool:
        """True if the environment or the file gives this key a value."""
        return environment_name(key) in self._environment or key in self._properties

    def required(self, key: str, remedy: str) -> str:
        """A mandatory value. Raises ConfigError with `remedy` if it is missing."""
        value = self.text(key, "")
        if not value:
            raise ConfigError(f"{key} is missing: {remedy}")
        return value

    def integer(self, key: str, default: int, *, minimum: int = 0, maximum: int = INT64_MAX) -> int:
        """An integer within bounds. Raises ConfigError."""
        value = self.text(key, str(default))
        try:
            return whole_number(value, minimum=minimum, maximum=maximum)
        except ValueError as error:
            raise ConfigError(f"{key} is {error}") from None

    def ratio(self, key: str, default: float) -> float:
        """A fraction from 0 to 1. Raises ConfigError."""
        value = self.text(key, f"{default:g}")
        if _RATIO.fullmatch(value) is None or float(value) > 1:
            raise ConfigError(f"{key} is {value!r}: it must be a number from 0 to 1, such as 0.05")
        return float(value)

    def flag(self, key: str, *, default: bool) -> bool:
        """true or false. Raises ConfigError."""
        value = self.text(key, "true" if default else "false").lower()
        if value not in ("true", "false"):
            raise ConfigError(f"{key} is {value!r}: it must be true or false")
        return value == "true"

    def items(self, key: str, default: str) -> list[str]:
        """A comma-separated list, without empty items."""
        return [item.strip() for item in self.text(key, default).split(",") if item.strip()]

    def choice(self, key: str, choices: tuple[str, ...]) -> str:
        """One of `choices`; the first is the default. Raises ConfigError."""
        value = self.text(key, choices[0])
        if value not in choices:
            raise ConfigError(f"{key} is {value!r}: it must be one of {', '.join(choices)}")
        return value

    def warn(self, sentence: str) -> None:
        """Add a warning about a value that is odd but usable."""
        self._remarks.append(sentence)

    def warnings(self) -> tuple[str, ...]:
        """Sentences about odd values, and about each key or variable that no setting reads."""
        unknown = sorted(set(self._properties) - set(self.effective))
        in_file = (f"{key} is not a setting of this release: it is ignored" for key in unknown)
        reads_listeners = "listeners" in self.effective
        in_environment = unread_variables(
            self._environment, self.effective, reads_listeners=reads_listeners
        )
        return (*self._remarks, *in_file, *in_environment)
