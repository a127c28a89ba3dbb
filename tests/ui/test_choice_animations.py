"""Animations of choices: the funnel closes, the ball falls, beams overtake each other, drafts are stamped. The tests
move the clock.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest
from PySide6.QtCore import QVariantAnimation
from pytestqt.qtbot import QtBot

from decodescope.app.features.presentation.controller import stage_content
from decodescope.app.panels.settings.settings_dialog import StageSettings
from decodescope.app.storage.settings import AppearanceSection
from decodescope.app.theme.theme import theme_for
from decodescope.app.widgets import sound_player
from decodescope.app.widgets.animation import motion
from decodescope.app.widgets.animation.choice_animations import (
    FALL_HEIGHT,
    GAP_WIDTH,
    BeamLadder,
    BeamRow,
    ChoiceBar,
    ChoiceDistribution,
    DraftChip,
    DraftStamps,
)
from decodescope.app.widgets.animation.motion import DURATION, AnimatedWidget
from decodescope.app.widgets.sound_player import CUES, CuePlayer, player_command, sound_unsupported_reason
from decodescope.app.window.main_window import MainWindow
from decodescope.core.events import Alternative
from tests.ui.scripted import token
from tests.ui.windows import open_window, run

THREE = ChoiceDistribution(
    ("fox", "girl", "bear"), ((0.4, 0.3, 0.1), (0.5, 0.3, 0.0), (0.6, 0.4, 0.0)), 1, is_sampled=True
)


@pytest.fixture(autouse=True)
def _default_motion(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ignore the reduced-motion setting of this machine."""
    motion.prefers_reduced_motion.cache_clear()
    monkeypatch.setenv(motion.REDUCED_MOTION_VARIABLE, "0")


def shown(qtbot: QtBot, widget: AnimatedWidget) -> AnimatedWidget:
    qtbot.addWidget(widget)
    widget.resize(600, 60)
    return widget


def pause_at(widget: AnimatedWidget, share: float) -> None:
    """Stop the clock at that share of the motion."""
    widget.animation.pause()
    widget.animation.setCurrentTime(round(DURATION * share))


def test_choice_bar_animates_stages_and_ball(qtbot: QtBot) -> None:
    bar = ChoiceBar(theme_for("light"))
    shown(qtbot, bar)
    bar.show_choice(THREE, animate=True)
    assert bar.animation.state() == QVariantAnimation.State.Running
    pause_at(bar, 0.0)
    assert bar.probabilities() == THREE.stages[0]
    above = bar.ball_center().y()
    pause_at(bar, 0.06)
    assert THREE.stages[0][0] < bar.probabilities()[0] < THREE.stages[-1][0]
    pause_at(bar, 0.9)
    assert bar.probabilities() == pytest.approx(THREE.stages[-1])
    assert above < bar.ball_center().y()
    bar.animation.stop()
    left, width = bar.spans()[THREE.chosen]
    assert left < bar.ball_center().x() < left + width
    assert bar.ball_center().y() == FALL_HEIGHT
    assert not bar.grab().isNull()


def test_choice_behind_left_out_tokens_stands_after_a_gap(qtbot: QtBot) -> None:
    """The 13th most likely token was drawn: it is not the neighbour of the ninth."""
    event = token(0, " w13", 0.02, 13)
    items = [Alternative(n, f" w{n}", 0.09, 0.09, -2.0, -2.0, n) for n in range(1, 11)]
    drawn = Alternative(13, " w13", 0.02, 0.02, -4.0, -4.0, 13)
    choice = stage_content.choice_distribution(replace(event, id=13, alternatives=(*items, drawn)))
    assert choice.has_gap
    bar = ChoiceBar(theme_for("light"))
    shown(qtbot, bar)
    bar.show_choice(choice, animate=False)
    (left, width), (last, _) = bar.spans()[-2:]
    assert last - (left + width) == pytest.approx(GAP_WIDTH)
    assert not stage_content.choice_distribution(replace(event, id=1, rank=1, alternatives=(*items, drawn))).has_gap


def test_unanimated_choice_shows_final_state_immediately(qtbot: QtBot) -> None:
    bar = ChoiceBar(theme_for("light"))
    shown(qtbot, bar)
    bar.show_choice(THREE, animate=True)
    pause_at(bar, 0.1)
    bar.show_choice(THREE._replace(chosen=0), animate=False)
    assert bar.progress == 1.0
    assert bar.probabilities() == THREE.stages[-1]
    assert bar.animation.duration() <= 300


def test_beam_rows_move_from_previous_positions(qtbot: QtBot) -> None:
    ladder = BeamLadder(theme_for("dark"))
    shown(qtbot, ladder)
    ladder.show_beams([BeamRow(1, 0, "a", "−1"), BeamRow(2, 0, "b", "−2")], animate=False)
    ladder.show_beams(
        [BeamRow(3, 2, "b b", "−2"), BeamRow(4, 1, "a a", "−3"), BeamRow(5, 1, "a c", "−4")], animate=True
    )
    pause_at(ladder, 0.0)
    assert ladder.row_positions() == [1.0, 0.0, 0.0]
    pause_at(ladder, 0.2)
    overtaking = ladder.row_positions()
    assert 0 < overtaking[0] < 1
    assert 0 < overtaking[1] < 1
    ladder.animation.stop()
    assert ladder.row_positions() == [0, 1, 2]
    assert not ladder.grab().isNull()


