"""Camera movement over a tree: fit, pan, zoom, and keep the newest nodes or a path visible."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

from PySide6.QtCore import QObject, QPointF, QRect, QRectF, QSize, Signal, Slot
from PySide6.QtWidgets import QWidget

from decodescope.app.widgets.tree_canvas.canvas_state import CanvasState
from decodescope.app.widgets.tree_canvas.geometry import READABLE_ZOOM
from decodescope.app.widgets.tree_canvas.tree_style import DIMMED

MAX_NEWEST_FRACTION = 0.8
"""Fraction of the view that the newest boxes may fill to be shown together."""


def newest_rect(state: CanvasState, view: QRectF) -> QRectF:
    """Return the rectangle of the newest live nodes; around one of them, with a margin, if they do not fit into
    `view`.
    """
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
    """Return the rectangle of the selected node, the end of the best path, or the newest nodes."""
    scene, style = state.scene, state.style
    if style.selected is not None and scene.is_shown(style.selected):
        return scene.box(style.selected)
    shown = [node for node in style.best_path if scene.is_shown(node)]
    return scene.box(shown[-1]) if shown else newest_rect(state, view)


FIT_MARGIN = 28
"""Margin around a fitted tree in pixels at 100 %."""
MAX_LINE_ZOOM, LINE_MARGIN = 1.15, 18
"""Largest zoom of a tree that is broken into lines, and the margin around it in pixels at 100 %."""
EDGE_MARGIN = 40
"""Distance from the edge in pixels at 100 % within which a box does not count as visible."""


def fit_area(state: CanvasState, widget: QWidget, margin: float = FIT_MARGIN) -> QRectF:
    """Return the widget's rectangle without the margins around a fitted tree, in pixels at 100 %."""
    margin *= state.style.theme.scale
    room = widget.contentsRect()
    return QRectF(margin, margin, max(1.0, room.width() - 2 * margin), max(1.0, room.height() - 2 * margin))


def min_zoom(state: CanvasState) -> float:
    """Return the zoom below which text is smaller than the theme allows; 0 if the theme has no minimum."""
    return 1.0 if state.style.theme.min_font_pixels else 0.0


def scroll_to_rect(state: CanvasState, widget: QWidget, rect: QRectF) -> bool:
    """Move just far enough to make `rect` (canvas) visible. Returns True if the camera moved."""
    room = QRectF(widget.contentsRect())
    margin = min(EDGE_MARGIN * state.style.theme.scale, room.width() / 6, room.height() / 6)
    return state.camera.reveal(rect, room.adjusted(margin, margin, -margin, -margin))


def fill_view(state: CanvasState, widget: QWidget) -> None:
    """Move the camera so that no empty space is shown across the tree's direction that the tree could fill."""
    camera, bounds = state.camera, state.scene.bounds()
    margin = fit_area(state, widget).x() / camera.zoom
    room = widget.contentsRect()
    width, height = room.width() / camera.zoom, room.height() / camera.zoom
    if state.is_top_down:
        camera.x = clamp_or_center(camera.x, bounds.left() - margin, bounds.right() + margin - width)
    else:
        camera.y = clamp_or_center(camera.y, bounds.top() - margin, bounds.bottom() + margin - height)


def clamp_or_center(value: float, first: float, last: float) -> float:
    """Return `value` limited to [first, last], or the middle if the range is empty."""
    return (first + last) / 2 if last < first else min(max(value, first), last)


FOLLOW_ZOOM = 0.78
"""Zoom down to which a growing tree is shrunk while following; below that the camera scrolls."""


class SavedCamera(NamedTuple):
    """A saved camera position and its mode."""

    follow: bool
    may_shrink: bool
    repeat_fit: Callable[[], None] | None
    x: float
    y: float
    zoom: float
    size: QSize
    """Size of the widget at that time."""


