"""Image part: configs."""

from __future__ import annotations

from typing import TypeAlias

from quorate.controller.keyed_values import KeyedValues, KeyedValuesDelta

# The type of the resource as ConfigRecord has it, and its name.
ConfigKey: TypeAlias = tuple[int, str]
Configs: TypeAlias = KeyedValues[ConfigKey, str]
ConfigsDelta: TypeAlias = KeyedValuesDelta[ConfigKey, str]
