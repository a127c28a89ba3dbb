"""The centre: the views as tabs, two columns of them when split, and messages above them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from PySide6.QtCore import QEvent, QObject, QSize, Qt, QTimer, Signal, Slot
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import (
    QFrame,
    QProgressBar,
    QScrollArea,
    QSplitter,
    QVBoxLayout,
    QWidget,
)

from app.panels.view_column import ViewColumn
from app.state.run import Run
from app.theme.theme import Theme, Themeable
from app.views import ViewSpec
from app.views.base import View
from app.widgets.banner import Banner
from app.widgets.icons import IconButton
from app.widgets.inputs import LazyComboBox
from resources.language import tr

MAX_HEIGHT_FRACTION = 0.6
"""Share of the surrounding part's height; what is longer scrolls."""
MIN_HEIGHT = 40
"""Pixels that a message gets in any case; it scrolls."""
MARGIN = 16


class MessageArea(QScrollArea):
    """Banners below each other; no height at all while all of them are hidden."""

    def __init__(self, banners: Iterable[QWidget], around: QWidget) -> None:
        super().__init__(around, widgetResizable=True)
        self.setObjectName("messageArea")
        self._around = around
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self._content = QWidget()
        self._column = QVBoxLayout(self._content)
        self._column.setContentsMargins(MARGIN, 0, MARGIN, 0)
        self._column.setSpacing(0)
        for banner in banners:
            self._column.addWidget(banner)
        self.setWidget(self._content)
        for watched in (self._content, around):
            watched.installEventFilter(self)
        self._fit()

    def minimumSizeHint(self) -> QSize:
        """It can be narrow."""
        return QSize(0, 0)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """A banner has come, gone or changed, or there is other room."""
        if event.type() in (QEvent.Type.LayoutRequest, QEvent.Type.Resize):
            self._fit()
        return False

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    def _available_height(self) -> int:
        """What the parts above and below it can spare."""
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


class Centre(QWidget):
    """Views, a second column of them when split, the choice among several texts, and both banners."""

    viewCreated = Signal(object)
    viewShown = Signal(object)
    sequenceRequested = Signal(int)

    def __init__(self, specs: Sequence[ViewSpec], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("centre")
        self._specs = list(specs)
        self._theme: Theme | None = None
        self._availability: dict[str, bool] = {}
        self.error_banner = Banner("errorBanner")
        self.notice_banner = Banner("noticeBanner", icon="info", role="card")
        self._progress_container = QWidget()
        self.progress = QProgressBar(self._progress_container, textVisible=False)
        self.progress.setObjectName("loadingBar")
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
        """Every view, of both columns; those that are not there yet are made."""
        for column in self.columns:
            yield from column.views

    @property
    def created_views(self) -> Iterator[View]:
        """Every view that has been wanted so far, of both columns."""
        for column in self.columns:
            yield from column.created_views

    def create_all_views(self) -> None:
        """Make every view of the first column now."""
        while self.columns[0].create_next_view():
            pass

    @Slot()
    def create_remaining_views(self) -> None:
        """Make the first column's other views, one at a time, while there is nothing else to do."""
        if self.columns[0].create_next_view():
            QTimer.singleShot(0, self, self.create_remaining_views)

    def show_view(self, name: str) -> bool:
        """Bring a view to the front in the first column; False when there is none of that name."""
        return self.columns[0].show_view(name)

    def show_number(self, number: int) -> None:
        """Bring the `number`th view (0 the first) to the front, if there are so many."""
        if number < len(self._specs):
            self.columns[0].show_view(self._specs[number].name)

    def set_view_available(self, name: str, is_available: bool) -> None:
        """Whether there is a tab of that name, in either column."""
        self._availability[name] = is_available
        for column in self.columns:
            column.set_view_available(name, is_available)

    def set_loading(self, loading: bool) -> None:
        """Let the thin bar at the top run; its place is always kept. Hidden, for a style ends its animation only then:
        one that is seen, though still, would have the window painted thirty times a second."""
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
            self.splitter.handle(self.splitter.count() - 1).setAccessibleName(tr("Room for the left view"))
            if self._theme is not None:
                column.set_theme(self._theme)
            for view in column.created_views:
                self.viewCreated.emit(view)
            column.show_view("tree")
        elif not split and len(self.columns) == 2:
            self.columns.pop().deleteLater()

    def set_presenting(self, on: bool) -> None:
        """One view, and nothing else to be seen; or everything again."""
        for column in self.columns:
            column.set_presenting(on)
        self._progress_container.setVisible(not on)
        for column in self.columns[1:]:
            column.setVisible(not on)

    def show_adjacent_view(self, offset: int) -> None:
        """Bring the view that is so many tabs further on to the front, around at either end."""
        first = self.columns[0]
        names = first.available_names
        first.show_view(names[(names.index(first.current_name) + offset) % len(names)])

    def update_sequence_selector(self, run: Run | None) -> None:
        """Offer the choice among a run's texts when it writes more than one and the view has no choice of its own."""
        several = len(run.sequences) if run is not None else 1
        texts = several if several > 1 else 0  # nothing to choose from one
        if self.sequence_combo.count() != texts:
            self.sequence_combo.blockSignals(True)
            self.sequence_combo.clear()
            self.sequence_combo.addItems(
                [tr("Text {number} of {texts}").format(number=number + 1, texts=texts) for number in range(texts)]
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

    def set_theme(self, theme: Theme) -> None:
        """Colours and sizes of everything in the centre."""
        self._theme = theme
        themed: tuple[Themeable, ...] = (self.error_banner, self.notice_banner, self.split_button, *self.columns)
        for part in themed:
            part.set_theme(theme)
        self._progress_container.setFixedHeight(2)
        self.progress.setFixedHeight(2)

    def _make_corner(self) -> None:
        self.sequence_combo = LazyComboBox()
        self.sequence_combo.setObjectName("sequenceCombo")
        self.sequence_combo.setAccessibleName(tr("Text that is shown"))
        self.sequence_combo.hide()
        self.sequence_combo.currentIndexChanged.connect(self.sequenceRequested)
        self.split_button = IconButton("split", tr("Split the views"))
        self.split_button.setCheckable(True)
        self.split_button.toggled.connect(self.set_split)
        self.split_button.setVisible(len(self._specs) > 1)
        self.columns[0].header.add_tool(self.sequence_combo)
        self.columns[0].header.corner.addWidget(self.split_button)

    def _lay_out(self) -> None:
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        place = QVBoxLayout(self._progress_container)
        place.setContentsMargins(0, 0, 0, 0)
        place.addWidget(self.progress)
        column.addWidget(self._progress_container)
        first = self.columns[0]
        self.messages = MessageArea((self.error_banner, self.notice_banner), first)
        first.add_message_area(self.messages)
        column.addWidget(self.splitter, 1)
