"""What stands above a column of views: their tabs, and the tools of the one that is shown."""

from __future__ import annotations

from collections.abc import Iterable

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFrame, QHBoxLayout, QSizePolicy, QStackedWidget, QVBoxLayout, QWidget

from app.panels.toolbar_side import ToolSide
from app.panels.view_tabs import ViewTabs
from app.theme.theme import Theme

LEFT, GAP, RIGHT = 13, 4, 10


class ViewHeader(QFrame):
    """Tabs at the left, tools at the right, and the tools below where one line has no room for both."""

    def __init__(self, titles: Iterable[str]) -> None:
        super().__init__()
        self.setProperty("role", "bar")
        self._row_height = 40
        self.tabs = ViewTabs(titles)
        self.tools = QStackedWidget()
        self.tools.setObjectName("toolStack")
        for _tab in range(self.tabs.count()):
            self.tools.addWidget(QWidget())
        self.side = ToolSide()
        """The tools, and whatever else goes to a line of its own together with them."""
        self.corner = QHBoxLayout()
        self._lay_out()

    def _lay_out(self) -> None:
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
        rows = QVBoxLayout(self)
        rows.setContentsMargins(0, 0, 0, 0)
        rows.setSpacing(0)
        rows.addLayout(self._first)
        rows.addLayout(self._second)

    def set_theme(self, theme: Theme) -> None:
        """Take other sizes; `fit` has to follow."""
        self._row_height = theme.px(20) + theme.space(20)
        self._strut.setFixedSize(0, self._row_height)
        self.tabs.measure(theme)

    def add_tool(self, tool: QWidget) -> None:
        """Stand beside the shown view's own tools."""
        self._side_row.addWidget(tool)

    def put_tools(self, index: int, tools: QWidget) -> None:
        """These are the tools of that view."""
        put_in_place(self.tools, index, tools)
        self._size_tools()

    def show_tools(self, index: int) -> None:
        """Let the tools of that view be seen."""
        self.tools.setCurrentIndex(index)
        self._size_tools()

    def _size_tools(self) -> None:
        """The shown view's tools take their own width, not that of the widest."""
        for number in range(self.tools.count()):
            shown = number == self.tools.currentIndex()
            policy = QSizePolicy.Policy.Preferred if shown else QSizePolicy.Policy.Ignored
            tools = self.tools.widget(number)
            if tools is not None:
                tools.setSizePolicy(policy, policy)
        self.tools.updateGeometry()

    def fit(self, width: int) -> None:
        """Tabs and tools on one line if need be with the tabs closer together; else the tools get their own."""
        room = width - LEFT - RIGHT - 4 * GAP - self.corner.sizeHint().width()
        tools = self.side.sizeHint().width() + GAP
        beside = tools <= GAP or self.tabs.needed(tight=True) + tools <= room  # no line for no tools
        self._put_side(below=not beside)
        room -= tools * beside
        self.tabs.fit(room, tight=self.tabs.needed(tight=False) > room)
        self.setFixedHeight(self._row_height * (1 if beside else 2))

    def _put_side(self, below: bool) -> None:
        if below == (self._second.indexOf(self.side) >= 0):
            return
        (self._first if below else self._second).removeWidget(self.side)
        if below:
            self._second.addWidget(self.side, 0, Qt.AlignmentFlag.AlignLeft)
        else:
            self._first.insertWidget(self._first.count() - 1, self.side)


def put_in_place(stack: QStackedWidget, index: int, widget: QWidget) -> None:
    """Put `widget` into the place of another, which is shown no more."""
    shown, old = stack.currentIndex(), stack.widget(index)
    if old is not None:
        stack.removeWidget(old)
        old.deleteLater()
    stack.insertWidget(index, widget)
    stack.setCurrentIndex(shown)