class CanvasNavigation(QObject):
    """Moves the camera of a canvas state within one widget."""

    moved = Signal()
    followChanged = Signal(bool)
    """Following the newest nodes was switched on or off."""

    def __init__(self, state: CanvasState, widget: QWidget) -> None:
        super().__init__(widget)
        self._state, self._widget, self._camera = state, widget, state.camera
        self._follow, self._may_shrink = True, True
        self._saved_camera: SavedCamera | None = None
        self._repeat_fit: Callable[[], None] | None = None
        """The last fit, repeated when the widget is resized; None after the user moved by hand."""
        state.cleared.connect(self._on_cleared)
        state.replaced.connect(self.show_all)
        state.changed.connect(self._keep_newest)
        state.rearranged.connect(self._on_rearranged)

    @property
    def _room(self) -> QRect:
        """The part of the widget in which the tree is drawn, from its upper left corner."""
        return self._widget.contentsRect()

    @property
    def zoom(self) -> float:
        """The zoom; 1 is natural size."""
        return self._camera.zoom

    # Fitting

    @Slot()
    def show_all(self) -> None:
        """Show the whole tree, however small; while presenting, as much as is legible."""
        bounds, room = self._state.scene.bounds(), fit_area(self._state, self._widget)
        if bounds.isEmpty() or not self._room.width():
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
        """Show the whole tree. If it is too small to be read, a second call in a row shows a legible part around the
        selection or the best path.
        """
        again = self._repeat_fit == self.show_all and not self._follow
        self.set_follow(False)
        self.show_all()
        if self._camera.zoom < READABLE_ZOOM and again:
            self._fit_across()

    def keep_readable(self) -> None:
        """Fit the tree legibly, and again on every `handle_growth`, until the user moves elsewhere."""
        self.set_follow(False)
        self.show_all()
        if self._camera.zoom < READABLE_ZOOM:
            self._fit_across()
        self._repeat_fit = self.keep_readable

    def handle_growth(self) -> None:
        """Fit a grown tree again if it is kept legible."""
        if self._repeat_fit == self.keep_readable:
            self.keep_readable()

    def _fit_across(self) -> None:
        """Fit the tree across its direction at a legible zoom; along its direction it scrolls."""
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

    def show_in_lines(self, path: Sequence[int]) -> None:
        """Show the whole tree as large as possible, broken into lines, again after each resize; while presenting, as
        much as is legible, with the end of `path`.
        """
        room = fit_area(self._state, self._widget, LINE_MARGIN)
        if not self._room.width():
            return
        self._state.wrap_to(room.width(), room.height(), MAX_LINE_ZOOM)
        self._camera.show(self._state.scene.bounds(), room.width(), room.height(), MAX_LINE_ZOOM)
        self._camera.x -= room.x() / self._camera.zoom
        self._camera.y -= room.y() / self._camera.zoom
        if self._camera.zoom < min_zoom(self._state):
            self.set_zoom(min_zoom(self._state))
            for node in path:
                self.ensure_visible(node)
        self._finish_move(partial(self.show_in_lines, path))

    def _finish_move(self, again: Callable[[], None] | None = None) -> None:
        self._repeat_fit = again
        self.moved.emit()

    # Manual movement

    def pan(self, dx: float, dy: float) -> None:
        """Move the view over the canvas by pixels of the widget."""
        self._camera.x += dx / self._camera.zoom
        self._camera.y += dy / self._camera.zoom
        self._finish_move()

    def zoom_by(self, factor: float, anchor: QPointF | None = None) -> None:
        """Zoom around a point of the widget, by default its centre."""
        if self._camera.zoom_at(anchor if anchor is not None else QRectF(self._room).center(), factor):
            self._may_shrink = False
            self._finish_move()

    def set_zoom(self, zoom: float) -> None:
        """Set the zoom around the centre."""
        self.zoom_by(zoom / self._camera.zoom)

    @Slot(QPointF)
    def centre_on(self, point: QPointF) -> None:
        """Centre the widget on a point of the canvas."""
        self.set_follow(False)
        self._camera.x = point.x() - self._room.width() / 2 / self._camera.zoom
        self._camera.y = point.y() - self._room.height() / 2 / self._camera.zoom
        self._finish_move()

    def ensure_visible(self, node: int) -> None:
        """Unfold the ancestors of a node, and move just far enough to make it visible."""
        self._state.unfold(self._state.scene.model.path(node)[:-1])
        if self._state.scene.is_shown(node) and scroll_to_rect(self._state, self._widget, self._state.scene.box(node)):
            self._finish_move()

    def set_presenting(self, on: bool) -> None:
        """Save the camera and follow the newest nodes while presenting; restore it afterwards."""
        if on:
            camera, size = self._camera, self._room.size()
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
            grown = QSize(0, 0) if stays else saved.size - self._room.size()  # `handle_resize` will undo this
            self._camera.zoom = saved.zoom
            self._camera.x = saved.x + grown.width() / 2 / saved.zoom
            self._camera.y = saved.y + grown.height() / 2 / saved.zoom
            self._finish_move(saved.repeat_fit)

    # Following growth

    @property
    def follow(self) -> bool:
        """Whether the newest nodes are kept visible while the tree grows."""
        return self._follow

    @Slot(bool)
    def set_follow(self, on: bool) -> None:
        """Switch following on or off."""
        if on != self._follow:
            self._follow = on
            self.followChanged.emit(on)
        if on:
            self._keep_newest()

    def handle_resize(self, growth: QSize) -> None:
        """React to a changed size: repeat the last fit, or keep the centre in place."""
        if not self._follow and self._repeat_fit is not None:
            self._repeat_fit()
        elif not self._follow:
            self._camera.x -= growth.width() / 2 / self._camera.zoom
            self._camera.y -= growth.height() / 2 / self._camera.zoom
            self.moved.emit()

    @Slot()
    def _on_cleared(self) -> None:
        self._may_shrink, self._repeat_fit = True, None

    @Slot()
    def _on_rearranged(self) -> None:
        """Break a tree in lines again, as folding changes the rows of its lines."""
        if self._state.scene.metrics.columns and self._repeat_fit is not None:
            self._repeat_fit()

    @Slot()
    def _keep_newest(self) -> None:
        """Fit a small tree; keep the newest column of a large one visible."""
        if not self._follow or self._state.scene.last_depth < 0 or not self._room.width():
            return
        if self._may_shrink:
            self.show_all()
            if self._repeat_fit == self.show_all and self._camera.zoom >= FOLLOW_ZOOM:
                return
            self._camera.zoom = FOLLOW_ZOOM
        self._camera.zoom = max(self._camera.zoom, min_zoom(self._state))
        view = self._camera.rect_to_canvas(QRectF(self._room))
        if scroll_to_rect(self._state, self._widget, newest_rect(self._state, view)):
            self._finish_move()
        fill_view(self._state, self._widget)
        self.moved.emit()
