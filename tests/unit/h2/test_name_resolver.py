"""Lookups of names: one a name at a time, in threads that end with the process."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
import threading
from collections import Counter
from typing import NoReturn

import pytest

from quorate.h2.name_resolver import NameLookupError, NameResolver, NoSuchNameError, is_address

LIMIT_S = 30.0
SHORT_S = 0.02


class Dns:
    """A lookup by hand: names that hang do so until `release`."""

    def __init__(self) -> None:
        self.addresses: dict[str, tuple[str, ...]] = {"one": ("127.0.0.1",), "two": ("127.0.0.2",)}
        self.hanging: set[str] = set()
        self.lookups: Counter[str] = Counter()
        self.begun = threading.Semaphore(0)
        self.release = threading.Event()

    def __call__(self, host: str) -> tuple[str, ...]:
        self.lookups[host] += 1
        self.begun.release()
        if host in self.hanging:
            self.release.wait()
        if host not in self.addresses:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return self.addresses[host]


@pytest.fixture
def dns() -> Dns:
    return Dns()


async def begun(dns: Dns, lookups: int) -> None:
    for _ in range(lookups):
        await asyncio.to_thread(dns.begun.acquire)


async def test_an_address_needs_no_lookup(dns: Dns) -> None:
    resolver = NameResolver(dns)
    for host in ("127.0.0.1", "::1", "fe80::1%lo"):
        assert is_address(host)
        assert await resolver.resolve(host, limit_s=LIMIT_S) == (host,)
    assert not dns.lookups


async def test_callers_of_one_name_share_its_lookup(dns: Dns) -> None:
    resolver = NameResolver(dns)
    dns.hanging.add("one")
    calls = [asyncio.ensure_future(resolver.resolve("one", limit_s=LIMIT_S)) for _ in range(9)]
    await begun(dns, 1)
    # One that stops waiting leaves the lookup to the others.
    calls.pop().cancel()
    dns.release.set()
    assert await asyncio.gather(*calls) == [("127.0.0.1",)] * 8
    assert dns.lookups == {"one": 1}


async def test_a_name_that_hangs_delays_no_other(dns: Dns) -> None:
    resolver = NameResolver(dns, threads_max=2)
    dns.hanging.add("dead")
    for _ in range(9):
        with pytest.raises(NameLookupError, match="dead cannot be resolved: no answer in"):
            await resolver.resolve("dead", limit_s=SHORT_S)
    assert await resolver.resolve("one", limit_s=LIMIT_S) == ("127.0.0.1",)
    assert dns.lookups == {"dead": 1, "one": 1}
    dns.release.set()


async def test_names_that_failed_before_leave_threads_to_the_others(dns: Dns) -> None:
    resolver = NameResolver(dns, threads_max=3, failing_threads_max=2)
    dead = ["a", "b", "c", "d"]
    for host in dead:
        with pytest.raises(NameLookupError, match="cannot be resolved: Name or service not known"):
            await resolver.resolve(host, limit_s=LIMIT_S)
    dns.hanging.update(dead)
    waiting = [asyncio.ensure_future(resolver.resolve(host, limit_s=LIMIT_S)) for host in dead]
    await begun(dns, 4 + 2)
    assert await resolver.resolve("one", limit_s=LIMIT_S) == ("127.0.0.1",)
    assert dns.lookups == {"a": 2, "b": 2, "c": 1, "d": 1, "one": 1}
    dns.release.set()
    answers = await asyncio.gather(*waiting, return_exceptions=True)
    assert all(isinstance(answer, NameLookupError) for answer in answers)
    assert dns.lookups["d"] == 2


@pytest.mark.parametrize(
    ("code", "is_absent"),
    [
        (socket.EAI_NONAME, True),
        (socket.EAI_NODATA, False),
        (socket.EAI_AGAIN, False),
        (socket.EAI_FAIL, False),
    ],
)
async def test_a_name_that_does_not_exist_is_told_from_a_server_that_fails(
    code: int, *, is_absent: bool
) -> None:
    def fail(_: str) -> NoReturn:
        raise socket.gaierror(code, "why")

    with pytest.raises(NameLookupError, match="one cannot be resolved: why") as raised:
        await NameResolver(fail).resolve("one", limit_s=LIMIT_S)
    assert isinstance(raised.value, NoSuchNameError) is is_absent


@pytest.mark.parametrize("merged", [socket.EAI_NONAME, socket.EAI_NODATA])
@pytest.mark.parametrize(
    ("first", "second", "is_absent"),
    [
        (socket.EAI_NONAME, socket.EAI_NONAME, True),
        (socket.EAI_AGAIN, socket.EAI_NONAME, False),
        (socket.EAI_NONAME, socket.EAI_AGAIN, False),
        (socket.EAI_AGAIN, socket.EAI_NODATA, False),
        (socket.EAI_NODATA, socket.EAI_NODATA, False),
        (socket.EAI_NONAME, socket.EAI_FAIL, False),
    ],
)
async def test_a_name_is_absent_only_if_each_family_is(
    merged: int, first: int, second: int, *, is_absent: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The system's one answer for both families hides the failure of one."""
    codes = {socket.AF_UNSPEC: merged, socket.AF_INET: first, socket.AF_INET6: second}

    def fail(_: str, __: None, *, family: socket.AddressFamily, **___: object) -> NoReturn:
        raise socket.gaierror(codes[family], "why")

    monkeypatch.setattr(socket, "getaddrinfo", fail)
    with pytest.raises(NameLookupError) as raised:
        await NameResolver().resolve("one", limit_s=LIMIT_S)
    assert isinstance(raised.value, NoSuchNameError) is is_absent


