"""The window on likelihoods, with its two pages."""

from __future__ import annotations

from PySide6.QtCore import QSize, Qt, Slot
from PySide6.QtWidgets import QDialogButtonBox, QHBoxLayout, QPushButton, QStackedWidget, QVBoxLayout, QWidget

from decodescope.app.features.likelihood.view.pattern_page import PatternPage
from decodescope.app.features.likelihood.view.posterior_page import PosteriorPage
from decodescope.app.theme.theme import Theme
from decodescope.app.widgets.building import STRETCH, arrange, set_up
from decodescope.app.widgets.buttons import SegmentedControl
from decodescope.app.widgets.dialog import WINDOW_FRAME, BaseDialog
from decodescope.app.widgets.labels import ElidedLabel
from decodescope.app.widgets.plain_text import caption, tooltip
from decodescope.app.widgets.screen import available_rect
from decodescope.resources.language import tr

SIZE = (1040, 720)
"""Initial size in pixels at 100 %, if the screen is large enough."""
PATTERN, POSTERIOR = "pattern", "posterior"
"""Names of the pages."""


class LikelihoodDialog(BaseDialog):
    """Window on likelihoods; not modal, deleted on close."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent, "likelihoodWindow", tr("How likely is that?"))
        self._is_sized = False
        titles = ((PATTERN, tr("How likely is that?")), (POSTERIOR, tr("Which settings wrote this?")))
        self.tabs = SegmentedControl(titles, tr("Question"), self, wraps=True)
        self.model = set_up(ElidedLabel("", self), role="muted")
        self.pages = QStackedWidget(self)
        self.pattern, self.posterior = PatternPage(self), PosteriorPage(self)
        self.pages.addWidget(self.pattern)
        self.pages.addWidget(self.posterior)
        self.tabs.chosen.connect(self.show_page)
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Close, self)
        buttons.button(QDialogButtonBox.StandardButton.Close).setAutoDefault(False)
        buttons.rejected.connect(self.close)
        self.copy = set_up(QPushButton(caption(tr("Copy")), self), name="likelihoodCopy")
        self.copy.setAutoDefault(False)
        self.copy.setToolTip(tooltip(tr("Copies the sentences, and the table as CSV.")))
        above = arrange(QHBoxLayout(), (self.tabs, 3), (self.model, 1), spacing=16)
        self.model.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        foot = arrange(QHBoxLayout(), self.copy, STRETCH, buttons)
        arrange(QVBoxLayout(self), above, (self.pages, 1), foot, margins=(20, 16, 20, 16), spacing=14)

    @Slot(str)
    def show_page(self, name: str) -> None:
        """Show a page."""
        self.tabs.set_value(name)
        if not self.isVisible():
            self.tabs.focus_value()
        self.pages.setCurrentWidget(self.pattern if name == PATTERN else self.posterior)

    def restyle(self, theme: Theme) -> None:
        self.pattern.restyle_editor()
        if not self._is_sized:  # the theme comes while the window is shown
            self._is_sized = True
            room = available_rect(self).size() - WINDOW_FRAME
            self.resize(QSize(theme.px(SIZE[0]), theme.px(SIZE[1])).boundedTo(room))
