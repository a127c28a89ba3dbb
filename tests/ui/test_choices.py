"""Choices seen happening: the funnel closes, the ball falls, beams overtake each other, drafts are stamped. No waiting:
the tests move the clock."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from PySide6.QtCore import QVariantAnimation
from pytestqt.qtbot import QtBot

from app.control.stage import choice_display
from app.panels.stage.stage_settings import StageSettings
from app.storage.settings import Appearance
from app.theme.theme import theme_for
from app.widgets import sound_player
from app.widgets.animation import allowed
from app.widgets.animation.choice_bar import FALL, ChoiceBar, ChoiceDistribution
from app.widgets.animation.ladder import Ladder, Rung
from app.widgets.animation.motion import DURATION, Animated
from app.widgets.animation.stamps import Chip, Stamps
from app.widgets.sound_player import CUES, Cues, player, why_silent
from app.window.main_window import MainWindow
from tests.ui.scripted import token
from tests.ui.windows import open_window, run

THREE = ChoiceDistribution(
    ("fox", "girl", "bear"), ((0.4, 0.3, 0.1), (0.5, 0.3, 0.0), (0.6, 0.4, 0.0)), 1, by_chance=True
)


@pytest.fixture(autouse=True)
def _asked_for_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the desktop of this machine says."""
    allowed.system_reduces.cache_clear()
    monkeypatch.setenv(allowed.REDUCED, "0")


def shown(qtbot: QtBot, widget: Animated) -> Animated:
    qtbot.addWidget(widget)
    widget.resize(600, 60)
    return widget


def hold(widget: Animated, share: float) -> None:
    """Stop the clock at that share of the motion."""
    widget.motion.pause()
    widget.motion.setCurrentTime(round(DURATION * share))


def test_the_funnel_closes_and_the_ball_falls(qtbot: QtBot) -> None:
    bar = ChoiceBar(theme_for("light"))
    shown(qtbot, bar)
    bar.show_choice(THREE, moves=True)
    assert bar.motion.state() == QVariantAnimation.State.Running
    hold(bar, 0.0)
    assert bar.shares() == THREE.stages[0]
    above = bar.ball().y()
    hold(bar, 0.06)
    assert THREE.stages[0][0] < bar.shares()[0] < THREE.stages[-1][0]
    hold(bar, 0.9)
    assert bar.shares() == pytest.approx(THREE.stages[-1])
    assert above < bar.ball().y()
    bar.motion.stop()
    left, width = bar.spans()[THREE.chosen]
    assert left < bar.ball().x() < left + width
    assert bar.ball().y() == FALL
    assert not bar.grab().isNull()


def test_the_next_step_does_not_wait_and_stillness_shows_the_end(qtbot: QtBot) -> None:
    bar = ChoiceBar(theme_for("light"))
    shown(qtbot, bar)
    bar.show_choice(THREE, moves=True)
    hold(bar, 0.1)
    bar.show_choice(THREE._replace(chosen=0), moves=False)
    assert bar.progress == 1.0
    assert bar.shares() == THREE.stages[-1]
    assert bar.motion.duration() <= 300


def test_beams_glide_from_where_they_stood(qtbot: QtBot) -> None:
    ladder = Ladder(theme_for("dark"))
    shown(qtbot, ladder)
    ladder.show_rungs([Rung(1, 0, "a", "−1"), Rung(2, 0, "b", "−2")], moves=False)
    ladder.show_rungs([Rung(3, 2, "b b", "−2"), Rung(4, 1, "a a", "−3"), Rung(5, 1, "a c", "−4")], moves=True)
    hold(ladder, 0.0)
    assert ladder.places() == [1.0, 0.0, 0.0]
    hold(ladder, 0.2)
    overtaking = ladder.places()
    assert 0 < overtaking[0] < 1
    assert 0 < overtaking[1] < 1
    ladder.motion.stop()
    assert ladder.places() == [0, 1, 2]
    assert not ladder.grab().isNull()


def test_stamps_come_down_one_after_another(qtbot: QtBot) -> None:
    stamps = Stamps(theme_for("light"))
    shown(qtbot, stamps)
    chips = [Chip("one", "accepted"), Chip("two", "refused"), Chip("three", "unreached"), Chip("four", "correction")]
    stamps.show_chips(chips, moves=True)
    hold(stamps, 0.15)
    first, second = stamps.stamped(0), stamps.stamped(1)
    assert first == 1.0
    assert 0 < second < 1
    assert stamps.stamped(3) == 0.0
    assert not stamps.grab().isNull()
    stamps.motion.stop()
    assert [stamps.stamped(place) for place in range(4)] == [1.0] * 4