async def test_more_names_than_threads_have_their_turns(dns: Dns) -> None:
    resolver = NameResolver(dns, threads_max=1)
    dns.hanging.add("one")
    names = ["one", "two", "dead"]
    calls = [asyncio.ensure_future(resolver.resolve(host, limit_s=LIMIT_S)) for host in names]
    await begun(dns, 1)
    assert dns.lookups == {"one": 1}
    dns.release.set()
    answers = await asyncio.gather(*calls, return_exceptions=True)
    assert answers[:2] == [("127.0.0.1",), ("127.0.0.2",)]
    assert isinstance(answers[2], NameLookupError)


@pytest.mark.parametrize("what", ["fails", "hangs"])
async def test_the_last_good_addresses_stand_in_for_a_lookup_that(what: str, dns: Dns) -> None:
    resolver = NameResolver(dns)
    assert await resolver.resolve("one", limit_s=LIMIT_S) == ("127.0.0.1",)
    if what == "fails":
        del dns.addresses["one"]
    else:
        dns.hanging.add("one")
    assert await resolver.resolve("one", limit_s=SHORT_S) == ("127.0.0.1",)
    resolver.forget("one")
    with pytest.raises(NameLookupError):
        await resolver.resolve("one", limit_s=SHORT_S)
    dns.release.set()


async def test_a_caller_that_gives_up_leaves_nothing_at_a_lookup_that_hangs(dns: Dns) -> None:
    resolver = NameResolver(dns)
    dns.hanging.add("dead")
    for _ in range(3):
        with pytest.raises(NameLookupError, match="no answer in"):
            await resolver.resolve("dead", limit_s=SHORT_S)
    assert waiting_for(resolver, "dead") == 0
    patient = asyncio.ensure_future(resolver.resolve("dead", limit_s=LIMIT_S))
    await asyncio.sleep(0)
    assert waiting_for(resolver, "dead") == 1
    dns.addresses["dead"] = ("127.0.0.3",)
    dns.release.set()
    assert await patient == ("127.0.0.3",)
    assert dns.lookups == {"dead": 1}


def waiting_for(resolver: NameResolver, host: str) -> int:
    """The number of callers that the lookup of a name keeps."""
    return len(resolver._lookups[host])


def test_callers_of_several_event_loops_share_a_lookup_and_one_may_be_closed(dns: Dns) -> None:
    resolver = NameResolver(dns)
    dns.hanging.add("one")
    # Its caller gave up together with its loop.
    gone = asyncio.new_event_loop()
    abandoned = gone.create_future()
    gone.close()
    resolver._join("one", abandoned)

    async def ask() -> tuple[str, ...]:
        waiting = asyncio.ensure_future(resolver.resolve("one", limit_s=LIMIT_S))
        await asyncio.sleep(0)
        dns.release.set()
        return await waiting

    assert asyncio.run(ask()) == ("127.0.0.1",)
    assert dns.lookups == {"one": 1}


