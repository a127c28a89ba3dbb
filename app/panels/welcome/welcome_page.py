"""One calm page over the empty window: a sentence on what this is, and three ways in."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject, QRectF, Qt, Signal
from PySide6.QtGui import QKeyEvent, QPainter, QPaintEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QPushButton, QScrollArea, QVBoxLayout, QWidget

from app.panels.welcome.welcome_button import WelcomeButton
from app.theme.theme import Theme, Themeable, theme_for
from app.widgets.wrapped_label import WrappedLabel
from resources.language import tr

TEXT_WIDTH, EDGE = 600, 24
"""Pixels at 100 %: the width of the words, and the room around them."""
SAMPLE = ((30, 0.95), (18, 0.8), (42, 0.5), (26, 0.25), (36, 0.05))
"""Words as the token view underlines them: how wide, and how sure the model was."""


class UnderlineSample(QWidget):
    """A line of underlines, from certain to unlikely: what the program shows of every word."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self._theme = theme_for("light")

    def set_theme(self, theme: Theme) -> None:
        """Colours and sizes."""
        self._theme = theme
        self.setFixedHeight(theme.px(10))

    def paintEvent(self, event: QPaintEvent) -> None:
        painter, theme, x = QPainter(self), self._theme, 0
        for width, score in SAMPLE:
            painter.fillRect(QRectF(x, 0, theme.px(width), theme.scale * (3 + 4 * (1 - score))), theme.ramp(score))
            x += theme.px(width + 5)


class WelcomePage(QFrame):
    """Covers `body`. A signal for each way; `skipped` where the reader would rather look around."""

    storyRequested = Signal()
    tourRequested = Signal()
    modelRequested = Signal()
    skipped = Signal()

    def __init__(self, body: QWidget) -> None:
        super().__init__(body)
        self.setObjectName("welcomePage")
        self.setAccessibleName(tr("Welcome"))
        self._body = body
        self._make_texts()
        self.buttons = self._make_buttons()
        self.skip = QPushButton(tr("Just look around"))
        self.skip.setObjectName("skipWelcome")
        self.skip.setProperty("role", "quiet")
        self.skip.clicked.connect(self.skipped)
        self._hint = WrappedLabel(tr("Ctrl+K finds everything, this page too."))
        self._hint.setProperty("role", "muted")
        self._lay_out()
        body.installEventFilter(self)
        self.hide()

    def open(self) -> None:
        """Show it over everything else, the cursor on the first way."""
        self.setGeometry(self._body.rect())
        self.show()
        self.raise_()
        self.buttons[0].setFocus(Qt.FocusReason.OtherFocusReason)

    def set_theme(self, theme: Theme) -> None:
        """Colours and sizes."""
        self.setStyleSheet(
            f"#welcomePage {{ background: {theme.window}; border: 0; }}"
            f"#welcomeTitle {{ font-size: {theme.px(24)}px; font-weight: 700; }}"
            f"#welcomeWords {{ font-size: {theme.px(15)}px; color: {theme.muted}; }}"
        )
        themed: tuple[Themeable, ...] = (self._sample, *self.buttons)
        for part in themed:
            part.set_theme(theme)
        self._column.setSpacing(theme.space(12))
        self._column.setContentsMargins(EDGE, theme.space(EDGE), EDGE, theme.space(EDGE))
        self._content.setMaximumWidth(theme.px(TEXT_WIDTH) + 2 * EDGE)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """As large as what it covers."""
        if watched is self._body and event.type() == QEvent.Type.Resize:
            self.setGeometry(self._body.rect())
        return False

    def event(self, event: QEvent) -> bool:
        """Esc leaves it, before it does anything else."""
        if isinstance(event, QKeyEvent) and event.key() == Qt.Key.Key_Escape:
            event.accept()
            if event.type() == QEvent.Type.KeyPress:
                self.skipped.emit()
            return True
        return super().event(event)

    def _make_texts(self) -> None:
        self._sample = UnderlineSample(self)
        self._title = WrappedLabel(tr("Watch a language model decide what to write"))
        self._title.setObjectName("welcomeTitle")
        self._introduction = WrappedLabel(
            tr(
                "A language model writes one small piece of text at a time. Decodescope shows every choice it makes: "
                "what it could have written, how sure it was, and why it took what it took."
            )
        )
        self._introduction.setObjectName("welcomeWords")

    def _make_buttons(self) -> tuple[WelcomeButton, ...]:
        told = (
            ("storyWay", "play", tr("Watch a story being written"),
             tr("A small model that comes with the program writes one, now."), self.storyRequested),
            ("tourWay", "flag", tr("Take a guided tour"),
             tr("About a minute each: the program plays a scene and says what is to be seen."), self.tourRequested),
            ("modelWay", "folder", tr("Bring your own model"),
             tr("Download one from the Hugging Face hub, or choose a folder on this disk."), self.modelRequested),
        )  # fmt: skip
        ways = []
        for name, icon, title, about, wanted in told:
            way = WelcomeButton(name, icon, title, about, self)
            way.clicked.connect(wanted)
            ways.append(way)
        return tuple(ways)

    def _lay_out(self) -> None:
        self._content = QWidget()
        column = self._column = QVBoxLayout(self._content)
        foot = QHBoxLayout()
        foot.addWidget(self._hint, 1)
        foot.addWidget(self.skip)
        column.addStretch(1)
        for part in (self._sample, self._title, self._introduction):
            column.addWidget(part)
        column.addSpacing(8)
        for way in self.buttons:
            column.addWidget(way)
        column.addLayout(foot)
        column.addStretch(2)
        middle = QWidget()
        row = QHBoxLayout(middle)
        row.setContentsMargins(0, 0, 0, 0)
        row.addStretch(1)
        row.addWidget(self._content, 100)
        row.addStretch(1)
        scroll = QScrollArea(widgetResizable=True)
        scroll.setObjectName("welcomeScroll")
        scroll.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        scroll.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        scroll.setWidget(middle)
        whole = QVBoxLayout(self)
        whole.setContentsMargins(0, 0, 0, 0)
        whole.addWidget(scroll)
