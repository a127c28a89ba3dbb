"""Pictures of DRY, XTC, top-nσ, mirostat and dynamic temperature: inspector, funnel, token view, timeline."""

from __future__ import annotations

from dataclasses import replace

import pytest
from PySide6.QtWidgets import QLabel
from pytestqt.qtbot import QtBot

from decodescope.app.state.run import Run
from decodescope.app.views.inspector import inspector_rows, stage_values
from decodescope.app.views.inspector.panel import Inspector
from decodescope.app.views.inspector.stage_pictures import RepetitionPicture, ScoreHistogramPicture, TopCutPicture
from decodescope.app.views.timeline import Timeline
from decodescope.app.views.tokens.view import TokenView
from decodescope.app.widgets.scale import NumberScale
from decodescope.core import explain_stage
from decodescope.core.events import (
    Likely,
    Repeat,
    Repeats,
    ScoreSpread,
    Stage,
    StageDetail,
    StepTemperature,
    SurpriseAim,
    TokenChosen,
    TopCut,
)  # fmt: skip
from tests.ui.scripted import make_run, token
from tests.ui.windows import show_widget

REPEATS = Repeats((Repeat(9, " fox", 2, 1, 0.8), Repeat(8, " hen", 3, 1, 0.8)), 2)
CUT = TopCut(0.5, 0.2, 0.1, (Likely(1, " red", 0.5), Likely(2, " blue", 0.3), Likely(3, " green", 0.1)), 3, 2)
SPREAD = ScoreSpread(10.0, 3.0, 7.0, 0.0, (50, 9, 0, 3, 1))
AIM, HEAT = SurpriseAim(2.0, 3.5, 2.5), StepTemperature(0.9, 0.5, 1.5)
DETAILS = {
    "dry_multiplier": StageDetail(repeats=REPEATS),
    "xtc_probability": StageDetail(top_cut=CUT),
    "top_n_sigma": StageDetail(spread=SPREAD),
    "mirostat_tau": StageDetail(aim=AIM),
    "dynatemp_high": StageDetail(heat=HEAT),
}


def with_stages(chosen: TokenChosen, *names: str) -> TokenChosen:
    stages = [Stage(n, n, 20, 0.4, 0.4, value=0.5, detail=DETAILS[n]) for n in names]
    return replace(chosen, method="sampled", funnel=(Stage("raw", "raw", 30, 1.0, 1.0, kind="model"), *stages))


def story(*names: str) -> Run:
    pieces = (" a", " fox", " a", " hen", " a")
    return make_run([with_stages(token(step, piece, 0.3), *names) for step, piece in enumerate(pieces)])


@pytest.fixture
def inspector(qtbot: QtBot) -> Inspector:
    return show_widget(qtbot, Inspector(), 324, 1200)


def test_every_stage_has_explanation_and_picture(inspector: Inspector) -> None:
    run = story(*DETAILS)
    inspector.show_run(run)
    reported = [label.text().replace("\u00a0", " ") for label in inspector.findChildren(QLabel) if label.isVisible()]
    for stage in run.tokens[-1].funnel[1:]:
        assert explain_stage(stage) in reported
    scales = [scale for scale in inspector.findChildren(NumberScale) if scale.isVisible()]
    assert [scale.marks[0].value for scale in scales] == [CUT.die, AIM.surprise, HEAT.temperature]
    assert all(scale.accessibleDescription() for scale in scales)
    passage = inspector.findChild(RepetitionPicture)
    assert (passage.arc.passage.earlier_continuation, passage.arc.passage.current_continuation) == ("␣fox", "␣a")
    assert passage.arc.passage.passage == "… hen"
    inspector.show_run(make_run([token(0, " a", 0.3)]))
    assert not any(scale.isVisible() for scale in inspector.findChildren(NumberScale))


def test_tokens_removed_from_top_are_listed_with_probability(inspector: Inspector) -> None:
    inspector.show_run(story("xtc_probability"))
    top = inspector.findChild(TopCutPicture)
    assert [row.label for row in stage_values.top_rows(CUT, 3)] == ["␣red", "␣blue", "␣green"]
    assert [row.figures for row in stage_values.top_rows(CUT, 3)] == [("✕ 50 %",), ("✕ 30 %",), ("10 %",)]
    assert "␣red ✕ 50 %" in top.bars.accessibleDescription()
    stages = inspector_rows.funnel_stages(story("xtc_probability").tokens[0])
    assert [stage.top_removed for stage in stages] == [0.0, pytest.approx(0.6), 0.0]
    plain = inspector_rows.funnel_stages(story("top_n_sigma").tokens[0])
    assert not any(stage.top_removed for stage in plain)


def test_funnel_draws_cut_from_top_differently(inspector: Inspector) -> None:
    run = story("xtc_probability")
    inspector.show_run(run)
    funnel = inspector.page.funnel.stages
    cut = funnel.grab().toImage()
    funnel.set_stages([stage._replace(top_removed=0.0) for stage in funnel.stages])
    assert funnel.grab().toImage() != cut


def test_threshold_line_separates_kept_from_removed_scores(inspector: Inspector) -> None:
    inspector.show_run(story("top_n_sigma"))
    figure = inspector.findChild(ScoreHistogramPicture).plot.figure
    gone, stored = figure.bars
    assert [bool(value) for value in gone.values] == [True, True, False, False, False]
    assert [bool(value) for value in stored.values] == [False, False, False, True, True]
    cut, best = (line.points[0][0] for line in figure.lines)
    assert cut == pytest.approx(3.0)  # 7 of 10, five parts: half a part right of the left edge of the fourth
    assert best == 4.5


def test_timeline_shows_temperature_and_surprise_curves(qtbot: QtBot) -> None:
    made = Timeline()
    qtbot.addWidget(made)
    made.show_run(make_run([token(0, " a", 0.3)]))
    assert made.sparkline.curves == ()
    made.show_run(story("mirostat_tau", "dynatemp_high"))
    surprise, target, heat = made.sparkline.curves
    assert [len(curve.values) for curve in (surprise, target, heat)] == [5, 5, 5]
    assert target.dashed
    assert (surprise.values[0] or 0) > (target.values[0] or 0)
    assert heat.values[0] == pytest.approx(0.6)
    assert "temperature 0.90" in made._bar_tooltip(1)
    assert "2.5 bits, target 2, limit 3.5" in made.sparkline.accessibleDescription()


def test_arc_connects_selected_token_with_repeated_passage(qtbot: QtBot) -> None:
    view = show_widget(qtbot, TokenView(), 500, 300)
    pictures = []
    for run in (story("dry_multiplier"), story("top_n_sigma")):
        view.show_run(run)
        run.select(3)
        view.selection_changed(run)
        pictures.append(view.area.grab().toImage())
    assert view.area.paint_options.repeats == ()
    assert pictures[0] != pictures[1]
