"""Moving about over a tree: fitting, panning, zooming, keeping the newest nodes or a path in sight."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

from PySide6.QtCore import QObject, QPointF, QRectF, QSize, Signal, Slot
from PySide6.QtWidgets import QWidget

from app.widgets.tree_canvas.canvas_state import CanvasState
from app.widgets.tree_canvas.focus_target import newest, subject
from app.widgets.tree_canvas.geometry import READABLE
from app.widgets.tree_canvas.viewport import fill, reveal, room_of, smallest, within

FOLLOW_ZOOM = 0.78
"""While it follows, the camera shrinks a growing tree down to this and scrolls from then on."""


class SavedCamera(NamedTuple):
    """Where a camera was, and how it had come there."""

    follow: bool
    shrinks: bool
    again: Callable[[], None] | None
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

    def __init__(self, stage: CanvasState, widget: QWidget) -> None:
        super().__init__(widget)
        self._stage, self._widget, self._camera = stage, widget, stage.camera
        self._follow, self._shrinks = True, True
        self._kept: SavedCamera | None = None
        self._again: Callable[[], None] | None = None
        """What was asked for last, done again when the room changes; None once the reader has moved by hand."""
        stage.cleared.connect(self._on_cleared)
        stage.replaced.connect(self.show_all)
        stage.changed.connect(self._keep_newest)

    @property
    def zoom(self) -> float:
        """1 is the natural size."""
        return self._camera.zoom

    # Everything, or as much as can be read

    @Slot()
    def show_all(self) -> None:
        """All of the tree in sight, however small; on a stage as much of it as can be read."""
        bounds, room = self._stage.scene.bounds(), room_of(self._stage, self._widget)
        if bounds.isEmpty() or not self._widget.width():
            return
        self._camera.show(bounds, room.width(), room.height())
        self._camera.x -= room.x() / self._camera.zoom
        self._camera.y -= room.y() / self._camera.zoom
        self._shrinks = True
        if self._camera.zoom < smallest(self._stage):
            self._fit_across()
        else:
            self._arrive(self.show_all)

    @Slot()
    def fit(self) -> None:
        """All of the tree, as long as it can be read; else as much as can, around what is selected or leads, and all
        of it nevertheless the second time in a row."""
        again = self._again == self._fit_across
        self.show_all()
        if self._camera.zoom < READABLE and not again:
            self._fit_across()

    def keep_readable(self) -> None:
        """Fit so that it can be read, and again whenever `grown` is told, until the reader goes elsewhere."""
        self.set_follow(False)
        self.show_all()
        if self._camera.zoom < READABLE:
            self._fit_across()
        self._again = self.keep_readable

    def grown(self) -> None:
        """The tree has become larger: fit it again where it is kept readable."""
        if self._again == self.keep_readable:
            self.keep_readable()

    def _fit_across(self) -> None:
        """Fit the tree across its direction, no smaller than can be read; along it one has to move."""
        bounds, room, camera = self._stage.scene.bounds(), room_of(self._stage, self._widget), self._camera
        share = room.width() / bounds.width() if self._stage.down else room.height() / bounds.height()
        camera.zoom = min(1.0, max(READABLE, smallest(self._stage), share))
        width, height = room.width() / camera.zoom, room.height() / camera.zoom
        middle = subject(self._stage, QRectF(0, 0, width, height)).center()
        camera.x = within(middle.x() - width / 2, bounds.left(), bounds.right() - width) - room.x() / camera.zoom
        camera.y = within(middle.y() - height / 2, bounds.top(), bounds.bottom() - height) - room.y() / camera.zoom
        self._shrinks = False
        self._arrive(self._fit_across)

    def show_path(self, path: Sequence[int], least: float) -> None:
        """All of the tree; where that is smaller than zoom `least`, that zoom, and the path's end in sight."""
        self.show_all()
        if self._camera.zoom < max(least, smallest(self._stage)):
            self.set_zoom(max(least, smallest(self._stage)))
            for node in path:
                self.ensure_visible(node)
        self._again = partial(self.show_path, path, least)

    def _arrive(self, again: Callable[[], None] | None = None) -> None:
        self._again = again
        self.moved.emit()

    # By hand

    def pan(self, dx: float, dy: float) -> None:
        """Move the view over the canvas by that many pixels of the widget."""
        self._camera.x += dx / self._camera.zoom
        self._camera.y += dy / self._camera.zoom
        self._arrive()

    def zoom_by(self, factor: float, at: QPointF | None = None) -> None:
        """Zoom in or out around a point of the widget, its middle if none is given."""
        if self._camera.zoom_at(at if at is not None else QRectF(self._widget.rect()).center(), factor):
            self._shrinks = False
            self._arrive()

    def set_zoom(self, zoom: float) -> None:
        """Zoom around the middle."""
        self.zoom_by(zoom / self._camera.zoom)

    @Slot(QPointF)
    def centre_on(self, point: QPointF) -> None:
        """Bring a point of the canvas to the middle of the widget."""
        self.set_follow(False)
        self._camera.x = point.x() - self._widget.width() / 2 / self._camera.zoom
        self._camera.y = point.y() - self._widget.height() / 2 / self._camera.zoom
        self._arrive()

    def ensure_visible(self, node: int) -> None:
        """Unfold what hides a node, and move no further than needed for it to be in sight."""
        self._stage.unfold(self._stage.scene.model.path(node)[:-1])
        if self._stage.scene.shown(node) and reveal(self._stage, self._widget, self._stage.scene.box(node)):
            self._arrive()

    def step_aside(self, on: bool) -> None:
        """Remember where the camera is, and follow the newest nodes meanwhile; or bring it back."""
        if on:
            camera, size = self._camera, self._widget.size()
            self._kept = SavedCamera(self._follow, self._shrinks, self._again, camera.x, camera.y, camera.zoom, size)
            self._shrinks = True
            self.set_follow(True)
        elif self._kept is not None:
            kept, self._kept = self._kept, None
            self.set_follow(kept.follow)
            self._shrinks = kept.shrinks
            stays = kept.follow or kept.again is not None
            grown = QSize(0, 0) if stays else kept.size - self._widget.size()  # `resized` will take that back
            self._camera.zoom = kept.zoom
            self._camera.x = kept.x + grown.width() / 2 / kept.zoom
            self._camera.y = kept.y + grown.height() / 2 / kept.zoom
            self._arrive(kept.again)

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

    def resized(self, grown: QSize) -> None:
        """The room has changed by so much: do again what was asked for, or keep the middle where it was."""
        if not self._follow and self._again is not None:
            self._again()
        elif not self._follow:
            self._camera.x -= grown.width() / 2 / self._camera.zoom
            self._camera.y -= grown.height() / 2 / self._camera.zoom
            self.moved.emit()

    @Slot()
    def _on_cleared(self) -> None:
        self._shrinks, self._again = True, None

    @Slot()
    def _keep_newest(self) -> None:
        """Fit a small tree; of a large one, keep the newest column in sight."""
        if not self._follow or self._stage.scene.last < 0 or not self._widget.width():
            return
        if self._shrinks:
            self.show_all()
            if self._again == self.show_all and self._camera.zoom >= FOLLOW_ZOOM:
                return
            self._camera.zoom = FOLLOW_ZOOM
        self._camera.zoom = max(self._camera.zoom, smallest(self._stage))
        view = self._camera.rect_to_canvas(QRectF(self._widget.rect()))
        if reveal(self._stage, self._widget, newest(self._stage, view)):
            self._arrive()
        fill(self._stage, self._widget)
        self.moved.emit()
