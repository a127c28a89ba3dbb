"""Tour panel and spotlight, created with the first tour."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from PySide6.QtCore import QObject, QRect, QTimer, Signal, Slot
from PySide6.QtWidgets import QScrollArea, QWidget

from decodescope.app.features.tours.state import GuessResult, Lesson, Tour
from decodescope.app.panels.centre import Centre
from decodescope.app.panels.setup_panel import SetupPanel
from decodescope.app.theme.themed import inherit_theme
from decodescope.app.views.inspector.panel import Inspector
from decodescope.app.views.speculation.view import SpeculationView
from decodescope.app.views.tokens.view import TokenView
from decodescope.app.views.tree.view import TreeView
from decodescope.app.widgets.screen import visible_rect
from decodescope.resources.language import tr

if TYPE_CHECKING:
    from decodescope.app.features.tours.panel.tour_panel import TourPanel
    from decodescope.app.features.tours.panel.tour_spotlight import TourSpotlight

LAYOUT_TIMEOUT_MS = 1000
"""Milliseconds during which the target is kept visible while the layout settles."""


class TargetRect(NamedTuple):
    """A rectangle of a widget in the window."""

    widget: QWidget
    rect: QRect
    """In widget coordinates."""


class TourTargets(QObject):
    """Finds the target of a step and scrolls to it. `setupRequested`, `inspectorRequested`: a panel must be opened."""

    setupRequested = Signal()
    inspectorRequested = Signal()

    def __init__(self, parent_window: QWidget, centre: Centre, setup: SetupPanel, inspector: Inspector) -> None:
        super().__init__(centre)
        self._parent_window, self._centre, self._setup, self._inspector = parent_window, centre, setup, inspector
        self._scroll_target = ""
        """Target that is kept visible while the layout settles."""
        self._layout_timer = QTimer(self, interval=LAYOUT_TIMEOUT_MS, singleShot=True)
        self._layout_timer.timeout.connect(self._stop_scrolling)
        self._special_targets: dict[str, Callable[[], TargetRect | None]] = {
            "token": self._token,
            "node": self._node,
            "view": lambda: _widget_rect(self._centre.columns[0].current_view),
        }

    def scroll_into_view(self, name: str) -> None:
        """Open the panel that contains the target and scroll to it."""
        self._scroll_target = name
        self._layout_timer.start()
        widget = self._widget(name)
        if widget is None:
            return
        if self._setup.isAncestorOf(widget):
            self.setupRequested.emit()
            self._setup.show_inputs()
            if not widget.isVisible():
                self._setup.reveal(widget)
        if self._inspector.isAncestorOf(widget) or widget is self._inspector:
            self.inspectorRequested.emit()
        _scroll_to(_widget_rect(widget))

    def find(self, name: str) -> TargetRect | None:
        """Return the current rectangle of the target; None if it is not visible."""
        named = self._special_targets.get(name)
        spot = named() if named is not None else None
        if spot is None and named is None and (widget := self._widget(name)) is not None:
            spot = _widget_rect(widget)
        if spot is None:
            return None
        if self._scroll_target == name and visible_rect(*spot, self._parent_window).size() != spot.rect.size():
            self._reveal(name, spot)
            spot = named() if named is not None else spot
        if spot is None:
            return None
        return spot if not visible_rect(*spot, self._parent_window).isEmpty() else None

    def _reveal(self, name: str, spot: TargetRect) -> None:
        """Scroll a target that is cut into view, now that the panel has its height."""
        view = self._centre.columns[0].current_view
        if name == "token" and isinstance(view, TokenView) and view.area.run is not None:
            view.area.reveal_selected(view.area.run)
        elif name == "node" and isinstance(view, SpeculationView | TreeView):
            if view.canvas.selection.selected is not None:
                view.canvas.navigation.ensure_visible(view.canvas.selection.selected)
        _scroll_to(spot)

    @Slot()
    def _stop_scrolling(self) -> None:
        """Stop scrolling to the target, so that the user can scroll."""
        self._scroll_target = ""

    def _widget(self, name: str) -> QWidget | None:
        if name in self._special_targets or not name:
            return None
        found: list[QWidget] = self._parent_window.findChildren(QWidget, name)
        return next((widget for widget in found if widget.isVisible()), found[0] if found else None)

    def _token(self) -> TargetRect | None:
        """Return the selected token, if the token view is in front."""
        view = self._centre.columns[0].current_view
        run = view.area.run if isinstance(view, TokenView) else None
        if not isinstance(view, TokenView) or run is None or run.selected is None:
            return _widget_rect(view)
        return TargetRect(view.area.viewport(), view.token_rect(run.selected))

    def _node(self) -> TargetRect | None:
        """Return the selected node of the front tree."""
        view = self._centre.columns[0].current_view
        if not isinstance(view, SpeculationView | TreeView):
            return _widget_rect(view)
        node = view.canvas.selection.selected
        return (
            TargetRect(view.canvas, view.canvas.canvas_state.positions.node_rect(node))
            if node is not None
            else _widget_rect(view)
        )


def _widget_rect(widget: QWidget) -> TargetRect:
    return TargetRect(widget, widget.rect())


def _scroll_to(spot: TargetRect) -> None:
    """Scroll every enclosing area to the rectangle, or to its centre if it is larger."""
    above = spot.widget.parentWidget()
    while above is not None:
        inside = above.widget() if isinstance(above, QScrollArea) else None
        if isinstance(above, QScrollArea) and inside is not None:
            middle = spot.widget.mapTo(inside, spot.rect.center())
            above.ensureVisible(middle.x(), middle.y(), spot.rect.width() // 2 + 1, spot.rect.height() // 2 + 1)
        above = above.parentWidget()


def longest_form(template: str) -> str:
    """Return a step's sentence in the current language, with placeholders as long as their numbers usually are."""
    return re.sub(r"\{\w+\}", "100.0 %", tr(template))


