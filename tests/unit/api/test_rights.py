"""Who has what a request needs."""

from __future__ import annotations

from quorate.api.rights import Access, Need
from quorate.controller.authorizer import TOPICS, ListedIdentities, Operation


def test_any_one_of_the_operations_is_enough() -> None:
    allowed = {Operation.DELETE: frozenset({"User:a"})}
    access = Access(ListedIdentities(frozenset({"User:root"}), allowed))
    either = Need((Operation.ALTER, Operation.DELETE), TOPICS)
    assert access.allows("User:a", either)
    assert access.allows("User:root", either)
    assert not access.allows("User:b", either)
    assert not access.allows("User:a", Need((Operation.ALTER,), TOPICS))
