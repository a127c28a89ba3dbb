"""Line above the prompt while an example is loaded: its title and a button that restores the user's settings."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Qt, QTimer, Signal, Slot
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QPushButton, QScrollArea, QVBoxLayout, QWidget

from decodescope.app.panels.adapter_panel import AdapterPanel
from decodescope.app.panels.parameter_panel import ParameterPanel
from decodescope.app.panels.parameter_row import MARGIN, ParameterRow
from decodescope.app.panels.preset_bar import PresetBar
from decodescope.app.panels.prompt_panel import PromptPanel
from decodescope.app.state import setting_values
from decodescope.app.storage.examples import ExamplePrompt
from decodescope.app.theme.theme import Theme
from decodescope.app.theme.themed import Themed
from decodescope.app.widgets.building import arrange, set_role, set_up
from decodescope.app.widgets.labels import ElidedLabel
from decodescope.app.widgets.plain_text import RichLabel, escape_html, tooltip
from decodescope.app.widgets.row_scroll_area import RowScrollArea
from decodescope.resources.language import join_sentences, tr


class ExampleBar(QWidget):
    """Shows the loaded example; emits `backRequested` when the button is pressed."""

    backRequested = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("exampleBar")
        self.title = set_up(ElidedLabel(), role="muted")
        self.back = QPushButton(tr("Back to my settings"))
        self.back.setObjectName("leaveExample")
        self.back.setProperty("role", "quiet")
        self.back.setToolTip(
            tr("Restore the model, strategy, cache, parameters, seed and prompt used before the example")
        )
        self.back.clicked.connect(self.backRequested)
        arrange(QHBoxLayout(self), (self.title, 1), self.back, margins=(MARGIN, 0, MARGIN, 0))
        self.hide()

    def show_example(self, title: str) -> None:
        """Show the example's title."""
        self.title.setText(tr("Example: {title}").format(title=title))
        self.show()


MIN_PARAMETERS_HEIGHT = 240
"""Height in pixels at 100 % that the parameters need below the examples; with less space they move above them."""
MIN_PAGE_HEIGHT = 40
"""Smallest height of the page above the help, in pixels at 100 %."""