class TourUi(QObject):
    """The tour's user interface. `backRequested`, `nextRequested`, `playRequested`, `leaveRequested`: buttons of the
    panel.
    """

    backRequested = Signal()
    nextRequested = Signal()
    playRequested = Signal()
    leaveRequested = Signal()
    picked = Signal(int)
    """A person chose one of the choices of a lesson's guess."""
    voted = Signal(tuple)
    """The votes of an audience for the choices."""

    def __init__(self, parent_window: QWidget, dock: Callable[[QWidget], None], targets: TourTargets) -> None:
        super().__init__(targets)
        self._parent_window, self._dock, self.targets = parent_window, dock, targets
        self.panel: TourPanel | None = None
        """None before the first tour, as is the spotlight."""
        self.spotlight: TourSpotlight | None = None

    def open(self, tour: Tour) -> TourPanel:
        """Show and focus the panel, with room for every sentence of the tour."""
        panel = self.panel or self._make_panel()
        panel.set_lesson(isinstance(tour, Lesson))
        panel.reserve_height([longest_form(text) for step in tour.steps for text in (step.text, step.otherwise)])
        panel.show()
        panel.take_focus()
        return panel

    def set_room(self, is_room: bool) -> None:
        """Count the votes of an audience for a guess, or let one person guess."""
        if self.panel is not None:
            self.panel.choice_row.set_room(is_room)

    def show_choices(self, texts: Sequence[str], is_room: bool) -> None:
        """Offer the choices of a guess."""
        if self.panel is not None:
            self.panel.show_choices(texts, is_room)

    def show_result(self, texts: Sequence[str], result: GuessResult, votes: Sequence[int], is_room: bool) -> None:
        """Show the room's votes or the guess next to the model."""
        if self.panel is not None:
            self.panel.show_result(texts, result, votes, is_room)

    def press_choice(self, key: int) -> bool:
        """Handle a key of the choices; return False if it has no meaning."""
        return self.panel is not None and self.panel.choice_row.press(key)

    def confirm_choice(self) -> bool:
        """Go on to the next choice of a room; return False without a panel."""
        if self.panel is not None:
            self.panel.choice_row.confirm()
        return self.panel is not None

    def show_step(self, tour: Tour, index: int, text: str, is_busy: bool = False) -> None:
        """Show the sentence of a step, or a message instead."""
        if self.panel is not None:
            stage = tour.steps[index].stage
            title = f"{tr(tour.title)} · {tr(stage)}" if stage else tr(tour.title)
            self.panel.show_step(title, index, len(tour.steps), text, is_busy)

    def point_at(self, name: str) -> None:
        """Draw the ring around a target; remove it for an empty name."""
        if self.spotlight is not None:
            self.spotlight.point_at((lambda: self.targets.find(name)) if name else None)

    def show_playing(self, is_playing: bool) -> None:
        """Show whether the tour advances automatically."""
        if self.panel is not None:
            self.panel.show_playing(is_playing)

    def close(self) -> None:
        """Hide the panel and the spotlight."""
        self.point_at("")
        if self.panel is not None:
            self.panel.restore_focus()
            self.panel.hide()

    def _make_panel(self) -> TourPanel:
        from decodescope.app.features.tours.panel.tour_panel import TourPanel
        from decodescope.app.features.tours.panel.tour_spotlight import TourSpotlight

        self.panel = TourPanel()
        self.spotlight = TourSpotlight(self._parent_window, self.panel)
        self._dock(self.panel)
        for signal, passed_on in (
            (self.panel.backRequested, self.backRequested),
            (self.panel.nextRequested, self.nextRequested),
            (self.panel.playRequested, self.playRequested),
            (self.panel.leaveRequested, self.leaveRequested),
            (self.panel.choice_row.picked, self.picked),
            (self.panel.choice_row.voted, self.voted),
        ):
            signal.connect(passed_on)
        inherit_theme(self.panel)
        inherit_theme(self.spotlight)
        return self.panel
