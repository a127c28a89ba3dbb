"""Tools › Atlas, What did each setting do?, Twin: real queries on a tiny model, in the window."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QGuiApplication, QImage
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from decodescope import core
from decodescope.app.features.same_noise.panel import SameNoiseWindow
from decodescope.app.features.same_noise.session import AtlasQuery, EffectsQuery, TwinQuery
from decodescope.app.features.same_noise.state import (
    PageName,
    PageState,
    band_cells,
    first_differing_word,
    round_value_in,
    sampling_request,
)
from decodescope.app.features.same_noise.view import effects_page
from decodescope.app.session.queries.base import Query, Report
from decodescope.app.state.worker_messages import LoadRequest, RunRequest
from decodescope.app.theme.language import set_language
from decodescope.app.widgets.widget_pictures import PictureOptions
from decodescope.app.window.main_window import MainWindow
from decodescope.core import SettingEffect
from decodescope.core.events import Event
from decodescope.resources.language import ENGLISH
from tests.core import tiny
from tests.ui.fake_engine import ScriptedEngine
from tests.ui.layout import remaining
from tests.ui.test_language_switch import switch
from tests.ui.windows import WAIT_MS, finish, open_window


class TinyModels:
    """In the place of `LocalModels`: one model, which has read ids instead of the prompt's text."""

    def __init__(self, model: core.LoadedModel) -> None:
        self.model, self.scores = model, None

    def load(self, _request: LoadRequest) -> None:
        """Nothing is to be loaded."""

    def loaded_for(self, _request: LoadRequest) -> core.LoadedModel:
        return self.model


class TinyEngine(ScriptedEngine):
    """Runs and queries of a tiny model; `hold` delays queries until it is set."""

    def __init__(self) -> None:
        super().__init__()
        self.model = tiny.make("llama", scale=2.0)
        self.query_hold: threading.Event | None = None
        self.queries: list[Query] = []

    def prepare(self, request: RunRequest) -> RunRequest:
        return request

    def stream(self, request: RunRequest, cancel: threading.Event) -> Iterator[Event]:
        self.runs.append(request)
        yield from core.stream(self.model, replace(request, prompt=tuple(tiny.prompt())), cancel=cancel)

    def answer(self, query: Query, report: Report) -> object:
        if not isinstance(query, AtlasQuery | EffectsQuery | TwinQuery):
            return super().answer(query, report)
        self.queries.append(query)
        if self.query_hold is not None:
            while not (query.cancel.is_set() or self.query_hold.wait(0.01)):
                pass
        ids = tuple(tiny.prompt())
        changes: dict[str, Any] = {"request": replace(query.request, prompt=ids)}
        if isinstance(query, TwinQuery):
            changes["changed"] = replace(query.changed, prompt=ids)
        return replace(query, **changes).run(TinyModels(self.model), report)  # type: ignore[arg-type]


@pytest.fixture
def engine() -> TinyEngine:
    return TinyEngine()


@pytest.fixture
def window(qtbot: QtBot, tmp_path: Path, engine: TinyEngine) -> Iterator[MainWindow]:
    opened = open_window(qtbot, tmp_path, engine)
    qtbot.waitUntil(lambda: opened.session.model is not None, timeout=WAIT_MS)
    opened.parts.settings_controller.choose(strategy="sampling")
    opened.parts.settings_controller.set_values({"max_new_tokens": 8, "temperature": 0.8, "top_k": 12})
    opened.parts.toolbar.seed.spin.setValue(7)
    opened.parts.toolbar.seed.lock_button.setChecked(True)
    opened.parts.setup.prompt.set_prompt("Once")
    yield opened
    set_language(ENGLISH)


def state_of(window: MainWindow, name: PageName) -> PageState:
    return window.parts.same_noise._state(name)


def compute(qtbot: QtBot, window: MainWindow, name: PageName) -> PageState:
    """Press the button of a page, and wait for the answer."""
    panel = window.findChild(SameNoiseWindow)
    assert panel is not None
    qtbot.mouseClick(panel.pages[name].start, Qt.MouseButton.LeftButton)
    return wait_for(qtbot, window, name)


