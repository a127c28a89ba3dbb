"""Chinese, emoji, Arabic, Hebrew: tokens are at their letters, nothing is cut, and the reading direction is right."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import pytest
from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QFontMetricsF, QImage, QPainter, QTextLayout
from pytestqt.qtbot import QtBot

from decodescope.app.state.conversation import ConversationTurn
from decodescope.app.theme.theme import theme_for
from decodescope.app.views.chat.bubbles import Bubble, plain_document
from decodescope.app.views.text.column import TokenColumn
from decodescope.app.views.text.line_flow import LineFlow, ShapedLine
from decodescope.app.views.tree.displayed_tree import PathLine
from decodescope.app.widgets.tree_canvas.geometry import TreeMetrics as TreeMetrics
from decodescope.app.widgets.tree_canvas.node_painting import NodePainter
from decodescope.app.widgets.tree_canvas.tree_model import TreeNode
from decodescope.app.widgets.tree_canvas.tree_style import TreeStyle
from tests.fonts import SCRIPTS, TestFont
from tests.ui.scripted import prompt_tokens, token

ZWJ = "\u200d"
WHOLE = {
    "family": ("👩", ZWJ, "👩", ZWJ, "👧"),
    "skin": ("👍", "🏽"),
    "flag": ("🇩", "🇪"),
    "accent": ("e", "\u0301"),
    "key cap": ("1", "\ufe0f\u20e3"),
    "Hebrew point": ("ב", "\u05bc"),
    "Arabic vowel": ("م", "\u064e"),
}
MIXED = (
    "abc مرحبا بالعالم! and שלום עולם back",
    "مرحبا abc في 2024 عام",
    "שלום world, (בדיקה) end",
    "א 👍🏽 fi 日本 ב",
)
WRITTEN = (
    "从前，有一只小兔子。它住在森林里。", "日本語のテキスト", "한국어 문장", "👩\u200d👩\u200d👧\u200d👦👍🏽🇩🇪😀",
    "مرحبا بالعالم", "שלום עולם", "Ấ Ṹ Ǘ ắ", "ĄÇŞ ģþ",
)  # fmt: skip

RETRIEVED = QTextLayout.GlyphRunRetrievalFlag.DefaultRetrievalFlags


def line_of(text: str, width: float = 900) -> ShapedLine:
    flow = LineFlow(theme_for("light").font(18), width)
    flow.update(text)
    return ShapedLine(text, flow.rows[0], flow)


@pytest.mark.parametrize("parts", WHOLE.values(), ids=WHOLE)
@pytest.mark.parametrize("around", [("a", "b"), ("ש", "ל")], ids=["left", "right"])
def test_tokens_of_one_character_divide_its_width(
    qtbot: QtBot, parts: tuple[str, ...], around: tuple[str, str]
) -> None:
    text = "".join((around[0], *parts, around[1]))
    line, ends = line_of(text), [1]
    for part in parts:
        ends.append(ends[-1] + len(part))
    spans = [line.spans(start, end) for start, end in pairwise(ends)]
    assert all(len(found) == 1 and found[0][1] - found[0][0] > 1 for found in spans)
    ((left, right),) = line.spans(1, ends[-1])
    inside = sorted(found[0] for found in spans)
    assert inside[0][0] == pytest.approx(left, abs=0.1)
    assert inside[-1][1] == pytest.approx(right, abs=0.1)
    assert all(b == pytest.approx(a, abs=0.1) for (_, a), (b, _) in pairwise(inside))
    if around[0] == "a" and not "\u0590" <= parts[0] <= "\u08ff":
        assert inside == [found[0] for found in spans]


@pytest.mark.parametrize("text", MIXED)
def test_letters_of_mixed_direction_line_do_not_overlap(qtbot: QtBot, text: str) -> None:
    line = line_of(text)
    cells = sorted(line.spans(place, place + 1)[0] for place in range(len(text)))
    whole = line.line.naturalTextRect()
    assert cells[0][0] == pytest.approx(whole.left(), abs=1)
    assert cells[-1][1] == pytest.approx(whole.right(), abs=1)
    assert all(b == pytest.approx(a, abs=1) for (_, a), (b, _) in pairwise(cells))


def test_embedded_words_keep_their_direction(qtbot: QtBot) -> None:
    text = "שלום abc עולם"
    line = line_of(text)
    places = [line.spans(place, place + 1)[0][0] for place in range(len(text))]
    assert places[5] < places[6] < places[7]
    assert places[0] > places[1] > places[2] > places[3] > places[7]
    assert places[9] > places[10] > places[11] > places[12]
    assert places[9] < places[5]


def test_a_part_of_a_character_can_be_clicked(qtbot: QtBot) -> None:
    column = TokenColumn(theme_for("light"), 0, prompt_tokens(("a",)))
    column.set_geometry(0, 0, 500)
    pieces = ("👩", ZWJ, "👧", "!", " مر", "حبا", "c")
    column.sync([token(n, piece, 0.5) for n, piece in enumerate(pieces)], "", len(pieces))
    for number in range(len(pieces)):
        middle = column.rects(number)[0].center()
        assert column.token_at(middle.x(), middle.y()) == number


@pytest.mark.parametrize("scale", [1.0, 1.5, 2.0])
def test_every_script_fits_row_height(qtbot: QtBot, scale: float) -> None:
    theme = theme_for("light", scale)
    column = TokenColumn(theme, 0)
    column.set_geometry(0, 0, 2000)
    column.sync([token(n, f"{text}\n", 0.5) for n, text in enumerate(WRITTEN)], "", len(WRITTEN))
    for row, text in enumerate(WRITTEN):
        line = column.shaped_row(row).line
        ink = [run.boundingRect() for run in line.line.glyphRuns(-1, -1, RETRIEVED)]
        top = min(rect.top() for rect in ink) - line.ascent + column.metrics.baseline
        bottom = max(rect.bottom() for rect in ink) - line.ascent + column.metrics.baseline
        assert -1 <= top, f"{text} begins {-top:.0f} pixels above its row"
        assert bottom <= column.metrics.row + 1, f"{text} ends below its row"


def test_chat_message_paragraphs_follow_script_direction(qtbot: QtBot) -> None:
    font = theme_for("light").font(16)
    reported = plain_document("Hello\nمرحبا\nThis is a line that is longer than the others", font, 500)
    places = [reported.findBlockByNumber(n).layout().lineAt(0).naturalTextRect() for n in range(3)]
    assert places[0].left() == pytest.approx(0, abs=1)
    assert places[1].right() == pytest.approx(reported.textWidth(), abs=2)
    assert places[2].right() <= reported.textWidth()


def test_chinese_wraps_anywhere_but_not_inside_latin_words(qtbot: QtBot) -> None:
    text = "从前有一只叫做 Benjamin 的小兔子" * 8
    reported = plain_document(text, theme_for("light").font(16), 300)
    layout = reported.firstBlock().layout()
    lines = [layout.lineAt(n) for n in range(layout.lineCount())]
    assert len(lines) > 5
    starts = [text[line.textStart() - 1 : line.textStart() + 1] for line in lines[1:]]
    assert not [pair for pair in starts if pair.isascii() and pair.isalpha()]
    assert min(line.naturalTextWidth() for line in lines[:-1]) > 180


def test_chat_bubble_of_hebrew_is_as_wide_as_text(qtbot: QtBot) -> None:
    theme = theme_for("light")
    bubble = Bubble(ConversationTurn("user", "שלום"), theme)
    bubble.lay_out(0, 800, theme)
    assert bubble.rect.width() < 160
    assert bubble.rect.right() == 800


def highest_ink(image: QImage, left: float, right: float) -> int:
    """The first row that is written on between two columns."""
    return next(
        y
        for y in range(image.height())
        for x in range(int(left), int(right))
        if image.pixelColor(x, y).lightness() < 160
    )


def test_long_arabic_token_in_tree_is_elided_at_left(qtbot: QtBot) -> None:
    """The dots, which are low, stand at the left, where reading ends."""
    theme, metrics = theme_for("light"), TreeMetrics(1.0)
    image = QImage(300, 60, QImage.Format.Format_ARGB32)
    image.fill(0xFFFFFFFF)
    painter = QPainter(image)
    painter.setLayoutDirection(Qt.LayoutDirection.LeftToRight)  # as a widget's painter has it
    node, box = TreeNode(1, None, "ا" * 40, state="kept"), QRectF(0, 0, 120, metrics.height)
    NodePainter(theme, metrics).paint_content(painter, node, box, TreeStyle(theme), 1.0, False)
    painter.end()
    dots = 9 + QFontMetricsF(theme.font(13)).horizontalAdvance("…")
    assert highest_ink(image, 0, dots) > highest_ink(image, dots, 120) + 2


def test_path_line_joins_arabic_letters(qtbot: QtBot) -> None:
    line = PathLine()
    qtbot.addWidget(line)
    line.set_theme(theme_for("light"))
    line.resize(400, 32)
    line.show_text("بال", "عالم")
    theme = theme_for("light")
    layout = line._make_layout(line.before, theme.font(13), theme.font(13, 600))
    assert layout.text() == "بالعالم"
    assert layout.lineAt(0).naturalTextRect().height() < 32


@pytest.mark.parametrize("script", SCRIPTS)
def test_font_for_script_is_installed(script: str, needs_font: Callable[[TestFont], None]) -> None:
    """A skip names the missing font; where `.ci/run` requires every tool, it is a failure."""
    needs_font(SCRIPTS[script])
    assert all(file.stat().st_size for file in SCRIPTS[script].found())
