"""Painting of the token view: underlines, cursor, themes, an empty page; only changed parts are painted again."""

from dataclasses import replace

import pytest
from PySide6.QtCore import QEvent, QObject, QPoint, QRect, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QFontMetricsF, QImage, QPainter, QRegion
from PySide6.QtWidgets import QApplication, QWidget
from pytestqt.qtbot import QtBot

from decodescope.app.theme.theme import theme_for
from decodescope.app.views.shared.empty_page import button_top, title_and_hint_rects
from decodescope.app.views.text.row_painting import COLOURINGS, SCORES, underline_thickness
from decodescope.app.views.text.token_decorations import paint_origin_underline
from decodescope.app.views.tokens.token_headings import empty_title_and_hint
from decodescope.app.views.tokens.view import TokenView
from tests.ui.scripted import make_run, story, token
from tests.ui.token_reader import TokenViewSession, opened


@pytest.fixture
def view(qtbot: QtBot) -> TokenView:
    return opened(qtbot)


def _underline(reader: TokenViewSession, index: int) -> QColor:
    image, rect = reader.image(), reader.view.token_rect(index)
    ratio = image.devicePixelRatio()
    x = round((rect.left() + rect.width() / 2) * ratio)
    return image.pixelColor(x, round((rect.top() + 27) * ratio))


@pytest.mark.parametrize("name", ["probability", "rank", "entropy"])
def test_underline_color_follows_score(view: TokenView, name: str) -> None:
    chosen = [token(0, " rare", 0.02, 40, entropy=4.0), token(1, " sure", 0.99, 1, entropy=0.01)]
    reader = TokenViewSession(view, make_run([*chosen, token(2, ".")], finished=True))
    view.set_colouring(name)
    for index, item in enumerate(chosen):
        assert _underline(reader, index).name() == theme_for("light").ramp(SCORES[name](item)).name()


def _pattern(origin: str) -> bytes:
    """Return which pixels of an underline are painted, in any colour."""
    image = QImage(48, 8, QImage.Format.Format_ARGB32)
    image.fill(Qt.GlobalColor.transparent)
    painter = QPainter(image)
    paint_origin_underline(painter, QRectF(0, 0, 48, 0), origin, theme_for("light"))
    painter.end()
    return bytes(image.pixelColor(x, y).alpha() > 127 for y in range(8) for x in range(48))


def test_token_origins_have_distinct_patterns(qapp: QApplication) -> None:
    assert len({_pattern(origin) for origin in ("draft", "correction", "bonus", "target")}) == 4


def test_drafted_token_underline_has_kept_color(view: TokenView) -> None:
    drafted = replace(token(0, " word"), origin="draft")
    reader = TokenViewSession(view, make_run([drafted, token(1, ".")], finished=True))
    view.set_colouring("origin")
    assert _underline(reader, 0).name() == theme_for("light").kept


@pytest.mark.parametrize("index", range(1, 6))
def test_outline_of_the_selected_token_leaves_its_neighbours_as_they_are(view: TokenView, index: int) -> None:
    pieces = ("So", " ra", "ff", "W", "ia", " jog", "s")
    reader = TokenViewSession(view, make_run([token(n, piece, 0.5) for n, piece in enumerate(pieces)], finished=True))
    view.set_colouring("none")
    image, ratio = reader.image(), view.devicePixelRatioF()
    reader.select(index)
    outlined, box = reader.image(), view.token_rect(index)
    changed = {(x, y) for x in range(image.width()) for y in range(image.height())
               if image.pixel(x, y) != outlined.pixel(x, y)}  # fmt: skip
    assert changed
    assert min(x for x, _ in changed) >= (box.left() - 1) * ratio
    assert max(x for x, _ in changed) <= (box.right() + 1) * ratio


def test_coloring_none_draws_no_underline(view: TokenView) -> None:
    reader = TokenViewSession(view, make_run([token(0, " rare", 0.02), token(1, ".")], finished=True))
    view.set_colouring("none")
    assert _underline(reader, 0).name() == theme_for("light").window


def test_scores_and_underline_thickness_follow_certainty() -> None:
    unsure, sure = token(0, "a", 0.001, 2000, entropy=6.0), token(0, "a", 1.0, 1, entropy=0.0)
    for score in SCORES.values():
        assert 0.0 <= score(unsure) < 0.05
        assert score(sure) == pytest.approx(1.0)
    assert underline_thickness(0.0) > underline_thickness(0.5) > underline_thickness(1.0) >= 1.5
    others = {"none", "origin", "difference", "watermark", "influence"}
    assert set(SCORES) | others == set(COLOURINGS)


def test_the_tools_change_the_colouring_and_show_white_space(view: TokenView) -> None:
    reader = TokenViewSession(view, make_run(story(30), finished=True))
    tools = view.header_widget()
    plain, places = reader.image(), [view.token_rect(index) for index in range(30)]
    tools.whitespace.click()
    assert reader.image() != plain
    assert [view.token_rect(index) for index in range(30)] == places
    tools.whitespace.click()
    assert reader.image() == plain
    rank = next(action for action in tools.colour.menu().actions() if action.data() == "rank")
    rank.trigger()
    assert "rank" in tools.colour.text()
    assert reader.image() != plain


