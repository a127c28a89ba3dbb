"""The inspector: explanation, candidates, layers, funnel and statistics of the current token."""

import math
import threading
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from PySide6.QtCore import Qt, QTimer
from PySide6.QtGui import QFontMetrics, QGuiApplication
from PySide6.QtWidgets import QApplication, QLabel
from pytestqt.qtbot import QtBot

from decodescope.app.state.run import Run
from decodescope.app.state.token_stats import most_surprising, most_uncertain, uncertain_unavailable_reason
from decodescope.app.views.inspector import inspector_rows, panel
from decodescope.app.views.inspector.panel import Inspector
from decodescope.app.views.text.token_wording import popover_rows, surprise_bits, token_text
from decodescope.app.widgets.funnel import MAX_SIDE_BY_SIDE, FunnelStage, bar_fractions
from decodescope.core import Sentence, explain_token, words
from decodescope.core.events import Alternative, LayerChoice, Stage, TokenChosen
from tests.ui.fake_engine import ScriptedEngine
from tests.ui.scripted import VOCABULARY, end_token, make_run, story, token
from tests.ui.windows import WAIT_MS, finish, open_window, show_widget
from tests.ui.windows import run as run_window


@pytest.fixture
def inspector(qtbot: QtBot) -> Inspector:
    return show_widget(qtbot, Inspector(), 324, 700)


def visible_text(inspector: Inspector) -> str:
    """Return the text of all visible labels."""
    return "\n".join(label.text() for label in inspector.findChildren(QLabel) if label.isVisible())


def show_token(inspector: Inspector, chosen: TokenChosen) -> Run:
    run = make_run([chosen])
    inspector.show_run(run)
    return run


def test_inspector_shows_selected_or_newest_token(inspector: Inspector) -> None:
    run = make_run([token(0, " fox", 0.31, 3), token(1, " named", 0.9)])
    inspector.show_run(run)
    assert "TOKEN 2" in visible_text(inspector)
    assert "␣named" in visible_text(inspector)
    run.select(0)
    inspector.selection_changed(run)
    assert "TOKEN 1" in visible_text(inspector)
    assert "␣fox" in visible_text(inspector)
    assert "rank 3 of 2,048" in visible_text(inspector)


def test_content_stays_until_first_token_of_new_run(inspector: Inspector, qtbot: QtBot) -> None:
    """The waiting page does not flash when the first token arrives soon."""
    show_token(inspector, token(0, " fox", 0.31, 3))
    waiting = make_run([])
    inspector.show_run(waiting)
    assert "␣fox" in visible_text(inspector)
    qtbot.waitUntil(lambda: "Waiting for the first token" in visible_text(inspector))
    inspector.show_run(make_run([token(0, " Mia", 0.9)]))
    assert "␣Mia" in visible_text(inspector)


def test_explanation_card_is_above_candidates(inspector: Inspector) -> None:
    chosen = token(0, " fox", 0.31, 3)
    show_token(inspector, chosen)
    plain = inspector.page.sentence.text().replace("<b>", "").replace("</b>", "").replace("&nbsp;", " ")
    assert plain == explain_token(chosen)
    assert inspector.page.card.property("role") == "card"
    assert inspector.page.card.geometry().bottom() < inspector.page.candidates.geometry().top()


def test_explanation_has_bold_numbers_and_escaped_text() -> None:
    reported = Sentence("“<b>” had < 0.1 %, 14 of 2,048 were left.", ((10, 17), (19, 30)))
    text = "“&lt;b&gt;” had <b>&lt;&nbsp;0.1&nbsp;%</b>, <b>14&nbsp;of&nbsp;2,048</b> were left."
    assert inspector_rows.with_bold_figures(reported) == text
    assert inspector_rows.with_bold_figures("31 % & so on") == "31 % &amp; so on"