def test_draft_stamps_animate_in_sequence(qtbot: QtBot) -> None:
    stamps = DraftStamps(theme_for("light"))
    shown(qtbot, stamps)
    chips = [
        DraftChip("one", "accepted"),
        DraftChip("two", "refused"),
        DraftChip("three", "unreached"),
        DraftChip("four", "correction"),
    ]
    stamps.show_chips(chips, animate=True)
    pause_at(stamps, 0.15)
    first, second = stamps.stamp_progress(0), stamps.stamp_progress(1)
    assert first == 1.0
    assert 0 < second < 1
    assert stamps.stamp_progress(3) == 0.0
    assert not stamps.grab().isNull()
    stamps.animation.stop()
    assert [stamps.stamp_progress(place) for place in range(4)] == [1.0] * 4


def test_choice_distribution_has_probabilities_of_token() -> None:
    chosen = token(3, " fox", 0.3, 2)
    reported = stage_content.choice_distribution(chosen)
    own = {item.id: item for item in chosen.alternatives}
    assert reported.stages[0][reported.chosen] == own[chosen.id].raw_probability
    assert reported.stages[-1][reported.chosen] == own[chosen.id].probability
    assert reported.is_sampled
    assert not stage_content.choice_distribution(token(3, " fox", method="greedy")).is_sampled


@pytest.fixture
def window(qtbot: QtBot, config_dir: Path) -> MainWindow:
    window = open_window(qtbot, config_dir)
    run(qtbot, window)
    window.parts.presentation.enter()
    window.parts.presentation.presenter.go_to(3)
    window.parts.presentation.presenter.update_stage()
    return window


def test_only_next_step_at_slow_pace_is_animated(window: MainWindow) -> None:
    presenter, stored = window.parts.presentation.presenter, window.parts.settings.appearance
    bar = presenter.choices.bar

    def moves_at(place: int) -> bool:
        bar.animation.stop()
        presenter.go_to(place)
        presenter.update_stage()
        return bar.animation.state() == QVariantAnimation.State.Running

    assert bar.animation.state() == QVariantAnimation.State.Stopped
    assert moves_at(4)
    assert not moves_at(3)
    assert not moves_at(8)
    stored.animated = False
    assert not moves_at(9)
    stored.animated = True
    presenter.playback.play()
    assert moves_at(10)
    presenter.playback.set_pace(8.0)
    assert not moves_at(11)


def test_reduced_motion_of_desktop_disables_animations(monkeypatch: pytest.MonkeyPatch, qtbot: QtBot) -> None:
    monkeypatch.delenv(motion.REDUCED_MOTION_VARIABLE)
    monkeypatch.setattr(sys, "platform", "linux")
    for answer, reduces in (("false", True), ("true", False), ("", False)):
        motion.prefers_reduced_motion.cache_clear()
        monkeypatch.setattr(motion, "_command_output", lambda command, answer=answer: answer)
        assert motion.prefers_reduced_motion() is reduces
    monkeypatch.setenv(motion.REDUCED_MOTION_VARIABLE, "1")
    motion.prefers_reduced_motion.cache_clear()
    assert motion.prefers_reduced_motion()
    settings = StageSettings(AppearanceSection())
    qtbot.addWidget(settings)
    assert not settings.animated.isEnabled()
    assert "Reduced motion" in settings.animated.accessibleDescription()


def test_sounds_play_only_when_enabled(qtbot: QtBot, window: MainWindow, monkeypatch: pytest.MonkeyPatch) -> None:
    played: list[str] = []
    monkeypatch.setattr(CuePlayer, "play", lambda _self, name: played.append(name))
    controller, stored, presenter = (
        window.parts.sounds,
        window.parts.settings.appearance,
        window.parts.presentation.presenter,
    )
    held = window.session.run
    assert held is not None
    presenter.go_to(held.length - 1)
    presenter.update_stage()
    presenter.go_to(held.length)
    presenter.update_stage()
    assert played == []
    stored.sounds = True
    controller.follow_settings()
    presenter.go_to(held.length - 1)
    presenter.update_stage()
    presenter.go_to(held.length)
    presenter.update_stage()
    assert played == ["finished"]
    window.parts.presentation.leave()
    run(qtbot, window)
    assert played == ["finished", "finished"]
    stored.sounds = False
    controller.follow_settings()
    run(qtbot, window)
    assert len(played) == 2


def test_missing_sound_player_is_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sound_player, "player_command", lambda: ("no-such-player",))
    started: list[bool] = []
    begin = sound_player._start_detached
    monkeypatch.setattr(sound_player, "_start_detached", lambda command: started.append(begin(command)))
    sound = CuePlayer()
    for name in CUES:
        sound.play(name)
    assert started == [False]


def test_sound_unsupported_reason_names_missing_player(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sound_player.shutil, "which", lambda name: None)
    assert "paplay" in sound_unsupported_reason("linux")
    assert player_command("linux") == ()
    assert sound_unsupported_reason("win32") == ""
    monkeypatch.setattr(sound_player.shutil, "which", lambda name: f"/usr/bin/{name}" if name == "aplay" else None)
    assert sound_unsupported_reason("linux") == ""
    assert player_command("linux") == ("aplay", "-q")
