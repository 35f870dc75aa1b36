"""What the core says: words for a reader, kinds and values for a program."""

from __future__ import annotations

import pytest

from quorate.raft.trace_events import Note, Notebook, NoteKind


def test_a_step_takes_its_notes_and_leaves_none() -> None:
    notebook = Notebook()
    notebook.note(NoteKind.VOTE_GRANTED, "grants vote to 2", nominee=2)
    assert notebook.take() == (Note(NoteKind.VOTE_GRANTED, "grants vote to 2", {"nominee": 2}),)
    assert notebook.take() == ()


def test_what_has_no_words_is_no_note() -> None:
    notebook = Notebook()
    notebook.note(NoteKind.CONTRADICTED, None, leader_id=2)
    assert notebook.take() == ()


def test_a_note_reads_as_its_words() -> None:
    assert str(Note(NoteKind.HEALED, "healed", {"offset": 3})) == "healed"


@pytest.mark.rule("retry_backoff")
def test_what_is_found_out_again_is_told_once_until_it_changes() -> None:
    notebook = Notebook()
    for state in ("a", "a", "b", "a"):
        notebook.tell(NoteKind.JOINING, "joining", f"{state}, in some words", state)
    assert [note.text[0] for note in notebook.take()] == ["a", "b", "a"]


def test_what_is_forgotten_is_news_again() -> None:
    notebook = Notebook()
    for _ in range(2):
        notebook.tell(NoteKind.JOINING, "joining", "asks")
        notebook.forget("joining", "never told")
    assert len(notebook.take()) == 2