async def test_a_late_answer_is_the_next_ones(dns: Dns) -> None:
    resolver = NameResolver(dns)
    await resolver.resolve("one", limit_s=LIMIT_S)
    dns.addresses["one"] = ("127.0.0.9",)
    dns.hanging.add("one")
    assert await resolver.resolve("one", limit_s=SHORT_S) == ("127.0.0.1",)
    dns.release.set()
    assert await resolver.resolve("one", limit_s=LIMIT_S) == ("127.0.0.9",)


async def test_what_is_kept_is_bounded(dns: Dns) -> None:
    resolver = NameResolver(dns, threads_max=1, names_max=1)
    for host in ("one", "two", "dead", "gone"):
        await asyncio.gather(resolver.resolve(host, limit_s=LIMIT_S), return_exceptions=True)
    assert (list(resolver._good), list(resolver._failing)) == (["two"], ["gone"])
    dns.hanging.update(("a", "b"))
    calls = [asyncio.ensure_future(resolver.resolve(host, limit_s=LIMIT_S)) for host in "ab"]
    await asyncio.sleep(0)
    with pytest.raises(NameLookupError, match="too many names"):
        await resolver.resolve("c", limit_s=LIMIT_S)
    dns.release.set()
    await asyncio.gather(*calls, return_exceptions=True)


async def test_a_system_without_threads_resolves_nothing_and_recovers(
    dns: Dns, monkeypatch: pytest.MonkeyPatch
) -> None:
    def start(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    resolver = NameResolver(dns)
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", start)
        with pytest.raises(NameLookupError, match="no thread"):
            await resolver.resolve("one", limit_s=LIMIT_S)
    assert await resolver.resolve("one", limit_s=LIMIT_S) == ("127.0.0.1",)


async def test_what_no_host_can_be_called_is_said() -> None:
    with pytest.raises(NameLookupError, match="a host has no such name"):
        await NameResolver().resolve("a" * 64, limit_s=LIMIT_S)


async def test_a_connection_is_tried_at_each_address(dns: Dns) -> None:
    dns.addresses["one"] = ("127.0.0.1", "127.0.0.2", "127.0.0.3")
    resolver, tried = NameResolver(dns), []

    async def open_at(address: str) -> str:
        tried.append(address)
        if address == "127.0.0.1":
            raise ConnectionRefusedError(address)
        if address == "127.0.0.2":
            await asyncio.Event().wait()
        return address

    assert await resolver.connect("one", open_at, limit_s=0.1) == "127.0.0.3"
    assert tried == ["127.0.0.1", "127.0.0.2", "127.0.0.3"]


@pytest.mark.parametrize(
    ("first", "second", "raised"),
    [
        (ConnectionRefusedError, ConnectionRefusedError, ConnectionRefusedError),
        (ConnectionRefusedError, ConnectionResetError, ConnectionResetError),
        (ConnectionResetError, ConnectionRefusedError, ConnectionResetError),
    ],
)
async def test_only_where_every_address_refuses_is_a_host_said_to_refuse(
    first: type[OSError], second: type[OSError], raised: type[OSError], dns: Dns
) -> None:
    dns.addresses["one"] = ("127.0.0.1", "127.0.0.2")

    async def open_at(address: str) -> None:
        raise first if address == "127.0.0.1" else second

    with pytest.raises(raised):
        await NameResolver(dns).connect("one", open_at, limit_s=LIMIT_S)


def test_a_process_ends_while_a_lookup_hangs() -> None:
    code = (
        "import asyncio, threading\n"
        "from quorate.h2.name_resolver import NameLookupError, NameResolver\n"
        "async def main():\n"
        "    resolver = NameResolver(lambda _: threading.Event().wait())\n"
        "    try:\n"
        "        await resolver.resolve('a', limit_s=0.01)\n"
        "    except NameLookupError:\n"
        "        print('ended')\n"
        "asyncio.run(main())\n"
    )
    answer = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert answer.stdout == "ended\n"