def test_candidates_show_probability_before_and_after_or_cut(inspector: Inspector) -> None:
    chosen = token(0, " fox", 0.31, 3)
    show_token(inspector, chosen)
    shown = inspector.page.bars.rows
    assert [row.label for row in shown] == [token_text(item.text) for item in chosen.alternatives]
    assert [row.strong for row in shown] == [item.id == chosen.id for item in chosen.alternatives]
    for row, item in zip(shown, chosen.alternatives, strict=True):
        assert row.figures[0] == words.brief_percent(item.raw_probability)
        assert (row.figures[1] == "cut") == (item.probability == 0.0) == row.faint
        assert row.lengths == (item.raw_probability, item.probability), "bars are of 100 %"


def test_unlikely_candidates_have_relative_hints() -> None:
    unlikely = token(0, " fox", 0.085, probability=0.085)
    unlikely = replace(unlikely, alternatives=tuple(
        replace(item, raw_probability=share, probability=share)
        for item, share in zip(unlikely.alternatives, (0.085, 0.0425, 0.01), strict=False)
    ))  # fmt: skip
    shown = inspector_rows.alternative_rows(unlikely)
    assert [row.lengths for row in shown[:3]] == [(0.085,), (0.0425,), (0.01,)]
    assert [row.hints[0] for row in shown[:3]] == pytest.approx([1.0, 0.5, 0.01 / 0.085])
    assert "relative to 100 %" in shown[0].tip
    likely = inspector_rows.alternative_rows(token(0, " fox", 0.31))
    assert {row.hints for row in likely} == {()}


def test_unchanged_probabilities_show_single_bar() -> None:
    chosen = token(0, " fox", 0.31, probability=0.31)
    same = tuple(replace(item, probability=item.raw_probability) for item in chosen.alternatives)
    chosen = replace(chosen, alternatives=same)
    assert inspector_rows.alternative_columns(chosen) == ()
    assert {len(row.lengths) for row in inspector_rows.alternative_rows(chosen)} == {1}
    assert "→" not in inspector_rows.token_facts(chosen, VOCABULARY)


def test_token_without_alternatives_shows_not_recorded(inspector: Inspector) -> None:
    show_token(inspector, replace(token(0, " fox"), alternatives=(), funnel=()))
    assert "Not recorded" in visible_text(inspector)
    assert not inspector.page.bars.isVisible()
    assert not inspector.page.funnel.isVisible()
    show_token(inspector, token(0, " fox"))
    assert inspector.page.bars.isVisible()
    assert "Not recorded" not in visible_text(inspector)


def test_funnel_ends_with_drawn_token(inspector: Inspector) -> None:
    chosen = token(0, " fox", 0.31, 3)
    show_token(inspector, chosen)
    stages = inspector.page.funnel.stages.stages
    assert [stage.survivors for stage in stages] == [*(stage.survivors for stage in chosen.funnel), 1]
    assert stages[-1].is_outcome
    assert stages[-1].label == "drawn"
    cut = VOCABULARY - chosen.funnel[-1].survivors
    assert f"cuts {cut:,} of 2,048" in stages[2].tip
    assert "92 %" in stages[2].tip
    assert "cuts no token" in stages[1].tip


def test_funnel_bar_heights_are_logarithmic() -> None:
    shares = bar_fractions([2048, 2048, 14, 1])
    assert shares[:2] == [1.0, 1.0]
    assert 0.3 < shares[2] < 0.4
    assert shares[3] < shares[2]
    assert bar_fractions([]) == []


def test_many_funnel_stages_are_listed_and_hit_tested(qtbot: QtBot, inspector: Inspector) -> None:
    many = tuple(Stage(f"s{n}", f"s{n} 0.9", 2000 - n, 1.0, 1.0) for n in range(MAX_SIDE_BY_SIDE + 1))
    run = show_token(inspector, replace(token(0, " fox"), funnel=many))
    funnel = inspector.page.funnel.stages
    assert funnel.is_listed
    assert funnel.stage_at(5, 1) == funnel.stages[0]
    qtbot.waitUntil(lambda: funnel.height() == funnel.sizeHint().height())  # the page grows
    assert funnel.stage_at(5, funnel.height() - 1) == funnel.stages[-1]
    inspector.show_run(make_run([token(0, " fox")]))
    assert not funnel.is_listed
    assert funnel.stage_at(funnel.width() - 1, 5) == funnel.stages[-1]
    assert run.tokens
    funnel.set_stages([FunnelStage(3, "x")])
    assert funnel.stage_at(-4, 5) is None


