"""The last outcome of the calls to each address: for the log, and for a search without a result."""

from __future__ import annotations

import logging
from collections import OrderedDict
from typing import TYPE_CHECKING, Final

import grpc
import grpc.aio

from quorate.records.escaping import shown
from quorate.rpc.error_status import handshake_words, words_of

if TYPE_CHECKING:
    from quorate.h2.name_resolver import NameLookupError
    from quorate.raft.api import Peer
    from quorate.rpc.security.tls import TlsFiles

# The client's own words.
log = logging.getLogger("quorate.rpc.raft.transport")
ADDRESSES_MAX: Final = 256
# Our words, with some of the peer's.
WORDS_MAX: Final = 500


class PeerOutcomes:
    """Outcomes by host and port, and warnings about what no retry repairs."""

    def __init__(self, tls: TlsFiles | None) -> None:
        self._tls = tls
        self._last: OrderedDict[tuple[str, int], str] = OrderedDict()
        self._warned: OrderedDict[tuple[str, int], str] = OrderedDict()

    def last(self, host: str, port: int) -> str | None:
        """The outcome of the newest call to an address; None before there is one."""
        return self._last.get((host, port))

    def answered(self, peer: Peer, words: str | None) -> None:
        """A peer gave an answer that can be read; without words, a follower got what it wanted."""
        if words is not None:
            _keep(self._last, peer, words)
        elif self._last:
            self._last.pop((peer.host, peer.port), None)
        if self._warned:
            self._warned.pop((peer.host, peer.port), None)

    def failed(self, peer: Peer, error: grpc.aio.AioRpcError) -> None:
        """A call failed. A rejected identity and certificates that do not fit are warned about."""
        words = words_of(error, self._tls)
        _keep(self._last, peer, words)
        if error.code() is grpc.StatusCode.PERMISSION_DENIED:
            self._warn(peer, words)
        elif handshake := handshake_words(error.details() or "", self._tls):
            self._warn(peer, handshake)

    def unresolved(self, peer: Peer, error: NameLookupError) -> None:
        """The name of its host has no address."""
        _keep(self._last, peer, str(error))

    def silent(self, peer: Peer) -> None:
        """No answer came on a Fetch stream."""
        _keep(self._last, peer, "no answer in time")

    def unreadable(self, peer: Peer, error: ValueError) -> None:
        """An answer cannot be read."""
        words = f"its answer is refused: {error}"
        _keep(self._last, peer, words)
        self._warn(peer, words)

    def is_another(self, peer: Peer, words: str) -> None:
        """Another replica listens at that address."""
        _keep(self._last, peer, f"is {words}")
        address = f"{peer.host}:{peer.port}"
        about = {"repeats": ("another replica", address)}
        log.warning(
            "%s is %s: closes the connection and connects again", address, words, extra=about
        )

    def _warn(self, peer: Peer, words: str) -> None:
        """Once, until something else is wrong or an answer came (rule 32)."""
        words = shown(words, WORDS_MAX)
        if self._warned.get((peer.host, peer.port)) != words:
            _keep(self._warned, peer, words)
            # A peer that has other words each time must not fill the log.
            about = {"repeats": ("node cannot be called", peer.node_id)}
            log.warning("node %s cannot be called: %s", peer.node_id, words, extra=about)


def _keep(kept: OrderedDict[tuple[str, int], str], peer: Peer, words: str) -> None:
    address = (peer.host, peer.port)
    kept[address] = shown(words, WORDS_MAX)
    kept.move_to_end(address)
    if len(kept) > ADDRESSES_MAX:
        kept.popitem(last=False)
