"""Step internals in the window: requested from the worker, shown in place, stopped and dropped."""

from __future__ import annotations

import math
import re
import threading
from dataclasses import replace
from pathlib import Path

import pytest
import shiboken6
from PySide6.QtCore import Qt
from pytestqt.qtbot import QtBot

from decodescope.app.panels.lens_page import LensDialog
from decodescope.app.session.queries.base import Answer
from decodescope.app.session.queries.layer_inspection import LayerInspectionQuery, make_inspection_query
from decodescope.app.state.layer_queries import LayerQuery, LayerView, PositionWeight, deciding_layer
from decodescope.app.state.token_stats import MEASURES, most_uncertain, uncertain_unavailable_reason
from decodescope.app.views.inspector.layer_rows import influence_sentence, layer_rows
from decodescope.app.views.inspector.step_internals import StepInternalsPanel
from decodescope.app.views.tokens.view import TokenView
from decodescope.app.window.main_window import MainWindow
from decodescope.core import words
from decodescope.core.errors import InsideError
from decodescope.resources import depth
from tests.core.recorded_claims import explanations_at
from tests.ui import scripted
from tests.ui.fake_engine import ScriptedEngine
from tests.ui.windows import WAIT_MS, open_window, run


def open_step_internals(
    qtbot: QtBot, folder: Path, engine: ScriptedEngine, token: int = 3
) -> tuple[MainWindow, StepInternalsPanel]:
    """Return a window with a finished run, and the panel of one of its tokens."""
    window = open_window(qtbot, folder, engine)
    run(qtbot, window)
    window.session.select_token(token)
    return window, window.findChild(StepInternalsPanel)


def is_part(answer: Answer) -> bool:
    """Return whether it is a part of a layer inspection."""
    return isinstance(answer.query, LayerInspectionQuery) and not answer.has_ended


def is_inspected(answer: Answer) -> bool:
    """Return whether it ends a layer inspection."""
    return isinstance(answer.query, LayerInspectionQuery) and answer.has_ended


def request_internals(qtbot: QtBot, window: MainWindow, part: StepInternalsPanel, kind: str) -> None:
    """Press its button and wait for the end of the answer."""
    with qtbot.waitSignal(window.session.answered, check_params_cb=is_inspected, timeout=WAIT_MS):
        qtbot.mouseClick(part.buttons[kind], Qt.MouseButton.LeftButton)


def test_layers_and_influence_are_shown_on_request(qtbot: QtBot, config_dir: Path) -> None:
    engine = ScriptedEngine()
    window, part = open_step_internals(qtbot, config_dir, engine)
    request_internals(qtbot, window, part, "layers")
    assert len(part.bars.rows) == 5
    assert part.bars.rows[0].label.startswith("4"), "the last layer stands on top"
    assert "layer 3 of 4" in part.remark.text()
    assert [row.strong for row in part.bars.rows] == [False, True, False, False, False]
    request_internals(qtbot, window, part, "influence")
    request = engine.looks[-1]
    assert request.step == len(window.session.run.before) + 3
    assert request.ids[-1] == window.session.run.tokens[3].id
    figures = [row.figures[0] for row in part.bars.rows]
    assert figures == sorted(figures, key=lambda told: -abs(float(told.replace("−", "-"))))
    assert {row.bar_colors for row in part.bars.rows} == {("accent",), ("refused",)}
    view = window.findChild(TokenView)
    assert view.area.paint_options.colouring == "influence"
    assert len(view.area.paint_options.influence.weights) == request.step
    assert not view.grab().isNull()
    window.session.select_token(4)
    assert view.area.paint_options.influence is None
    assert view.area.paint_options.colouring == "probability"
    assert part.bars.isHidden()
    with qtbot.waitSignal(window.session.answered, check_params_cb=is_inspected, timeout=WAIT_MS):
        part.other.setCurrentIndex(1)
        part.other.activated.emit(1)
    assert engine.looks[-1].query == part.query == LayerQuery("influence", "word", part.other.itemData(1))
    part.other.setCurrentIndex(0)
    row = part.instead.findData(",")
    part.instead.setCurrentIndex(row)
    with qtbot.waitSignal(window.session.answered, check_params_cb=is_inspected, timeout=WAIT_MS):
        part.instead.activated.emit(row)
    assert engine.looks[-1].query == LayerQuery("influence", "word", None, ",")
    assert part.remark.text().startswith("With “")
    assert "replaced, log p of" in part.remark.text()


