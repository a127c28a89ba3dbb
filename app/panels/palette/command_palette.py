"""The command palette: a field over the window, below it what was found, at its foot a sentence on the current row."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QEvent, QModelIndex, QObject, Qt, Signal, Slot
from PySide6.QtGui import QAccessible, QAccessibleAnnouncementEvent, QColor, QFocusEvent, QFontMetrics, QKeyEvent
from PySide6.QtWidgets import (
    QAbstractItemView,
    QFrame,
    QGraphicsDropShadowEffect,
    QLineEdit,
    QListView,
    QVBoxLayout,
    QWidget,
)

from app.panels.palette.palette_rows import ROW_HEIGHT, PaletteDelegate, PaletteModel, PaletteRow
from app.theme.theme import Theme
from app.widgets.wrapped_label import WrappedLabel
from resources.language import tr

WIDTH, MAX_VISIBLE_ROWS, TOP, EDGE = 620, 10, 56, 24
"""Width at 100 %, rows that are seen at once, pixels above it and what is kept free at its sides."""
_STEPS = {Qt.Key.Key_Up: -1, Qt.Key.Key_Down: 1, Qt.Key.Key_Backtab: -1, Qt.Key.Key_Tab: 1,
          Qt.Key.Key_PageUp: -MAX_VISIBLE_ROWS, Qt.Key.Key_PageDown: MAX_VISIBLE_ROWS}  # fmt: skip


class CommandPalette(QFrame):
    """`searched(text)` whenever something is typed, `chosen(row)` for Enter or a click, `closeRequested` for Esc or when
    the cursor goes elsewhere. It lies over `body`, and the cursor stays in its field."""

    searched = Signal(str)
    chosen = Signal(int)
    closeRequested = Signal()

    def __init__(self, body: QWidget) -> None:
        super().__init__(body)
        self.setObjectName("commandPalette")
        self.setAccessibleName(tr("Command palette"))
        self._theme: Theme | None = None
        self._body = body
        self.field, self.list = QLineEdit(self), QListView(self)
        self.model, self._delegate = PaletteModel(self), PaletteDelegate(self)
        self.description_label = WrappedLabel("", self)
        self._make_field()
        self._make_list()
        self._footer = QWidget(self)
        below = QVBoxLayout(self._footer)
        below.setContentsMargins(0, 0, 0, 0)
        below.addWidget(self.description_label, 0, Qt.AlignmentFlag.AlignTop)
        column = self._column = QVBoxLayout(self)
        for part in (self.field, self.list, self._footer):
            column.addWidget(part)
        self.setAutoFillBackground(True)
        self.hide()
        body.installEventFilter(self)

    @property
    def row(self) -> PaletteRow | None:
        """The one that Enter takes."""
        return self.model.row(self.list.currentIndex().row())

    def open(self) -> None:
        """Show it, empty, with the cursor in it."""
        self.field.clear()
        self._update_geometry()
        self.show()
        self.raise_()
        self.field.setFocus(Qt.FocusReason.ShortcutFocusReason)

    def show_rows(self, rows: Sequence[PaletteRow]) -> None:
        """List these, the first one current."""
        self.model.show_rows(rows)
        self.list.setCurrentIndex(self.model.index(0))
        self.list.scrollToTop()
        if not rows:
            self._set_description(tr("No matches. Try a shorter search."))
        self._update_geometry()

    def set_theme(self, theme: Theme) -> None:
        """Colours and sizes."""
        self._theme = self._delegate.theme = theme
        self.setStyleSheet(
            f"#commandPalette {{ background: {theme.panel}; border: 1px solid {theme.line};"
            f" border-radius: {theme.px(12)}px; }}"
            f"#commandField {{ border: 0; border-bottom: 1px solid {theme.line}; border-radius: 0;"
            f" background: transparent; font-size: {theme.px(16)}px; padding: {theme.px(12)}px {theme.px(16)}px; }}"
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
        """Follow the body's size; keys of the field; close when the cursor leaves it."""
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
        self.list.setAccessibleName(tr("Found"))
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
        """Enter, Esc and what walks along the rows; everything else is the field's."""
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
        """Another row; one step beyond either end comes out at the other."""
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
            self._announce(row.reason)
        self.chosen.emit(index.row())

    @Slot(QModelIndex)
    def _on_current(self, index: QModelIndex) -> None:
        row = self.model.row(index.row())
        if row is not None:
            self._set_description(row.reason or row.description or tr("↑ ↓ choose · Enter does it · Esc closes"))
            self.field.setAccessibleDescription(row.accessible_text)
            self._announce(row.accessible_text)

    def _set_description(self, text: str) -> None:
        self.description_label.setText(text)

    def _announce(self, text: str) -> None:
        """The cursor stays in the field: a screen reader hears of the row by itself."""
        if QAccessible.isActive():
            QAccessible.updateAccessibility(QAccessibleAnnouncementEvent(self.field, text))

    def _add_shadow(self, theme: Theme) -> None:
        shadow = QGraphicsDropShadowEffect(self)
        shadow.setBlurRadius(theme.px(32))
        shadow.setOffset(0, theme.px(6))
        shadow.setColor(QColor(0, 0, 0, 150 if theme.is_dark else 70))
        self.setGraphicsEffect(shadow)

    def _update_geometry(self) -> None:
        """In the middle, near the top, as high as its rows want and the window allows."""
        if self._theme is None:
            return
        theme, room = self._theme, self._body.size()
        self.setFixedWidth(min(theme.px(WIDTH), room.width() - 2 * EDGE))
        others = self.field.sizeHint().height() + self._footer.sizeHint().height()
        most = room.height() - TOP - EDGE - others - theme.px(36)
        wanted = min(MAX_VISIBLE_ROWS, max(1, self.model.rowCount())) * theme.px(ROW_HEIGHT) + 2 * theme.px(4) + 2
        self.list.setFixedHeight(max(theme.px(ROW_HEIGHT), min(wanted, most)))
        self.adjustSize()
        self.move((room.width() - self.width()) // 2, min(TOP, max(0, room.height() - self.height() - EDGE)))
