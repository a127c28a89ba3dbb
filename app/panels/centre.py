"""The centre: the views as tabs, two columns of them when split, and messages above them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from PySide6.QtCore import QPoint, Qt, QTimer, Signal, Slot
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import (
    QComboBox,
    QFrame,
    QHBoxLayout,
    QProgressBar,
    QSizePolicy,
    QSplitter,
    QStackedWidget,
    QVBoxLayout,
    QWidget,
)

from app.panels.message_area import MessageArea
from app.panels.tool_side import ToolSide
from app.panels.view_tabs import ViewTabs
from app.state.run import Run
from app.state.terms import told
from app.theme.theme import Theme, Themed
from app.views import ViewSpec
from app.views.base import View
from app.widgets.banner import Banner
from app.widgets.icons import IconButton
from app.widgets.late_tip import LateTip
from resources.language import tr

LEFT, GAP, RIGHT = 13, 4, 10


class ViewColumn(QWidget):
    """A tab bar over a stack of views, with the shown view's own tools at the right.

    A view is made when it is first shown or asked for; `viewMade` tells of it.
    """

    viewMade = Signal(object)
    viewShown = Signal(object)

    def __init__(self, specs: Sequence[ViewSpec], suffix: str = "", parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._specs = list(specs)
        self._suffix = suffix
        self._theme: Theme | None = None
        self._made: dict[int, View] = {}
        self._row_height = 40
        self._is_presenting = False
        self.tabs = ViewTabs(tr(spec.title) for spec in self._specs)
        LateTip(self.tabs, lambda place: f"view.{self.name_at(place)}", told)
        self.stack = QStackedWidget()
        self.tools = QStackedWidget()
        self.tools.setObjectName("toolStack")
        self.side = ToolSide()
        """The tools, and whatever else goes to a line of its own together with them."""
        self.corner = QHBoxLayout()
        for _spec in self._specs:
            self.stack.addWidget(QWidget())
            self.tools.addWidget(QWidget())
        self.tabs.currentChanged.connect(self._on_tab)
        self.side.widthChanged.connect(self.fit_header)
        self._lay_out()
        for index, spec in enumerate(self._specs):
            self.tabs.set_absent(index, spec.comes_later)
        self._on_tab(0)

    @property
    def views(self) -> list[View]:
        """All of them, in the order of their tabs; those that are not there yet are made."""
        return [self._view(index) for index in range(len(self._specs))]

    @property
    def made(self) -> list[View]:
        """Those that have been wanted so far."""
        return list(self._made.values())

    def make_next(self) -> bool:
        """Make one that nobody has wanted yet; False when all are there."""
        missing = [index for index in range(len(self._specs)) if index not in self._made]
        if missing:
            self._view(missing[0])
        return len(missing) > 1

    @property
    def current(self) -> str:
        """Name of the view that is shown."""
        return str(self._specs[self.tabs.currentIndex()].name)

    @property
    def title(self) -> str:
        """What stands on the tab of the view that is shown."""
        return tr(self._specs[self.tabs.currentIndex()].title)

    @property
    def shown(self) -> View:
        """The view that is shown."""
        return self._view(self.tabs.currentIndex())

    @property
    def offered(self) -> list[str]:
        """Names of the views that have a tab now."""
        return [spec.name for index, spec in enumerate(self._specs) if not self.tabs.is_absent(index)]

    def view(self, name: str) -> View:
        """The view of that name, in front or not. Raises ValueError when there is none."""
        return self._view([spec.name for spec in self._specs].index(name))

    def name_at(self, place: QPoint) -> str:
        """Name of the view whose tab lies there in the tab bar; of the one in front where none does."""
        index = self.tabs.tabAt(place)
        return str(self._specs[index if index >= 0 else self.tabs.currentIndex()].name)

    def show_view(self, name: str) -> bool:
        """Bring a view to the front; False when there is none of that name."""
        names = [spec.name for spec in self._specs]
        is_there = name in names and not self.tabs.is_absent(names.index(name))
        if is_there:
            self.tabs.setCurrentIndex(names.index(name))
        return is_there

    def offer_view(self, name: str, is_there: bool) -> None:
        """Whether there is a tab of that name."""
        index = [spec.name for spec in self._specs].index(name)
        if self.tabs.set_absent(index, not is_there):
            self.fit_header()

    def set_theme(self, theme: Theme) -> None:
        """Colours and sizes, the views' too."""
        self._theme = theme
        self._row_height = theme.px(20) + theme.space(20)
        self._strut.setFixedSize(0, self._row_height)
        for view in self.made:
            view.set_theme(theme)
        self.tabs.measure()
        self.fit_header()

    def set_presenting(self, on: bool) -> None:
        """Only the view is to be seen, as it is on a stage; those that are made meanwhile, too."""
        self._is_presenting = on
        self.header.setVisible(not on)
        for view in self.made:
            view.set_presenting(on)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.fit_header()

    def _view(self, index: int) -> View:
        if index not in self._made:
            view = self._made[index] = self._specs[index].factory()
            view.setObjectName(view.objectName() + self._suffix)
            if self._theme is not None:
                view.set_theme(self._theme)
            if self._is_presenting:
                view.set_presenting(True)
            _replace(self.stack, index, view)
            _replace(self.tools, index, view.header_widget() or QWidget())
            self._fit_tools()
            self.viewMade.emit(view)
        return self._made[index]

    def _lay_out(self) -> None:
        self.header = QFrame()
        self.header.setProperty("role", "bar")
        self._first, self._second = QHBoxLayout(), QHBoxLayout()
        for row in (self._first, self._second):
            row.setSpacing(GAP)
            row.setContentsMargins(LEFT, 0, RIGHT, 0)
        self._strut = QWidget()
        self._first.addWidget(self._strut)
        self._first.addWidget(self.tabs, 0, Qt.AlignmentFlag.AlignBottom)
        self._first.addWidget(self.tabs.more)
        self._first.addStretch(1)
        side = self._side_row = QHBoxLayout(self.side)
        side.setContentsMargins(0, 0, 0, 0)
        side.setSpacing(2 * GAP)
        side.addWidget(self.tools)
        self._first.addWidget(self.side)
        self._first.addLayout(self.corner)
        rows = QVBoxLayout(self.header)
        rows.setContentsMargins(0, 0, 0, 0)
        rows.setSpacing(0)
        rows.addLayout(self._first)
        rows.addLayout(self._second)
        column = self._column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(self.header)
        column.addWidget(self.stack, 1)

    def add_tool(self, tool: QWidget) -> None:
        """Stand beside the shown view's own tools."""
        self._side_row.addWidget(tool)

    def add_message_area(self, area: QWidget) -> None:
        """Stand under the tabs, which then keep their place."""
        self._column.insertWidget(1, area)

    @Slot(int)
    def _on_tab(self, index: int) -> None:
        view = self._view(index)
        self.stack.setCurrentIndex(index)
        self.tools.setCurrentIndex(index)
        self._fit_tools()
        self.viewShown.emit(view)

    def _fit_tools(self) -> None:
        """The shown view's tools take their own width, not that of the widest."""
        for number in range(self.tools.count()):
            shown = number == self.tools.currentIndex()
            policy = QSizePolicy.Policy.Preferred if shown else QSizePolicy.Policy.Ignored
            tools = self.tools.widget(number)
            if tools is not None:
                tools.setSizePolicy(policy, policy)
        self.tools.updateGeometry()
        self.fit_header()

    @Slot()
    def fit_header(self) -> None:
        """Tabs and tools on one line if need be with the tabs closer together; else the tools get their own."""
        room = self.width() - LEFT - RIGHT - 4 * GAP - self.corner.sizeHint().width()
        tools = self.side.sizeHint().width() + GAP
        beside = tools <= GAP or self.tabs.needed(tight=True) + tools <= room  # no line for no tools
        self._put_tools(below=not beside)
        room -= tools * beside
        self.tabs.fit(room, tight=self.tabs.needed(tight=False) > room)
        self.header.setFixedHeight(self._row_height * (1 if beside else 2))

    def _put_tools(self, below: bool) -> None:
        if below == (self._second.indexOf(self.side) >= 0):
            return
        (self._first if below else self._second).removeWidget(self.side)
        if below:
            self._second.addWidget(self.side, 0, Qt.AlignmentFlag.AlignLeft)
        else:
            self._first.insertWidget(self._first.count() - 1, self.side)


