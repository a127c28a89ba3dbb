"""A paragraph of any length is broken into lines at a cost that grows with its length and no faster."""

from __future__ import annotations

from typing import Any

import pytest
from PySide6.QtGui import QTextLayout, QTextOption
from pytestqt.qtbot import QtBot

from decodescope.app.panels.prompt_panel import PromptPanel
from decodescope.app.theme.fonts import make_font
from decodescope.app.views.text import line_flow
from decodescope.app.views.text.line_flow import LineFlow
from decodescope.app.widgets.text_documents import wrap_mode


@pytest.mark.usefixtures("qtbot")
@pytest.mark.parametrize("unit", ["x", "word ", "日本語", "слово, ", "a\u0301", "😀"])
def test_long_paragraph_is_laid_out_in_pieces(unit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As Qt breaks it in one; and no piece that Qt gets is longer than a few thousand characters."""
    text = unit * (12_000 // len(unit))
    pieces: list[int] = []

    class Noted(QTextLayout):
        def __init__(self, piece: str, *rest: Any) -> None:
            pieces.append(len(piece))
            super().__init__(piece, *rest)

    def starts(most: int) -> list[int]:
        monkeypatch.setattr(line_flow, "_MAX_CHUNK", most)
        broken = LineFlow(make_font(13), 400.0)
        broken.update(text)
        return [row.start for row in broken.rows]

    whole = starts(100_000)
    monkeypatch.setattr(line_flow, "QTextLayout", Noted)
    assert starts(1000) == whole
    assert len(whole) > 50
    assert max(pieces) <= 1500
    assert sum(pieces) <= 2 * len(text)


@pytest.mark.usefixtures("qtbot")
def test_text_of_one_long_word_is_laid_out() -> None:
    broken = LineFlow(make_font(13), 400.0)
    broken.update("x" * 300_000)
    starts = [row.start for row in broken.rows]
    assert starts == sorted(set(starts))
    assert broken.rows[-1].end == 300_000


@pytest.mark.parametrize(
    ("text", "anywhere"),
    [("x" * 5000, True), ("a " + "x" * 6000 + " b", True), ("word " * 5000, False), ("日本語" * 5000, False),
     ("x" * 4999, False)],
)  # fmt: skip
def test_wrap_anywhere_only_for_very_long_words(text: str, anywhere: bool) -> None:
    assert (wrap_mode(text) == QTextOption.WrapMode.WrapAnywhere) == anywhere


def test_prompt_editor_wraps_single_long_word_anywhere(qtbot: QtBot) -> None:
    panel = PromptPanel([])
    qtbot.addWidget(panel)
    for text, mode in (("x" * 200_000, "WrapAnywhere"), ("Once upon a time", "WrapAtWordBoundaryOrAnywhere")):
        panel.set_prompt(text)
        assert panel.editor.toPlainText() == text
        assert panel.editor.wordWrapMode() == getattr(QTextOption.WrapMode, mode)