def test_query_can_be_stopped_and_errors_are_shown(qtbot: QtBot, config_dir: Path) -> None:
    engine = ScriptedEngine()
    window, part = open_step_internals(qtbot, config_dir, engine)
    engine.hold = threading.Event()
    with qtbot.waitSignal(window.session.answered, check_params_cb=is_part, timeout=WAIT_MS):
        qtbot.mouseClick(part.buttons["influence"], Qt.MouseButton.LeftButton)
    assert part.buttons["influence"].text().startswith("Stop · ")
    half = len(part.bars.rows)
    request_internals(qtbot, window, part, "influence")
    assert engine.looks[-1].cancel.is_set()
    assert len(part.bars.rows) == half, "what was found stays"
    assert re.search(r"\d+ of \d+ parts examined\.$", part.remark.text())
    assert part.buttons["influence"].text() == "What it depends on"
    engine.error = InsideError("Its layers cannot be read.", "Leave parts out instead.")
    request_internals(qtbot, window, part, "layers")
    assert part.remark.text() == "Its layers cannot be read. Leave parts out instead."


@pytest.mark.parametrize("depth_of", [depth.PLAIN, depth.USUAL, depth.EXACT])
@pytest.mark.parametrize("instead", [None, ","])
@pytest.mark.parametrize("other", [None, 7])
def test_influence_explanation_depends_on_sign(depth_of: str, instead: str | None, other: int | None) -> None:
    wish, texts = LayerQuery("influence", "word", other, instead), ["a", " b", " c"]
    reported = {}
    with explanations_at(depth_of, "en"):
        for sign in (1, -1):
            weights = [PositionWeight(0, 1, 0.25), PositionWeight(1, 2, sign * 2.5), PositionWeight(2, 3, -1.0)]
            reported[sign] = influence_sentence(weights, texts, wish, "“X”", "“Y”", (3, 3))
            assert "“b”" in reported[sign]
            some = influence_sentence(weights, texts, wish, "“X”", "“Y”", (3, 8))
            assert some.startswith(reported[sign])
            assert some.endswith("3 of 8 parts examined.")
    if depth_of == depth.EXACT:
        assert "+2.50 nats" in reported[1]
        assert "−2.50 nats" in reported[-1]
    elif other is not None:
        assert "“b” most strongly supports “X” over “Y”" in reported[1]
        assert "The largest influence is “b”, which supports “Y” over “X”" in reported[-1]
    elif depth_of == depth.USUAL:
        assert "it falls by 2.50 nats" in reported[1]
        assert "it rises by 2.50 nats" in reported[-1]


def test_next_uncertain_step_cycles_through_most_uncertain(qtbot: QtBot, config_dir: Path) -> None:
    window = open_window(qtbot, config_dir)
    run(qtbot, window)
    tokens = window.session.run.tokens
    window.session.select_token(None)
    places = []
    for number in range(1, 7):
        window.parts.actions.do("next_doubt")
        places.append(window.session.run.selected)
        assert window.parts.inspector.page.heading.text().endswith(f"UNCERTAIN {(number - 1) % 5 + 1} OF 5")
    assert places[5] == places[0]
    assert places[:5] == most_uncertain(tokens)
    assert tokens[places[0]].entropy == max(token.entropy for token in tokens)


def test_next_uncertain_step_without_entropy_shows_reason(qtbot: QtBot, config_dir: Path) -> None:
    window = open_window(qtbot, config_dir)
    notice = window.parts.centre.notice_banner
    window.parts.actions.do("next_doubt")
    assert "Run something first" in notice.cause.text()
    run(qtbot, window)
    one, tokens = window.session.run, scripted.story(3)
    assert uncertain_unavailable_reason(one) == ""
    assert "once the run has ended" in uncertain_unavailable_reason(scripted.make_run(tokens))
    untold = [replace(token, entropy=math.nan) for token in tokens]
    assert "does not contain uncertainty values" in uncertain_unavailable_reason(
        scripted.make_run(untold, finished=True)
    )
    assert "Run something first" in uncertain_unavailable_reason(scripted.make_run([], finished=True))


