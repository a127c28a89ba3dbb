"""Tools › Claim cards: a claim is tested on the selected model, and its verdict is kept for that model."""

from __future__ import annotations

import csv
import json
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from PySide6.QtWidgets import QApplication, QPushButton
from pytestqt.qtbot import QtBot

from decodescope.app.features.claims.panel import ClaimDialog, claim_shape
from decodescope.app.features.claims.session import ClaimQuery
from decodescope.app.features.claims.store import FILE, ClaimStore
from decodescope.app.features.claims.view import ExampleRow
from decodescope.app.session.queries.base import Query, Report
from decodescope.app.state.worker_messages import LoadRequest
from decodescope.app.window.main_window import MainWindow
from decodescope.core import claims
from decodescope.core.claims import ClaimExample, ClaimOutcome, ClaimProgress
from decodescope.core.errors import StudyError
from decodescope.resources import depth
from tests.ui.fake_engine import ScriptedEngine
from tests.ui.windows import open_window

WAIT_MS = 20_000
EXAMPLE = ClaimExample("One day, a dog", 3, " ran.", " ran and ran and ran.", 0.0, 0.5)
OUTCOME = ClaimOutcome(
    "greedy-repeats", "storyteller", "holds", "", 0.1, 0.4, 0.3, 0.2, 0.4, 12, 24, 21.0, 160, 0.05, 12,
    examples=(EXAMPLE,), date="2026-11-28",
)  # fmt: skip


class ClaimEngine(ScriptedEngine):
    """Reports one prompt, waits until the test goes on or is stopped, and answers with the outcome."""

    def __init__(self) -> None:
        super().__init__()
        self.go_on = threading.Event()
        self.problem: StudyError | None = None
        self.is_slow = False
        self.queries: list[ClaimQuery] = []

    def answer(self, query: Query, report: Report) -> object:
        if not isinstance(query, ClaimQuery):
            return super().answer(query, report)
        self.queries.append(query)
        if self.problem is not None:
            raise self.problem
        if self.is_slow:
            assert query.cancel.wait(20)
            return None
        part = replace(OUTCOME, verdict="cannot_be_told", reason="few_prompts", low=None, high=None, prompts=1)
        report(ClaimProgress(1, 12, 20.0, part))
        while not query.cancel.is_set() and not self.go_on.wait(0.01):
            pass
        return replace(part, is_stopped=True) if query.cancel.is_set() else OUTCOME


@pytest.fixture
def engine() -> ClaimEngine:
    return ClaimEngine()


@pytest.fixture
def window(qtbot: QtBot, tmp_path: Path, engine: ClaimEngine) -> MainWindow:
    return open_window(qtbot, tmp_path, engine)


def open_cards(window: MainWindow, name: str = "greedy-repeats") -> ClaimDialog:
    dialog = window.parts.claims.open()
    dialog.show_claim(name)
    QApplication.processEvents()
    return dialog


def list_text(dialog: ClaimDialog) -> str:
    return dialog.list.currentItem().text()


def test_command_opens_the_cards_at_the_selected_strategy(window: MainWindow) -> None:
    window.parts.chosen.strategy.choose("contrastive", "strategy")
    dialog = window.parts.claims.open()
    assert dialog.current == "contrast-repeats-less"
    assert dialog.card.title.text() == "Contrastive search breaks loops"
    assert "Su, Lan" in dialog.card.source.text()
    assert not dialog.card.card.isVisible(), "nothing was tested yet"
    assert "Not tested" in list_text(dialog)


def test_test_shows_progress_then_the_verdict_and_keeps_it(
    qtbot: QtBot, window: MainWindow, engine: ClaimEngine
) -> None:
    dialog = open_cards(window)
    dialog.card.try_button.click()
    assert dialog.card.stop_button.isVisible()
    qtbot.waitUntil(lambda: dialog.card.bar.value() == 1, timeout=WAIT_MS)
    assert "1 of 12" in dialog.card.status.text()
    engine.go_on.set()
    qtbot.waitUntil(lambda: not window.parts.claims.is_testing, timeout=WAIT_MS)
    assert dialog.card.card.verdict.text() == "Holds here"
    assert "0.05" in dialog.card.card.reason.text()
    assert "0.20 to 0.40" in dialog.card.card.values.text().replace("0.200", "0.20").replace("0.400", "0.40")
    assert "Holds here" in list_text(dialog)
    assert dialog.card.try_button.isVisible()
    model = window.parts.chosen.model.name
    assert ClaimStore(lambda: window.parts.store.data_folder).find("greedy-repeats", model) == OUTCOME


