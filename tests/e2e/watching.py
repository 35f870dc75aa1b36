"""Watches a quorum while it is scaled: every change of its pods is seen, none is sampled away."""

from __future__ import annotations

import json
import subprocess
import threading
from typing import TYPE_CHECKING, Any, Final, Self

from tests.e2e.cluster import wait_for

if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import TracebackType

    from tests.e2e.cluster import Release

# Less than a ghost lives, so that one is always seen.
VOTERS_WITHIN_S: Final = 30.0
# For each departure the quorum is asked first, so the watch may be late.
SEEN_WITHIN_S: Final = 120.0


def ordinal_of(pod: dict[str, Any]) -> int:
    """The number in a pod's name."""
    return int(pod["metadata"]["name"].rpartition("-")[2])


class Departures:
    """Use as a context manager: notes for each controller that ended who voted at that moment."""

    def __init__(self, release: Release) -> None:
        self._release = release
        self._thread = threading.Thread(target=self._follow)
        self._process: subprocess.Popen[str] | None = None
        self._is_over = False
        self._present: set[int] = set()
        self._uids: dict[int, str] = {}
        self._failure: Exception | None = None
        self.seen: list[tuple[int, list[int]]] = []

    def __enter__(self) -> Self:
        self._process = self._watch()
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        del kind, traceback
        if error is None:
            self.await_all_seen()
        self._is_over = True
        assert self._process is not None
        self._process.terminate()
        self._thread.join()
        if self._failure is not None:
            raise AssertionError(
                "the watch ended, and what followed was not seen"
            ) from self._failure

    def await_all_seen(self) -> None:
        """Wait until each pod that ended is noted, with who voted then.

        Called before a pod may come back: a voter that is added again looks like one that stayed.
        """
        wait_for("the watch has come to these pods", SEEN_WITHIN_S, self._has_seen_all)

    def _watch(self) -> subprocess.Popen[str]:
        selector = self._release.controllers
        return subprocess.Popen(
            [
                *("kubectl", "--namespace", self._release.cluster.namespace, "get", "pods"),
                *("--selector", selector, "--watch", "--output", "json"),
                "--output-watch-events",
            ],
            stdout=subprocess.PIPE,
            text=True,
        )

    def _has_seen_all(self) -> bool | str:
        """True if the watch is where the pods are; it ends early where it failed.

        A pod that is to go has yet to be seen to end.
        """
        pods = self._release.pods()
        going = [ordinal_of(pod) for pod in pods if "deletionTimestamp" in pod["metadata"]]
        if going and self._thread.is_alive():
            return f"{going} have not ended"
        uids = {ordinal_of(pod): pod["metadata"]["uid"] for pod in pods}
        seen = dict(self._uids)
        return not self._thread.is_alive() or uids == seen or f"{seen} instead of {uids}"

    def judge(self, *ordinals: int) -> None:
        """These have ended, in whatever order, and none of them while it was a voter."""
        assert sorted(ordinal for ordinal, _ in self.seen) == sorted(ordinals), self.seen
        for ordinal, voters in self.seen:
            assert ordinal not in voters, f"pod {ordinal} went while it was a voter: {self.seen}"

    def _follow(self) -> None:
        """An API server may end a watch without notice: the next one continues from there."""
        try:
            assert self._process is not None
            self._read(self._process)
            while not self._is_over:
                self._catch_up()
                self._process = self._watch()
                if self._is_over:
                    self._process.terminate()
                self._read(self._process)
        except Exception as error:
            self._failure = error

    def _catch_up(self) -> None:
        """Note what went while no watch was open."""
        uids = {ordinal_of(pod): pod["metadata"]["uid"] for pod in self._release.pods()}
        for ordinal, uid in list(self._uids.items()):
            if uids.get(ordinal) != uid:
                self._end(ordinal)
                del self._uids[ordinal]

    def _read(self, process: subprocess.Popen[str]) -> None:
        with process:
            assert process.stdout is not None
            self._note_all(process.stdout)

    def _note_all(self, lines: Iterable[str]) -> None:
        decoder, text = json.JSONDecoder(), ""
        for line in lines:
            text += line
            try:
                event, end = decoder.raw_decode(text.lstrip())
            except ValueError:
                continue
            text = text.lstrip()[end:]
            self._note(event["object"], is_deleted=event["type"] == "DELETED")

    def _note(self, pod: dict[str, Any], *, is_deleted: bool) -> None:
        ordinal = ordinal_of(pod)
        states = [
            status.get("state", {})
            for status in pod["status"].get("containerStatuses", [])
            if status["name"] == "controller"
        ]
        if self._uids.get(ordinal, pod["metadata"]["uid"]) != pod["metadata"]["uid"]:
            self._end(ordinal)
        has_ended = is_deleted or any("terminated" in state for state in states)
        if has_ended:
            self._end(ordinal)
        elif any("running" in state for state in states):
            self._present.add(ordinal)
        if is_deleted:
            self._uids.pop(ordinal, None)
        else:
            self._uids[ordinal] = pod["metadata"]["uid"]

    def _end(self, ordinal: int) -> None:
        if ordinal in self._present:
            self._present.remove(ordinal)
            self.seen.append((ordinal, self._voters()))

    def _voters(self) -> list[int]:
        """Those of now; the pod that is asked first may be the one that goes."""
        voters: list[int] = []

        def look() -> bool:
            voters[:] = self._release.voters()
            return True

        wait_for("the voters", VOTERS_WITHIN_S, look)
        return voters
