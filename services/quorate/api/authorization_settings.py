"""Builds the authorizer from the settings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from quorate.api.permissions import Access
from quorate.controller.authorization.authorizer import Operation
from quorate.controller.authorization.config_authorizer import ConfigAuthorizer
from quorate.settings.properties import ConfigError
from quorate.settings.tls import ClientAuth

if TYPE_CHECKING:
    from collections.abc import Iterable

    from quorate.settings.properties import Settings
    from quorate.settings.tls import TlsSettings

AUTHORIZER: Final = "authorizer.class.name"
STANDARD_AUTHORIZER: Final = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
SUPER_USERS: Final = "super.users"
FORWARDERS: Final = "authorizer.forwarders"


def allow_key(operation: Operation) -> str:
    """The settings key of an operation: `authorizer.allow.cluster.action` for ClusterAction."""
    words = "".join(f".{letter.lower()}" if letter.isupper() else letter for letter in operation)
    return f"authorizer.allow{words}"


QUORUM_ACTION: Final = allow_key(Operation.QUORUM_ACTION)


def read_access(settings: Settings, *, has_peers: bool = True) -> Access | None:
    """Read the permissions of callers; None, if no authorizer is named, permits everything.

    Without a list for QuorumAction the list for ClusterAction names the controllers, as in Kafka.
    Raises ConfigError, also for lists with which no controller could call another.
    """
    name = settings.text(AUTHORIZER, "")
    super_users = principals(settings, SUPER_USERS)
    allowed = {operation: principals(settings, allow_key(operation)) for operation in Operation}
    if not settings.has(QUORUM_ACTION):
        allowed[Operation.QUORUM_ACTION] = allowed[Operation.CLUSTER_ACTION]
    forwarders = principals(settings, FORWARDERS)
    if not name:
        return None
    if name != STANDARD_AUTHORIZER:
        raise ConfigError(f"{AUTHORIZER} is {name!r}: it must be {STANDARD_AUTHORIZER}, or empty")
    if has_peers and not super_users and not allowed[Operation.QUORUM_ACTION]:
        raise ConfigError(
            f"{SUPER_USERS} is missing: list the controllers' identities there or in "
            f"{QUORUM_ACTION}, otherwise they refuse each other"
        )
    return Access(ConfigAuthorizer(super_users, allowed), forwarders)


def shared_list_warning(settings: Settings) -> str | None:
    """The warning if brokers and controllers share one list and an authorizer is set."""
    brokers = allow_key(Operation.CLUSTER_ACTION)
    has_one_list = principals(settings, brokers) and not settings.has(QUORUM_ACTION)
    if not settings.text(AUTHORIZER, "") or not has_one_list:
        return None
    return (
        f"{QUORUM_ACTION} is missing: every identity in {brokers} may vote, lead and acknowledge "
        f"records as a controller; list the controllers' identities in {QUORUM_ACTION}, on all "
        f"controllers, and leave those of brokers in {brokers}"
    )


def anonymous_warning(access: Access | None, listeners: Iterable[TlsSettings | None]) -> str | None:
    """The warning if an authorizer is set but no listener authenticates callers."""
    asks = [tls is not None and tls.client_auth is ClientAuth.REQUIRED for tls in listeners]
    if access is None or any(asks):
        return None
    return (
        "authorizer.class.name is set, but clients show no certificates, so that every caller "
        "is User:ANONYMOUS: use TLS with ssl.client.auth=required"
    )


def principals(settings: Settings, key: str) -> frozenset[str]:
    """Parse `User:NAME;User:NAME`; names may contain commas. Raises ConfigError."""
    names = [name.strip() for name in settings.text(key, "").split(";") if name.strip()]
    for name in names:
        if not name.startswith("User:") or name == "User:":
            raise ConfigError(f"{key} has {name!r}: write User:NAME, with semicolons between two")
    return frozenset(names)
