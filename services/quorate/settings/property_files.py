"""Reads properties files; separate so that pure packages can import `properties`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.settings.input_files import read_input
from quorate.settings.properties import ConfigError, parse_properties
from quorate.settings.regular_files import NotRegularFileError

if TYPE_CHECKING:
    from collections.abc import Callable


def read_properties(path: str, read: Callable[[str], bytes] = read_input) -> dict[str, str]:
    """The pairs of a file or a pipe. Raises ConfigError that names it.

    A file that is read more than once needs a `read` that accepts regular files only.
    """
    if not path:
        raise ConfigError("the path is empty: name a readable properties file")
    try:
        # Editors on Windows begin a file with a byte order mark, which would be part of a key.
        text = read(path).decode("utf-8-sig")
    except OSError as error:
        problem = f"{path}: {error.strerror}: name a readable properties file"
        raise ConfigError(problem) from error
    except (NotRegularFileError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: {error}: name a readable properties file") from error
    return parse_properties(text)
