"""Claims of pods that were scaled down: no change of replicas deletes a disk, and disks cost."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from quorate.records.value_types import keyword_value_type

if TYPE_CHECKING:
    from collections.abc import Iterable


@keyword_value_type
class Claims:
    """The claims that a StatefulSet makes for its pods, named TEMPLATE-NAME-ORDINAL."""

    stateful_set: str = ""
    replicas: int = 0
    templates: tuple[str, ...] = ()
    selector: str = ""
    are_kept: bool = False

    def left(self, names: Iterable[str]) -> tuple[str, ...]:
        """The names that belong to pods beyond the replicas, by ordinal."""
        templates = "|".join(map(re.escape, self.templates))
        own = re.compile(rf"(?:{templates})-{re.escape(self.stateful_set)}-(\d+)")
        found = []
        for name in names:
            match = own.fullmatch(name)
            if match is not None and int(match[1]) >= self.replicas:
                found.append((int(match[1]), name))
        return tuple(name for _, name in sorted(found))
