"""Header of a column of views: tabs, and the tools of the shown view."""

from __future__ import annotations

from collections.abc import Iterable

from PySide6.QtCore import QEvent, QSize, Qt, Signal, Slot
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QFrame, QHBoxLayout, QMenu, QSizePolicy, QStackedWidget, QToolButton, QVBoxLayout, QWidget

from decodescope.app.panels.commands import MAX_VIEW_KEYS
from decodescope.app.theme.theme import Theme
from decodescope.app.theme.themed import Themed
from decodescope.app.widgets.building import STRETCH, arrange, set_up
from decodescope.app.widgets.inputs import TabBar
from decodescope.app.widgets.plain_text import caption
from decodescope.resources.language import tr


class ToolContainer(QWidget):
    """Tool container. Emits `widthChanged` when its size hint changes, so that the tabs can be fitted again."""

    widthChanged = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._width = 0

    def event(self, event: QEvent) -> bool:
        """Check the size hint after a layout request."""
        done = super().event(event)
        if event.type() == QEvent.Type.LayoutRequest and self.sizeHint().width() != self._width:
            self._width = self.sizeHint().width()
            self.widthChanged.emit()
        return done


MARGIN, TIGHT_MARGIN = 9, 5
"""Margins of a tab in pixels at 100 %: as in the theme's stylesheet, and when tight."""


class ViewTabs(TabBar):
    """Tab bar that always shows the current tab; `more_button` is the button of the overflow menu."""

    def __init__(self, titles: Iterable[str], parent: QWidget | None = None) -> None:
        super().__init__(parent, expanding=False, drawBase=False, usesScrollButtons=False)
        self.setAccessibleName(tr("Views"))
        self.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Preferred)
        self.setElideMode(Qt.TextElideMode.ElideNone)
        for title in titles:
            self.addTab(caption(title))
        self.more_button = set_up(QToolButton(), name="moreViews")
        self.more_button.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        self.more_button.setAccessibleName(tr("More views"))
        self.more_button.setToolTip(tr("More views"))
        self.more_button.setMenu(self._menu())
        self.more_button.setText("+9 ⌄")
        self.more_button.hide()
        self._widths: dict[bool, list[int]] = {}
        self._is_tight, self._tight_rules = False, ""
        self._removed: set[int] = set()
        self._optional: set[int] = set()

    def minimumSizeHint(self) -> QSize:
        """Allow the width of one tab, since the others can move into the menu."""
        return QSize(max(self._widths.get(True, [0])), super().minimumSizeHint().height())

    def measure_tabs(self, theme: Theme) -> None:
        """Measure the tab widths after a change of the font."""
        self._set_tight(False)
        self.ensurePolished()
        saved = 2 * (theme.space(MARGIN) - theme.px(TIGHT_MARGIN))
        self._widths[False] = [self.tabSizeHint(index).width() for index in range(self.count())]
        self._widths[True] = [width - saved for width in self._widths[False]]
        self._tight_rules = f"QTabBar::tab {{ margin: 0 {theme.px(TIGHT_MARGIN)}px; }}"

    def set_optional(self, index: int) -> None:
        """Remove a tab that comes and goes with what is shown."""
        self._optional.add(index)
        self._removed.add(index)

    def set_removed(self, index: int, absent: bool) -> bool:
        """Remove a tab, even from the menu, or restore it; False if nothing changed. The current tab stays until
        another is selected.
        """
        changed = absent != (index in self._removed)
        if absent:
            self._removed.add(index)
        else:
            self._removed.discard(index)
        return changed

    def is_removed(self, index: int) -> bool:
        """Return whether that tab cannot be selected now."""
        return index in self._removed and index != self.currentIndex()

    def total_width(self, tight: bool) -> int:
        """Return the width of all tabs, tight or not."""
        return sum(width for index, width in enumerate(self._widths[tight]) if not self.is_removed(index))

    def lasting_width(self) -> int:
        """Return the width of the tabs that are always there, as tight as possible."""
        return sum(width for index, width in enumerate(self._widths[True]) if index not in self._optional)

    def fit(self, available_width: int, tight: bool) -> None:
        """Show as many tabs as fit into `available_width` pixels, including the current one."""
        self._set_tight(tight)
        shown = self._visible_tabs(available_width, tight)
        for index in range(self.count()):
            if self.isTabVisible(index) != (index in shown):
                self.setTabVisible(index, index in shown)
        actions = enumerate(self.more_button.menu().actions())
        hidden = [action for index, action in actions if index not in shown and not self.is_removed(index)]
        for action in self.more_button.menu().actions():
            action.setVisible(action in hidden)
        self.more_button.setText(f"+{len(hidden)} ⌄")
        self.more_button.setVisible(bool(hidden))
        self.updateGeometry()

    def _visible_tabs(self, available_width: int, tight: bool) -> set[int]:
        """Return the tabs to show: all, or the current one, optional ones and the first ones that fit with the menu
        button. A tab that has just come is to be seen.
        """
        widths = self._widths[tight]
        there = [index for index in range(len(widths)) if not self.is_removed(index)]
        if self.total_width(tight) <= available_width:
            return set(there)
        left = available_width - widths[self.currentIndex()] - self.more_button.sizeHint().width()
        shown = {self.currentIndex()}
        for index in sorted(there, key=lambda index: index not in self._optional):
            if index not in shown:
                left -= widths[index]
                if left < 0:
                    break
                shown.add(index)
        return shown

    def _set_tight(self, tight: bool) -> None:
        if self._is_tight != tight:
            self._is_tight = tight
            self.setStyleSheet(self._tight_rules if tight else "")

    def _menu(self) -> QMenu:
        menu = QMenu(self)
        for index in range(self.count()):
            key = f"\tCtrl+{index + 1}" if index < MAX_VIEW_KEYS else ""
            menu.addAction(self.tabText(index) + key).setData(index)
        menu.triggered.connect(self._on_action)
        return menu

    @Slot(QAction)
    def _on_action(self, action: QAction) -> None:
        self.setCurrentIndex(action.data())


