"""Who is who in these tests, and what each may do."""

from __future__ import annotations

from typing import Final

from quorate.controller.authorizer import Operation
from quorate.controller.listed_identities import ListedIdentities

# Peers act for the cluster, operators change it, viewers look, readers get the log; strangers have
# a certificate only.
PARTIES: Final = (
    "controller",
    "root",
    "peer",
    "operator",
    "viewer",
    "reader",
    "creator",
    "admin",
    "stranger",
)
IDENTITIES: Final = ListedIdentities(
    frozenset({"User:CN=root"}),
    {
        Operation.CLUSTER_ACTION: frozenset({"User:CN=peer", "User:CN=controller"}),
        Operation.ALTER: frozenset({"User:CN=operator"}),
        Operation.DESCRIBE: frozenset({"User:CN=viewer"}),
        Operation.READ: frozenset({"User:CN=reader"}),
        Operation.CREATE: frozenset({"User:CN=creator"}),
    },
)