def test_stop_ends_the_test_with_what_is_finished(qtbot: QtBot, window: MainWindow, engine: ClaimEngine) -> None:
    dialog = open_cards(window)
    dialog.card.try_button.click()
    qtbot.waitUntil(lambda: dialog.card.bar.value() == 1, timeout=WAIT_MS)
    dialog.card.stop_button.click()
    qtbot.waitUntil(lambda: not window.parts.claims.is_testing, timeout=WAIT_MS)
    assert dialog.card.card.verdict.text() == "Cannot be told"
    assert "stopped" in dialog.card.card.amount.text()
    assert not dialog.card.card.picture.isVisible(), "there is no interval"


def test_stop_before_the_first_prompt_says_so(qtbot: QtBot, window: MainWindow, engine: ClaimEngine) -> None:
    engine.is_slow = True
    dialog = open_cards(window)
    dialog.card.try_button.click()
    dialog.card.stop_button.click()
    qtbot.waitUntil(lambda: not window.parts.claims.is_testing, timeout=WAIT_MS)
    assert dialog.card.status.text() == "Stopped before the first prompt was finished."
    assert dialog.card.status.isVisible()


def test_claim_that_cannot_be_tested_shows_cause_and_remedy(
    qtbot: QtBot, window: MainWindow, engine: ClaimEngine
) -> None:
    engine.problem = StudyError("The model has no heads.", "Choose another model.")
    dialog = open_cards(window)
    dialog.card.try_button.click()
    qtbot.waitUntil(lambda: not window.parts.claims.is_testing, timeout=WAIT_MS)
    assert dialog.card.status.text() == "The model has no heads. Choose another model."
    assert dialog.card.try_button.isEnabled()


def test_closed_cards_keep_the_outcome(qtbot: QtBot, window: MainWindow, engine: ClaimEngine) -> None:
    dialog = open_cards(window)
    dialog.card.try_button.click()
    qtbot.waitUntil(lambda: dialog.card.bar.value() == 1, timeout=WAIT_MS)
    dialog.close()
    engine.go_on.set()
    qtbot.waitUntil(lambda: not window.parts.claims.is_testing, timeout=WAIT_MS)
    QApplication.processEvents()
    assert open_cards(window).card.card.verdict.text() == "Holds here"


def test_run_that_starts_stops_the_test(qtbot: QtBot, window: MainWindow, engine: ClaimEngine) -> None:
    dialog = open_cards(window)
    dialog.card.try_button.click()
    qtbot.waitUntil(lambda: dialog.card.bar.value() == 1, timeout=WAIT_MS)
    with qtbot.waitSignal(window.session.finished, timeout=WAIT_MS):
        window.parts.runs.run()
    qtbot.waitUntil(lambda: not window.parts.claims.is_testing, timeout=WAIT_MS)
    assert engine.queries[0].cancel.is_set()


def test_example_opens_its_run_with_the_same_seed_and_settings(
    qtbot: QtBot, window: MainWindow, engine: ClaimEngine
) -> None:
    window.parts.claims.store.keep("greedy-repeats", window.parts.chosen.model.name, OUTCOME)
    dialog = open_cards(window)
    rows = dialog.findChildren(ExampleRow)
    assert [row.example for row in rows] == [EXAMPLE]
    with qtbot.waitSignal(window.session.finished, timeout=WAIT_MS):
        rows[0].texts[0].button.click()
    request = engine.runs[-1]
    claim = claims.named_claim("greedy-repeats").claim
    assert (request.prompt, request.seed, request.strategy) == (EXAMPLE.prompt, 3, "sampling")
    assert dict(request.config) == {**claim.baseline.settings, "max_new_tokens": 160}
    with qtbot.waitSignal(window.session.finished, timeout=WAIT_MS):
        rows[0].texts[1].button.click()
    assert engine.runs[-1].strategy == "greedy"


def test_glossary_opens_the_claims_about_its_term(window: MainWindow) -> None:
    window.parts.glossary.open_at("param.min_p")
    button = window.findChild(QPushButton, "glossaryClaims")
    assert button is not None
    assert button.isVisible()
    button.click()
    cards = window.findChild(ClaimDialog)
    assert cards is not None
    assert cards.current == "min-p-survives-heat"


def test_glossary_term_without_claims_has_no_button(window: MainWindow) -> None:
    window.parts.glossary.open_at("param.suppress_tokens")
    button = window.findChild(QPushButton, "glossaryClaims")
    assert button is not None
    assert not button.isVisible()


def test_search_finds_claims_by_setting_and_author(window: MainWindow) -> None:
    dialog = open_cards(window)

    def shown(text: str) -> list[str]:
        dialog.field.setText(text)
        rows = [dialog.list.item(row) for row in range(dialog.list.count())]
        return [item.text().partition("\n")[0] for item in rows if not item.isHidden()]

    assert shown("mirostat") == ["Mirostat holds the surprise at its target"]
    assert "Top-p cuts off the unreliable tail" in shown("holtzman")
    assert shown("no such thing") == []
    assert dialog.no_matches.isVisible()


