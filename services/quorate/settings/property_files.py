"""Files of properties."""

from __future__ import annotations

from quorate.settings.properties import ConfigError, parse_properties
from quorate.settings.regular_files import UnfitFileError, read_regular


def read_properties(path: str) -> dict[str, str]:
    """The pairs of a file. Raises ConfigError that names it."""
    if not path:
        raise ConfigError("the path is empty: name a readable properties file")
    try:
        # Editors on Windows begin a file with a byte order mark, which would be part of a key.
        text = read_regular(path).decode("utf-8-sig")
    except OSError as error:
        problem = f"{path}: {error.strerror}: name a readable properties file"
        raise ConfigError(problem) from error
    except (UnfitFileError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: {error}: name a readable properties file") from error
    return parse_properties(text)
