"""The rows of the palette: what each says, for the eye and for a screen reader, and how it is drawn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from PySide6.QtCore import QAbstractListModel, QModelIndex, QObject, QRect, QRectF, QSize, Qt
from PySide6.QtGui import QFontMetrics, QPainter
from PySide6.QtWidgets import QStyle, QStyleOptionViewItem

from app.theme.theme import Theme
from app.widgets.painted_rows import Index, ThemedDelegate, paint_line
from app.widgets.plain_text import tooltip

ROW_ROLE = Qt.ItemDataRole.UserRole
SIDE, GAP, ROW_HEIGHT = 14, 12, 34
"""Pixels at 100 %: left and right of a row, between its parts, and its height."""
_ROOT = QModelIndex()


class PaletteRow(NamedTuple):
    """One thing that can be chosen; with a `reason` it is listed and cannot be."""

    title: str
    kind: str
    shortcut: str = ""
    description: str = ""
    reason: str = ""
    match_indices: tuple[int, ...] = ()
    """Letters of the title that were typed."""

    @property
    def accessible_text(self) -> str:
        """The row for a screen reader."""
        return ", ".join(
            part for part in (self.title, self.kind, self.shortcut, self.reason or self.description) if part
        )


class PaletteModel(QAbstractListModel):
    """What was found, the best first."""

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self._rows: Sequence[PaletteRow] = ()

    def show_rows(self, rows: Sequence[PaletteRow]) -> None:
        """List these."""
        self.beginResetModel()
        self._rows = rows
        self.endResetModel()

    def row(self, index: int) -> PaletteRow | None:
        """What stands there; None where nothing does."""
        return self._rows[index] if 0 <= index < len(self._rows) else None

    def rowCount(self, parent: Index = _ROOT) -> int:
        return 0 if parent.isValid() else len(self._rows)

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        row = self.row(index.row())
        if row is None:
            return None
        shown = {
            Qt.ItemDataRole.DisplayRole: row.title,
            Qt.ItemDataRole.ToolTipRole: tooltip(row.reason or row.description),
            Qt.ItemDataRole.AccessibleTextRole: row.accessible_text,
            ROW_ROLE: row,
        }
        return shown.get(Qt.ItemDataRole(role)) if role in shown else None


class PaletteDelegate(ThemedDelegate):
    """Title with the typed letters marked; at the right kind and key. Every row is as high as every other."""

    def sizeHint(self, option: QStyleOptionViewItem, index: Index) -> QSize:
        return QSize(0, self.theme.px(ROW_HEIGHT)) if self.theme is not None else super().sizeHint(option, index)

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        row = index.data(ROW_ROLE)
        if self.theme is None or not isinstance(row, PaletteRow):
            return
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        line = option.rect.adjusted(self.theme.px(SIDE), 0, -self.theme.px(SIDE), 0)
        self._paint_background(painter, option, self.theme)
        line.setRight(self._paint_kind(painter, line, row, self.theme) - self.theme.px(GAP))
        self._paint_title(painter, line, row, self.theme)
        painter.restore()

    @staticmethod
    def _paint_background(painter: QPainter, option: QStyleOptionViewItem, theme: Theme) -> None:
        """The row that Enter would take has a bar at its edge too, for whom the tint is too faint."""
        if not option.state & QStyle.StateFlag.State_Selected:
            return
        ground = QRectF(option.rect).adjusted(theme.px(6), 1, -theme.px(6), -1)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(theme.color("tint"))
        painter.drawRoundedRect(ground, theme.px(6), theme.px(6))
        painter.setBrush(theme.color("accent"))
        painter.drawRoundedRect(QRectF(ground.left(), ground.top() + 5, theme.px(3), ground.height() - 10), 1.5, 1.5)

    @staticmethod
    def _paint_kind(painter: QPainter, line: QRect, row: PaletteRow, theme: Theme) -> int:
        """Kind and key at the right end; gives back where they begin."""
        left = line.right()
        for text, font in ((row.shortcut, theme.font(11, 500)), (row.kind, theme.font(11))):
            if text:
                width = QFontMetrics(font).horizontalAdvance(text)
                left -= width
                paint_line(painter, QRect(left, line.top(), width + 2, line.height()), font, theme.color("muted"), text)
                left -= theme.px(GAP)
        return left + theme.px(GAP)

    def _paint_title(self, painter: QPainter, line: QRect, row: PaletteRow, theme: Theme) -> None:
        """The title; behind one that cannot be chosen, why not, as far as there is room."""
        plain, bold = theme.font(13), theme.font(13, 700)
        color, marked = theme.color("muted" if row.reason else "text"), theme.color("accent")
        x, places = line.left(), set(row.match_indices)
        shown = QFontMetrics(bold).elidedText(row.title, Qt.TextElideMode.ElideRight, line.width())
        for text, is_typed in _split_matches(shown, places):
            font = bold if is_typed else plain
            width = QFontMetrics(font).horizontalAdvance(text)
            paint_line(
                painter, QRect(x, line.top(), width + 2, line.height()), font, marked if is_typed else color, text
            )
            x += width
        if row.reason:
            room = QRect(x + theme.px(GAP), line.top(), line.right() - x - theme.px(GAP), line.height())
            paint_line(painter, room, theme.font(11), theme.color("muted"), row.reason)


def _split_matches(text: str, match_indices: set[int]) -> list[tuple[str, bool]]:
    """The text in pieces, each typed or not."""
    pieces: list[tuple[str, bool]] = []
    for place, letter in enumerate(text):
        is_typed = place in match_indices
        if pieces and pieces[-1][1] == is_typed:
            pieces[-1] = (pieces[-1][0] + letter, is_typed)
        else:
            pieces.append((letter, is_typed))
    return pieces