def test_tokens_after_cursor_are_not_painted(view: TokenView) -> None:
    reader = TokenViewSession(view, make_run(story(30), finished=True))
    run = reader.run
    whole = reader.image()
    run.move_cursor(3)
    view.cursor_moved(run)
    assert view.token_rect(2).isValid()
    rect = view.token_rect(1).translated(0, 2 * view.token_rect(1).height())
    assert reader.image().pixelColor(rect.center()).name() == theme_for("light").window
    reader.key(Qt.Key.Key_End)
    assert reader.picked == [2]
    run.move_cursor(30)
    view.cursor_moved(run)
    run.select(None)
    view.selection_changed(run)
    assert reader.image() == whole


def test_the_newest_token_is_tinted_until_the_run_ends(view: TokenView) -> None:
    running, ended = make_run([token(0, " mmm"), token(1, " fox")]), None
    reader = TokenViewSession(view, running)
    place = view.token_rect(1).topLeft() + QPoint(3, 4)
    assert reader.image().pixelColor(place).name() == theme_for("light").tint
    ended = make_run([token(0, " mmm"), token(1, " fox")], finished=True)
    assert TokenViewSession(view, ended).image().pixelColor(place).name() == theme_for("light").window


def test_theme_and_font_size_change_is_applied_immediately(view: TokenView) -> None:
    reader = TokenViewSession(view, make_run(story(30)))
    small = view.token_rect(0)
    view.set_theme(theme_for("dark", 1.5))
    assert reader.image().pixelColor(2, 2).name() == theme_for("dark").window
    assert view.token_rect(0).height() >= small.height() * 1.4


class PaintWatch(QObject):
    """Records which parts of a widget are painted."""

    def __init__(self, widget: QWidget) -> None:
        super().__init__(widget)
        self.region = QRegion()
        widget.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.Paint:
            self.region = self.region.united(event.region())
        return False


def test_streaming_repaints_only_changed_region(view: TokenView) -> None:
    reader = TokenViewSession(view, make_run(story(60)))
    before = reader.image()
    watch = PaintWatch(view.area.viewport())
    partly = 0
    for chosen in story(40):
        watch.region = QRegion()
        reader.write([chosen])
        QApplication.processEvents()
        painted = QRegion(watch.region)
        partly += painted.boundingRect() != view.area.viewport().rect()
        after = reader.image()
        wide = after.width()
        changed = [y for y in range(0, after.height(), 2) if before.copy(0, y, wide, 1) != after.copy(0, y, wide, 1)]
        ratio = after.devicePixelRatio()
        assert all(painted.boundingRect().top() <= y / ratio <= painted.boundingRect().bottom() for y in changed)
        before = after
    assert partly > 20


def test_empty_page_shows_hint(view: TokenView) -> None:
    blank = QImage(QSize(1, 1), QImage.Format.Format_RGB32)
    blank.fill(QColor(theme_for("light").window))
    view.show_run(None)
    image = view.area.viewport().grab().toImage()
    colors = {image.pixelColor(x, y).name() for x in range(0, image.width(), 3) for y in range(0, image.height(), 3)}
    assert len(colors) > 5
    reader = TokenViewSession(view, make_run(story(3)))
    view.show_run(None)
    reader.key(Qt.Key.Key_Left)
    assert reader.picked == []


def test_only_visible_rows_of_long_text_are_shaped(view: TokenView) -> None:
    reader = TokenViewSession(view, make_run(story(10_000)))
    column = view.area.page.columns[0]
    column._shaped_rows.clear()
    view.area.verticalScrollBar().setValue(view.area.verticalScrollBar().maximum() // 2)
    reader.image()
    seen = view.area.viewport().height() // column.metrics.row
    assert 0 < len(column._shaped_rows) <= seen + 3


@pytest.mark.parametrize(("width", "height", "scale"), [(326, 300, 1.5), (800, 500, 1.0)])
def test_empty_page_title_and_hint_do_not_overlap(width: int, height: int, scale: float) -> None:
    """Also where the title takes two lines; the button below the hint is within the page."""
    area, theme = QRect(0, 0, width, height), theme_for("light", scale)
    reported = empty_title_and_hint(None)
    title, hint = title_and_hint_rects(area, theme, reported)
    for place, font, words in zip((title, hint), (theme.font(18, 600), theme.font(13)), reported, strict=True):
        wraps = int(Qt.TextFlag.TextWordWrap)
        assert (
            QFontMetricsF(font).boundingRect(QRectF(0, 0, place.width(), 9999), wraps, words).height() <= place.height()
        )
    assert area.top() <= title.top()
    assert title.bottom() <= hint.top()
    assert button_top(area, theme, reported) + theme.px(32) <= area.bottom()
