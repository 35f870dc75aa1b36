"""The options of the source by the names that they have in the command.

The source speaks of its own options, as its users in Python and SQL set them; what comes through
the command has to name what can be typed there.
"""

from __future__ import annotations

import re
from typing import Final

_FLAGS: Final = {
    "bootstrap.servers": "--bootstrap-controller",
    "commandConfig": "--command-config",
    "startingOffsets": "--starting-offsets",
    "endingOffsets": "--ending-offsets",
    "maxOffsetsPerTrigger": "--max-offsets-per-batch",
    "onDamage": "--on-damage",
}
# Words that are English elsewhere in a sentence.
_AT_THE_BEGIN: Final = re.compile(r"^(?=(?:path|isolation): )")
_ADVICE: Final = {
    "set failOnDataLoss to false": "say --go-on-after-loss yes",
    "give the query a new checkpoint and another output": "name another --checkpoint and --output",
    "give the query a new checkpoint": "name another --checkpoint and --output",
    "name each directory, separated by commas": "name each directory with --path",
}
_NAME: Final = re.compile(rf"(?<![\w/.-])({'|'.join(map(re.escape, _FLAGS))})\b(=?)")


def in_flags(sentence: str) -> str:
    """A sentence of the source with the command's options in it."""
    for of_source, of_command in _ADVICE.items():
        sentence = sentence.replace(of_source, of_command)
    named = _NAME.sub(lambda found: _FLAGS[found[1]] + (found[2] and " "), sentence)
    return _AT_THE_BEGIN.sub("--", named)
