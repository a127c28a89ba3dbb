"""Column of views behind tabs, one visible at a time."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QPoint, Signal, Slot
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QStackedWidget, QVBoxLayout, QWidget

from decodescope.app.panels.view_header import ViewHeader, replace_widget
from decodescope.app.state.glossary_terms import tooltip_html
from decodescope.app.theme.theme import Theme
from decodescope.app.theme.themed import Themed, apply_theme
from decodescope.app.views import ViewSpec
from decodescope.app.views.base import View
from decodescope.app.views.shared.glossary_tooltip import LazyTooltip
from decodescope.app.widgets.building import arrange
from decodescope.resources.language import tr

LEAST_HEIGHT = 30
"""Minimum height of a view in pixels at 100 %."""


class ViewColumn(Themed, QWidget):
    """Tab bar over a stack of views, with the tools of the shown view at the right.

    A view is created when it is first shown or requested; then `viewCreated` is emitted.
    """

    viewCreated = Signal(object)
    viewShown = Signal(object)

    def __init__(self, specs: Sequence[ViewSpec], suffix: str = "", parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._specs = list(specs)
        self._suffix = suffix
        self._created_views: dict[int, View] = {}
        self._is_presenting = self._is_laid_out = False
        self.header = ViewHeader(tr(spec.title) for spec in self._specs)
        self.tabs = self.header.tabs
        LazyTooltip(self.tabs, lambda place: f"view.{self.name_at(place)}", tooltip_html)
        self.stack = QStackedWidget()
        for _spec in self._specs:
            self.stack.addWidget(QWidget())
        self.tabs.currentChanged.connect(self._on_tab)
        self.header.tool_container.widthChanged.connect(self.fit_header)
        self._column = arrange(QVBoxLayout(self), self.header, (self.stack, 1), margins=0, spacing=0)
        for index, spec in enumerate(self._specs):
            if spec.hidden_when_empty:
                self.tabs.set_optional(index)
        self._on_tab(0)

    @property
    def views(self) -> list[View]:
        """All views in tab order; missing ones are created."""
        return [self._view(index) for index in range(len(self._specs))]

    @property
    def created_views(self) -> list[View]:
        """The views created so far."""
        return list(self._created_views.values())

    def create_next_view(self) -> bool:
        """Create the next missing view; return whether more are missing."""
        missing = [index for index in range(len(self._specs)) if index not in self._created_views]
        if missing:
            self._view(missing[0])
        return len(missing) > 1

    @property
    def current_name(self) -> str:
        """Name of the shown view."""
        return str(self._specs[self.tabs.currentIndex()].name)

    @property
    def current_title(self) -> str:
        """Tab title of the shown view."""
        return tr(self._specs[self.tabs.currentIndex()].title)

    @property
    def current_view(self) -> View:
        """The shown view."""
        return self._view(self.tabs.currentIndex())

    @property
    def available_names(self) -> list[str]:
        """Names of the views that have a tab now."""
        return [spec.name for index, spec in enumerate(self._specs) if not self.tabs.is_removed(index)]

    def view(self, name: str) -> View:
        """Return the view called `name`, shown or not.

        Raises ValueError if there is none.
        """
        return self._view([spec.name for spec in self._specs].index(name))

    def name_at(self, position: QPoint) -> str:
        """Return the name of the view whose tab is at this position, or of the shown view if there is no tab."""
        index = self.tabs.tabAt(position)
        return str(self._specs[index if index >= 0 else self.tabs.currentIndex()].name)

    def show_view(self, name: str) -> bool:
        """Show a view; False if there is none called `name`."""
        names = [spec.name for spec in self._specs]
        is_there = name in names and not self.tabs.is_removed(names.index(name))
        if is_there:
            self.tabs.setCurrentIndex(names.index(name))
        return is_there

    def set_view_available(self, name: str, is_available: bool) -> None:
        """Show or hide the tab called `name`."""
        index = [spec.name for spec in self._specs].index(name)
        if self.tabs.set_removed(index, not is_available):
            self.fit_header()

    def restyle(self, theme: Theme) -> None:
        self.stack.setMinimumHeight(theme.px(LEAST_HEIGHT))  # views scroll: the highest one need not fit
        self.fit_header()

    def set_presenting(self, on: bool) -> None:
        """Show only the view, for presenting; applies to views created later too."""
        self._is_presenting = on
        self.header.setVisible(not on)
        for view in self.created_views:
            view.set_presenting(on)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._is_laid_out = True
        self.fit_header()

    def _view(self, index: int) -> View:
        if index not in self._created_views:
            view = self._created_views[index] = self._specs[index].factory()
            view.setObjectName(view.objectName() + self._suffix)
            tools = view.header_widget() or QWidget()
            for part in (view, tools):
                apply_theme(part, self._theme)
            if self._is_presenting:
                view.set_presenting(True)
            replace_widget(self.stack, index, view)
            self.header.set_tools(index, tools)
            self.fit_header()
            self.viewCreated.emit(view)
        return self._created_views[index]

    def add_message_area(self, area: QWidget) -> None:
        """Insert the message area below the tabs, which do not move."""
        self._column.insertWidget(1, area)

    @Slot(int)
    def _on_tab(self, index: int) -> None:
        view = self._view(index)
        self.stack.setCurrentIndex(index)
        self.header.show_tools(index)
        self.fit_header()
        self.viewShown.emit(view)

    @Slot()
    def fit_header(self) -> None:
        """Distribute the width between tabs and tools, once width and theme are known."""
        if self._is_laid_out and self.is_themed:
            self.header.fit(self.width())
