"""Configurations of all resources: a part of the image, and that part while it changes."""

from __future__ import annotations

from dataclasses import field
from typing import TypeAlias

from immutables import Map

from quorate.records.value import value

# The type of the resource as ConfigRecord has it, and its name.
ConfigKey: TypeAlias = tuple[int, str]
NOTHING: Map[str, str] = Map()


@value
class Configs:
    """What is set on each resource that has anything set.

    `replaced` counts what later values took the place of since this process began to replay.
    """

    by_resource: Map[ConfigKey, Map[str, str]] = field(default_factory=Map)
    replaced: int = field(default=0, compare=False)

    def of(self, key: ConfigKey) -> Map[str, str]:
        """What is set on a resource; empty when nothing is."""
        return self.by_resource.get(key, NOTHING)

    def mutate(self) -> ConfigsDelta:
        """What changes of it are written to."""
        return ConfigsDelta(self)


class ConfigsDelta:
    """What has changed since; the attributes are those of Configs, unfrozen."""

    def __init__(self, configs: Configs) -> None:
        self.by_resource = configs.by_resource.mutate()
        self.replaced = configs.replaced

    def of(self, key: ConfigKey) -> Map[str, str]:
        """What is set on a resource by now; empty when nothing is."""
        return self.by_resource.get(key, NOTHING)

    def set(self, key: ConfigKey, name: str, value: str | None) -> None:
        """Set one key of a resource, or remove it where the value is None."""
        entries = self.by_resource.get(key, NOTHING)
        self.replaced += 1
        if value is not None:
            self.by_resource[key] = entries.set(name, value)
        elif name in entries:
            left = entries.delete(name)
            if left:
                self.by_resource[key] = left
            else:
                del self.by_resource[key]

    def remove(self, key: ConfigKey) -> None:
        """The resource is gone, and what was set on it, if anything was."""
        self.by_resource.pop(key, None)

    def finish(self) -> Configs:
        """The configurations with all that changed; the delta is used up."""
        return Configs(self.by_resource.finish(), self.replaced)