def wait_for(qtbot: QtBot, window: MainWindow, name: PageName) -> PageState:
    state = state_of(window, name)
    qtbot.waitUntil(lambda: not state.is_busy, timeout=WAIT_MS)
    assert state.error is None, state.error
    return state


def test_atlas_lists_every_text_and_its_slider_jumps_between_them(qtbot: QtBot, window: MainWindow) -> None:
    page = window.parts.same_noise.open_atlas().atlas
    page.tokens.setValue(6)
    atlas = compute(qtbot, window, "atlas").result.atlas
    assert len(atlas) > 3
    assert page.slider.maximum() == len(atlas) - 1
    assert page.table.cells.rowCount() == len(atlas)
    page.slider.setValue(2)
    assert page.map.selected == 2
    assert "<b style=" in page.text.text()
    qtbot.keyClick(page.map, Qt.Key.Key_Left)
    assert (page.slider.value(), page.map.selected) == (1, 1)
    page.copy_table()
    assert QGuiApplication.clipboard().text().count("\n") >= len(atlas)


def test_used_value_is_set_and_writes_the_text_of_the_atlas(qtbot: QtBot, window: MainWindow) -> None:
    page = window.parts.same_noise.open_atlas().atlas
    page.tokens.setValue(6)
    atlas = compute(qtbot, window, "atlas").result.atlas
    for number in (1, len(atlas) - 1):
        page.select(number)
        finish(qtbot, window, lambda: qtbot.mouseClick(page.use, Qt.MouseButton.LeftButton))
        run = window.session.run
        assert run is not None
        assert tuple(token.id for token in run.tokens) == atlas[number].ids
        values = window.parts.chosen.strategy.parameters.values()
        assert atlas[number].low < values["temperature"] <= atlas[number].high
        assert values["keyed_noise"] is True


def test_atlas_is_exported_as_picture_and_table(qtbot: QtBot, window: MainWindow, tmp_path: Path) -> None:
    page = window.parts.same_noise.open_atlas().atlas
    page.tokens.setValue(3)
    atlas = compute(qtbot, window, "atlas").result.atlas
    items, options = window.parts.export.exports, PictureOptions(QSize(900, 700))
    assert "same_noise_atlas" in {offer.name for offer in items.offers()}
    items.save("same_noise_atlas", tmp_path / "atlas.png", options)
    items.save("same_noise_atlas", tmp_path / "atlas.csv", options)
    assert QImage(str(tmp_path / "atlas.png")).width() == 900
    assert len((tmp_path / "atlas.csv").read_text("utf-8").splitlines()) == len(atlas) + 1


def test_stopped_atlas_says_so_and_keeps_the_result(qtbot: QtBot, window: MainWindow, engine: TinyEngine) -> None:
    engine.query_hold = threading.Event()
    page = window.parts.same_noise.open_atlas().atlas
    qtbot.mouseClick(page.start, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: bool(engine.queries), timeout=WAIT_MS)
    assert page.bar.isVisible()
    assert not page.inputs.isEnabled()
    qtbot.mouseClick(page.start, Qt.MouseButton.LeftButton)
    state = wait_for(qtbot, window, "atlas")
    assert not state.result.atlas.is_complete
    assert "Unfinished" in page.status.text()


def test_run_ends_an_atlas_in_progress(qtbot: QtBot, window: MainWindow, engine: TinyEngine) -> None:
    engine.query_hold = threading.Event()
    page = window.parts.same_noise.open_atlas().atlas
    qtbot.mouseClick(page.start, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: bool(engine.queries), timeout=WAIT_MS)
    finish(qtbot, window, window.parts.runs.run)
    assert wait_for(qtbot, window, "atlas").was_stopped


def test_atlas_that_is_refused_shows_cause_and_remedy(qtbot: QtBot, window: MainWindow) -> None:
    window.parts.settings_controller.update_values({"xtc_probability": 0.5})
    page = window.parts.same_noise.open_atlas().atlas
    qtbot.mouseClick(page.start, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: not state_of(window, "atlas").is_busy, timeout=WAIT_MS)
    assert "prevents following all values" in page.problem.text()
    assert page.problem.isVisible()
    assert not page.results.isVisible()


