"""The left panel: prompt, presets, parameters, and at its foot one place for help."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Qt, QTimer, Slot
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QFrame, QScrollArea, QVBoxLayout, QWidget

from app.panels.example_bar import ExampleBar
from app.panels.parameter_row import MARGIN, ParameterRow
from app.panels.parameters import ParameterPanel
from app.panels.preset_bar import PresetBar
from app.panels.prompt import PromptPanel
from app.state import setting_values
from app.storage.examples import ExamplePrompt
from app.theme.theme import Theme, theme_for
from app.widgets.inputs import ScrollArea
from app.widgets.plain_text import PlainLabel, RichLabel, escaped, tooltip
from resources.language import sentences, tr

LEAST_SETTINGS = 120
"""Pixels at 100 % that the settings get below examples and presets; where there is less, they stand above them."""
LEAST_PAGE = 40
"""Pixels at 100 % that the page above the help keeps, however low the window is."""


class SetupPanel(QFrame):
    """What a run begins from. The help at the foot keeps its place, whatever it says."""

    def __init__(self, examples: Sequence[ExamplePrompt], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("setupPanel")
        self.setProperty("role", "panel")
        self.prompt = PromptPanel(examples)
        self.example_bar = ExampleBar()
        self.parameters = ParameterPanel()
        self.cache_parameters = ParameterPanel(tr("CACHE"))
        self.cache_parameters.hide()
        self.presets = PresetBar()
        self.help = RichLabel()
        self.help.setWordWrap(True)
        self.help.setObjectName("parameterHelp")
        self.help.setProperty("role", "muted")
        self.help.setAccessibleName(tr("Help on the setting pointed at"))
        self.help.setAlignment(Qt.AlignmentFlag.AlignTop)
        self.fit = PlainLabel(wordWrap=True)
        self.fit.setObjectName("fitLine")
        self.fit.setAccessibleName(tr("Memory that the run needs"))
        self.fit.hide()
        self._resting_help = ""
        self._theme = theme_for("light")
        self._is_low = False
        for panel in (self.parameters, self.cache_parameters):
            panel.helpWanted.connect(self.show_help)
        self._lay_out()

    def set_summary(self, text: str) -> None:
        """Help while nothing in particular is pointed at: what the strategy does."""
        self._resting_help = escaped(text)
        self.help.setText(self._resting_help)

    @Slot()
    def make_all(self) -> None:
        """Give every setting its row, those that are folded away as well."""
        self.parameters.make_all()
        self.cache_parameters.make_all()

    @Slot(object)
    def show_help(self, row: ParameterRow) -> None:
        """Explain one setting, and first why it has no effect, if so."""
        title, *parts = (
            escaped(part)
            for part in (
                tr(row.parameter.title),
                row.unavailable,
                tr(row.parameter.help),
                tr(" Default {default}.").format(default=setting_values.short(row.default)).strip(),
            )
        )
        self.help.setText(" ".join([f"<b>{title}</b> ·", *filter(None, parts)]))

    def add(self, page: QWidget) -> None:
        """Have a page ready to stand here; nobody sees it yet."""
        if self._pages.indexOf(page) < 0:
            page.hide()
            self._pages.addWidget(page)

    def cover(self, page: QWidget) -> None:
        """Let `page` stand in the place of everything here."""
        self.add(page)
        self._page.hide()
        page.show()

    @Slot()
    def uncover(self) -> None:
        """Prompt and parameters are here again."""
        for place in range(1, self._pages.count()):
            if (item := self._pages.itemAt(place)) is not None and (page := item.widget()) is not None:
                page.hide()
        self._page.show()

    def show_fit(self, figures: str, advice: str, pace: str = "") -> None:
        """What the run takes in memory; where it does not fit, all figures and what would help; and how quick it is,
        where that is known beforehand."""
        brief = " · ".join(part for part in (figures.partition(":")[0], pace) if part)
        self.fit.setText(sentences(figures, advice, pace) if advice else brief)
        self.fit.setToolTip(tooltip(sentences(figures, pace)))
        self.fit.setAccessibleDescription(sentences(figures, advice, pace))
        self.fit.setVisible(bool(figures))
        role = "warning" if advice else "muted"
        if self.fit.property("role") != role:
            self.fit.setProperty("role", role)
            self.fit.style().unpolish(self.fit)
            self.fit.style().polish(self.fit)

    def leaveEvent(self, event: object) -> None:
        self.help.setText(self._resting_help)

    def bring_into_sight(self, part: QWidget) -> None:
        """Scroll to a part of the panel, once what has just been unfolded has its place."""
        QTimer.singleShot(0, part, lambda: self._scroll.ensureWidgetVisible(part))

    def set_theme(self, theme: Theme) -> None:
        """Colours and sizes of everything in the panel."""
        self._theme = theme
        for part in (self.prompt, self.parameters, self.cache_parameters):
            part.set_theme(theme)
        self._scroll.setMinimumHeight(theme.px(LEAST_PAGE))  # by itself it claims a scroll bar's buttons and handle
        self._foot.setFixedHeight(theme.px(64) + theme.space(16))
        self._inner.setSpacing(theme.space(16))
        self.fit.setContentsMargins(MARGIN, theme.space(6), MARGIN, theme.space(6))
        self.fit.setFont(theme.font(12))
        self._arrange()

    @property
    def _order(self) -> tuple[QWidget, ...]:
        """What stands in the panel, from the top: in little room the settings come before examples and presets."""
        examples = (self.prompt.examples_row, self.presets)
        settings = (self.parameters, self.cache_parameters)
        parts = (*settings, *examples) if self._is_low else (*examples, *settings)
        return (self.example_bar, self.prompt, *parts)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._arrange()

    def _arrange(self) -> None:
        """Order the parts by the room there is. The page is as wide in either order, so that nothing flickers."""
        width = max(self.width(), 1)
        above = sum(
            part.heightForWidth(width) if part.hasHeightForWidth() else part.sizeHint().height()
            for part in (self.prompt, self.prompt.examples_row, self.presets)
        )
        room = self.height() - self._foot.height()
        is_low = room - above < self._theme.px(LEAST_SETTINGS)
        if is_low == self._is_low:
            return
        self._is_low = is_low
        for part in self._order:
            self._inner.removeWidget(part)
        for place, part in enumerate(self._order):
            self._inner.insertWidget(place, part)

    def _lay_out(self) -> None:
        self._content = QWidget()
        inner = self._inner = QVBoxLayout(self._content)
        inner.setContentsMargins(0, 14, 0, 16)
        for part in self._order:
            inner.addWidget(part)
        inner.addStretch(1)
        scroll = self._scroll = ScrollArea(widgetResizable=True)
        scroll.setObjectName("setupScroll")
        scroll.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        scroll.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        scroll.setWidget(self._content)
        self._foot = QFrame()
        self._foot.setProperty("role", "foot")
        long_help = QScrollArea(widgetResizable=True)
        long_help.setObjectName("helpScroll")
        long_help.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        long_help.setFrameShape(QFrame.Shape.NoFrame)
        long_help.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        long_help.setWidget(self.help)
        foot = QVBoxLayout(self._foot)
        foot.setContentsMargins(MARGIN, 8, 4, 8)
        foot.addWidget(long_help)
        self._page = QWidget()
        column = QVBoxLayout(self._page)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(scroll, 1)
        column.addWidget(self.fit)
        column.addWidget(self._foot)
        self._pages = QVBoxLayout(self)
        self._pages.setContentsMargins(0, 0, 0, 0)
        self._pages.addWidget(self._page)
