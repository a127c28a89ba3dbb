"""What stands above a column of views: their tabs, and the tools of the one that is shown."""

from __future__ import annotations

from collections.abc import Iterable

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFrame, QHBoxLayout, QSizePolicy, QStackedWidget, QVBoxLayout, QWidget

from app.panels.toolbar_side import ToolContainer
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
        self.tool_container = ToolContainer()
        """The tools, and whatever else goes to a line of its own together with them."""
        self.corner = QHBoxLayout()
        self._lay_out()

    def _lay_out(self) -> None:
        self._first_line, self._second_line = QHBoxLayout(), QHBoxLayout()
        for row in (self._first_line, self._second_line):
            row.setSpacing(GAP)
            row.setContentsMargins(LEFT, 0, RIGHT, 0)
        self._spacer = QWidget()
        self._first_line.addWidget(self._spacer)
        self._first_line.addWidget(self.tabs, 0, Qt.AlignmentFlag.AlignBottom)
        self._first_line.addWidget(self.tabs.more_button)
        self._first_line.addStretch(1)
        side = self._side_row = QHBoxLayout(self.tool_container)
        side.setContentsMargins(0, 0, 0, 0)
        side.setSpacing(2 * GAP)
        side.addWidget(self.tools)
        self._first_line.addWidget(self.tool_container)
        self._first_line.addLayout(self.corner)
        rows = QVBoxLayout(self)
        rows.setContentsMargins(0, 0, 0, 0)
        rows.setSpacing(0)
        rows.addLayout(self._first_line)
        rows.addLayout(self._second_line)

    def set_theme(self, theme: Theme) -> None:
        """Take other sizes; `fit` has to follow."""
        self._row_height = theme.px(20) + theme.space(20)
        self._spacer.setFixedSize(0, self._row_height)
        self.tabs.measure_tabs(theme)

    def add_tool(self, tool: QWidget) -> None:
        """Stand beside the shown view's own tools."""
        self._side_row.addWidget(tool)

    def set_tools(self, index: int, tools: QWidget) -> None:
        """These are the tools of that view."""
        replace_widget(self.tools, index, tools)
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
        tools = self.tool_container.sizeHint().width() + GAP
        beside = tools <= GAP or self.tabs.total_width(tight=True) + tools <= room  # no line for no tools
        self._move_tools(below=not beside)
        room -= tools * beside
        self.tabs.fit(room, tight=self.tabs.total_width(tight=False) > room)
        self.setFixedHeight(self._row_height * (1 if beside else 2))

    def _move_tools(self, below: bool) -> None:
        if below == (self._second_line.indexOf(self.tool_container) >= 0):
            return
        (self._first_line if below else self._second_line).removeWidget(self.tool_container)
        if below:
            self._second_line.addWidget(self.tool_container, 0, Qt.AlignmentFlag.AlignLeft)
        else:
            self._first_line.insertWidget(self._first_line.count() - 1, self.tool_container)


def replace_widget(stack: QStackedWidget, index: int, widget: QWidget) -> None:
    """Put `widget` into the place of another, which is shown no more."""
    shown, old = stack.currentIndex(), stack.widget(index)
    if old is not None:
        stack.removeWidget(old)
        old.deleteLater()
    stack.insertWidget(index, widget)
    stack.setCurrentIndex(shown)
