"""Command palette over the window: a search field, the results, and a description of the current row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from PySide6.QtCore import QAbstractListModel, QEvent, QModelIndex, QObject, QRect, QRectF, QSize, Qt, Signal, Slot
from PySide6.QtGui import (
    QColor,
    QFocusEvent,
    QFontMetrics,
    QKeyEvent,
    QPainter,
)
from PySide6.QtWidgets import (
    QAbstractItemView,
    QFrame,
    QGraphicsDropShadowEffect,
    QLineEdit,
    QListView,
    QStyle,
    QStyleOptionViewItem,
    QVBoxLayout,
    QWidget,
)

from decodescope.app.theme.theme import Theme
from decodescope.app.theme.themed import Themed
from decodescope.app.widgets.accessibility.accessible_widget import announce
from decodescope.app.widgets.building import arrange, set_up
from decodescope.app.widgets.labels import WrappedLabel
from decodescope.app.widgets.painted_rows import Index, ThemedDelegate, paint_line
from decodescope.app.widgets.plain_text import tooltip
from decodescope.resources.language import join_names, tr

ROW_ROLE = Qt.ItemDataRole.UserRole
SIDE, GAP, ROW_HEIGHT = 14, 12, 34
"""Pixels at 100 %: margin of a row, gap between its parts, and row height."""
_ROOT = QModelIndex()


class PaletteRow(NamedTuple):
    """A row of the palette; one with a `reason` is listed but cannot be chosen."""

    title: str
    kind: str
    shortcut: str = ""
    description: str = ""
    reason: str = ""
    match_indices: tuple[int, ...] = ()
    """Indices of the title's characters that match the search."""

    @property
    def accessible_text(self) -> str:
        """The row's text for screen readers."""
        return join_names(
            part for part in (self.title, self.kind, self.shortcut, self.reason or self.description) if part
        )


class PaletteModel(QAbstractListModel):
    """Search results, the best match first."""

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self._rows: Sequence[PaletteRow] = ()

    def show_rows(self, rows: Sequence[PaletteRow]) -> None:
        """List these rows."""
        self.beginResetModel()
        self._rows = rows
        self.endResetModel()

    def row(self, index: int) -> PaletteRow | None:
        """Return the row at this index, or None."""
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
    """Paint the title with the matching characters highlighted, and kind and key at the right; all rows are equally
    high.
    """

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
        """Paint the background of the selected row, with a bar at its edge so that selection does not depend on the
        tint.
        """
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
        """Paint kind and key at the right end and return their left edge."""
        left = line.right()
        for text, font in ((row.shortcut, theme.font(11, 500)), (row.kind, theme.font(11))):
            if text:
                width = QFontMetrics(font).horizontalAdvance(text)
                left -= width
                paint_line(painter, QRect(left, line.top(), width + 2, line.height()), font, theme.color("muted"), text)
                left -= theme.px(GAP)
        return left + theme.px(GAP)

    def _paint_title(self, painter: QPainter, line: QRect, row: PaletteRow, theme: Theme) -> None:
        """Paint the title, followed by the reason of an unavailable row if space allows."""
        plain, bold = theme.font(13), theme.font(13, 600)
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
    """Split the text into runs of matching and other characters."""
    pieces: list[tuple[str, bool]] = []
    for place, letter in enumerate(text):
        is_typed = place in match_indices
        if pieces and pieces[-1][1] == is_typed:
            pieces[-1] = (pieces[-1][0] + letter, is_typed)
        else:
            pieces.append((letter, is_typed))
    return pieces


WIDTH, MAX_VISIBLE_ROWS, TOP, EDGE = 620, 10, 56, 24
"""Width at 100 %, number of visible rows, space above in pixels, and space kept free on both sides."""
_STEPS = {Qt.Key.Key_Up: -1, Qt.Key.Key_Down: 1, Qt.Key.Key_Backtab: -1, Qt.Key.Key_Tab: 1,
          Qt.Key.Key_PageUp: -MAX_VISIBLE_ROWS, Qt.Key.Key_PageDown: MAX_VISIBLE_ROWS}  # fmt: skip