def test_the_bars_shares_are_the_tokens_own() -> None:
    chosen = token(3, " fox", 0.3, 2)
    told = choice_display.choice_of(chosen)
    own = {item.id: item for item in chosen.alternatives}
    assert told.stages[0][told.chosen] == own[chosen.id].raw_probability
    assert told.stages[-1][told.chosen] == own[chosen.id].probability
    assert told.by_chance
    assert not choice_display.choice_of(token(3, " fox", method="greedy")).by_chance


@pytest.fixture
def window(qtbot: QtBot, config_dir: Path) -> MainWindow:
    window = open_window(qtbot, config_dir)
    run(qtbot, window)
    window.parts.stage.enter()
    window.parts.stage.presenter.go_to(3)
    window.parts.stage.presenter.tell()
    return window


def test_only_the_next_step_moves_and_only_where_there_is_time(window: MainWindow) -> None:
    presenter, kept = window.parts.stage.presenter, window.parts.settings.appearance
    bar = presenter.choices.bar

    def moves_at(place: int) -> bool:
        bar.motion.stop()
        presenter.go_to(place)
        presenter.tell()
        return bar.motion.state() == QVariantAnimation.State.Running

    assert bar.motion.state() == QVariantAnimation.State.Stopped
    assert moves_at(4)
    assert not moves_at(3)
    assert not moves_at(8)
    kept.animated = False
    assert not moves_at(9)
    kept.animated = True
    presenter.playback.play()
    assert moves_at(10)
    presenter.playback.set_pace(8.0)
    assert not moves_at(11)


def test_the_desktop_can_ask_for_stillness(monkeypatch: pytest.MonkeyPatch, qtbot: QtBot) -> None:
    monkeypatch.delenv(allowed.REDUCED)
    monkeypatch.setattr(sys, "platform", "linux")
    for answer, reduces in (("false", True), ("true", False), ("", False)):
        allowed.system_reduces.cache_clear()
        monkeypatch.setattr(allowed, "_answer", lambda command, answer=answer: answer)
        assert allowed.system_reduces() is reduces
    monkeypatch.setenv(allowed.REDUCED, "1")
    allowed.system_reduces.cache_clear()
    assert allowed.system_reduces()
    settings = StageSettings(Appearance())
    qtbot.addWidget(settings)
    assert not settings.animated.isEnabled()
    assert "less motion" in settings.animated.accessibleDescription()


def test_sounds_are_off_until_asked_for_and_never_trouble(
    qtbot: QtBot, window: MainWindow, monkeypatch: pytest.MonkeyPatch
) -> None:
    played: list[str] = []
    monkeypatch.setattr(Cues, "play", lambda _self, name: played.append(name))
    controller, kept, presenter = window.parts.cues, window.parts.settings.appearance, window.parts.stage.presenter
    held = window.session.run
    assert held is not None
    presenter.go_to(held.length - 1)
    presenter.tell()
    presenter.go_to(held.length)
    presenter.tell()
    assert played == []
    kept.sounds = True
    controller.follow_settings()
    presenter.go_to(held.length - 1)
    presenter.tell()
    presenter.go_to(held.length)
    presenter.tell()
    assert played == ["finished"]
    window.parts.stage.leave()
    run(qtbot, window)
    assert played == ["finished", "finished"]
    kept.sounds = False
    controller.follow_settings()
    run(qtbot, window)
    assert len(played) == 2


def test_a_player_that_is_gone_is_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sound_player, "player", lambda: ("no-such-player",))
    started: list[bool] = []
    begin = sound_player._start
    monkeypatch.setattr(sound_player, "_start", lambda command: started.append(begin(command)))
    sound = Cues()
    for name in CUES:
        sound.play(name)
    assert started == [False]


def test_why_no_sound_can_be_heard(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sound_player.shutil, "which", lambda name: None)
    assert "paplay" in why_silent("linux")
    assert player("linux") == ()
    assert why_silent("win32") == ""
    monkeypatch.setattr(sound_player.shutil, "which", lambda name: f"/usr/bin/{name}" if name == "aplay" else None)
    assert why_silent("linux") == ""
    assert player("linux") == ("aplay", "-q")
