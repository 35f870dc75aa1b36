"""Resolves host names in daemon threads, so that one name never delays another.

A system lookup cannot be cancelled: a name whose DNS server is silent holds a thread until the
system gives up. The event loop's own thread pool is small, and a process waits for it when it ends.
So lookups run in threads of this module. Each name has one lookup at a time, and all callers of
that name wait for it.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
import threading
from collections import OrderedDict, deque
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

from quorate.records.value_types import value_type

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

T = TypeVar("T")
Addresses: TypeAlias = tuple[str, ...]
# Lookups that run at one time. A quorum has fewer names than that.
THREADS_MAX: Final = 32
# Threads for names whose last lookup failed: many failing names leave capacity for the others.
FAILING_THREADS_MAX: Final = 8
# The most names whose last good addresses are kept, and the most lookups that wait for a thread.
NAMES_MAX: Final = 1024
# Part of the time limit after which the last good addresses are used instead of a late answer.
FALLBACK_SHARE: Final = 0.5
# Errors of a lookup of both families for NXDOMAIN, and for a name without an address. The error is
# the same if the server failed for one family and had no address for the other.
_DOUBTFUL: Final = frozenset(
    getattr(socket, name) for name in ("EAI_NONAME", "EAI_NODATA") if hasattr(socket, name)
)


class NameLookupError(OSError):
    """A host name without a known address; the message names the host and the reason."""


class NoSuchNameError(NameLookupError):
    """The name provably does not exist: a DNS server has denied it for each address family."""


@value_type
class _Taken:
    """A name that a thread looks up, and whether its last lookup failed."""

    host: str
    is_failing: bool


class NameResolver:
    """Addresses of host names, for any number of threads and event loops."""

    def __init__(
        self,
        lookup: Callable[[str], Addresses] | None = None,
        *,
        threads_max: int = THREADS_MAX,
        failing_threads_max: int = FAILING_THREADS_MAX,
        names_max: int = NAMES_MAX,
    ) -> None:
        """`lookup` may block; the system's is used if None."""
        self._lookup = lookup or _look_up
        self._threads_max, self._failing_threads_max = threads_max, failing_threads_max
        self._names_max = names_max
        self._lock = threading.Lock()
        # Queued or running, with the futures of the callers that wait.
        self._lookups: dict[str, set[asyncio.Future[Addresses]]] = {}
        self._queue: deque[str] = deque()
        self._failing_queue: deque[str] = deque()
        self._running = self._failing_running = 0
        self._good: OrderedDict[str, Addresses] = OrderedDict()
        self._failing: OrderedDict[str, None] = OrderedDict()

    async def resolve(self, host: str, *, limit_s: float) -> Addresses:
        """Resolve a host to its addresses, the preferred one first.

        The last good addresses replace a lookup that fails, or that takes half of the limit. Raises
        NameLookupError.
        """
        if is_address(host):
            return (host,)
        good = self._good.get(host)
        try:
            async with asyncio.timeout(limit_s if good is None else limit_s * FALLBACK_SHARE):
                return await self._wait(host)
        except TimeoutError:
            problem = NameLookupError(f"{host} cannot be resolved: no answer in {limit_s:g} s")
        except OSError as error:
            reason = error.strerror or str(error) or "no address"
            is_absent = isinstance(error, socket.gaierror) and error.errno == socket.EAI_NONAME
            kind = NoSuchNameError if is_absent else NameLookupError
            problem = kind(f"{host} cannot be resolved: {reason}")
        except UnicodeError:
            problem = NameLookupError(f"{host} cannot be resolved: a host has no such name")
        if good is None or host not in self._good:
            raise problem
        return good

    async def connect(
        self, host: str, open_at: Callable[[str], Awaitable[T]], *, limit_s: float
    ) -> T:
        """Open a connection at the first address of a host that accepts one.

        Each address gets an equal part of the time that is left. Raises NameLookupError, or the
        OSError of an address, preferably not a refusal.
        """
        loop = asyncio.get_running_loop()
        end_s = loop.time() + limit_s
        addresses = await self.resolve(host, limit_s=limit_s)
        problems: list[OSError] = []
        for index, address in enumerate(addresses):
            part_s = (end_s - loop.time()) / (len(addresses) - index)
            try:
                async with asyncio.timeout(part_s):
                    return await open_at(address)
            except OSError as error:
                problems.append(error)
        telling = (one for one in problems if not isinstance(one, ConnectionRefusedError))
        raise next(telling, problems[0])

    def forget(self, host: str) -> None:
        """Drop the last good addresses of a host: another node responded there."""
        with self._lock:
            self._good.pop(host, None)

    # --- threads ----------------------------------------------------------------------------------

    async def _wait(self, host: str) -> Addresses:
        """Wait for the lookup of that name, in progress or new. Raises OSError."""
        waiter: asyncio.Future[Addresses] = asyncio.get_running_loop().create_future()
        self._join(host, waiter)
        try:
            return await waiter
        finally:
            # A lookup may hang forever, while callers give up and retry.
            with self._lock:
                self._lookups.get(host, set()).discard(waiter)

    def _join(self, host: str, waiter: asyncio.Future[Addresses]) -> None:
        with self._lock:
            if host in self._lookups:
                self._lookups[host].add(waiter)
                return
            if len(self._lookups) >= self._threads_max + self._names_max:
                raise NameLookupError("too many names wait for their lookup")
            self._lookups[host] = {waiter}
            (self._failing_queue if host in self._failing else self._queue).append(host)
            taken = self._take()
        self._start(taken)

    def _take(self) -> _Taken | None:
        """Take the next name for which there is a thread. The caller holds the lock."""
        if self._running >= self._threads_max:
            return None
        if self._queue:
            taken = _Taken(self._queue.popleft(), is_failing=False)
        elif self._failing_queue and self._failing_running < self._failing_threads_max:
            taken = _Taken(self._failing_queue.popleft(), is_failing=True)
        else:
            return None
        self._running += 1
        self._failing_running += taken.is_failing
        return taken

    def _start(self, taken: _Taken | None) -> None:
        while taken is not None:
            name = f"lookup of {taken.host}"
            thread = threading.Thread(target=self._run, args=(taken,), name=name, daemon=True)
            try:
                thread.start()
            except RuntimeError as error:
                taken = self._end(taken, OSError(f"no thread for the lookup: {error}"))
            else:
                return

    def _run(self, taken: _Taken | None) -> None:
        while taken is not None:
            result: Addresses | Exception
            try:
                result = self._lookup(taken.host) or OSError("no address")
            except Exception as error:
                result = error
            taken = self._end(taken, result)

    def _end(self, ended: _Taken, result: Addresses | Exception) -> _Taken | None:
        """Deliver the result; return the next name for this thread, if any."""
        host, has_failed = ended.host, isinstance(result, Exception)
        with self._lock:
            waiters = self._lookups.pop(host)
            self._running -= 1
            self._failing_running -= ended.is_failing
            if has_failed:
                _keep(self._failing, host, None, self._names_max)
            else:
                self._failing.pop(host, None)
                _keep(self._good, host, result, self._names_max)
            taken = self._take()
        for waiter in waiters:
            # The event loop of a caller may be closed by now.
            with suppress(RuntimeError):
                waiter.get_loop().call_soon_threadsafe(_settle, waiter, result)
        return taken


