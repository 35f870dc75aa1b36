"""The machine of production."""

from __future__ import annotations

import gc
import threading

from quorate.server.disk.executor import DiskCallTracker
from quorate.server.host import Host


def test_clocks_count_milliseconds() -> None:
    host = Host()
    assert host.monotonic_ms() <= host.monotonic_ms()
    assert host.wall_ms() > 1_600_000_000_000
    assert host.work_s() <= host.work_s()


def test_the_time_of_a_thread_stands_still_while_it_waits() -> None:
    host = Host()
    waited = threading.Event()
    begun_s, begun_cpu_s = host.work_s(), host.cpu_s()
    waited.wait(0.05)
    assert host.cpu_s() - begun_cpu_s < host.work_s() - begun_s


async def test_a_call_to_the_disk_is_made_in_a_thread_of_that_name() -> None:
    queue = Host().disk_queue("a disk", DiskCallTracker())
    name = await queue.run("a look", lambda: threading.current_thread().name)
    queue.close()
    assert name == "a disk"


def test_a_pass_of_the_garbage_collector_can_be_asked_for() -> None:
    begun: list[int] = []

    def note(phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            begun.append(info["generation"])

    gc.callbacks.append(note)
    Host().collect_garbage()
    gc.callbacks.remove(note)
    assert begun == [2]