class SetupPanel(Themed, QFrame):
    """Left panel with the inputs of a run. The help area at the bottom has a fixed height."""

    def __init__(self, examples: Sequence[ExamplePrompt], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        set_up(self, name="setupPanel", role="panel")
        self.prompt = PromptPanel(examples)
        self.example_bar = ExampleBar()
        self.parameters = ParameterPanel()
        self.adapters = AdapterPanel()
        self.cache_parameters = ParameterPanel(tr("CACHE"))
        self.cache_parameters.hide()
        self.presets = PresetBar()
        self.help = set_up(
            RichLabel(), name="parameterHelp", role="muted", accessible_name=tr("Help for the hovered setting")
        )
        self.help.setWordWrap(True)
        self.help.setAlignment(Qt.AlignmentFlag.AlignTop)
        self.memory_label = ElidedLabel()
        self.memory_label.setObjectName("fitLine")
        self.memory_label.setAccessibleName(tr("Memory required by the run"))
        self._default_help = self._advice = ""
        self._is_low = False
        for panel in (self.parameters, self.cache_parameters):
            panel.helpRequested.connect(self.show_help)
        self._lay_out()

    def set_summary(self, text: str) -> None:
        """Set the help text shown while no setting is hovered: what the strategy does."""
        self._default_help = escape_html(text)
        self._show_default_help()

    def _show_default_help(self) -> None:
        """Show what the strategy does, or what to do about a run that does not fit."""
        self.help.setText(escape_html(self._advice) or self._default_help)

    @Slot()
    def create_all_rows(self) -> None:
        """Create rows for all parameters, including the folded ones."""
        self.parameters.create_all_rows()
        self.cache_parameters.create_all_rows()

    @Slot(object)
    def show_help(self, row: ParameterRow) -> None:
        """Explain a parameter, starting with the reason if it has no effect."""
        title, *parts = (
            escape_html(part)
            for part in (
                tr(row.parameter.title),
                row.unavailable,
                tr(row.parameter.help),
                tr(" Default: {default}.").format(default=setting_values.short_text(row.default)).strip(),
            )
        )
        self.help.setText(" ".join([f"<b>{title}</b> ·", *filter(None, parts)]))

    def add_page(self, page: QWidget) -> None:
        """Add a hidden page that can cover this panel later."""
        if self._pages.indexOf(page) < 0:
            page.hide()
            self._pages.addWidget(page)

    def show_page(self, page: QWidget) -> None:
        """Show `page` instead of the panel's own content."""
        self.add_page(page)
        self._page.hide()
        page.show()

    @Slot()
    def show_inputs(self) -> None:
        """Show prompt and parameters again."""
        for place in range(1, self._pages.count()):
            if (item := self._pages.itemAt(place)) is not None and (page := item.widget()) is not None:
                page.hide()
        self._page.show()

    def show_memory_estimate(self, estimate: str, advice: str, speed: str = "") -> None:
        """Show the run's memory requirement and its predicted speed, if known; if it does not fit, all numbers and
        advice in place of the help.
        """
        brief = " · ".join(part for part in (estimate.partition(":")[0], speed) if part)
        complete = join_sentences(estimate, advice, speed)
        self.memory_label.setText(brief)
        self.memory_label.setToolTip(tooltip(complete))
        self.memory_label.setAccessibleDescription(complete)
        self._advice = complete if advice else ""
        self._show_default_help()
        set_role(self.memory_label, "warning" if advice else "muted")

    def leaveEvent(self, event: object) -> None:
        self._show_default_help()

    def reveal(self, part: QWidget) -> None:
        """Open the group of settings that contains a part of the panel."""
        for panel in (self.parameters, self.cache_parameters):
            for name, row in panel.rows.items():
                if row is part or row.isAncestorOf(part):
                    panel.reveal(name)

    def scroll_into_view(self, part: QWidget) -> None:
        """Scroll to a part of the panel, after the layout has been updated."""
        QTimer.singleShot(0, part, lambda: self._scroll.ensureWidgetVisible(part))

    def restyle(self, theme: Theme) -> None:
        self._scroll.setMinimumHeight(
            theme.px(MIN_PAGE_HEIGHT)
        )  # the default minimum is the height of a scroll bar's buttons and handle
        self.memory_label.setFont(theme.font(12, tabular=True))
        self.memory_label.setFixedHeight(theme.px(18))
        self._help_area.setFixedHeight(theme.px(18 + 50) + theme.space(20))
        self._inner.setSpacing(theme.space(16))
        self._reorder()

    @property
    def _parts_in_order(self) -> tuple[QWidget, ...]:
        """The panel's parts from top to bottom; in a low panel the parameters come before the examples."""
        examples = self.prompt.examples_row
        settings = (self.adapters, self.parameters, self.cache_parameters)
        parts = (*settings, examples) if self._is_low else (examples, *settings)
        return (self.example_bar, self.prompt, *parts, self.presets)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._reorder()

    def _reorder(self) -> None:
        """Order the parts by the available height. The page is equally wide in both orders, so that it does not
        flicker.
        """
        width = max(self.width(), 1)
        above = sum(
            part.heightForWidth(width) if part.hasHeightForWidth() else part.sizeHint().height()
            for part in (self.prompt, self.prompt.examples_row)
        )
        room = self.height() - self._help_area.height()
        is_low = room - above < self._theme.px(MIN_PARAMETERS_HEIGHT)
        if is_low == self._is_low:
            return
        self._is_low = is_low
        for part in self._parts_in_order:
            self._inner.removeWidget(part)
        for place, part in enumerate(self._parts_in_order):
            self._inner.insertWidget(place, part)

    def _lay_out(self) -> None:
        self._content = QWidget()
        inner = self._inner = arrange(QVBoxLayout(self._content), margins=(0, 14, 0, 16))
        for part in self._parts_in_order:
            inner.addWidget(part)
        inner.addStretch(1)
        scroll = self._scroll = set_up(RowScrollArea(), name="setupScroll")
        scroll.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        scroll.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        scroll.setWidget(self._content)
        self._help_area = set_up(QFrame(), role="foot")
        long_help = set_up(QScrollArea(widgetResizable=True), name="helpScroll")
        long_help.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        long_help.setFrameShape(QFrame.Shape.NoFrame)
        long_help.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        long_help.setWidget(self.help)
        arrange(QVBoxLayout(self._help_area), self.memory_label, (long_help, 1), margins=(MARGIN, 8, 4, 8), spacing=4)
        self._page = QWidget()
        arrange(QVBoxLayout(self._page), (scroll, 1), self._help_area, margins=0, spacing=0)
        self._pages = arrange(QVBoxLayout(self), self._page, margins=0)
