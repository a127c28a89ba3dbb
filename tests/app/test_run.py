"""The Run: events, one cursor, one selection."""

from __future__ import annotations

import pytest

from decodescope.app.state import run_status
from decodescope.app.state.run import Run
from decodescope.app.state.worker_messages import LoadRequest, RunRequest
from decodescope.core.events import CacheMeasured, Ending, Finished, Metrics, Notice, Prefilled, SequenceFinished
from tests.ui.fake_engine import ScriptedEngine, chosen


def run_of(texts: int = 1, tokens: int = 4) -> Run:
    import threading

    engine = ScriptedEngine([" a", " b", " c", " d"][:tokens])
    request = RunRequest("One two", config={"num_return_sequences": texts}, load=LoadRequest("storyteller"))
    run = Run(request)
    run.apply(engine.stream(request, threading.Event()))
    return run


def test_apply_stores_events_by_kind() -> None:
    run = run_of()
    assert run.started is not None
    assert [token.text for token in run.prompt] == ["One", " two"]
    assert isinstance(run.prefilled, Prefilled)
    assert isinstance(run.cache, CacheMeasured)
    assert isinstance(run.finished, Finished)
    assert run.text == " a b c d"
    assert len(run.events) == 2 + 4 * 2 + 2


def test_cursor_follows_until_it_is_moved() -> None:
    run = Run(RunRequest(""))
    run.apply([chosen(0, " a"), chosen(1, " b")])
    assert (run.cursor, run.is_following) == (2, True)
    assert run.move_cursor(1)
    run.apply([chosen(2, " c")])
    assert (run.cursor, run.text) == (1, " a")


def test_cursor_at_end_follows_and_is_clamped() -> None:
    run = run_of()
    run.move_cursor(-5)
    assert run.cursor == 0
    run.move_cursor(99)
    assert (run.cursor, run.is_following) == (4, True)
    assert not run.move_cursor(4)


def test_selection_outside_is_none() -> None:
    run = run_of()
    assert run.select(2)
    assert run.selected == 2
    assert run.select(40)
    assert run.selected is None


def test_each_sequence_has_its_own_tokens() -> None:
    run = run_of(texts=3)
    assert len(run.sequences) == 3
    run.select(1)
    run.show_sequence(2)
    assert (run.selected, run.cursor) == (None, 4)
    assert all(token.sequence == 2 for token in run.tokens)
    with pytest.raises(IndexError, match="3 sequences"):
        run.show_sequence(3)


def test_tail_is_shown_after_last_token_only() -> None:
    run = Run(RunRequest(""))
    run.apply([chosen(0, " a"), chosen(1, ""), SequenceFinished(0, "eos", tail="�")])
    assert run.text == " a�"
    run.move_cursor(1)
    assert run.text == " a"


def test_notices_are_kept() -> None:
    run = Run(RunRequest(""))
    run.apply([Notice("setting_ignored", "so and so")])
    assert [notice.message for notice in run.notices] == ["so and so"]


@pytest.mark.parametrize(
    ("reason", "string", "limit", "words"),
    [
        ("eos", "", None, "EOS after 1 token"),
        ("length", "", 1, "length limit reached after 1 token"),
        ("time", "", 2.5, "time limit of 2.5 s after 1 token"),
        ("stop_string", "The end", None, "stop text after 1 token: 'The end'"),
    ],
)
def test_completed_outcome_describes_ending(reason: Ending, string: str, limit: float | None, words: str) -> None:
    run = Run(RunRequest(""))
    ended = SequenceFinished(0, reason, string, limit)
    run.apply([chosen(0, " a"), ended, Finished("completed", ((1,),), (" a",), Metrics())])
    assert run_status.completed_outcome(run) == run_status.Outcome("completed", words)


def test_stopped_run_has_stopped_outcome() -> None:
    run = Run(RunRequest(""))
    run.apply([SequenceFinished(0, "stopped"), Finished("stopped", ((),), ("",), Metrics())])
    assert run_status.completed_outcome(run).kind == "stopped"
    assert run_status.stopped_outcome(Run(RunRequest(""))).message == "stopped after 0 tokens"
