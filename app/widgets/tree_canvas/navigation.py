"""Camera movement over a tree: fit, pan, zoom, and keep the newest nodes or a path visible."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

from PySide6.QtCore import QObject, QPointF, QRectF, QSize, Signal, Slot
from PySide6.QtWidgets import QWidget

from app.widgets.tree_canvas.canvas_state import CanvasState
from app.widgets.tree_canvas.geometry import READABLE_ZOOM
from app.widgets.tree_canvas.tree_style import DIMMED

MAX_NEWEST_FRACTION = 0.8
"""Share of the view that the newest boxes may take to be shown together."""


def newest_rect(state: CanvasState, view: QRectF) -> QRectF:
    """Around the newest boxes that live; around one of them, and some room, when they do not fit into the `view`."""
    model, scene = state.scene.model, state.scene
    column = scene.layout.nodes_in(scene.last_depth)
    living = [node for node in column if model.nodes[node].state not in DIMMED] or column
    around = scene.box(living[0]).united(scene.box(living[-1]))
    if around.height() <= view.height() * MAX_NEWEST_FRACTION and around.width() <= view.width() * MAX_NEWEST_FRACTION:
        return around
    leading = set(state.style.best_path).intersection(living)
    box = scene.box(next(iter(leading), living[len(living) // 2]))
    room = (view.width() * 0.3, 0.0) if state.is_top_down else (0.0, view.height() * 0.3)
    return box.adjusted(-room[0], -room[1], room[0], room[1])


def focus_rect(state: CanvasState, view: QRectF) -> QRectF:
    """Around the selected node, else the end of the leading path, else the newest nodes."""
    scene, style = state.scene, state.style
    if style.selected is not None and scene.is_shown(style.selected):
        return scene.box(style.selected)
    shown = [node for node in style.best_path if scene.is_shown(node)]
    return scene.box(shown[-1]) if shown else newest_rect(state, view)


FIT_MARGIN = 28
"""Pixels at 100 % around a tree that is fitted."""
EDGE_MARGIN = 40
"""Pixels at 100 % from the edge within which a box does not count as in sight."""


def fit_area(state: CanvasState, widget: QWidget) -> QRectF:
    """The widget less the margins around a tree that is fitted."""
    margin = FIT_MARGIN * state.style.theme.scale
    return QRectF(margin, margin, max(1.0, widget.width() - 2 * margin), max(1.0, widget.height() - 2 * margin))


def min_zoom(state: CanvasState) -> float:
    """Zoom below which letters would be smaller than the theme allows; 0 where it does not say."""
    return 1.0 if state.style.theme.min_font_pixels else 0.0


def scroll_to_rect(state: CanvasState, widget: QWidget, rect: QRectF) -> bool:
    """Move no further than needed for `rect`, of the canvas, to be in sight; whether that was anywhere."""
    width, height = widget.width(), widget.height()
    margin = min(EDGE_MARGIN * state.style.theme.scale, width / 6, height / 6)
    return state.camera.reveal(rect, QRectF(widget.rect()).adjusted(margin, margin, -margin, -margin))


def fill_view(state: CanvasState, widget: QWidget) -> None:
    """Show no empty ground above or below (beside, where the tree grows down) that the tree could fill."""
    camera, bounds = state.camera, state.scene.bounds()
    margin = fit_area(state, widget).x() / camera.zoom
    width, height = widget.width() / camera.zoom, widget.height() / camera.zoom
    if state.is_top_down:
        camera.x = clamp_or_center(camera.x, bounds.left() - margin, bounds.right() + margin - width)
    else:
        camera.y = clamp_or_center(camera.y, bounds.top() - margin, bounds.bottom() + margin - height)


def clamp_or_center(value: float, first: float, last: float) -> float:
    """`value` inside [first, last]; their middle where there is no inside."""
    return (first + last) / 2 if last < first else min(max(value, first), last)


FOLLOW_ZOOM = 0.78
"""While it follows, the camera shrinks a growing tree down to this and scrolls from then on."""


class SavedCamera(NamedTuple):
    """Where a camera was, and how it had come there."""

    follow: bool
    may_shrink: bool
    repeat_fit: Callable[[], None] | None
    x: float
    y: float
    zoom: float
    size: QSize
    """Of the widget then."""


class CanvasNavigation(QObject):
    """Moves a stage's camera over the room of one widget."""

    moved = Signal()
    followChanged = Signal(bool)
    """It began or ceased to keep the newest nodes in sight."""

    def __init__(self, state: CanvasState, widget: QWidget) -> None:
        super().__init__(widget)
        self._state, self._widget, self._camera = state, widget, state.camera
        self._follow, self._may_shrink = True, True
        self._saved_camera: SavedCamera | None = None
        self._repeat_fit: Callable[[], None] | None = None
        """What was asked for last, done again when the room changes; None once the reader has moved by hand."""
        state.cleared.connect(self._on_cleared)
        state.replaced.connect(self.show_all)
        state.changed.connect(self._keep_newest)

    @property
    def zoom(self) -> float:
        """1 is the natural size."""
        return self._camera.zoom

    # Everything, or as much as can be read

    @Slot()
    def show_all(self) -> None:
        """All of the tree in sight, however small; on a stage as much of it as can be read."""
        bounds, room = self._state.scene.bounds(), fit_area(self._state, self._widget)
        if bounds.isEmpty() or not self._widget.width():
            return
        self._camera.show(bounds, room.width(), room.height())
        self._camera.x -= room.x() / self._camera.zoom
        self._camera.y -= room.y() / self._camera.zoom
        self._may_shrink = True
        if self._camera.zoom < min_zoom(self._state):
            self._fit_across()
        else:
            self._finish_move(self.show_all)

    @Slot()
    def fit(self) -> None:
        """All of the tree, as long as it can be read; else as much as can, around what is selected or leads, and all
        of it nevertheless the second time in a row."""
        again = self._repeat_fit == self._fit_across
        self.show_all()
        if self._camera.zoom < READABLE_ZOOM and not again:
            self._fit_across()

    def keep_readable(self) -> None:
        """Fit so that it can be read, and again whenever `handle_growth` is told, until the reader goes elsewhere."""
        self.set_follow(False)
        self.show_all()
        if self._camera.zoom < READABLE_ZOOM:
            self._fit_across()
        self._repeat_fit = self.keep_readable

    def handle_growth(self) -> None:
        """The tree has become larger: fit it again where it is kept readable."""
        if self._repeat_fit == self.keep_readable:
            self.keep_readable()

    def _fit_across(self) -> None:
        """Fit the tree across its direction, no smaller than can be read; along it one has to move."""
        bounds, room, camera = self._state.scene.bounds(), fit_area(self._state, self._widget), self._camera
        zoom = room.width() / bounds.width() if self._state.is_top_down else room.height() / bounds.height()
        camera.zoom = min(1.0, max(READABLE_ZOOM, min_zoom(self._state), zoom))
        width, height = room.width() / camera.zoom, room.height() / camera.zoom
        middle = focus_rect(self._state, QRectF(0, 0, width, height)).center()
        camera.x = (
            clamp_or_center(middle.x() - width / 2, bounds.left(), bounds.right() - width) - room.x() / camera.zoom
        )
        camera.y = (
            clamp_or_center(middle.y() - height / 2, bounds.top(), bounds.bottom() - height) - room.y() / camera.zoom
        )
        self._may_shrink = False
        self._finish_move(self._fit_across)

    def show_path(self, path: Sequence[int], at_least: float) -> None:
        """All of the tree; where that is smaller than zoom `at_least`, that zoom, and the path's end in sight."""
        self.show_all()
        if self._camera.zoom < max(at_least, min_zoom(self._state)):
            self.set_zoom(max(at_least, min_zoom(self._state)))
            for node in path:
                self.ensure_visible(node)
        self._repeat_fit = partial(self.show_path, path, at_least)

    def _finish_move(self, again: Callable[[], None] | None = None) -> None:
        self._repeat_fit = again
        self.moved.emit()

    # By hand

    def pan(self, dx: float, dy: float) -> None:
        """Move the view over the canvas by that many pixels of the widget."""
        self._camera.x += dx / self._camera.zoom
        self._camera.y += dy / self._camera.zoom
        self._finish_move()

    def zoom_by(self, factor: float, at: QPointF | None = None) -> None:
        """Zoom in or out around a point of the widget, its middle if none is given."""
        if self._camera.zoom_at(at if at is not None else QRectF(self._widget.rect()).center(), factor):
            self._may_shrink = False
            self._finish_move()

    def set_zoom(self, zoom: float) -> None:
        """Zoom around the middle."""
        self.zoom_by(zoom / self._camera.zoom)

    @Slot(QPointF)
    def centre_on(self, point: QPointF) -> None:
        """Bring a point of the canvas to the middle of the widget."""
        self.set_follow(False)
        self._camera.x = point.x() - self._widget.width() / 2 / self._camera.zoom
        self._camera.y = point.y() - self._widget.height() / 2 / self._camera.zoom
        self._finish_move()

    def ensure_visible(self, node: int) -> None:
        """Unfold what hides a node, and move no further than needed for it to be in sight."""
        self._state.unfold(self._state.scene.model.path(node)[:-1])
        if self._state.scene.is_shown(node) and scroll_to_rect(self._state, self._widget, self._state.scene.box(node)):
            self._finish_move()

    def set_presenting(self, on: bool) -> None:
        """Remember where the camera is, and follow the newest nodes meanwhile; or bring it back."""
        if on:
            camera, size = self._camera, self._widget.size()
            self._saved_camera = SavedCamera(
                self._follow, self._may_shrink, self._repeat_fit, camera.x, camera.y, camera.zoom, size
            )
            self._may_shrink = True
            self.set_follow(True)
        elif self._saved_camera is not None:
            saved, self._saved_camera = self._saved_camera, None
            self.set_follow(saved.follow)
            self._may_shrink = saved.may_shrink
            stays = saved.follow or saved.repeat_fit is not None
            grown = QSize(0, 0) if stays else saved.size - self._widget.size()  # `resized` will take that back
            self._camera.zoom = saved.zoom
            self._camera.x = saved.x + grown.width() / 2 / saved.zoom
            self._camera.y = saved.y + grown.height() / 2 / saved.zoom
            self._finish_move(saved.repeat_fit)

    # Following the growth

    @property
    def follow(self) -> bool:
        """Whether the newest nodes are kept in sight while the tree grows."""
        return self._follow

    @Slot(bool)
    def set_follow(self, on: bool) -> None:
        """Begin or cease to follow the growth."""
        if on != self._follow:
            self._follow = on
            self.followChanged.emit(on)
        if on:
            self._keep_newest()

    def handle_resize(self, grown: QSize) -> None:
        """The room has changed by so much: do again what was asked for, or keep the middle where it was."""
        if not self._follow and self._repeat_fit is not None:
            self._repeat_fit()
        elif not self._follow:
            self._camera.x -= grown.width() / 2 / self._camera.zoom
            self._camera.y -= grown.height() / 2 / self._camera.zoom
            self.moved.emit()

    @Slot()
    def _on_cleared(self) -> None:
        self._may_shrink, self._repeat_fit = True, None

    @Slot()
    def _keep_newest(self) -> None:
        """Fit a small tree; of a large one, keep the newest column in sight."""
        if not self._follow or self._state.scene.last_depth < 0 or not self._widget.width():
            return
        if self._may_shrink:
            self.show_all()
            if self._repeat_fit == self.show_all and self._camera.zoom >= FOLLOW_ZOOM:
                return
            self._camera.zoom = FOLLOW_ZOOM
        self._camera.zoom = max(self._camera.zoom, min_zoom(self._state))
        view = self._camera.rect_to_canvas(QRectF(self._widget.rect()))
        if scroll_to_rect(self._state, self._widget, newest_rect(self._state, view)):
            self._finish_move()
        fill_view(self._state, self._widget)
        self.moved.emit()