def _contrastive() -> TokenChosen:
    chosen = token(0, " fox", 0.31, 3, method="contrastive")
    scored = tuple(
        replace(item, degeneration_penalty=0.1 * n, score=0.4 * item.probability - 0.06 * n) if n < 4 else item
        for n, item in enumerate(chosen.alternatives)
    )
    return replace(chosen, alternatives=scored)


def test_contrastive_candidates_have_confidence_penalty_and_score(inspector: Inspector) -> None:
    show_token(inspector, _contrastive())
    shown = inspector.page.bars.rows
    assert len(shown) == 4
    assert {len(row.figures) for row in shown} == {3}
    scores = [float(row.figures[2].replace("−", "-")) for row in shown]
    assert scores == sorted(scores, reverse=True)
    assert "CANDIDATES" in visible_text(inspector)
    assert inspector_rows.CONTRASTIVE_HEAD == ("confidence", "penalty", "score")


def test_dola_shows_layers_and_chosen_one(inspector: Inspector) -> None:
    choice = LayerChoice(4, ((0, 0.002), (2, 0.013), (4, 0.083)))
    show_token(inspector, replace(token(0, " fox"), method="dola", layer_choice=choice))
    shown = inspector.page.layer_bars.rows
    assert [row.label for row in shown] == ["layer 0", "layer 2", "layer 4"]
    assert [row.strong for row in shown] == [False, False, True]
    assert shown[2].lengths == (1.0,)
    show_token(inspector, token(0, " fox"))
    assert not inspector.page.layers.isVisible()


def test_inspector_without_run_shows_hint(qtbot: QtBot, inspector: Inspector) -> None:
    inspector.show_run(None)
    assert "click a token" in visible_text(inspector)
    assert not inspector.page.card.isVisible()
    inspector.show_run(make_run([]))
    assert "Waiting" in visible_text(inspector)
    ended = make_run([], finished=True)
    inspector.events_arrived(ended, [])
    qtbot.waitUntil(lambda: "No token yet" in visible_text(inspector))


def test_updates_are_throttled_while_streaming(inspector: Inspector, qtbot: QtBot) -> None:
    run = make_run([])
    inspector.show_run(run)
    for chosen in story(30):
        run.apply([chosen])
        inspector.events_arrived(run, [chosen])
    assert "Waiting" in visible_text(inspector)
    qtbot.waitUntil(lambda: "TOKEN 30" in visible_text(inspector))