def _replace(stack: QStackedWidget, index: int, widget: QWidget) -> None:
    """Put `widget` into the place of another, which is shown no more."""
    shown, old = stack.currentIndex(), stack.widget(index)
    if old is not None:
        stack.removeWidget(old)
        old.deleteLater()
    stack.insertWidget(index, widget)
    stack.setCurrentIndex(shown)


class Centre(QWidget):
    """Views, a second column of them when split, the choice among several texts, and both banners."""

    viewAdded = Signal(object)
    viewShown = Signal(object)
    sequenceWanted = Signal(int)

    def __init__(self, specs: Sequence[ViewSpec], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("centre")
        self._specs = list(specs)
        self._theme: Theme | None = None
        self._offered: dict[str, bool] = {}
        self.error_banner = Banner("errorBanner")
        self.notice_banner = Banner("noticeBanner", icon="info", role="card")
        self.progress = QProgressBar(textVisible=False)
        self.progress.setObjectName("loadingBar")
        self.progress.setRange(0, 0)
        self.progress.setAccessibleName(tr("Loading"))
        self.columns = [ViewColumn(self._specs)]
        self.columns[0].viewShown.connect(self._on_view_shown)
        self.columns[0].viewMade.connect(self.viewAdded)
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
    def made(self) -> Iterator[View]:
        """Every view that has been wanted so far, of both columns."""
        for column in self.columns:
            yield from column.made

    def make_all(self) -> None:
        """Make every view of the first column now."""
        while self.columns[0].make_next():
            pass

    @Slot()
    def make_the_rest(self) -> None:
        """Make the first column's other views, one at a time, while there is nothing else to do."""
        if self.columns[0].make_next():
            QTimer.singleShot(0, self, self.make_the_rest)

    def show_view(self, name: str) -> bool:
        """Bring a view to the front in the first column; False when there is none of that name."""
        return self.columns[0].show_view(name)

    def show_number(self, number: int) -> None:
        """Bring the `number`th view (0 the first) to the front, if there are so many."""
        if number < len(self._specs):
            self.columns[0].show_view(self._specs[number].name)

    def offer_view(self, name: str, is_there: bool) -> None:
        """Whether there is a tab of that name, in either column."""
        self._offered[name] = is_there
        for column in self.columns:
            column.offer_view(name, is_there)

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
            column.viewMade.connect(self.viewAdded)
            self.columns.append(column)
            for name, is_there in self._offered.items():
                column.offer_view(name, is_there)
            self.splitter.addWidget(column)
            self.splitter.handle(self.splitter.count() - 1).setAccessibleName(tr("Room for the left view"))
            if self._theme is not None:
                column.set_theme(self._theme)
            for view in column.made:
                self.viewAdded.emit(view)
            column.show_view("tree")
        elif not split and len(self.columns) == 2:
            self.columns.pop().deleteLater()

    def set_presenting(self, on: bool) -> None:
        """One view, and nothing else to be seen; or everything again."""
        for column in self.columns:
            column.set_presenting(on)
        self.progress.setVisible(not on)
        for column in self.columns[1:]:
            column.setVisible(not on)

    def show_beside(self, by: int) -> None:
        """Bring the view that is so many tabs further on to the front, around at either end."""
        first = self.columns[0]
        names = first.offered
        first.show_view(names[(names.index(first.current) + by) % len(names)])

    def show_texts(self, run: Run | None) -> None:
        """Offer the choice among a run's texts when it writes more than one and the view has no choice of its own."""
        texts = len(run.sequences) if run is not None else 1
        if self.texts.count() != texts:
            self.texts.blockSignals(True)
            self.texts.clear()
            self.texts.addItems(
                [tr("Text {number} of {texts}").format(number=number + 1, texts=texts) for number in range(texts)]
            )
            self.texts.blockSignals(False)
            self._offer_texts()
        if run is not None and self.texts.currentIndex() != run.shown:
            self.texts.setCurrentIndex(run.shown)

    def _offer_texts(self) -> None:
        self.texts.setVisible(self.texts.count() > 1 and not self.columns[0].shown.chooses_sequence)
        self.columns[0].fit_header()

    @Slot(object)
    def _on_view_shown(self, view: View) -> None:
        self._offer_texts()
        self.viewShown.emit(view)

    def set_theme(self, theme: Theme) -> None:
        """Colours and sizes of everything in the centre."""
        self._theme = theme
        themed: tuple[Themed, ...] = (self.error_banner, self.notice_banner, self.split, *self.columns)
        for part in themed:
            part.set_theme(theme)
        self.progress.setFixedHeight(2)

    def _make_corner(self) -> None:
        self.texts = QComboBox()
        self.texts.setObjectName("sequenceCombo")
        self.texts.setAccessibleName(tr("Text that is shown"))
        self.texts.hide()
        self.texts.currentIndexChanged.connect(self.sequenceWanted)
        self.split = IconButton("split", tr("Split the views"))
        self.split.setCheckable(True)
        self.split.toggled.connect(self.set_split)
        self.split.setVisible(len(self._specs) > 1)
        self.columns[0].add_tool(self.texts)
        self.columns[0].corner.addWidget(self.split)

    def _lay_out(self) -> None:
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(self.progress)
        first = self.columns[0]
        self.messages = MessageArea((self.error_banner, self.notice_banner), first)
        first.add_message_area(self.messages)
        column.addWidget(self.splitter, 1)
