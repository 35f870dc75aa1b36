"""Parses `listeners` and related keys as Kafka does.

Names are case-insensitive, as in Kafka. `controller.listener.names` lists those of the controller;
the others belong to a broker that shares the file.
"""

from __future__ import annotations

import ipaddress
import socket
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from quorate.records.value_types import value_type
from quorate.records.voters import Endpoint
from quorate.settings.properties import ConfigError, parse_address
from quorate.settings.tls import read_listener_tls

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from quorate.settings.properties import Settings
    from quorate.settings.tls import TlsSettings

LISTENERS: Final = "listeners"
ADVERTISED: Final = "advertised.listeners"
NAMES: Final = "controller.listener.names"
PROTOCOL_MAP: Final = "listener.security.protocol.map"
_META_ADDRESSES: Final = ("", "0.0.0.0", "::")  # noqa: S104 - refused, not bound


class SecurityProtocol(StrEnum):
    """The protocol of a listener: gRPC, or one of Kafka's four."""

    GRPC = "GRPC"
    GRPC_SSL = "GRPC_SSL"
    PLAINTEXT = "PLAINTEXT"
    SSL = "SSL"
    SASL_PLAINTEXT = "SASL_PLAINTEXT"
    SASL_SSL = "SASL_SSL"

    @property
    def is_grpc(self) -> bool:
        return self in (SecurityProtocol.GRPC, SecurityProtocol.GRPC_SSL)

    @property
    def has_tls(self) -> bool:
        return self.endswith("SSL")


@value_type
class ListenerSettings:
    """One listener: its protocol, bound endpoint and advertised endpoint."""

    protocol: SecurityProtocol
    bound: Endpoint
    advertised: Endpoint
    tls: TlsSettings | None = None
    # The IP addresses of the host that it is bound to, once they are resolved.
    addresses: tuple[str, ...] = ()

    @property
    def hosts(self) -> tuple[str, ...]:
        """The addresses to listen on; an empty one is every address of the machine."""
        return self.addresses or (self.bound.host,)

    @property
    def name(self) -> str:
        return self.bound.name


def read_listeners(
    settings: Settings, *, is_controller_alone: bool
) -> tuple[tuple[ListenerSettings, ...], tuple[str, ...]]:
    """The controller's listeners that speak gRPC, and warnings about those that do not.

    In the order of `controller.listener.names`: peers are called on the first. Raises ConfigError.
    """
    bound = _endpoints(LISTENERS, settings.items(LISTENERS, "GRPC://:9094"))
    advertised = _endpoints(ADVERTISED, settings.items(ADVERTISED, ""))
    names = {_key(name): name for name in settings.items(NAMES, "GRPC")}
    protocols = _protocols(settings)
    first = next((key for key in names if protocols.get(key, _UNSAID).is_grpc), None)
    if first is None:
        raise ConfigError(
            f"{NAMES} is {','.join(names.values())!r}: one of them needs the protocol GRPC or "
            f"GRPC_SSL, by its name or in {PROTOCOL_MAP}"
        )
    if first not in bound:
        raise ConfigError(f"{LISTENERS} has no {names[first]}: add {names[first]}://HOST:PORT")
    _check_names(bound, advertised, names, is_controller_alone=is_controller_alone)
    ours = [key for key in names if key in bound]
    _check_ports(bound[key] for key in ours)
    served = tuple(
        _listener(settings, protocols[key], bound[key], advertised.get(key))
        for key in ours
        if protocols.get(key, _UNSAID).is_grpc
    )
    warnings = tuple(
        f"{LISTENERS} has {bound[key]}, where {protocols.get(key, _UNSAID)} is spoken: this "
        "release serves GRPC and GRPC_SSL only"
        for key in ours
        if not protocols.get(key, _UNSAID).is_grpc
    )
    return served, warnings


# Kafka's default protocol of a controller's listener without an entry in the map.
_UNSAID: Final = SecurityProtocol.PLAINTEXT


def _key(name: str) -> str:
    return name.upper()


def _listener(
    settings: Settings, protocol: SecurityProtocol, bound: Endpoint, shown: Endpoint | None
) -> ListenerSettings:
    if shown is not None and shown.host in _META_ADDRESSES:
        raise ConfigError(f"{ADVERTISED} has {shown}: peers need an address to call")
    if shown is None:
        host = socket.getfqdn() if bound.host in _META_ADDRESSES else bound.host
        shown = Endpoint(bound.name, host, bound.port)
    tls = read_listener_tls(settings, bound.name) if protocol.has_tls else None
    return ListenerSettings(protocol, bound, Endpoint(bound.name, shown.host, shown.port), tls)


def _endpoints(key: str, items: list[str]) -> dict[str, Endpoint]:
    """Endpoints by name; the case of names does not matter."""
    endpoints: dict[str, Endpoint] = {}
    for item in items:
        name, separator, address = item.partition("://")
        if not separator or not name:
            raise ConfigError(f"{key} has {item!r}: write NAME://HOST:PORT")
        host, port = parse_address(key, address, may_lack_host=True)
        if _key(name) in endpoints:
            raise ConfigError(f"{key} has {name} twice: each listener needs a name of its own")
        endpoints[_key(name)] = Endpoint(name, host, port)
    return endpoints


def _protocols(settings: Settings) -> dict[str, SecurityProtocol]:
    """The protocol of each name: that of the map, else the protocol of the same name."""
    protocols = {str(protocol): protocol for protocol in SecurityProtocol}
    for item in settings.items(PROTOCOL_MAP, ""):
        name, colon, protocol = (part.strip() for part in item.partition(":"))
        if not colon or protocol not in list(SecurityProtocol):
            raise ConfigError(
                f"{PROTOCOL_MAP} has {item!r}: write NAME:PROTOCOL with one of "
                f"{', '.join(SecurityProtocol)}"
            )
        protocols[_key(name)] = SecurityProtocol(protocol)
    return protocols


def _check_names(
    bound: Mapping[str, Endpoint],
    advertised: Mapping[str, Endpoint],
    names: Mapping[str, str],
    *,
    is_controller_alone: bool,
) -> None:
    for key, endpoint in advertised.items():
        if key not in bound:
            raise ConfigError(
                f"{ADVERTISED} has {endpoint.name}, which {LISTENERS} has not: nobody would answer "
                "there"
            )
    for key, endpoint in bound.items():
        if is_controller_alone and key not in names:
            raise ConfigError(
                f"{LISTENERS} has {endpoint.name}, which is none of a controller's: add it to "
                f"{NAMES}, or leave it out"
            )


def _check_ports(endpoints: Iterable[Endpoint]) -> None:
    """Two listeners may share a port only as one IPv4 address and one IPv6 address."""
    seen: dict[int, Endpoint] = {}
    shared: set[int] = set()
    for endpoint in endpoints:
        port, other = endpoint.port, seen.setdefault(endpoint.port, endpoint)
        if other is endpoint:
            continue
        families = {_family(other.host), _family(endpoint.host)}
        if families != {4, 6} or port in shared:
            raise ConfigError(
                f"{LISTENERS} has port {port} for {other.name} and for {endpoint.name}: give each "
                "a port of its own"
            )
        shared.add(port)


def _family(host: str) -> int | None:
    try:
        return ipaddress.ip_address(host).version
    except ValueError:
        return None
