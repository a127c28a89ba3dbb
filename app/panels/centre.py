"""The centre of the window: tabs with views, in two columns when split, and messages above them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from PySide6.QtCore import QEvent, QObject, QSize, Qt, QTimer, Signal, Slot
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QFrame, QProgressBar, QScrollArea, QSplitter, QVBoxLayout, QWidget

from decodescope.app.panels.chat_composer import ChatComposer
from decodescope.app.panels.view_column import ViewColumn
from decodescope.app.state.run import Run
from decodescope.app.theme.theme import Theme
from decodescope.app.theme.themed import Themed, inherit_theme
from decodescope.app.views import ViewSpec
from decodescope.app.views.base import View
from decodescope.app.widgets.banner import Banner
from decodescope.app.widgets.building import arrange, set_up
from decodescope.app.widgets.icons import IconButton
from decodescope.app.widgets.inputs import LazyComboBox
from decodescope.resources.language import tr

MAX_HEIGHT_FRACTION = 0.6
"""Largest fraction of the surrounding widget's height; longer messages scroll."""
MIN_HEIGHT = 40
"""Smallest height of the area in pixels; longer messages scroll."""
MARGIN = 16
LOW = 220
"""Height in pixels at 100 % below which the input for messages does without its second line."""


class MessageArea(QScrollArea):
    """Banners in a column; zero height while all are hidden."""

    def __init__(self, banners: Iterable[QWidget], around: QWidget) -> None:
        super().__init__(around, widgetResizable=True)
        self.setObjectName("messageArea")
        self._around = around
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self._content = QWidget()
        self._column = arrange(QVBoxLayout(self._content), margins=(MARGIN, 0, MARGIN, 0), spacing=0)
        for banner in banners:
            self._column.addWidget(banner)
        self.setWidget(self._content)
        for watched in (self._content, around):
            watched.installEventFilter(self)
        self._fit()

    def minimumSizeHint(self) -> QSize:
        """Allow any width."""
        return QSize(0, 0)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Refit when a banner or the available space changes."""
        if event.type() in (QEvent.Type.LayoutRequest, QEvent.Type.Resize):
            self._fit()
        return False

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    def _available_height(self) -> int:
        """Return the height that the widgets above and below leave free."""
        layout = self._around.layout()
        if layout is None:
            return self._around.height()
        found = (layout.itemAt(index) for index in range(layout.count()))
        others = sum(item.minimumSize().height() for item in found if item is not None and item.widget() is not self)
        return max(MIN_HEIGHT, self._around.height() - others)

    def _fit(self) -> None:
        height = min(
            self._column.totalSizeHint().height(),
            round(self._around.height() * MAX_HEIGHT_FRACTION),
            self._available_height(),
        )
        if height != self.maximumHeight():
            self.setFixedHeight(height)


class Centre(Themed, QWidget):
    """Views in one or two columns, the sequence selector and the two banners."""

    viewCreated = Signal(object)
    viewShown = Signal(object)
    sequenceRequested = Signal(int)

    def __init__(self, specs: Sequence[ViewSpec], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("centre")
        self._specs = list(specs)
        self._availability: dict[str, bool] = {}
        self._composer: ChatComposer | None = None
        self._shows_composer = self._is_presenting = False
        self.error_banner = Banner("errorBanner")
        self.notice_banner = Banner("noticeBanner", icon="info", role="card")
        self._progress_container = QWidget()
        self.progress = set_up(QProgressBar(self._progress_container, textVisible=False), name="loadingBar")
        self.progress.setRange(0, 0)
        self.progress.setAccessibleName(tr("Loading"))
        self.columns = [ViewColumn(self._specs)]
        self.columns[0].viewShown.connect(self._on_view_shown)
        self.columns[0].viewCreated.connect(self.viewCreated)
        self.splitter = QSplitter(Qt.Orientation.Horizontal, childrenCollapsible=False, handleWidth=1)
        self.splitter.addWidget(self.columns[0])
        self._make_corner()
        self._lay_out()
        self.set_loading(False)

    @property
    def views(self) -> Iterator[View]:
        """All views of both columns; missing ones are created."""
        for column in self.columns:
            yield from column.views

    @property
    def created_views(self) -> Iterator[View]:
        """The views of both columns that have been created so far."""
        for column in self.columns:
            yield from column.created_views

    def create_all_views(self) -> None:
        """Create all views of the first column now."""
        while self.columns[0].create_next_view():
            pass

    @Slot()
    def create_remaining_views(self) -> None:
        """Create the remaining views of the first column, one at a time, while the event loop is idle."""
        if self.columns[0].create_next_view():
            QTimer.singleShot(0, self, self.create_remaining_views)

    def show_view(self, name: str) -> bool:
        """Bring a view to the front in the first column; False when there is none called `name`."""
        return self.columns[0].show_view(name)

    def show_number(self, number: int) -> None:
        """Bring view `number` (counted from 0) to the front, if it exists."""
        if number < len(self._specs):
            self.columns[0].show_view(self._specs[number].name)

    def set_view_available(self, name: str, is_available: bool) -> None:
        """Show or hide the tab called `name` in both columns."""
        self._availability[name] = is_available
        for column in self.columns:
            column.set_view_available(name, is_available)

    def set_loading(self, loading: bool) -> None:
        """Show or hide the loading bar; its space is always reserved.

        The bar is hidden, not only stopped: a style ends its animation only then, and a visible bar repaints the window
        thirty times a second.
        """
        self.progress.setVisible(loading)

    @Slot(bool)
    def set_split(self, split: bool) -> None:
        """Open or close the second column."""
        if split and len(self.columns) == 1:
            column = ViewColumn(self._specs, suffix="2")
            column.viewShown.connect(self.viewShown)
            column.viewCreated.connect(self.viewCreated)
            self.columns.append(column)
            for name, is_there in self._availability.items():
                column.set_view_available(name, is_there)
            self.splitter.addWidget(column)
            self.splitter.handle(self.splitter.count() - 1).setAccessibleName(tr("Width of the left view"))
            column.set_theme(self._theme)
            for view in column.created_views:
                self.viewCreated.emit(view)
            column.show_view("tree")
        elif not split and len(self.columns) == 2:
            self.columns.pop().deleteLater()

    def show_composer(self, composer: ChatComposer, is_shown: bool) -> None:
        """Show or hide the input for messages below the views; it is hidden while presenting."""
        layout = self.layout()
        if self._composer is None and isinstance(layout, QVBoxLayout):
            self._composer = composer
            layout.addWidget(composer)
            inherit_theme(composer)
            self._fit_composer()
        self._shows_composer = is_shown
        composer.setVisible(is_shown and not self._is_presenting)

    def set_presenting(self, on: bool) -> None:
        """Show only the current view, or everything again."""
        self._is_presenting = on
        if self._composer is not None:
            self._composer.setVisible(self._shows_composer and not on)
        for column in self.columns:
            column.set_presenting(on)
        self._progress_container.setVisible(not on)
        for column in self.columns[1:]:
            column.setVisible(not on)

    def show_adjacent_view(self, offset: int) -> None:
        """Bring the view `offset` tabs further to the front, wrapping around at both ends."""
        first = self.columns[0]
        names = first.available_names
        first.show_view(names[(names.index(first.current_name) + offset) % len(names)])

    def update_sequence_selector(self, run: Run | None) -> None:
        """Show the sequence selector if the run has several sequences and the view has no selector of its own."""
        several = len(run.sequences) if run is not None else 1
        texts = several if several > 1 else 0  # nothing to choose from one
        if self.sequence_combo.count() != texts:
            self.sequence_combo.blockSignals(True)
            self.sequence_combo.clear()
            self.sequence_combo.addItems(
                [tr("Sequence {number} of {texts}").format(number=number + 1, texts=texts) for number in range(texts)]
            )
            self.sequence_combo.blockSignals(False)
            self._update_selector_visibility()
        if run is not None and texts and self.sequence_combo.currentIndex() != run.shown_index:
            self.sequence_combo.setCurrentIndex(run.shown_index)

    def _update_selector_visibility(self) -> None:
        self.sequence_combo.setVisible(
            self.sequence_combo.count() > 1 and not self.columns[0].current_view.chooses_sequence
        )
        self.columns[0].fit_header()

    @Slot(object)
    def _on_view_shown(self, view: View) -> None:
        self._update_selector_visibility()
        self.viewShown.emit(view)

    def restyle(self, theme: Theme) -> None:
        self._progress_container.setFixedHeight(2)
        self.progress.setFixedHeight(2)
        self._fit_composer()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit_composer()

    def _fit_composer(self) -> None:
        if self._composer is not None:
            self._composer.set_low(self.height() < self._theme.px(LOW))

    def _make_corner(self) -> None:
        self.sequence_combo = set_up(LazyComboBox(), name="sequenceCombo", accessible_name=tr("Shown sequence"))
        self.sequence_combo.hide()
        self.sequence_combo.currentIndexChanged.connect(self.sequenceRequested)
        self.split_button = IconButton("split", tr("Split the views"))
        self.split_button.setCheckable(True)
        self.split_button.toggled.connect(self.set_split)
        self.split_button.setVisible(len(self._specs) > 1)
        self.columns[0].header.add_tool(self.sequence_combo)
        self.columns[0].header.corner.addWidget(self.split_button)

    def _lay_out(self) -> None:
        column = arrange(QVBoxLayout(self), margins=0, spacing=0)
        arrange(QVBoxLayout(self._progress_container), self.progress, margins=0)
        column.addWidget(self._progress_container)
        first = self.columns[0]
        self.messages = MessageArea((self.error_banner, self.notice_banner), first)
        first.add_message_area(self.messages)
        column.addWidget(self.splitter, 1)
