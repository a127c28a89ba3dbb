"""Welcome page over the empty window: a sentence about the program, the question which words it should use, and four
ways to start.
"""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QEvent, QObject, QRect, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QFontMetrics, QKeyEvent, QPainter, QPaintEvent, QPen, QResizeEvent
from PySide6.QtWidgets import (
    QButtonGroup,
    QFrame,
    QGridLayout,
    QHBoxLayout,
    QPushButton,
    QScrollArea,
    QSizePolicy,
    QVBoxLayout,
    QWidget,
)

from decodescope.app.state.wording_sample import explain_sample
from decodescope.app.theme.theme import Theme
from decodescope.app.theme.themed import Themed
from decodescope.app.widgets import icons
from decodescope.app.widgets.building import STRETCH, Gap, arrange, set_up
from decodescope.app.widgets.labels import WrappedLabel
from decodescope.app.widgets.plain_text import PlainLabel
from decodescope.resources.depth import EXACT, PLAIN
from decodescope.resources.language import tr

SIDE, ABOVE, ICON, GAP, BETWEEN, RADIUS = 18, 14, 22, 16, 3, 10
"""Pixels at 100 %: padding, icon size, gaps and corner radius."""
_STEPS = {Qt.Key.Key_Down: 1, Qt.Key.Key_Right: 1, Qt.Key.Key_Up: -1, Qt.Key.Key_Left: -1}


