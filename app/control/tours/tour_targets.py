"""What a step points at: a control by its object's name, or a part of the running program by what it is."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from PySide6.QtCore import QObject, QRect, QTimer, Signal, Slot
from PySide6.QtWidgets import QScrollArea, QWidget

from app.panels.centre import Centre
from app.panels.setup import SetupPanel
from app.views.inspector.panel import Inspector
from app.views.speculation.view import SpeculationView
from app.views.tokens.view import TokenView
from app.views.tree.view import TreeView
from app.widgets.visibility import in_sight

PATIENCE = 1000
"""Milliseconds for what is pointed at to find its place: what tells of a token is filled and laid out in turns."""


class Spot(NamedTuple):
    """A place in the window: a stretch of a widget."""

    widget: QWidget
    rect: QRect
    """In the widget's own pixels."""


class Targets(QObject):
    """Finds what is pointed at, and brings it into sight: `setupWanted` and `inspectorWanted` ask for a panel."""

    setupWanted = Signal()
    inspectorWanted = Signal()

    def __init__(self, over: QWidget, centre: Centre, setup: SetupPanel, inspector: Inspector) -> None:
        super().__init__(centre)
        self._over, self._centre, self._setup, self._inspector = over, centre, setup, inspector
        self._due = ""
        """What has just been asked for: whatever is laid out meanwhile, it is kept in sight."""
        self._patience = QTimer(self, interval=PATIENCE, singleShot=True)
        self._patience.timeout.connect(self._settle)
        self._named: dict[str, Callable[[], Spot | None]] = {
            "token": self._token,
            "node": self._node,
            "view": lambda: _whole(self._centre.columns[0].shown),
        }

    def bring_into_sight(self, name: str) -> None:
        """Open the panel that it stands in, and scroll to it."""
        self._due = name
        self._patience.start()
        widget = self._widget(name)
        if widget is None:
            return
        if self._setup.isAncestorOf(widget):
            self.setupWanted.emit()
            self._setup.uncover()
            if not widget.isVisible():
                self._setup.parameters.set_advanced(True)
        if self._inspector.isAncestorOf(widget) or widget is self._inspector:
            self.inspectorWanted.emit()
        _scroll_to(_whole(widget))

    def find(self, name: str) -> Spot | None:
        """Where it is now; None where it is not to be seen."""
        named = self._named.get(name)
        spot = named() if named is not None else None
        if spot is None and named is None and (widget := self._widget(name)) is not None:
            spot = _whole(widget)
        if spot is None:
            return None
        if in_sight(*spot, self._over).isEmpty() and self._due == name:
            _scroll_to(spot)
        return spot if not in_sight(*spot, self._over).isEmpty() else None

    @Slot()
    def _settle(self) -> None:
        """From now on nobody's scrolling is undone."""
        self._due = ""

    def _widget(self, name: str) -> QWidget | None:
        if name in self._named or not name:
            return None
        found: list[QWidget] = self._over.findChildren(QWidget, name)
        return next((widget for widget in found if widget.isVisible()), found[0] if found else None)

    def _token(self) -> Spot | None:
        """The selected token, where the text is in front."""
        view = self._centre.columns[0].shown
        run = view.area.run if isinstance(view, TokenView) else None
        if not isinstance(view, TokenView) or run is None or run.selected is None:
            return _whole(view)
        return Spot(view.area.viewport(), view.token_rect(run.selected))

    def _node(self) -> Spot | None:
        """The selected node of the tree in front."""
        view = self._centre.columns[0].shown
        if not isinstance(view, SpeculationView | TreeView):
            return _whole(view)
        node = view.canvas.selection.selected
        return Spot(view.canvas, view.canvas.stage.places.node_rect(node)) if node is not None else _whole(view)


def _whole(widget: QWidget) -> Spot:
    return Spot(widget, widget.rect())


def _scroll_to(spot: Spot) -> None:
    """Let every area that it stands in show it, and of what is larger than the area its middle."""
    above = spot.widget.parentWidget()
    while above is not None:
        inside = above.widget() if isinstance(above, QScrollArea) else None
        if isinstance(above, QScrollArea) and inside is not None:
            middle = spot.widget.mapTo(inside, spot.rect.center())
            above.ensureVisible(middle.x(), middle.y(), spot.rect.width() // 2 + 1, spot.rect.height() // 2 + 1)
        above = above.parentWidget()
