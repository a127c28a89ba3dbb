"""The order of a window's runs, and the data saved of one."""

from __future__ import annotations

from pathlib import Path

import pytest

from decodescope.app.features.history.store.history_record import saved_run_data
from decodescope.app.state.run import Run
from decodescope.app.state.run_history import MAX_RUNS_IN_MEMORY, NavigationHistory
from decodescope.app.state.worker_messages import LoadRequest, Outcome, RunRequest
from decodescope.app.storage import settings_file
from decodescope.app.storage.settings_file import SettingsStore
from tests.ui.scripted import make_run, story


def shown(*numbers: int) -> tuple[NavigationHistory, list[Run]]:
    """Runs that were shown in that order; the same number is the same run."""
    made = {number: Run(RunRequest(str(number))) for number in numbers}
    generations = NavigationHistory()
    for number in numbers:
        generations.show(made[number])
    return generations, list(made.values())


def test_run_shown_again_moves_to_end() -> None:
    generations, (one, two, three) = shown(1, 2, 3, 1)
    assert generations.ids == [two.id, three.id, one.id]
    assert (generations.neighbour(-1), generations.neighbour(1)) == (three.id, None)


def test_new_run_after_going_back_keeps_all_runs() -> None:
    generations, (one, two) = shown(1, 2)
    generations.go(one.id)
    generations.show(one)
    assert generations.neighbour(1) == two.id
    three = Run(RunRequest("3"))
    generations.show(three)
    assert generations.ids == [one.id, two.id, three.id]


def test_only_latest_runs_stay_in_memory() -> None:
    generations, runs = shown(*range(MAX_RUNS_IN_MEMORY + 3))
    assert [generations.run_in_memory(run.id) is run for run in runs] == [False] * 3 + [True] * MAX_RUNS_IN_MEMORY


def test_remove_keeps_shown_run() -> None:
    generations, (one, two, three) = shown(1, 2, 3)
    generations.insert_first("earlier")
    assert (generations.shown, generations.ids[0]) == (three.id, "earlier")
    generations.go(two.id)
    generations.remove([one.id, two.id, "earlier"])
    assert (generations.ids, generations.shown) == ([two.id, three.id], two.id)
    assert generations.run_in_memory(one.id) is None


def test_saved_data_of_finished_run() -> None:
    run = make_run(story(5), finished=True)
    run.outcome = Outcome("completed", "EOS after 5 tokens")
    record, searched, request = saved_run_data(run, created_at=7.0)
    assert (record.id, record.made, record.opening) == (run.id, 7.0, "Once upon a time, there was a little")
    assert (record.outcome, record.message, record.parent) == ("completed", "EOS after 5 tokens", None)
    assert searched.startswith("Once upon a time")
    assert request["load"]["model"] == "storyteller"


def test_saved_data_of_unfinished_run_is_stopped() -> None:
    record = saved_run_data(make_run(story(5))).record
    assert (record.outcome, record.tokens, record.words) == ("stopped", 5, "fox named Mia.")
    assert record.seconds == pytest.approx(0.07)


def test_saved_data_of_chat_branch_and_scored_text() -> None:
    turns = ({"role": "user", "content": "Hello\nthere"}, {"role": "assistant", "content": "Yes?"})
    chat = Run(
        RunRequest(
            (*turns, {"role": "user", "content": "Tell me"}), load=LoadRequest("x"), parent="ab", shared_tokens=3
        )
    )
    record, searched, _request = saved_run_data(chat)
    assert (record.opening, record.parent, record.place) == ("Tell me", "ab", 3)
    assert "Hello" in searched
    scored = saved_run_data(Run(RunRequest("A text", scored=True))).record
    assert (scored.strategy, scored.opening) == ("scored", "A text")


def test_data_folder_is_default_or_custom_config_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings_file, "default_folder", lambda: tmp_path / "config")
    monkeypatch.setattr(settings_file, "default_data_folder", lambda: tmp_path / "data")
    assert SettingsStore(tmp_path / "config").data_folder == tmp_path / "data"
    assert SettingsStore(tmp_path / "mine").data_folder == tmp_path / "mine"
