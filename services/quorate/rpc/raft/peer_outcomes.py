"""The last outcome of the calls to each address, for the log and the no-leader warning."""

from __future__ import annotations

import logging
from collections import OrderedDict
from typing import TYPE_CHECKING, Final

import grpc
import grpc.aio

from quorate.records.escaping import shown
from quorate.rpc.error_status import explain_error, explain_handshake_failure

if TYPE_CHECKING:
    from quorate.h2.name_resolver import NameLookupError
    from quorate.raft.api import Peer
    from quorate.rpc.security.tls_files import TlsFiles

# Logged under the name of the transport.
log = logging.getLogger("quorate.rpc.raft.transport")
ADDRESSES_MAX: Final = 256
# Characters of our text, which quotes the peer.
WORDS_MAX: Final = 500


class PeerOutcomes:
    """Outcomes by host and port, and warnings about errors that a retry does not fix."""

    def __init__(self, tls: TlsFiles | None) -> None:
        self._tls = tls
        self._last: OrderedDict[tuple[str, int], str] = OrderedDict()
        self._warned: OrderedDict[tuple[str, int], str] = OrderedDict()

    def last(self, host: str, port: int) -> str | None:
        """The outcome of the newest call to an address; None before the first."""
        return self._last.get((host, port))

    def answered(self, peer: Peer, words: str | None) -> None:
        """Note a readable response; without `words` it is what a follower wants."""
        if words is not None:
            _keep(self._last, peer, words)
        elif self._last:
            self._last.pop((peer.host, peer.port), None)
        if self._warned:
            self._warned.pop((peer.host, peer.port), None)

    def failed(self, peer: Peer, error: grpc.aio.AioRpcError) -> None:
        """Note a failed call; warn about rejected identities and unsuitable certificates."""
        words = explain_error(error, self._tls)
        _keep(self._last, peer, words)
        if error.code() is grpc.StatusCode.PERMISSION_DENIED:
            self._warn(peer, words)
        elif handshake := explain_handshake_failure(error.details() or "", self._tls):
            self._warn(peer, handshake)

    def unresolved(self, peer: Peer, error: NameLookupError) -> None:
        """Note that the name of the peer's host has no address."""
        _keep(self._last, peer, str(error))

    def silent(self, peer: Peer) -> None:
        """Note that no response came on a Fetch stream."""
        _keep(self._last, peer, "no answer in time")

    def unreadable(self, peer: Peer, error: ValueError) -> None:
        """Note that a response cannot be parsed."""
        words = f"its answer is refused: {error}"
        _keep(self._last, peer, words)
        self._warn(peer, words)

    def is_another(self, peer: Peer, words: str) -> None:
        """Note that another replica listens at that address."""
        _keep(self._last, peer, f"is {words}")
        address = f"{peer.host}:{peer.port}"
        about = {"repeats": ("another replica", address)}
        log.warning(
            "%s is %s: closes the connection and connects again", address, words, extra=about
        )

    def _warn(self, peer: Peer, words: str) -> None:
        """Warn once, until the problem changes or a response arrives (rule `retry_backoff`)."""
        words = shown(words, WORDS_MAX)
        if self._warned.get((peer.host, peer.port)) != words:
            _keep(self._warned, peer, words)
            # A peer whose text differs each time must not fill the log.
            about = {"repeats": ("node cannot be called", peer.node_id)}
            log.warning("node %s cannot be called: %s", peer.node_id, words, extra=about)


def _keep(kept: OrderedDict[tuple[str, int], str], peer: Peer, words: str) -> None:
    address = (peer.host, peer.port)
    kept[address] = shown(words, WORDS_MAX)
    kept.move_to_end(address)
    if len(kept) > ADDRESSES_MAX:
        kept.popitem(last=False)