class WelcomeButton(Themed, QPushButton):
    """Button whose height follows its description; arrow keys move to the next button."""

    def __init__(self, name: str, icon: str, title: str, about: str, parent: QWidget) -> None:
        super().__init__(title, parent)
        set_up(self, name=name, accessible_name=title, description=about)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.MinimumExpanding)
        self._icon, self._about = icon, about

    def restyle(self, theme: Theme) -> None:
        self._refit()
        self.update()

    def sizeHint(self) -> QSize:
        return QSize(320, self.minimumHeight())

    def minimumSizeHint(self) -> QSize:
        return QSize(160, self.minimumHeight())

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._refit()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Press the button on Enter, and move between buttons with the arrow keys."""
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self.click()
        elif (by := _STEPS.get(Qt.Key(event.key()))) is not None:
            self._focus_neighbour(by)
        else:
            super().keyPressEvent(event)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        self._paint_background(painter, self._theme)
        self._paint_texts(painter, self._theme)

    def _paint_background(self, painter: QPainter, theme: Theme) -> None:
        lively = self.underMouse() or self.isDown()
        focused = self.hasFocus()
        painter.setPen(QPen(theme.color("accent" if focused or self.isChecked() else "line"), 2 if focused else 1))
        painter.setBrush(theme.color("tint" if focused or self.isChecked() else "hover" if lively else "panel"))
        radius = theme.px(RADIUS)
        painter.drawRoundedRect(QRectF(self.rect()).adjusted(1, 1, -1, -1), radius, radius)

    def _paint_texts(self, painter: QPainter, theme: Theme) -> None:
        side, top, room = theme.px(ICON), theme.space(ABOVE), self._text_rect(theme)
        mark = QRectF(theme.space(SIDE), top, side, side)
        if self._icon:
            icons.paint_icon(painter, self._icon, theme.accent, mark)
        else:
            _paint_choice_mark(painter, theme, mark, self.isChecked())
        title = theme.font(15, 600)
        height = QFontMetrics(title).lineSpacing()
        painter.setFont(title)
        painter.setPen(theme.color("text"))
        painter.drawText(QRect(room.left(), top, room.width(), height), Qt.AlignmentFlag.AlignVCenter, self.text())
        painter.setFont(theme.font(13))
        painter.setPen(theme.color("muted"))
        below = top + height + theme.px(BETWEEN)
        rest = QRect(room.left(), below, room.width(), self.height() - below)
        painter.drawText(rest, int(Qt.TextFlag.TextWordWrap), self._about)

    def _text_rect(self, theme: Theme) -> QRect:
        """Return the rectangle for the texts, with unlimited height."""
        left = theme.space(SIDE) + theme.px(ICON) + theme.px(GAP)
        return QRect(left, 0, max(1, self.width() - left - theme.space(SIDE)), 10_000)

    def _refit(self) -> None:
        theme = self._theme
        metrics = QFontMetrics(theme.font(13))
        about = metrics.boundingRect(self._text_rect(theme), int(Qt.TextFlag.TextWordWrap), self._about).height()
        title = QFontMetrics(theme.font(15, 600)).lineSpacing()
        height = 2 * theme.space(ABOVE) + title + theme.px(BETWEEN) + about
        if height != self.minimumHeight():
            self.setMinimumHeight(height)

    def _focus_neighbour(self, by: int) -> None:
        page = self.parentWidget()
        ways = [way for way in page.findChildren(WelcomeButton) if way.isVisible()] if page is not None else [self]
        ways[(ways.index(self) + by) % len(ways)].setFocus(Qt.FocusReason.TabFocusReason)


def _paint_choice_mark(painter: QPainter, theme: Theme, rect: QRectF, is_checked: bool) -> None:
    """Paint the circle of a choice, filled if it is chosen."""
    width = theme.px(16)
    circle = QRectF(0, 0, width, width)
    circle.moveCenter(rect.center())
    painter.setPen(QPen(theme.color("accent" if is_checked else "muted"), theme.scale * 1.5))
    painter.setBrush(Qt.BrushStyle.NoBrush)
    painter.drawEllipse(circle)
    if is_checked:
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(theme.color("accent"))
        painter.drawEllipse(circle.adjusted(width / 4, width / 4, -width / 4, -width / 4))


TEXT_WIDTH, EDGE = 720, 24
"""Pixels at 100 %: width of the text column and the margin around it."""
SAMPLE = ((30, 0.95), (18, 0.8), (42, 0.5), (26, 0.25), (36, 0.05))
"""Sample underlines of the token view: (width, probability)."""


class UnderlineSample(Themed, QWidget):
    """Row of underlines from certain to unlikely, as the token view shows them for every token."""

    def restyle(self, theme: Theme) -> None:
        self.setFixedHeight(theme.px(10))

    def paintEvent(self, event: QPaintEvent) -> None:
        painter, theme, x = QPainter(self), self._theme, 0
        for width, score in SAMPLE:
            painter.fillRect(QRectF(x, 0, theme.px(width), theme.scale * (3 + 4 * (1 - score))), theme.ramp(score))
            x += theme.px(width + 5)


class WelcomePage(Themed, QFrame):
    """Page that covers `body`. Emits one signal for each way to start, and `skipped` when the user skips the page.

    The first start also shows the question which words the program should use: `wordingChosen(depth)`.
    """

    wordingChosen = Signal(str)
    storyRequested = Signal()
    lessonRequested = Signal()
    tourRequested = Signal()
    modelRequested = Signal()
    skipped = Signal()

    def __init__(self, body: QWidget) -> None:
        super().__init__(body)
        set_up(self, name="welcomePage", accessible_name=tr("Welcome"))
        self._body = body
        self._make_texts()
        self.wordings = self._make_wordings()
        self.buttons = self._make_buttons()
        self.skip = set_up(QPushButton(tr("Skip")), name="skipWelcome", role="quiet", clicked=self.skipped)
        self._hint = set_up(WrappedLabel(tr("Ctrl+K finds every command, including this page.")), role="muted")
        self._lay_out()
        body.installEventFilter(self)
        self.hide()

    def open(self, asks_wording: bool = False) -> None:
        """Show the page over everything else, with the focus on the first button; `asks_wording`: with the question
        which words the program should use.
        """
        for part in (self._question, *self.wordings.values(), self._note):
            part.setVisible(asks_wording)
        self.setGeometry(self._body.rect())
        self.show()
        self.raise_()
        first = next(iter(self.wordings.values())) if asks_wording else self.buttons[0]
        first.setFocus(Qt.FocusReason.OtherFocusReason)

    @property
    def asks_wording(self) -> bool:
        """Whether the page shows the question which words the program should use."""
        return not self._question.isHidden()

    def restyle(self, theme: Theme) -> None:
        self.setStyleSheet(
            f"#welcomePage {{ background: {theme.window}; border: 0; }}"
            f"#welcomeTitle {{ font-size: {theme.px(22)}px; font-weight: 600; }}"
            f"#welcomeWords {{ font-size: {theme.px(15)}px; color: {theme.muted}; }}"
        )
        self._column.setSpacing(theme.space(12))
        for grid in (self._wording_grid, self._way_grid):
            grid.setSpacing(theme.space(10))
        self._column.setContentsMargins(EDGE, theme.space(EDGE), EDGE, theme.space(EDGE))
        self._content.setMaximumWidth(theme.px(TEXT_WIDTH) + 2 * EDGE)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Follow the size of the covered widget."""
        if watched is self._body and event.type() == QEvent.Type.Resize:
            self.setGeometry(self._body.rect())
        return False

    def event(self, event: QEvent) -> bool:
        """Close the page on Esc, before Esc does anything else."""
        if isinstance(event, QKeyEvent) and event.key() == Qt.Key.Key_Escape:
            event.accept()
            if event.type() == QEvent.Type.KeyPress:
                self.skipped.emit()
            return True
        return super().event(event)

    def _make_texts(self) -> None:
        self._sample = UnderlineSample(self)
        self._title = set_up(WrappedLabel(tr("Watch a language model decide what to write")), name="welcomeTitle")
        self._introduction = WrappedLabel(
            tr(
                "A language model writes one small piece of text at a time. Decodescope shows every "
                "choice it makes: what it could have written, how sure it was, and why it chose this "
                "one."
            )
        )
        self._introduction.setObjectName("welcomeWords")
        self._question = set_up(PlainLabel(tr("How should it explain what happens?")), role="heading")
        self._question.setObjectName("wordingQuestion")
        self._note = set_up(WrappedLabel(tr("You can change this in the settings at any time.")), role="muted")

    def _make_wordings(self) -> dict[str, WelcomeButton]:
        """Return the two answers by level of detail, each with the sentence that the program writes in it."""
        group = QButtonGroup(self)
        found = {}
        for depth, title in ((PLAIN, tr("Plain words")), (EXACT, tr("Exact terms"))):
            choice = WelcomeButton(f"wording.{depth}", "", title, explain_sample(depth), self)
            choice.setCheckable(True)
            choice.clicked.connect(lambda _checked=False, depth=depth: self._choose_wording(depth))
            group.addButton(choice)
            found[depth] = choice
        return found

    def _choose_wording(self, depth: str) -> None:
        """Pass the answer on, and move the focus to the first way to start."""
        self.wordings[depth].setChecked(True)
        self.wordingChosen.emit(depth)
        self.buttons[0].setFocus(Qt.FocusReason.TabFocusReason)

    def _make_buttons(self) -> tuple[WelcomeButton, ...]:
        entries = (
            ("storyWay", "play", tr("Watch a story being written"),
             tr("A small model that is included writes a story now."), self.storyRequested),
            ("lessonWay", "text", tr("Take a lesson"),
             tr("Six lessons of ten minutes, alone or with a class."),
             self.lessonRequested),
            ("tourWay", "flag", tr("Take a guided tour"),
             tr("About a minute each: the program plays a scene and explains it."), self.tourRequested),
            ("modelWay", "folder", tr("Use your own model"),
             tr("Download a model from the Hugging Face Hub, or choose a folder on this disk."), self.modelRequested),
        )  # fmt: skip
        return tuple(
            set_up(WelcomeButton(name, icon, title, about, self), clicked=signal)
            for name, icon, title, about, signal in entries
        )

    def _lay_out(self) -> None:
        self._content = QWidget()
        column = self._column = QVBoxLayout(self._content)
        foot = arrange(QHBoxLayout(), (self._hint, 1), self.skip)
        self._wording_grid = _two_columns(list(self.wordings.values()))
        self._way_grid = _two_columns(self.buttons)
        arrange(
            column, STRETCH, self._sample, self._title, self._introduction, Gap(4), self._question,
            self._wording_grid, self._note, Gap(4), self._way_grid, foot,
        )  # fmt: skip
        column.addStretch(2)
        middle = QWidget()
        arrange(QHBoxLayout(middle), STRETCH, (self._content, 100), STRETCH, margins=0)
        scroll = set_up(QScrollArea(widgetResizable=True), name="welcomeScroll")
        scroll.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        scroll.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        scroll.setWidget(middle)
        arrange(QVBoxLayout(self), scroll, margins=0)


def _two_columns(buttons: Sequence[QWidget]) -> QGridLayout:
    """Return a grid with two equal columns."""
    grid = QGridLayout()
    for number, button in enumerate(buttons):
        grid.addWidget(button, number // 2, number % 2)
    for column in range(2):
        grid.setColumnStretch(column, 1)
    return grid