LEFT, GAP, RIGHT = 13, 4, 10


class ViewHeader(Themed, QFrame):
    """Tabs at the left and tools at the right; the tools move below if one line is too narrow for both.

    A tab that comes or goes does not move them: what is below the header stays where it is.
    """

    def __init__(self, titles: Iterable[str]) -> None:
        super().__init__()
        self.setProperty("role", "bar")
        self._row_height = 40
        self.tabs = ViewTabs(titles)
        self.tools = set_up(QStackedWidget(), name="toolStack")
        for _tab in range(self.tabs.count()):
            self.tools.addWidget(QWidget())
        self.tool_container = ToolContainer()
        """The tools and everything that moves to the second line with them."""
        self.corner = QHBoxLayout()
        self._lay_out()

    def _lay_out(self) -> None:
        self._first_line, self._second_line = QHBoxLayout(), QHBoxLayout()
        for row in (self._first_line, self._second_line):
            row.setSpacing(GAP)
            row.setContentsMargins(LEFT, 0, RIGHT, 0)
        self._spacer = QWidget()
        arrange(
            self._first_line, self._spacer, (self.tabs, 0, Qt.AlignmentFlag.AlignBottom), self.tabs.more_button, STRETCH
        )
        self._side_row = arrange(QHBoxLayout(self.tool_container), self.tools, margins=0, spacing=2 * GAP)
        arrange(self._first_line, self.tool_container, self.corner)
        arrange(QVBoxLayout(self), self._first_line, self._second_line, margins=0, spacing=0)

    def restyle(self, theme: Theme) -> None:
        self._row_height = theme.px(20) + theme.space(20)
        self._spacer.setFixedSize(0, self._row_height)
        self.tabs.measure_tabs(theme)

    def add_tool(self, tool: QWidget) -> None:
        """Add a tool next to those of the shown view."""
        self._side_row.addWidget(tool)

    def set_tools(self, index: int, tools: QWidget) -> None:
        """Set the tools of a view."""
        replace_widget(self.tools, index, tools)
        self._size_tools()

    def show_tools(self, index: int) -> None:
        """Show the tools of a view."""
        self.tools.setCurrentIndex(index)
        self._size_tools()

    def _size_tools(self) -> None:
        """Let only the shown view's tools determine the width, not the widest ones."""
        for number in range(self.tools.count()):
            shown = number == self.tools.currentIndex()
            policy = QSizePolicy.Policy.Preferred if shown else QSizePolicy.Policy.Ignored
            tools = self.tools.widget(number)
            if tools is not None:
                tools.setSizePolicy(policy, policy)
        self.tools.updateGeometry()

    def fit(self, width: int) -> None:
        """Fit tabs and tools on one line, with the tabs closer together if needed; otherwise move the tools to a second
        line.
        """
        room = width - LEFT - RIGHT - 4 * GAP - self.corner.sizeHint().width()
        tools = self.tool_container.sizeHint().width() + GAP
        fits_on_one_line = tools <= GAP or self.tabs.lasting_width() + tools <= room  # no second line without tools
        self._move_tools(below=not fits_on_one_line)
        room -= tools * fits_on_one_line
        self.tabs.fit(room, tight=self.tabs.total_width(tight=False) > room)
        self.setFixedHeight(self._row_height * (1 if fits_on_one_line else 2))

    def _move_tools(self, below: bool) -> None:
        if below == (self._second_line.indexOf(self.tool_container) >= 0):
            return
        (self._first_line if below else self._second_line).removeWidget(self.tool_container)
        if below:
            self._second_line.addWidget(self.tool_container, 0, Qt.AlignmentFlag.AlignLeft)
        else:
            self._first_line.insertWidget(self._first_line.count() - 1, self.tool_container)


def replace_widget(stack: QStackedWidget, index: int, widget: QWidget) -> None:
    """Replace the widget at `index` of a stack and delete the old one."""
    shown, old = stack.currentIndex(), stack.widget(index)
    if old is not None:
        stack.removeWidget(old)
        old.deleteLater()
    stack.insertWidget(index, widget)
    stack.setCurrentIndex(shown)
