"""Translates option names of the data source into the flags of the command.

The source's messages name its options, as users set them in Python and SQL. Messages of the
command must name the flags.
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
# Option names that are ordinary words elsewhere in a sentence.
_AT_THE_BEGIN: Final = re.compile(r"^(?=(?:path|isolation): )")
_ADVICE: Final = {
    "set failOnDataLoss to false": "say --go-on-after-loss yes",
    "give the query a new checkpoint and another output": "name another --checkpoint and --output",
    "give the query a new checkpoint": "name another --checkpoint and --output",
    "name each directory, separated by commas": "name each directory with --path",
}
_NAME: Final = re.compile(rf"(?<![\w/.-])({'|'.join(map(re.escape, _FLAGS))})\b(=?)")


def in_flags(sentence: str) -> str:
    """Replace the source's options in a sentence by the command's flags."""
    for of_source, of_command in _ADVICE.items():
        sentence = sentence.replace(of_source, of_command)
    named = _NAME.sub(lambda found: _FLAGS[found[1]] + (found[2] and " "), sentence)
    return _AT_THE_BEGIN.sub("--", named)