@pytest.mark.parametrize("name", list(MEASURES))
def test_uncertainty_measures_match_formulas(qtbot: QtBot, config_dir: Path, name: str) -> None:
    token = scripted.story(3)[1]
    shares = sorted((item.raw_probability for item in token.alternatives), reverse=True)
    expected = {
        "surprise": -math.log2(token.raw_probability),
        "entropy": token.entropy / math.log(2),
        "margin": shares[0] - shares[1],
        "varentropy": sum(p * (-math.log2(p) - token.entropy / math.log(2)) ** 2 for p in shares),
    }
    assert MEASURES[name].compute(token) == pytest.approx(expected[name], rel=1e-6)


def test_varentropy_uses_recorded_value_of_full_vocabulary() -> None:
    whole, measure = replace(scripted.story(3)[1], varentropy=2.0), MEASURES["varentropy"]
    assert measure.compute(whole) == pytest.approx(2.0 / math.log(2) ** 2)
    assert measure.describe(whole) == "varentropy {value:.2f} bits²"
    assert measure.describe(replace(whole, varentropy=None)).endswith("(recorded tokens only)")


def test_model_query_has_ids_and_step_of_run() -> None:
    one = scripted.make_run(scripted.story(6), finished=True)
    request = make_inspection_query(one, 2, LayerQuery("layers"))
    assert (request.step, request.prompt_length) == (len(scripted.PROMPT) + 2, len(scripted.PROMPT))
    assert len(request.ids) == request.step + 1
    assert len(make_inspection_query(one, 2, LayerQuery("page")).ids) == len(scripted.PROMPT) + 6
    assert deciding_layer([LayerView(n, word, 0, 0, 1) for n, word in enumerate("abcbb")]) == 3
    assert deciding_layer([LayerView(n, "a", 0, 0, 1) for n in range(3)]) == 0


def test_attention_of_selected_layer_is_drawn(qtbot: QtBot, config_dir: Path) -> None:
    window, part = open_step_internals(qtbot, config_dir, ScriptedEngine())
    request_internals(qtbot, window, part, "attention")
    look = window.findChild(TokenView).area.paint_options
    assert look.influence.kind == "attention"
    averaged = look.influence.weights
    part.layer.setCurrentIndex(2)
    part.layer.activated.emit(2)
    assert look.influence.weights != averaged
    assert "not why" in part.remark.text()
    assert "not why" in window.findChild(TokenView).colouring_controller.legend_hint()


def test_layer_page_shows_all_tokens_and_cancels_when_closed(qtbot: QtBot, config_dir: Path) -> None:
    engine = ScriptedEngine()
    window, part = open_step_internals(qtbot, config_dir, engine)
    with qtbot.waitSignal(window.session.answered, check_params_cb=is_inspected, timeout=WAIT_MS):
        qtbot.mouseClick(part.page, Qt.MouseButton.LeftButton)
    page = window.findChild(LensDialog)
    table, count = page.table, len(window.session.run.tokens)
    assert (table.rowCount(), table.columnCount()) == (5, count)
    cell = table.index(0, 2)
    assert table.view_at(cell).layer == 4
    assert "layer 4" in table.data(cell, Qt.ItemDataRole.ToolTipRole)
    assert table.headerData(0, Qt.Orientation.Horizontal).strip("␣") == window.session.run.tokens[0].piece.strip()
    before = page.grid.columnWidth(0)
    for _ in range(4):
        qtbot.keyClicks(page, "+")
    assert page.grid.columnWidth(0) > before
    assert not page.stop.isVisible()
    page.close()
    assert engine.looks[-1].cancel.is_set()
    qtbot.waitUntil(lambda: not shiboken6.isValid(page))
    window.session.answered.emit(Answer(engine.looks[-1]))  # was under way while the page went


def test_layer_row_shows_probability_of_its_first_choice() -> None:
    """The first choice of a layer and its share; the chosen token's own share is in the tip."""
    layers = [LayerView(1, " otter", 0.62, 0.05, 7), LayerView(2, " fox", 0.9, 0.9, 1)]
    first, below = layer_rows(layers)
    assert (below.label, below.figures, below.lengths) == ("1  ␣otter", (words.brief_percent(0.62),), (0.62,))
    assert words.percent(0.05) in below.tip
    assert first.figures == (words.brief_percent(0.9),)