def test_statement_follows_the_level_of_detail(window: MainWindow) -> None:
    dialog, claim = open_cards(window), claims.named_claim("greedy-repeats").claim
    for level, expected in ((depth.PLAIN, claim.plain), (depth.EXACT, claim.exact)):
        with depth.depth_context(level):
            window.parts.claims.wording_changed()
            assert dialog.card.statement.text() == expected


def test_picture_describes_the_interval_in_words(window: MainWindow) -> None:
    window.parts.claims.store.keep("greedy-repeats", window.parts.chosen.model.name, OUTCOME)
    picture = open_cards(window).card.card.picture
    assert picture.isVisible()
    assert "0.300 (0.200 to 0.400)" in picture.accessibleDescription()
    assert picture.position_of(0.2) < picture.position_of(0.3) < picture.position_of(0.4)
    assert picture.shape is not None
    assert picture.shape.claimed == (0.05, None)


def test_range_of_the_claim_follows_its_direction() -> None:
    shapes = [claim_shape(OUTCOME, expects, 3) for expects in ("higher", "lower", "equal")]
    assert [shape.claimed for shape in shapes if shape is not None] == [(0.05, None), (None, -0.05), (-0.05, 0.05)]
    assert claim_shape(replace(OUTCOME, low=None, high=None), "higher", 3) is None


def test_export_writes_page_and_table_and_copies_the_result(
    qtbot: QtBot, window: MainWindow, engine: ClaimEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names: list[str] = []

    def choose(_parent: object, _title: str, name: str, _kinds: str, slot: Callable[[str], None]) -> None:
        names.append(name)
        slot(str(tmp_path / "out" / name))

    monkeypatch.setattr("decodescope.app.widgets.file_dialogs.open_save_dialog", choose)
    dialog = open_cards(window)
    assert not dialog.export_button.isEnabled(), "nothing was tested yet"
    engine.go_on.set()
    dialog.card.try_button.click()
    qtbot.waitUntil(lambda: not window.parts.claims.is_testing, timeout=WAIT_MS)
    assert dialog.export_button.isEnabled()
    page, table, copy = dialog.export_button.menu().actions()
    for action in (page, table, copy):
        action.trigger()
    assert names == ["greedy-repeats.html", "claims.csv"]
    assert " ran and ran and ran." in (tmp_path / "out" / names[0]).read_text("utf-8")
    with (tmp_path / "out" / names[1]).open(encoding="utf-8", newline="") as file:
        (row,) = csv.DictReader(file)
    assert (row["claim"], row["verdict"], float(row["low"])) == ("greedy-repeats", "holds", OUTCOME.low)
    assert QApplication.clipboard().text().startswith("Greedy decoding repeats itself\nHolds here · storyteller")
    dialog.show_claim("drafts-save-passes")
    assert [one.isEnabled() for one in (page, table, copy)] == [False, True, False]


def test_export_to_a_place_that_cannot_be_written_says_why_on_the_card(
    qtbot: QtBot, window: MainWindow, engine: ClaimEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setattr(
        "decodescope.app.widgets.file_dialogs.open_save_dialog",
        lambda _parent, _title, name, _kinds, slot: slot(str(tmp_path / "file" / name)),
    )
    dialog = open_cards(window)
    engine.go_on.set()
    dialog.card.try_button.click()
    qtbot.waitUntil(lambda: not window.parts.claims.is_testing, timeout=WAIT_MS)
    dialog.export_button.menu().actions()[0].trigger()
    assert "could not be saved" in dialog.card.status.text()
    assert "Choose a folder" in dialog.card.status.text()


def test_model_on_an_engine_is_refused_by_name() -> None:
    query = ClaimQuery("greedy-repeats", load=LoadRequest("http://localhost:1"))
    with pytest.raises(StudyError, match="qwen"):
        query.remote_result("qwen")


def test_outcomes_are_kept_by_model_and_weights(tmp_path: Path) -> None:
    store = ClaimStore(lambda: tmp_path)
    store.keep("a", "one", OUTCOME)
    store.keep("a", "one (int8)", replace(OUTCOME, verdict="does_not_hold"))
    again = ClaimStore(lambda: tmp_path)
    assert again.find("a", "one") == OUTCOME
    assert again.find("a", "two") is None
    kept = again.find("a", "one (int8)")
    assert kept is not None
    assert kept.verdict == "does_not_hold"


@pytest.mark.parametrize("text", ["no JSON", '{"outcomes": 3}', '{"outcomes": [{"claim": "a", "outcome": {}}]}'])
def test_damaged_file_of_outcomes_counts_as_empty(tmp_path: Path, text: str) -> None:
    (tmp_path / FILE).write_text(text, encoding="utf-8")
    store = ClaimStore(lambda: tmp_path)
    assert store.find("a", "one") is None
    store.keep("a", "one", OUTCOME)
    assert len(json.loads((tmp_path / FILE).read_text(encoding="utf-8"))["outcomes"]) == 1