def test_effects_are_bounds_first_and_exact_after_the_button(qtbot: QtBot, window: MainWindow) -> None:
    finish(qtbot, window, window.parts.runs.run)
    page = window.parts.same_noise.open_effects().effects
    state = wait_for(qtbot, window, "effects")
    assert not state.result.is_exact
    assert page.start.isEnabled()
    state = compute(qtbot, window, "effects")
    assert state.result.is_exact
    assert not page.start.isEnabled()
    run = window.session.run
    assert run is not None
    assert all(one.steps == len(run.tokens) for one in state.result.effects)
    assert {one.name for one in page.rows.rows} >= {"temperature", "top_k"}
    assert page.sentences.text().count("\n") == len(page.rows.rows) - 1
    assert "Switched off" in page.nothing.text()


@pytest.mark.parametrize("share", [0.000432, 0.00567, 0.0345, 0.41234, 0.9995, 1e-7])
def test_amounts_of_an_effect_are_written_alike_in_bars_and_words(share: float) -> None:
    for removed, moved in ((share, (share, share)), (0.0, (share, share)), (0.0, (share, 1.5 * share))):
        effect = SettingEffect("top_k", "top-k 40", 120, removed, moved, share, 3.0, (1, 5), share)
        bars = effects_page._bars(effect)
        amounts = bars[0].text if removed else bars[1].text
        assert all(amount in effect.sentence for amount in amounts.split(" – ")), effect.sentence


def test_expected_words_below_a_tenth_are_not_written_as_none() -> None:
    effect = SettingEffect("top_p", "top-p 0.9995", 40, 0.001, (0.001, 0.001), 0.001, 0.01, (0, 0), 0.001)
    assert effects_page._bars(effect)[3].text == "< 0.1 (0 to 0)"
    assert "fewer than 0.1 of 40 tokens" in effect.sentence


def test_effects_follow_the_shown_run(qtbot: QtBot, window: MainWindow) -> None:
    page = window.parts.same_noise.open_effects().effects
    assert "Run something first" in page.status.text()
    finish(qtbot, window, window.parts.runs.run)
    qtbot.waitUntil(lambda: state_of(window, "effects").result is not None, timeout=WAIT_MS)
    assert page.results.isVisible()


def test_twin_compares_texts_and_its_slider_marks_the_words_that_flip(qtbot: QtBot, window: MainWindow) -> None:
    window.parts.settings_controller.update_values({"keyed_noise": True})
    finish(qtbot, window, window.parts.runs.run)
    page = window.parts.same_noise.open_twin().twin
    page.value.setText("0.05")
    result = compute(qtbot, window, "twin").result
    run = window.session.run
    assert run is not None
    assert result.twin.ids[0] == [token.id for token in run.tokens]
    assert result.twin.caused > 0
    assert page.table.cells.rowCount() == len(result.twin)
    page.slider.setValue(10)  # 0.05 of 0 to 2
    flips = [token.position for token in result.twin if token.flips]
    assert result.flips.flips_at(page.slider_value) == flips
    assert f"{len(flips)} of {len(result.twin)}" in page.place.text()
    assert "earlier run" not in page.subject.text()
    finish(qtbot, window, window.parts.runs.run)
    assert "earlier run" in page.subject.text()


def test_realigned_twin_says_where_the_texts_run_together_again(
    qtbot: QtBot, window: MainWindow, engine: TinyEngine
) -> None:
    window.parts.settings_controller.update_values({"keyed_noise": True})
    finish(qtbot, window, window.parts.runs.run)
    page = window.parts.same_noise.open_twin().twin
    page.value.setText("0.05")
    page.noise.setCurrentIndex(page.noise.findData(True))
    result = compute(qtbot, window, "twin").result
    query = engine.queries[-1]
    assert isinstance(query, TwinQuery)
    assert query.wanted.realigns
    assert result.twin.is_realigned
    assert "run together again" in page.summary.text()
    page.slider.setValue(10)  # 0.05 of 0 to 2
    assert result.flips.flips_at(page.slider_value) == [token.position for token in result.twin if token.flips]
    page.draws.setCurrentIndex(page.draws.findData(False))
    assert not page.noise.isVisibleTo(page)
    assert not page.wanted().realigns


