"""All request and reply types, for servers and clients that must not load the controller.

They are separate from the metadata kinds (controller/metadata_kinds.py), so that a process that
only sends requests does not load the code of decisions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from quorate.controller.brokers import messages as of_brokers
from quorate.controller.client_quotas import messages as of_client_quotas
from quorate.controller.configs import messages as of_configs
from quorate.controller.features import messages as of_features
from quorate.controller.replication import messages as of_replication
from quorate.controller.request_types import ReadRequest, WriteRequest
from quorate.controller.topics import messages as of_topics

if TYPE_CHECKING:
    from collections.abc import Mapping

MESSAGES: Final = (
    of_features,
    of_topics,
    of_configs,
    of_client_quotas,
    of_brokers,
    of_replication,
)

# By name; any transport has messages for these types.
SHAPES: Final[Mapping[str, type]] = {
    name: shape
    for module in MESSAGES
    for name, shape in vars(module).items()
    if isinstance(shape, type) and shape.__module__ == module.__name__
}
REQUESTS: Final[tuple[type[WriteRequest | ReadRequest], ...]] = tuple(
    shape for shape in SHAPES.values() if issubclass(shape, WriteRequest | ReadRequest)
)

# Largest number of items in a list of a request if its kind sets none: an item costs the
# controller some tens of microseconds.
ITEMS_MAX: Final = 1000
# By the names of the type and of its list field.
BOUNDS: Final[Mapping[tuple[str, str], int]] = {
    place: bound
    for module in MESSAGES
    for place, bound in vars(module).get("ITEMS_MAX", {}).items()
}
