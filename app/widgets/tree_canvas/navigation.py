"""Moving about over a tree: fitting, panning, zooming, keeping the newest nodes or a path in sight."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

from PySide6.QtCore import QObject, QPointF, QRectF, QSize, Signal, Slot
from PySide6.QtWidgets import QWidget

from app.widgets.tree_canvas.canvas_state import CanvasState
from app.widgets.tree_canvas.focus_target import focus_rect, newest_rect
from app.widgets.tree_canvas.geometry import READABLE_ZOOM
from app.widgets.tree_canvas.viewport import clamp_or_center, fill_view, fit_area, min_zoom, scroll_to_rect

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
