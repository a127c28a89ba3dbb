"""A view with nothing to show yet: what it is for, and how to come by it."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QRect, QRectF, Qt
from PySide6.QtGui import QPainter

from app.state.run import Run
from app.theme.theme import Theme
from resources.language import tr


def waiting_title(run: Run | None) -> str:
    """What a run is doing before its first token; empty where none is under way."""
    if run is None or run.finished is not None or run.outcome is not None:
        return ""
    return (
        tr("Loading {name}…").format(name=Path(run.request.model).name) if run.is_loading else tr("Reading the prompt…")
    )


def paint_empty_page(painter: QPainter, area: QRect, theme: Theme, title: str, hint: str) -> None:
    """A title and a hint below it, in the middle."""
    middle = QRectF(area).center().y() - theme.px(24)
    flags = Qt.AlignmentFlag.AlignHCenter | Qt.AlignmentFlag.AlignTop | Qt.TextFlag.TextWordWrap
    side = max(theme.px(16), (area.width() - theme.px(460)) / 2)
    painter.setFont(theme.font(18, 600))
    painter.setPen(theme.color("text"))
    painter.drawText(QRectF(side, middle, area.width() - 2 * side, theme.px(30)), int(flags), title)
    painter.setFont(theme.font(14))
    painter.setPen(theme.color("muted"))
    painter.drawText(QRectF(side, middle + theme.px(32), area.width() - 2 * side, theme.px(90)), int(flags), hint)
