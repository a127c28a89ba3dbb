"""The views' tabs. Where there is little room they move closer; those that still have none are in a menu."""

from __future__ import annotations

from collections.abc import Iterable

from PySide6.QtCore import QSize, Qt, Slot
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QMenu, QSizePolicy, QToolButton, QWidget

from app.panels.shortcuts import MAX_VIEW_KEYS
from app.theme.theme import Theme
from app.widgets.inputs import TabBar
from app.widgets.plain_text import caption
from resources.language import tr

MARGIN, TIGHT_MARGIN = 9, 5
"""Pixels at either side of a tab at 100 %, as in the theme's sheet and where there is little room."""


class ViewTabs(TabBar):
    """The tab in front is always to be seen; `more_button` is the button of the menu, which stands beside the tabs."""

    def __init__(self, titles: Iterable[str], parent: QWidget | None = None) -> None:
        super().__init__(parent, expanding=False, drawBase=False, usesScrollButtons=False)
        self.setAccessibleName(tr("Views"))
        self.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Preferred)
        self.setElideMode(Qt.TextElideMode.ElideNone)
        for title in titles:
            self.addTab(caption(title))
        self.more_button = QToolButton()
        self.more_button.setObjectName("moreViews")
        self.more_button.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        self.more_button.setAccessibleName(tr("More views"))
        self.more_button.setToolTip(tr("More views"))
        self.more_button.setMenu(self._menu())
        self.more_button.setText("+9 ⌄")
        self.more_button.hide()
        self._widths: dict[bool, list[int]] = {}
        self._is_tight, self._tight_rules = False, ""
        self._removed: set[int] = set()

    def minimumSizeHint(self) -> QSize:
        """One tab, for the others can go into the menu."""
        return QSize(max(self._widths.get(True, [0])), super().minimumSizeHint().height())

    def measure_tabs(self, theme: Theme) -> None:
        """Find the tabs' widths anew, after the font has changed."""
        self._set_tight(False)
        self.ensurePolished()
        saved = 2 * (theme.space(MARGIN) - theme.px(TIGHT_MARGIN))
        self._widths[False] = [self.tabSizeHint(index).width() for index in range(self.count())]
        self._widths[True] = [width - saved for width in self._widths[False]]
        self._tight_rules = f"QTabBar::tab {{ margin: 0 {theme.px(TIGHT_MARGIN)}px; }}"

    def set_removed(self, index: int, absent: bool) -> bool:
        """Whether a tab is not there at all, not even in the menu; False when it was so already. The one in front
        stays until another is."""
        changed = absent != (index in self._removed)
        if absent:
            self._removed.add(index)
        else:
            self._removed.discard(index)
        return changed

    def is_removed(self, index: int) -> bool:
        """Whether that tab cannot be brought to the front now."""
        return index in self._removed and index != self.currentIndex()

    def total_width(self, tight: bool) -> int:
        """Width of all tabs, close together or not."""
        return sum(width for index, width in enumerate(self._widths[tight]) if not self.is_removed(index))

    def fit(self, room: int, tight: bool) -> None:
        """Show as many tabs as `room` pixels hold, the one in front among them."""
        self._set_tight(tight)
        shown = self._visible_tabs(room, tight)
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

    def _visible_tabs(self, room: int, tight: bool) -> set[int]:
        """Tabs that are shown: all, or beside the one in front the first ones that fit with the button."""
        widths = self._widths[tight]
        there = [index for index in range(len(widths)) if not self.is_removed(index)]
        if self.total_width(tight) <= room:
            return set(there)
        left = room - widths[self.currentIndex()] - self.more_button.sizeHint().width()
        shown = {self.currentIndex()}
        for index in there:
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