def is_address(host: str) -> bool:
    """True if a host is an IP address, which needs no lookup."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _settle(waiter: asyncio.Future[Addresses], result: Addresses | Exception) -> None:
    if waiter.done():
        return
    if isinstance(result, Exception):
        waiter.set_exception(result)
    else:
        waiter.set_result(result)


def _keep(kept: OrderedDict[str, Any], host: str, value: object, names_max: int) -> None:
    """Store a value for a name; above `names_max` drop the name that was set longest ago."""
    kept[host] = value
    kept.move_to_end(host)
    if len(kept) > names_max:
        kept.popitem(last=False)


def _look_up(host: str) -> Addresses:
    """Ask the system. Raises EAI_NONAME only if each family separately has no such name."""
    try:
        return _addresses(host, socket.AF_UNSPEC)
    except socket.gaierror as error:
        if error.errno not in _DOUBTFUL:
            raise
        doubt = error
    for family in (socket.AF_INET, socket.AF_INET6):
        try:
            return _addresses(host, family)
        except socket.gaierror as error:
            if error.errno != socket.EAI_NONAME:
                raise
            doubt = error
    raise doubt


def _addresses(host: str, family: socket.AddressFamily) -> Addresses:
    found = socket.getaddrinfo(host, None, family=family, type=socket.SOCK_STREAM)
    return tuple(dict.fromkeys(str(address[0]) for *_, address in found))


# One for the whole process: the limits above are process-wide.
RESOLVER: Final = NameResolver()
