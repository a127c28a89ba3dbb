"""A watermark in the window's parts: underlines, the curve of the statistic, the sentence; and what is searched for."""

from __future__ import annotations

from dataclasses import replace

from pytestqt.qtbot import QtBot

from decodescope import core
from decodescope.app.state.branching import strip_for_scoring
from decodescope.app.state.run import Run
from decodescope.app.views.inspector.panel import Inspector
from decodescope.app.views.inspector.stage_pictures import WatermarkPicture
from decodescope.app.views.timeline import Timeline
from decodescope.app.views.tokens.view import TokenView
from decodescope.core.events import Stage, StageDetail, WatermarkSign
from tests.ui.scripted import make_run, token
from tests.ui.windows import show_widget

ON = {"watermark_bias": 2.0, "watermark_key": 7}


def story(*shares: float) -> Run:
    made = []
    for step, share in enumerate(shares):
        sign = WatermarkSign(share, share, 0.25, 0.433, counts=step > 0)
        stage = Stage("watermark_bias", "watermark δ 2", 9, 1.0, 1.0, value=2.0, detail=StageDetail(sign=sign))
        made.append(replace(token(step, f" w{step}", 0.3), funnel=(Stage("raw", "raw", 9, 1.0, 1.0), stage)))
    run = make_run(made)
    run.request = replace(run.request, options=ON)
    return run


def test_score_request_keeps_watermark_options() -> None:
    run = story(1.0)
    assert strip_for_scoring(replace(run.request, options={**ON, "top_n_sigma": 2.0})).options == ON
    assert core.watermark_settings({"watermark_bias": 0.0, "watermark_key": 7}) == {}


def test_green_and_red_tokens_are_painted_differently(qtbot: QtBot) -> None:
    view = show_widget(qtbot, TokenView(), 500, 200)
    pictures = []
    for shares in ((0.0, 1.0), (0.0, 0.0), (0.0,)):
        view.show_run(story(*shares))
        pictures.append(view.area.grab().toImage())
    assert view.area.paint_options.colouring == "watermark"
    assert pictures[0] != pictures[1] != pictures[2]
    view.show_run(make_run([token(0, " a", 0.3)]))
    assert view.area.paint_options.colouring == "probability"


def test_watermark_statistic_is_plotted_and_described(qtbot: QtBot) -> None:
    timeline, inspector = Timeline(), Inspector()
    for part in (timeline, inspector):
        qtbot.addWidget(part)
    run = story(0.0, *[1.0] * 9)
    timeline.show_run(run)
    curve, threshold = timeline.sparkline.curves
    assert list(curve.values) == sorted(value or 0.0 for value in curve.values)
    assert (curve.values[1] or 0) < (threshold.values[1] or 0) < (curve.values[-1] or 0)
    assert "z = 5.20" in timeline._bar_tooltip(9)
    inspector.show_run(run)
    scale = inspector.findChild(WatermarkPicture).scale
    assert scale.marks[0].label == "z 5.20"
    assert scale.accessibleDescription().startswith(
        "The text very probably contains the watermark: the mean score of 9 tokens"
    )
