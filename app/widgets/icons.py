"""The program's SVG icons, rendered in any colour and size."""

from __future__ import annotations

from functools import lru_cache

from PySide6.QtCore import QByteArray, QEvent, QRectF, QSize, Qt
from PySide6.QtGui import QIcon, QPainter, QPixmap
from PySide6.QtSvg import QSvgRenderer
from PySide6.QtWidgets import QToolButton, QWidget

from decodescope import resources
from decodescope.app.theme.theme import Theme
from decodescope.app.theme.themed import Themed
from decodescope.app.widgets.building import set_up
from decodescope.app.widgets.plain_text import tooltip

OVERSAMPLING = 3
"""Pixmaps are rendered larger so that they stay sharp on dense screens."""


@lru_cache(maxsize=64)
def _svg_source(name: str) -> str:
    return resources.path("icons", f"{name}.svg").read_text(encoding="utf-8")


def icon_pixmap(name: str, color: str, px: int) -> QPixmap:
    """Return icon `name` in `color` (`#rrggbb`), `px` logical pixels wide and high."""
    drawn = QPixmap(QSize(px, px) * OVERSAMPLING)
    drawn.fill(Qt.GlobalColor.transparent)
    painter = QPainter(drawn)
    paint_icon(painter, name, color, QRectF(drawn.rect()))
    painter.end()
    drawn.setDevicePixelRatio(OVERSAMPLING)
    return drawn


def paint_icon(painter: QPainter, name: str, color: str, rect: QRectF) -> None:
    """Paint icon `name` in `color`, filling `rect`."""
    svg = _svg_source(name).replace("currentColor", color)
    QSvgRenderer(QByteArray(svg.encode())).render(painter, rect)


def create_icon(name: str, color: str, px: int) -> QIcon:
    """Return the icon as a QIcon."""
    return QIcon(icon_pixmap(name, color, px))


class IconButton(Themed, QToolButton):
    """A flat button with one icon, and optionally another one for the checked state."""

    def __init__(self, name: str, label: str, parent: QWidget | None = None, checked_name: str = "") -> None:
        super().__init__(parent)
        self._names = (name, checked_name or name)
        self._has_been_disabled = False
        """Whether the button has ever been disabled, which most never are."""
        set_up(self, accessible_name=label, tooltip=tooltip(label))
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.toggled.connect(self._update_icon)

    def restyle(self, theme: Theme) -> None:
        self._update_icon()

    def _update_icon(self) -> None:
        if not self.is_themed:
            return
        color = self._theme.faint if self.isCheckable() and not self.isChecked() else self._theme.muted
        px = self._theme.px(16)
        self.setIconSize(QSize(px, px))
        name = self._names[self.isChecked()]
        drawn = create_icon(name, color, px)
        if self._has_been_disabled or not self.isEnabled():
            self._has_been_disabled = True
            drawn.addPixmap(
                icon_pixmap(name, self._theme.faint, px), QIcon.Mode.Disabled
            )  # Qt's own disabled icon is too bright on a dark background
        self.setIcon(drawn)

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.EnabledChange and not self._has_been_disabled:
            self._update_icon()