def test_twin_with_an_invalid_value_is_refused_without_a_query(
    qtbot: QtBot, window: MainWindow, engine: TinyEngine
) -> None:
    finish(qtbot, window, window.parts.runs.run)
    page = window.parts.same_noise.open_twin().twin
    page.value.setText("warm")
    qtbot.mouseClick(page.start, Qt.MouseButton.LeftButton)
    assert "must be a number" in page.problem.text()
    assert not any(isinstance(query, TwinQuery) for query in engine.queries)


@pytest.mark.parametrize("kind", ["prompt", "cache"])
def test_twin_of_another_prompt_or_cache_changes_only_that(
    qtbot: QtBot, window: MainWindow, engine: TinyEngine, kind: str
) -> None:
    finish(qtbot, window, window.parts.runs.run)
    page = window.parts.same_noise.open_twin().twin
    page.kind.setCurrentIndex(page.kind.findData(kind))
    page.prompt.setPlainText("Twice")
    page.name.setCurrentIndex(page.name.findData("static"))
    state = compute(qtbot, window, "twin")
    query = engine.queries[-1]
    assert isinstance(query, TwinQuery)
    field, value = ("prompt", "Twice") if kind == "prompt" else ("cache", "static")
    assert replace(query.request, **{field: value}) == query.changed
    assert state.result.twin.ids[0]


def test_results_outlive_the_window_and_another_language(qtbot: QtBot, window: MainWindow) -> None:
    panel = window.parts.same_noise.open_atlas()
    panel.atlas.tokens.setValue(4)
    result = compute(qtbot, window, "atlas").result
    with qtbot.waitSignal(panel.destroyed, timeout=WAIT_MS):
        panel.close()
    page = window.parts.same_noise.open_atlas().atlas
    assert page.map._result is result
    assert page.tokens.value() == 4
    switch(qtbot, window, "zh_CN")
    assert window.findChildren(SameNoiseWindow)
    assert state_of(window, "atlas").result is result


@pytest.mark.every(2)
@pytest.mark.parametrize(("width", "height"), [(900, 600), (1280, 800)])
def test_pages_show_nothing_clipped(qtbot: QtBot, window: MainWindow, width: int, height: int) -> None:
    finish(qtbot, window, window.parts.runs.run)
    panel = window.parts.same_noise.open_atlas()
    panel.resize(width, height)
    compute(qtbot, window, "atlas")
    assert remaining(panel) == []
    for name in ("effects", "twin"):
        panel.show_page(name)
        compute(qtbot, window, name)
        QApplication.processEvents()
        assert remaining(panel) == []


def test_rounded_value_lies_in_the_interval_with_few_decimals() -> None:
    assert round_value_in(0.0, 0.9, False) == 0.5
    assert round_value_in(0.4123, 0.4189, False) == 0.416
    low, high = 0.123456781, 0.123456789
    assert low < round_value_in(low, high, False) <= high
    assert [round_value_in(n, n + 1, True) for n in (0, 4)] == [1, 5]


def test_first_differing_word_is_a_whole_word() -> None:
    marked = first_differing_word("the red fox ran", "the real cat")
    assert marked is not None
    assert ("the red fox ran"[marked.start : marked.stop], marked.other) == ("red", "real")
    assert first_differing_word("same", "same") is None
    ended = first_differing_word("a b", "a b c")
    assert ended is not None
    assert "a b c"[len("a b") :].strip() == ended.other.removeprefix("b").strip()


def test_cells_of_the_map_join_neighbours_with_a_common_beginning() -> None:
    assert band_cells([(1, 2), (1, 2, 3), (1, 4), (5,)]) == [
        [(0, 2), (3, 3)], [(0, 1), (2, 2)], [(1, 1)],
    ]  # fmt: skip


def test_request_of_another_strategy_becomes_sampling() -> None:
    request = RunRequest(
        "Once", strategy="beam_search", config={"num_beams": 4, "max_new_tokens": 5, "do_sample": False}
    )
    found = sampling_request(request)
    assert found.strategy == "sampling"
    assert dict(found.settings) == {"max_new_tokens": 5, "do_sample": True, "keyed_noise": True}
