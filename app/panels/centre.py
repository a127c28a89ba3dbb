"""The centre: the views as tabs, two columns of them when split, and messages above them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import (
    QComboBox,
    QFrame,
    QHBoxLayout,
    QProgressBar,
    QSizePolicy,
    QSplitter,
    QStackedWidget,
    QTabBar,
    QVBoxLayout,
    QWidget,
)

from app.run import Run
from app.theme import Theme
from app.widgets.banner import Banner
from app.widgets.icons import IconButton


class ViewColumn(QWidget):
    """A tab bar over a stack of views, with the shown view's own tools at the right."""

    viewShown = Signal(object)

    def __init__(self, specs: Sequence[Any], suffix: str = "", parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._specs = list(specs)
        self.views = [spec.factory() for spec in self._specs]
        for view in self.views:
            view.setObjectName(view.objectName() + suffix)
        self._row_height = 40
        self.tabs = QTabBar(expanding=False, drawBase=False, usesScrollButtons=False)
        self.tabs.setAccessibleName("Views")
        self.stack = QStackedWidget()
        self.tools = QStackedWidget(objectName="toolStack")
        self.corner = QHBoxLayout()
        self._fill()
        self.tabs.currentChanged.connect(self._on_tab)
        self._lay_out()
        self._fit_tools()

    @property
    def current(self) -> str:
        """Name of the view that is shown."""
        return str(self._specs[self.tabs.currentIndex()].name)

    def show_view(self, name: str) -> bool:
        """Bring a view to the front; False when there is none of that name."""
        names = [spec.name for spec in self._specs]
        if name in names:
            self.tabs.setCurrentIndex(names.index(name))
        return name in names

    def set_theme(self, theme: Theme) -> None:
        """Colours and sizes, the views' too."""
        self._row_height = theme.px(40)
        self._strut.setFixedSize(0, self._row_height)
        for view in self.views:
            view.set_theme(theme)
        self._fit_header()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit_header()

    def _fill(self) -> None:
        for spec, view in zip(self._specs, self.views, strict=True):
            self.tabs.addTab(spec.title)
            self.stack.addWidget(view)
            make = getattr(view, "header_widget", None)
            self.tools.addWidget((make() if make else None) or QWidget())

    def _lay_out(self) -> None:
        self.header = QFrame()
        self.header.setProperty("role", "bar")
        self._first, self._second = QHBoxLayout(), QHBoxLayout()
        for row in (self._first, self._second):
            row.setSpacing(4)
            row.setContentsMargins(13, 0, 10, 0)
        self._strut = QWidget()
        self._first.addWidget(self._strut)
        self._first.addWidget(self.tabs, 0, Qt.AlignmentFlag.AlignBottom)
        self._first.addStretch(1)
        self._first.addWidget(self.tools)
        self._first.addLayout(self.corner)
        rows = QVBoxLayout(self.header)
        rows.setContentsMargins(0, 0, 0, 0)
        rows.setSpacing(0)
        rows.addLayout(self._first)
        rows.addLayout(self._second)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(self.header)
        column.addWidget(self.stack, 1)

    @Slot(int)
    def _on_tab(self, index: int) -> None:
        self.stack.setCurrentIndex(index)
        self.tools.setCurrentIndex(index)
        self._fit_tools()
        self.viewShown.emit(self.views[index])

    def _fit_tools(self) -> None:
        """The shown view's tools take their own width, not that of the widest."""
        for number in range(self.tools.count()):
            shown = number == self.tools.currentIndex()
            policy = QSizePolicy.Policy.Preferred if shown else QSizePolicy.Policy.Ignored
            self.tools.widget(number).setSizePolicy(policy, policy)
        self.tools.updateGeometry()
        self._fit_header()

    def _fit_header(self) -> None:
        """Tools that have no room beside the tabs get a line of their own."""
        needed = self.tabs.sizeHint().width() + self.tools.sizeHint().width() + self.corner.sizeHint().width() + 40
        below = needed > self.width()
        if below != (self._second.indexOf(self.tools) >= 0):
            (self._first if below else self._second).removeWidget(self.tools)
            if below:
                self._second.addWidget(self.tools, 0, Qt.AlignmentFlag.AlignLeft)
            else:
                self._first.insertWidget(3, self.tools)
        self.header.setFixedHeight(self._row_height * (1 + below))


class Centre(QWidget):
    """Views, a second column of them when split, the choice among several texts, and both banners."""

    viewAdded = Signal(object)
    viewShown = Signal(object)
    sequenceWanted = Signal(int)

    def __init__(self, specs: Sequence[Any], parent: QWidget | None = None) -> None:
        super().__init__(parent, objectName="centre")
        self._specs = list(specs)
        self._theme: Theme | None = None
        self.error_banner = Banner("errorBanner")
        self.notice_banner = Banner("noticeBanner", icon="info", role="card")
        self.progress = QProgressBar(textVisible=False, objectName="loadingBar")
        self.progress.setRange(0, 0)
        self.progress.setAccessibleName("Loading")
        self.columns = [ViewColumn(self._specs)]
        self.columns[0].viewShown.connect(self.viewShown)
        self.splitter = QSplitter(Qt.Orientation.Horizontal, childrenCollapsible=False, handleWidth=1)
        self.splitter.addWidget(self.columns[0])
        self._make_corner()
        self._lay_out()
        self.set_loading(False)

    @property
    def views(self) -> Iterator[Any]:
        """Every view there is, of both columns."""
        for column in self.columns:
            yield from column.views

    def show_view(self, name: str) -> bool:
        """Bring a view to the front in the first column; False when there is none of that name."""
        return self.columns[0].show_view(name)

    def show_number(self, number: int) -> None:
        """Bring the `number`th view (0 the first) to the front, if there are so many."""
        if number < len(self._specs):
            self.columns[0].tabs.setCurrentIndex(number)

    def set_loading(self, loading: bool) -> None:
        """Let the thin bar at the top run; its place is always kept."""
        self.progress.setRange(0, 0 if loading else 1)
        self.progress.setValue(0)
        self.progress.setProperty("idle", not loading)
        self.progress.style().unpolish(self.progress)
        self.progress.style().polish(self.progress)

    @Slot(bool)
    def set_split(self, split: bool) -> None:
        """Open or close the second column."""
        if split and len(self.columns) == 1:
            column = ViewColumn(self._specs, suffix="2")
            column.viewShown.connect(self.viewShown)
            self.columns.append(column)
            self.splitter.addWidget(column)
            if self._theme is not None:
                column.set_theme(self._theme)
            column.show_view("tree")
            for view in column.views:
                self.viewAdded.emit(view)
        elif not split and len(self.columns) == 2:
            self.columns.pop().deleteLater()

    def show_texts(self, run: Run | None) -> None:
        """Offer the choice among a run's texts when it writes more than one."""
        texts = len(run.sequences) if run is not None else 1
        if self.texts.count() != texts:
            self.texts.blockSignals(True)
            self.texts.clear()
            self.texts.addItems([f"Text {number + 1} of {texts}" for number in range(texts)])
            self.texts.blockSignals(False)
            self.texts.setVisible(texts > 1)
        if run is not None and self.texts.currentIndex() != run.shown:
            self.texts.setCurrentIndex(run.shown)

    def set_theme(self, theme: Theme) -> None:
        """Colours and sizes of everything in the centre."""
        self._theme = theme
        for part in (*self.columns, self.error_banner, self.notice_banner, self.split, *self.toggles):
            part.set_theme(theme)
        self.progress.setFixedHeight(2)

    def _make_corner(self) -> None:
        self.texts = QComboBox(objectName="sequenceCombo")
        self.texts.setAccessibleName("Text that is shown")
        self.texts.hide()
        self.texts.currentIndexChanged.connect(self.sequenceWanted)
        self.split = IconButton("split", "Split the views")
        self.split.setCheckable(True)
        self.split.toggled.connect(self.set_split)
        self.split.setVisible(len(self._specs) > 1)
        self.setup_toggle = IconButton("panel-left", "Prompt and parameters")
        self.timeline_toggle = IconButton("panel-bottom", "Timeline")
        self.inspector_toggle = IconButton("panel-right", "Inspector")
        self.toggles = (self.setup_toggle, self.timeline_toggle, self.inspector_toggle)
        for part in (self.texts, self.split, *self.toggles):
            self.columns[0].corner.addWidget(part)
        for toggle in self.toggles:
            toggle.setCheckable(True)

    def _lay_out(self) -> None:
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(self.progress)
        messages = QVBoxLayout()
        messages.setContentsMargins(16, 0, 16, 0)
        messages.setSpacing(0)
        for banner in (self.error_banner, self.notice_banner):
            messages.addWidget(banner)
        self.columns[0].layout().insertLayout(1, messages)  # under the tabs, which then keep their place
        column.addWidget(self.splitter, 1)
