"""Trace events of the core: texts for a reader, kinds and values for a program."""

from __future__ import annotations

import pytest

from quorate.raft.trace_events import TraceBuffer, TraceEvent, TraceEventKind


def test_a_step_takes_its_notes_and_leaves_none() -> None:
    notebook = TraceBuffer()
    notebook.emit(TraceEventKind.VOTE_GRANTED, "grants vote to 2", nominee=2)
    assert notebook.drain() == (
        TraceEvent(TraceEventKind.VOTE_GRANTED, "grants vote to 2", {"nominee": 2}),
    )
    assert notebook.drain() == ()


def test_what_has_no_words_is_no_note() -> None:
    notebook = TraceBuffer()
    notebook.emit(TraceEventKind.CONTRADICTED, None, leader_id=2)
    assert notebook.drain() == ()


def test_a_note_reads_as_its_words() -> None:
    assert str(TraceEvent(TraceEventKind.HEALED, "healed", {"offset": 3})) == "healed"


@pytest.mark.rule("retry_backoff")
def test_what_is_found_out_again_is_told_once_until_it_changes() -> None:
    notebook = TraceBuffer()
    for state in ("a", "a", "b", "a"):
        notebook.emit_once(TraceEventKind.JOINING, "joining", f"{state}, in some words", state)
    assert [note.text[0] for note in notebook.drain()] == ["a", "b", "a"]


def test_what_is_forgotten_is_news_again() -> None:
    notebook = TraceBuffer()
    for _ in range(2):
        notebook.emit_once(TraceEventKind.JOINING, "joining", "asks")
        notebook.reset_once("joining", "never told")
    assert len(notebook.drain()) == 2
