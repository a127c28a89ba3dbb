"""Nothing is cut in full views, in dialogs and in messages, at 100 to 200 %: some cases here, all under `fuzz`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from decodescope.app.state.run import Run
from decodescope.app.window.main_window import MainWindow
from tests.app.test_cache_history import events, plan
from tests.ui.beams import beam_run, beam_steps
from tests.ui.dialogs import DIALOGS, dialog_of
from tests.ui.fake_engine import ScriptedEngine
from tests.ui.layout import faults, settle
from tests.ui.test_memory_view import ended
from tests.ui.test_speculation_view import a_run
from tests.ui.windows import open_window, run

SIZES = [((1280, 800), 1.0), ((1280, 800), 2.0), ((900, 600), 1.0), ((900, 600), 1.5), ((900, 600), 2.0)]
FULL: dict[str, Callable[[], Run]] = {
    "tree": lambda: beam_run(beam_steps(6), ranked=True),
    "speculation": a_run,
    "memory": lambda: ended(events(plan(9), 40)),
}
Size = tuple[int, int]


def opened(qtbot: QtBot, folder: Path, size: Size, scale: float) -> MainWindow:
    window = open_window(qtbot, folder, ScriptedEngine())
    window.parts.appearance.set_font_scale(scale)
    window.resize(*size)
    settle(window)
    return window


def whole(window: MainWindow, where: str) -> None:
    settle(window)
    assert "\n".join(faults(window)) == "", where


def check(qtbot: QtBot, folder: Path, size: Size, scale: float) -> None:
    """Every view with something in it, a chat, a comparison, every dialog, a long message."""
    window = opened(qtbot, folder, size, scale)
    for view, made in FULL.items():
        assert window.session.show(made())
        window.parts.centre.show_view(view)
        whole(window, view)
        window.session.select_token(2)
        whole(window, f"{view}, a token picked")
    window.parts.setup.prompt.mode.button("chat").click()
    for words in ("Tell me a story about a fox.", "What happened next? " * 9):
        window.parts.setup.prompt.editor.setPlainText(words)
        run(qtbot, window)
    whole(window, "chat")
    for kind in DIALOGS:
        with dialog_of(qtbot, window, kind) as dialog:
            settle(dialog)
            assert "\n".join(faults(dialog)) == "", kind
            assert dialog.width() <= max(1280, size[0]), kind
            assert dialog.height() <= 800, kind
    banner = window.parts.centre.error_banner
    banner.show_message("The prompt cannot be used", "It has 3,602 tokens, 1,554 more than the model's context of "
                        "2,048.", "Shorten it, or choose another model.", "line\n" * 40,
                        [("allow", "Allow for this model"), ("other", "Use its settings")])  # fmt: skip
    whole(window, "an error")
    place = banner.close_button.mapTo(window, banner.close_button.rect().bottomRight())
    assert window.rect().contains(place), "the message cannot be closed"


@pytest.mark.every(3)
@pytest.mark.parametrize(("size", "scale"), [((900, 600), 1.5), ((900, 600), 2.0), ((1280, 800), 2.0)])
def test_full_views_are_not_clipped(qtbot: QtBot, config_dir: Path, size: Size, scale: float) -> None:
    check(qtbot, config_dir, size, scale)


@pytest.mark.fuzz
@pytest.mark.parametrize("case", SIZES)
def test_full_views_are_not_clipped_at_any_size(qtbot: QtBot, config_dir: Path, case: tuple[Size, float]) -> None:
    check(qtbot, config_dir, *case)