class CommandPalette(Themed, QFrame):
    """Palette laid over `body`; the keyboard focus stays in its search field.

    Emits `searched(text)` when the text changes, `chosen(row)` on Enter or click, and `closeRequested` on Esc or when
    the focus moves away.
    """

    searched = Signal(str)
    chosen = Signal(int)
    closeRequested = Signal()

    def __init__(self, body: QWidget) -> None:
        super().__init__(body)
        set_up(self, name="commandPalette", accessible_name=tr("Command palette"))
        self._body = body
        self.field, self.list = QLineEdit(self), QListView(self)
        self.model, self._delegate = PaletteModel(self), PaletteDelegate(self)
        self.description_label = WrappedLabel("", self)
        self._make_field()
        self._make_list()
        self._footer = QWidget(self)
        arrange(QVBoxLayout(self._footer), (self.description_label, 0, Qt.AlignmentFlag.AlignTop), margins=0)
        self._column = arrange(QVBoxLayout(self), self.field, self.list, self._footer)
        self.setAutoFillBackground(True)
        self.hide()
        body.installEventFilter(self)

    @property
    def row(self) -> PaletteRow | None:
        """The current row, which Enter chooses."""
        return self.model.row(self.list.currentIndex().row())

    def open(self) -> None:
        """Clear and show the palette, with the focus in its field."""
        self.field.clear()
        self._update_geometry()
        self.show()
        self.raise_()
        self.field.setFocus(Qt.FocusReason.ShortcutFocusReason)

    def show_rows(self, rows: Sequence[PaletteRow]) -> None:
        """List these rows and select the first one."""
        self.model.show_rows(rows)
        self.list.setCurrentIndex(self.model.index(0))
        self.list.scrollToTop()
        if not rows:
            self._set_description(tr("No matches. Try a shorter search."))
        self._update_geometry()

    def restyle(self, theme: Theme) -> None:
        self._delegate.theme = theme
        self.setStyleSheet(
            f"#commandPalette {{ background: {theme.panel}; border: 1px solid {theme.line};"
            f" border-radius: {theme.px(12)}px; }}"
            f"#commandField {{ border: 0; border-bottom: 1px solid {theme.line}; border-radius: 0;"
            f" background: transparent; font-size: {theme.px(15)}px; padding: {theme.px(12)}px {theme.px(16)}px; }}"
            f"#commandList {{ border: 0; background: transparent; padding: {theme.px(4)}px 0; }}"
            f"#commandFoot {{ color: {theme.muted}; font-size: {theme.px(12)}px; }}"
        )
        self._footer.setContentsMargins(theme.px(16), 0, theme.px(16), 0)
        self._footer.setMinimumHeight(2 * QFontMetrics(theme.font(12)).lineSpacing())
        self._column.setContentsMargins(1, 1, 1, theme.px(10))
        self._column.setSpacing(theme.px(6))
        self._add_shadow(theme)
        self._update_geometry()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Follow the body's size, handle the field's keys, and close when the focus leaves the field."""
        if watched is self._body and event.type() == QEvent.Type.Resize:
            self._update_geometry()
        if watched is self.field and isinstance(event, QKeyEvent):
            return self._handle_key(event)
        if watched is self.field and isinstance(event, QFocusEvent) and event.lostFocus() and self.isVisible():
            if event.reason() not in (Qt.FocusReason.ActiveWindowFocusReason, Qt.FocusReason.PopupFocusReason):
                self.closeRequested.emit()
        return False

    def _make_field(self) -> None:
        self.field.setObjectName("commandField")
        self.field.setAccessibleName(tr("Find an action, a setting, a model, a view …"))
        self.field.setPlaceholderText(tr("Find an action, a setting, a model, a view …"))
        self.field.textChanged.connect(self.searched)
        self.field.installEventFilter(self)

    def _make_list(self) -> None:
        self.list.setObjectName("commandList")
        self.list.setAccessibleName(tr("Results"))
        self.list.setModel(self.model)
        self.list.setItemDelegate(self._delegate)
        self.list.setUniformItemSizes(True)
        self.list.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.list.setMouseTracking(True)
        self.list.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.list.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.list.clicked.connect(self._on_clicked)
        self.list.selectionModel().currentChanged.connect(self._on_current)
        self.description_label.setObjectName("commandFoot")

    def _handle_key(self, event: QKeyEvent) -> bool:
        """Handle Enter, Esc and the keys that move through the rows; leave all others to the field."""
        key = Qt.Key(event.key())
        is_enter = key in (Qt.Key.Key_Return, Qt.Key.Key_Enter)
        if not (is_enter or key == Qt.Key.Key_Escape or key in _STEPS):
            return False
        event.accept()
        if event.type() == QEvent.Type.KeyPress:
            if is_enter:
                self._choose(self.list.currentIndex())
            elif key == Qt.Key.Key_Escape:
                self.closeRequested.emit()
            else:
                self._move_selection(_STEPS[key])
        return True

    def _move_selection(self, offset: int) -> None:
        """Move the selection by `offset` rows; single steps wrap around at both ends."""
        count, place = self.model.rowCount(), self.list.currentIndex().row() + offset
        if count:
            around = place % count if abs(offset) == 1 else min(max(0, place), count - 1)
            self.list.setCurrentIndex(self.model.index(around))

    @Slot(QModelIndex)
    def _on_clicked(self, index: QModelIndex) -> None:
        self.list.setCurrentIndex(index)
        self._choose(index)

    def _choose(self, index: QModelIndex) -> None:
        row = self.model.row(index.row())
        if row is None:
            return
        if row.reason:
            announce(self.field, row.reason)
        self.chosen.emit(index.row())

    @Slot(QModelIndex)
    def _on_current(self, index: QModelIndex) -> None:
        row = self.model.row(index.row())
        if row is not None:
            self._set_description(row.reason or row.description or tr("↑ ↓ select · Enter run · Esc close"))
            self.field.setAccessibleDescription(row.accessible_text)
            announce(self.field, row.accessible_text)

    def _set_description(self, text: str) -> None:
        self.description_label.setText(text)

    def _add_shadow(self, theme: Theme) -> None:
        shadow = QGraphicsDropShadowEffect(self)
        shadow.setBlurRadius(theme.px(32))
        shadow.setOffset(0, theme.px(6))
        shadow.setColor(QColor(0, 0, 0, 150 if theme.is_dark else 70))
        self.setGraphicsEffect(shadow)

    def _update_geometry(self) -> None:
        """Place the palette near the top centre, as high as its rows need and the window allows."""
        theme, room = self._theme, self._body.size()
        self.setFixedWidth(min(theme.px(WIDTH), room.width() - 2 * EDGE))
        others = self.field.sizeHint().height() + self._footer.sizeHint().height()
        max_height = room.height() - TOP - EDGE - others - theme.px(36)
        preferred_height = (
            min(MAX_VISIBLE_ROWS, max(1, self.model.rowCount())) * theme.px(ROW_HEIGHT) + 2 * theme.px(4) + 2
        )
        self.list.setFixedHeight(max(theme.px(ROW_HEIGHT), min(preferred_height, max_height)))
        self.adjustSize()
        self.move((room.width() - self.width()) // 2, min(TOP, max(0, room.height() - self.height() - EDGE)))