def test_token_of_slow_model_is_shown_immediately(inspector: Inspector, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tokens of a slow model are not throttled half a second after the previous one."""
    clock = [100.0]
    monkeypatch.setattr(panel, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    run = make_run([])
    inspector.show_run(run)
    for number, chosen in enumerate(story(3), 1):
        clock[0] += 1.0
        run.apply([chosen])
        inspector.events_arrived(run, [chosen])
        QApplication.processEvents()
        assert f"TOKEN {number}" in visible_text(inspector)
    run.apply(story(4)[3:])
    inspector.events_arrived(run, story(4)[3:])
    QApplication.processEvents()
    assert "TOKEN 3" in visible_text(inspector)  # too soon behind the last one


def test_continuous_stream_is_followed(inspector: Inspector, qtbot: QtBot) -> None:
    """Each batch moves nothing back."""
    run, coming = make_run([]), iter(story(2_000))
    inspector.show_run(run)
    stream = QTimer(inspector, interval=5)

    def write() -> None:
        run.apply(batch := [next(coming)])
        inspector.events_arrived(run, batch)

    stream.timeout.connect(write)
    stream.start()
    qtbot.waitUntil(lambda: "NEWEST" in visible_text(inspector))
    assert stream.isActive()


def test_cursor_move_updates_inspector_immediately(inspector: Inspector) -> None:
    run = make_run(story(12), finished=True)
    inspector.show_run(run)
    for place in range(1, 13):
        run.move_cursor(place)
        inspector.cursor_moved(run)
        assert f"TOKEN {place}" in visible_text(inspector)


def test_selected_token_stays_shown_while_streaming(inspector: Inspector) -> None:
    run = make_run(story(5))
    inspector.show_run(run)
    run.select(1)
    inspector.selection_changed(run)
    run.apply(story(5))
    inspector.events_arrived(run, [])
    assert not inspector._timer.isActive()
    assert "TOKEN 2" in visible_text(inspector)


def test_sections_keep_position_between_tokens_unless_a_sentence_needs_a_third_line(inspector: Inspector) -> None:
    run = make_run([token(0, " fox", 0.31, 3), token(1, ".", 0.9), token(2, " a", 0.2, 2)])
    inspector.show_run(run)
    places = set()
    for index in range(3):
        run.select(index)
        inspector.selection_changed(run)
        QApplication.processEvents()
        top = inspector.page.candidates.geometry().top()
        places.add((top - inspector.page.sentence.height(), inspector.page.funnel.geometry().top() - top))
    assert len(places) == 1


def test_card_has_no_empty_third_line(inspector: Inspector) -> None:
    """It has two lines at least, and is as high as it was only while a text grows."""
    sentence = inspector.page.sentence
    line = QFontMetrics(inspector.current_theme.font(13)).lineSpacing()
    run = make_run([token(0, " fox", 0.31, 3), token(1, ".", 0.9), token(2, " a", 0.2, 2)])
    inspector.show_run(run)
    heights = set()
    for index in range(3):
        run.select(index)
        inspector.selection_changed(run)
        heights.add((sentence.height(), max(2 * line, sentence.label.heightForWidth(sentence.width()))))
    assert all(height == needed for height, needed in heights)


def test_dots_stand_for_ranks_that_are_not_shown(inspector: Inspector) -> None:
    """The chosen token was the 13th most likely; the list has the first ones and it."""
    shown = [Alternative(n, f" w{n}", 0.05, 0.05, -3.0, -3.0, n) for n in (1, 2, 3, 13)]
    event = replace(token(0, " w13", 0.05, 13), id=13, alternatives=tuple(shown))
    show_token(inspector, event)
    bars = inspector.page.bars
    assert [row.skipped for row in bars.rows] == [0, 0, 0, 9]
    assert bars._layout.tops[3] - bars._layout.tops[2] == bars._layout.row_height + bars._layout.gap_height
    assert bars._layout.row_at(bars._layout.tops[3] - 3) is None
    assert bars._layout.row_at(bars._layout.tops[3]) is bars.rows[3]
    assert "after 9 tokens that are not shown" in bars.accessible_parts()[3].name


def test_page_before_the_first_answer_of_a_guess_names_the_guess(inspector: Inspector) -> None:
    run = make_run([])
    run.is_withheld = True
    inspector.show_run(run)
    assert "Your guess comes first" in visible_text(inspector)
    assert "No token yet" not in visible_text(inspector)
    assert not inspector.area.empty.offer.isVisible()


def test_nearly_certain_step_is_not_counted_as_uncertain(inspector: Inspector) -> None:
    sure, unsure = token(0, " Ann", 0.98, entropy=0.2), token(1, " fox", 0.4, entropy=2.0)
    assert most_uncertain([sure]) == []
    assert most_uncertain([sure, unsure]) == [1]
    run = make_run([sure], finished=True)
    assert uncertain_unavailable_reason(run) == "The model was nearly certain at every step."
    show_token(inspector, sure)
    assert "UNCERTAIN" not in visible_text(inspector)


def test_texts_are_selectable_and_rows_can_be_copied(inspector: Inspector) -> None:
    show_token(inspector, token(0, " fox", 0.31, 3))
    for label in (inspector.page.title, inspector.page.facts, inspector.page.sentence):
        assert label.label.textInteractionFlags() & Qt.TextInteractionFlag.TextSelectableByMouse
    bars = inspector.page.bars
    bars.copy_table()
    table = QGuiApplication.clipboard().text().splitlines()
    assert table[0].split("\t") == ["Alternatives", "before", "after"]
    assert len(table) == len(bars.rows) + 1
    assert "␣fox" in bars.accessibleDescription()


def test_scroll_bar_does_not_change_content_width(inspector: Inspector, qtbot: QtBot) -> None:
    show_token(inspector, token(0, " fox", 0.31, 3))
    width = inspector.page.card.width()
    inspector.resize(324, 300)
    qtbot.waitUntil(inspector.area.verticalScrollBar().isVisible)
    inspector.page.activate_layout()
    assert inspector.page.card.width() == width
    assert inspector.area.widget().width() <= inspector.area.viewport().width()


def test_narrow_bars_are_below_labels(inspector: Inspector, qtbot: QtBot) -> None:
    show_token(inspector, token(0, " fox", 0.31, 3))
    bars = inspector.page.bars
    wide = bars.sizeHint().height()
    inspector.setMinimumWidth(0)
    heights_seen = []
    for width in (324, 220, 324):
        inspector.resize(width, 700)
        qtbot.waitUntil(lambda: bars.height() == bars.sizeHint().height())
        heights_seen.append(bars.height())
    assert heights_seen[0] == heights_seen[2] == wide
    assert heights_seen[1] > wide * 1.3


def test_token_texts_and_rows() -> None:
    assert token_text(" a\n\t") == "␣a↵⇥"
    assert token_text("<|end|>") == "⟨end⟩"
    assert (
        f"{surprise_bits(1e-7):.1f} {surprise_bits(0.0):.1f}" == "0.0 0.0"
    )  # rounding may leave a little more than certainty
    assert surprise_bits(float("-inf")) == float("inf")
    names = [name for name, _ in popover_rows(token(0, " fox", 0.31, 3), VOCABULARY)]
    assert names[:2] == ["id", "by the model alone"]
    assert "likelier tokens" in names


def test_control_token_is_shown_by_name(inspector: Inspector) -> None:
    show_token(inspector, end_token(0))
    assert "⟨end⟩" in visible_text(inspector)


def test_selected_token_after_run_is_most_surprising_one_not_end(qtbot: QtBot, config_dir: Path) -> None:
    window = open_window(qtbot, config_dir)
    run_window(qtbot, window)
    run = window.session.run
    assert run is not None
    least = min(range(len(run.tokens)), key=lambda n: run.tokens[n].raw_probability)
    assert least != len(run.tokens) - 1
    assert run.selected == least == most_surprising(run.tokens)


def test_selection_during_run_is_kept_when_it_ends(qtbot: QtBot, config_dir: Path) -> None:
    hold = threading.Event()
    window = open_window(qtbot, config_dir, ScriptedEngine(hold=hold))
    window.parts.runs.run()
    qtbot.waitUntil(lambda: window.session.run is not None and len(window.session.run.tokens) >= 10, timeout=WAIT_MS)
    window.session.select_token(3)
    finish(qtbot, window, hold.set)
    assert window.session.run.selected == 3


def test_most_surprising_token_is_no_special_one_unless_there_is_nothing_else() -> None:
    ordinary = [replace(token, raw_log_probability=-1.0) for token in story(3)]
    end = replace(ordinary[0], text="", piece="<eos>", special=True, raw_log_probability=-9.0)
    assert most_surprising([*ordinary, end]) == 0
    assert most_surprising([end]) == 0
    assert most_surprising([replace(ordinary[0], raw_log_probability=math.nan)]) is None
