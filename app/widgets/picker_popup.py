"""The list of a picker, laid over the window: a search field, groups of rows, and buttons for commands."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from PySide6.QtCore import (
    QAbstractListModel,
    QEvent,
    QItemSelectionModel,
    QModelIndex,
    QObject,
    QPoint,
    QRect,
    QRectF,
    QSize,
    Qt,
    Slot,
)
from PySide6.QtGui import (
    QColor,
    QCursor,
    QFocusEvent,
    QFontMetrics,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPen,
)
from PySide6.QtWidgets import (
    QAbstractItemView,
    QApplication,
    QFrame,
    QGraphicsDropShadowEffect,
    QLineEdit,
    QListView,
    QMainWindow,
    QPushButton,
    QStyle,
    QStyleOptionViewItem,
    QVBoxLayout,
    QWidget,
)

from decodescope.app.theme.theme import Theme
from decodescope.app.theme.themed import Themed, inherit_theme
from decodescope.app.widgets import icons
from decodescope.app.widgets.building import arrange, set_up, show_text
from decodescope.app.widgets.flow_layout import FlowLayout
from decodescope.app.widgets.painted_rows import Index, ThemedDelegate, paint_line
from decodescope.app.widgets.plain_text import PlainLabel, caption, tooltip
from decodescope.resources.language import tr

if TYPE_CHECKING:
    from decodescope.app.widgets.picker_items import Picker
from decodescope.app.widgets.accessibility.accessible_widget import announce
from decodescope.app.widgets.picker_items import PickerItem

ROW_ROLE = Qt.ItemDataRole.UserRole
_ROOT = QModelIndex()
SIDE, GAP, MARK = 12, 16, 16
"""Pixels at 100 %: margin of a row, gap between columns, side of icons and marks."""
MIN_WIDTH, MAX_WIDTH, MAX_HEIGHT, EDGE = 360, 760, 640, 8
"""Width and height of the popup in pixels at 100 %, and the space kept free around it."""
PAGE = 8
"""Rows that Page up and Page down move by."""


class PopupRow(NamedTuple):
    """A row of the list: a group's title, or an item."""

    heading: str = ""
    item: PickerItem | None = None

    @property
    def can_be_current(self) -> bool:
        """Whether the highlight can be here: on any item, also on one that cannot be chosen, to read its reason."""
        return self.item is not None


def matches(item: PickerItem, search: str) -> bool:
    """Return whether each word of a search occurs in the item's texts, whatever the case and the accents."""
    texts = (item.title, item.subtitle, item.group, item.badge, *item.columns, item.keywords, str(item.data or ""))
    text = _plain(" ".join(texts))
    return all(word in text for word in _plain(search).split())


def _plain(text: str) -> str:
    decomposed = unicodedata.normalize("NFKD", text).casefold()
    return "".join(letter for letter in decomposed if not unicodedata.combining(letter))


def rows_for(items: Iterable[PickerItem], search: str) -> list[PopupRow]:
    """Return the rows of the items that match, with a heading before each group."""
    rows: list[PopupRow] = []
    group = ""
    for item in items:
        if matches(item, search):
            if item.group and item.group != group:
                rows.append(PopupRow(item.group))
            group = item.group
            rows.append(PopupRow(item=item))
    return rows


class PickerListModel(QAbstractListModel):
    """The rows of the list."""

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self.rows: Sequence[PopupRow] = ()

    def show_rows(self, rows: Sequence[PopupRow]) -> None:
        """List these rows."""
        self.beginResetModel()
        self.rows = rows
        self.endResetModel()

    def rowCount(self, parent: Index = _ROOT) -> int:
        return 0 if parent.isValid() else len(self.rows)

    def flags(self, index: Index) -> Qt.ItemFlag:
        row = self.rows[index.row()]
        if row.item is None:
            return Qt.ItemFlag.NoItemFlags
        usable = Qt.ItemFlag.NoItemFlags if row.item.reason else Qt.ItemFlag.ItemIsEnabled
        return Qt.ItemFlag.ItemIsSelectable | usable

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        row = self.rows[index.row()]
        item = row.item
        if role == ROW_ROLE:
            return row
        if role == Qt.ItemDataRole.DisplayRole:
            return item.title if item is not None else row.heading
        if role == Qt.ItemDataRole.ToolTipRole and item is not None:
            return tooltip(item.reason or item.help or item.subtitle)
        if role == Qt.ItemDataRole.AccessibleTextRole:
            return item.accessible_text if item is not None else row.heading
        return None


class PickerDelegate(ThemedDelegate):
    """Paints headings, and items with icon, title, subtitle, columns and the picker's mark."""

    def __init__(self, picker: Picker, parent: QWidget) -> None:
        super().__init__(parent)
        self._picker = picker
        self.column_widths: tuple[int, ...] = ()
        self.has_icons = False

    def measure(self, items: Sequence[PickerItem], theme: Theme) -> None:
        """Measure the columns of all items, so that they are aligned in every search."""
        metrics = QFontMetrics(theme.font(12, tabular=True))
        count = max((len(item.columns) for item in items), default=0)
        self.column_widths = tuple(
            max((metrics.horizontalAdvance(item.columns[n]) for item in items if len(item.columns) > n), default=0)
            for n in range(count)
        )
        self.has_icons = any(item.icon for item in items)

    def text_room(self, width: int) -> int:
        """Return the width of the subtitle's column in a row of `width` pixels."""
        theme = self.theme
        assert theme is not None
        return width - self._left(theme) - self._right(theme)

    def width_for(self, items: Sequence[PickerItem], theme: Theme) -> int:
        """Return the width of a row that shows all titles and subtitles on one line."""
        title, small = QFontMetrics(theme.font(13, 500)), QFontMetrics(theme.font(11))
        widest = max(
            (
                max(
                    title.horizontalAdvance(item.title)
                    + (title.horizontalAdvance(item.badge) + theme.px(24) if item.badge else 0),
                    small.horizontalAdvance(item.reason or item.subtitle),
                )
                for item in items
            ),
            default=0,
        )
        return widest + self._left(theme) + self._right(theme) + 2

    def _left(self, theme: Theme) -> int:
        return theme.px(SIDE) + (theme.px(MARK) + theme.px(10)) * self.has_icons

    def _right(self, theme: Theme) -> int:
        columns = sum(width + theme.px(GAP) for width in self.column_widths)
        return columns + theme.px(GAP) + theme.px(MARK) + theme.px(SIDE)

    def mark_rect(self, row: QRect) -> QRectF:
        """Return the rectangle of the picker's mark in a row."""
        theme = self.theme
        assert theme is not None
        side = theme.px(MARK)
        return QRectF(row.right() - theme.px(SIDE) - side, row.center().y() - side / 2 + 1, side, side)

    def sizeHint(self, option: QStyleOptionViewItem, index: Index) -> QSize:
        theme, row = self.theme, index.data(ROW_ROLE)
        if theme is None:
            return super().sizeHint(option, index)
        if row.item is None:
            return QSize(0, theme.px(26 if index.row() == 0 else 34))
        subtitle = row.item.reason or row.item.subtitle
        if not subtitle:
            return QSize(0, theme.px(34))
        metrics = QFontMetrics(theme.font(11))
        view = option.widget
        width = view.viewport().width() if isinstance(view, QAbstractItemView) else theme.px(MIN_WIDTH)
        room = QRect(0, 0, self.text_room(width), 10_000)
        needed = metrics.boundingRect(room, Qt.TextFlag.TextWordWrap, subtitle).height()
        return QSize(0, theme.px(46) + max(0, needed - metrics.height()))

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        theme, row = self.theme, index.data(ROW_ROLE)
        if theme is None:
            return
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        rect = QRect(option.rect)
        if row.item is None:
            self._paint_heading(painter, theme, rect, row.heading)
        else:
            if option.state & QStyle.StateFlag.State_Selected:
                painter.setPen(Qt.PenStyle.NoPen)
                painter.setBrush(theme.color("tint"))
                painter.drawRoundedRect(QRectF(rect).adjusted(4, 1, -4, -1), theme.px(6), theme.px(6))
            self._paint_item(painter, theme, rect, row.item)
        painter.restore()

    @staticmethod
    def _paint_heading(painter: QPainter, theme: Theme, rect: QRect, text: str) -> None:
        line = rect.adjusted(theme.px(SIDE), rect.height() - theme.px(24), -theme.px(SIDE), 0)
        paint_line(painter, line, theme.font(11, 600), theme.color("muted"), text)

    def _paint_item(self, painter: QPainter, theme: Theme, rect: QRect, item: PickerItem) -> None:
        if item.icon:
            side = theme.px(MARK)
            spot = QRectF(rect.left() + theme.px(SIDE), rect.top() + theme.px(8), side, side)
            icons.paint_icon(painter, item.icon, theme.muted, spot)
        if not item.reason:
            self._picker.paint_mark(painter, theme, self.mark_rect(rect), item.data)
        right = rect.right() - theme.px(SIDE) - theme.px(MARK) - theme.px(GAP)
        first_line = QRect(rect.left(), rect.top() + theme.px(5), rect.width(), theme.px(19))
        for width, text in reversed(tuple(zip(self.column_widths, item.columns, strict=False))):
            painter.setFont(theme.font(12, tabular=True))
            painter.setPen(QPen(theme.muted))
            cell = QRect(right - width, first_line.top(), width, first_line.height())
            painter.drawText(cell, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter, text)
            right -= width + theme.px(GAP)
        room = self.text_room(rect.width())
        self._paint_texts(painter, theme, QRect(rect.left() + self._left(theme), rect.top(), room, rect.height()), item)

    @staticmethod
    def _paint_texts(painter: QPainter, theme: Theme, rect: QRect, item: PickerItem) -> None:
        subtitle = item.reason or item.subtitle
        color = theme.color("muted" if item.reason else "text")
        line = QRect(rect.left(), rect.top() + theme.px(5), rect.width(), theme.px(19))
        if not subtitle:
            line.setRect(rect.left(), rect.top(), rect.width(), rect.height())
        title = theme.font(13, 500)
        paint_line(painter, line, title, color, item.title)
        if item.badge:
            used = QFontMetrics(title).horizontalAdvance(item.title) + theme.px(8)
            _paint_badge(painter, theme, line.adjusted(used, 0, 0, 0), item.badge)
        if subtitle:
            painter.setFont(theme.font(11))
            painter.setPen(QPen(theme.muted))
            below = QRect(rect.left(), line.bottom() + 1, rect.width(), rect.bottom() - line.bottom() - theme.px(4))
            painter.drawText(below, Qt.AlignmentFlag.AlignLeft | Qt.TextFlag.TextWordWrap, subtitle)


def _paint_badge(painter: QPainter, theme: Theme, rect: QRect, text: str) -> None:
    font = theme.font(11, 500)
    metrics = QFontMetrics(font)
    pill = QRectF(rect.left(), 0, metrics.horizontalAdvance(text) + theme.px(12), metrics.height() + theme.px(2))
    pill.moveTop(rect.center().y() + 1 - pill.height() / 2)
    painter.setPen(QPen(theme.color("accent"), 1))
    painter.setBrush(Qt.BrushStyle.NoBrush)
    painter.drawRoundedRect(pill.adjusted(0.5, 0.5, -0.5, -0.5), pill.height() / 2, pill.height() / 2)
    painter.setFont(font)
    painter.setPen(QPen(theme.ink("accent")))
    painter.drawText(pill, Qt.AlignmentFlag.AlignCenter, text)


_STEPS = {
    Qt.Key.Key_Up: -1, Qt.Key.Key_Down: 1, Qt.Key.Key_PageUp: -PAGE, Qt.Key.Key_PageDown: PAGE,
}  # fmt: skip


class PickerPopup(Themed, QFrame):
    """List of a picker. The focus is in its search field, or on one of its buttons.

    It is laid over the window rather than a window of its own: input methods work, and it is part of pictures.
    """

    def __init__(self, picker: Picker) -> None:
        super().__init__(_host(picker))
        self._picker = picker
        label = picker.accessibleName()
        set_up(self, name=f"{picker.objectName()}Popup", role="popup", accessible_name=label)
        self.setAutoFillBackground(True)
        self.field, self.list = QLineEdit(self), _RowList(self)
        self.model, self.delegate = PickerListModel(self), PickerDelegate(picker, self)
        self.opened_at = QPoint()
        """Where the pointer was when the list was opened."""
        self.empty_label, self.note_label = PlainLabel(self, wordWrap=True), PlainLabel(self, wordWrap=True)
        self.empty_label.setText(tr("No matches. Try a shorter search."))
        for text in (self.empty_label, self.note_label):
            text.setProperty("role", "muted")
        self._make_field(label)
        self._make_list(label)
        self._buttons_part = set_up(QFrame(self), name="pickerCommands")
        self.buttons: list[QPushButton] = []
        self._flow = FlowLayout()
        arrange(QVBoxLayout(self._buttons_part), self._flow, margins=0)
        self._column = arrange(
            QVBoxLayout(self), self.field, (self.list, 1), self.empty_label, self.note_label, self._buttons_part,
            margins=1, spacing=0,
        )  # fmt: skip
        self.hide()
        inherit_theme(self)
        if not self.is_themed:
            self.set_theme(picker.current_theme)
        picker.destroyed.connect(self.deleteLater)

    def open(self) -> None:
        """Show the list below its picker, at the chosen item."""
        self.opened_at = QCursor.pos()
        self.field.clear()
        self._make_buttons()
        self.refresh()
        self.show()
        self.raise_()
        self._place()
        self.field.setFocus(Qt.FocusReason.PopupFocusReason)
        self.show_item(self._picker.currentData())
        application = QApplication.instance()
        assert application is not None
        application.installEventFilter(self)
        self._picker.update()

    def close_list(self) -> None:
        """Hide the list; the focus goes back to the picker if it was here."""
        if self.isHidden():
            return
        application = QApplication.instance()
        assert application is not None
        application.removeEventFilter(self)
        focused = QApplication.focusWidget()
        had_focus = focused is not None and self.isAncestorOf(focused)
        self.hide()
        if had_focus:
            self._picker.setFocus(Qt.FocusReason.PopupFocusReason)
        self._picker.update()

    @Slot()
    def refresh(self) -> None:
        """List the picker's items that match the search; keep the highlight if possible."""
        current = self.current_item
        search = self.field.text()
        items = self._picker.items if search.strip() else (*self._picker.recent_items, *self._picker.items)
        self.delegate.measure(items, self._theme)
        rows = rows_for(items, search)
        self.model.show_rows(rows)
        self.list.setHidden(not rows)
        self.empty_label.setHidden(bool(rows))
        show_text(self.note_label, self._picker.note)
        self._place()
        wanted = current.data if current is not None and not search else None
        if wanted is None or not self.show_item(wanted):
            self._select(self._first_usable())
        if not rows:
            announce(self.field, self.empty_label.text())

    def show_item(self, data: Any) -> bool:
        """Highlight the item with that data and scroll to it; return False if it is not listed."""
        rows = [n for n, row in enumerate(self.model.rows) if row.item is not None and row.item.data == data]
        if rows:
            self._select(rows[-1])  # below “Recent”, which would be the first
        return bool(rows)

    def index_of(self, data: Any) -> QModelIndex:
        """Return the index of the item with that data in the list; invalid if it is not listed."""
        rows = [n for n, row in enumerate(self.model.rows) if row.item is not None and row.item.data == data]
        return self.model.index(rows[-1]) if rows else QModelIndex()

    @property
    def current_item(self) -> PickerItem | None:
        """The highlighted item; None without one."""
        row = self.list.currentIndex().row()
        return self.model.rows[row].item if 0 <= row < len(self.model.rows) else None

    def restyle(self, theme: Theme) -> None:
        self.delegate.theme = theme
        name = self.objectName()
        self.setStyleSheet(
            f"#{name} {{ background: {theme.panel}; border: 1px solid {theme.line}; border-radius: {theme.px(10)}px; }}"
            f"#pickerSearch {{ border: 0; border-bottom: 1px solid {theme.line}; border-radius: 0;"
            f" background: transparent; font-size: {theme.px(13)}px;"
            f" padding: {theme.px(9)}px {theme.px(12)}px {theme.px(9)}px 0; }}"
            f"#pickerList {{ border: 0; background: transparent; padding: {theme.px(2)}px 0 {theme.px(6)}px 0; }}"
            f"#pickerCommands {{ border: 0; border-top: 1px solid {theme.line}; background: transparent; }}"
        )
        icon = icons.create_icon("search", theme.muted, theme.px(16))
        for action in self.field.actions():
            self.field.removeAction(action)
        self.field.addAction(icon, QLineEdit.ActionPosition.LeadingPosition)
        self._buttons_part.setContentsMargins(*(theme.space(8),) * 4)
        for label in (self.empty_label, self.note_label):
            label.setFont(theme.font(12))
            label.setContentsMargins(theme.px(SIDE), theme.px(8), theme.px(SIDE), theme.px(10))
        self._style_buttons(theme)
        shadow = QGraphicsDropShadowEffect(self)
        shadow.setBlurRadius(theme.px(28))
        shadow.setOffset(0, theme.px(6))
        shadow.setColor(QColor(0, 0, 0, 150 if theme.is_dark else 60))
        self.setGraphicsEffect(shadow)
        if not self.isHidden():
            self.refresh()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Handle the keys of the field and the buttons; close on a press elsewhere, and when the window changes."""
        kind = event.type()
        if kind == QEvent.Type.KeyPress and isinstance(event, QKeyEvent) and self._is_here(watched):
            return self._handle_key(event)
        if kind == QEvent.Type.ShortcutOverride and isinstance(event, QKeyEvent) and self._is_here(watched):
            if event.key() in (Qt.Key.Key_Escape, *_STEPS):
                event.accept()
            return False
        if kind == QEvent.Type.MouseButtonPress and isinstance(watched, QWidget) and not self._is_inside(watched):
            if watched is not self._picker and watched.window() is self.window():
                self.close_list()
        elif kind == QEvent.Type.Resize and watched is self.parentWidget():
            self._place()
        elif isinstance(event, QFocusEvent) and event.gotFocus() and isinstance(watched, QWidget):
            is_new = event.reason() != Qt.FocusReason.ActiveWindowFocusReason and not self._is_inside(watched)
            if is_new and watched is not self._picker and watched.window() is self.window():
                self.close_list()
        return False

    def _is_inside(self, widget: QWidget) -> bool:
        return widget is self or self.isAncestorOf(widget)

    def _is_here(self, watched: QObject) -> bool:
        return watched is self.field or watched in self.buttons

    def _handle_key(self, event: QKeyEvent) -> bool:
        key, modifiers = event.key(), event.modifiers()
        has_alt = bool(modifiers & Qt.KeyboardModifier.AltModifier)
        has_control = bool(modifiers & Qt.KeyboardModifier.ControlModifier)
        if key in (Qt.Key.Key_Escape, Qt.Key.Key_F4) or (has_alt and key in (Qt.Key.Key_Up, Qt.Key.Key_Down)):
            self.close_list()
        elif key in (Qt.Key.Key_Tab, Qt.Key.Key_Backtab):
            backwards = key == Qt.Key.Key_Backtab or bool(modifiers & Qt.KeyboardModifier.ShiftModifier)
            self._move_focus(-1 if backwards else 1)
        elif key in _STEPS:
            self.field.setFocus()
            self._move(_STEPS[cast(Qt.Key, key)])
        elif has_control and key in (Qt.Key.Key_Home, Qt.Key.Key_End):
            self._move(-len(self.model.rows) if key == Qt.Key.Key_Home else len(self.model.rows))
        elif not self.field.hasFocus():
            return False
        elif key in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self._choose_current()
        elif key == Qt.Key.Key_Space and (has_control or not self.field.text()):
            item = self.current_item
            return item is not None and not item.reason and self._picker.press_mark(item.data)
        else:
            return False
        return True

    def _move_focus(self, direction: int) -> None:
        stops: list[QWidget] = [self.field, *self.buttons]
        here = next((n for n, stop in enumerate(stops) if stop.hasFocus()), 0)
        stops[(here + direction) % len(stops)].setFocus(Qt.FocusReason.TabFocusReason)

    def _move(self, offset: int) -> None:
        """Move the highlight by `offset` items; single steps wrap around at both ends."""
        places = [n for n, row in enumerate(self.model.rows) if row.can_be_current]
        if not places:
            return
        here = self.list.currentIndex().row()
        position = places.index(here) if here in places else -1
        moved = position + offset
        moved = moved % len(places) if abs(offset) == 1 else min(max(0, moved), len(places) - 1)
        self._select(places[moved])

    def _first_usable(self) -> int:
        rows = enumerate(self.model.rows)
        return next((n for n, row in rows if row.item is not None and not row.item.reason), -1)

    def _select(self, row: int) -> None:
        index = self.model.index(row) if row >= 0 else QModelIndex()
        self.list.selectionModel().setCurrentIndex(index, QItemSelectionModel.SelectionFlag.ClearAndSelect)
        if row == 1 and self.model.rows[0].item is None:
            self.list.scrollToTop()
        else:
            self.list.scrollTo(index)

    def _choose_current(self) -> None:
        item = self.current_item
        if item is None:
            return
        if item.reason:
            announce(self.field, item.reason)
        else:
            self._picker.choose(item.data)

    @Slot(QModelIndex)
    def _on_current(self, index: QModelIndex) -> None:
        item = self.current_item
        if item is not None:
            text = item.accessible_text + (", " + tr("selected") if self._picker.is_marked(item.data) else "")
            self.field.setAccessibleDescription(text)
            announce(self.field, text)

    def hover_row(self, index: QModelIndex) -> None:
        """Move the one highlight below the pointer."""
        if index.isValid() and self.model.rows[index.row()].can_be_current:
            self.list.selectionModel().setCurrentIndex(index, QItemSelectionModel.SelectionFlag.ClearAndSelect)

    def _make_field(self, label: str) -> None:
        set_up(self.field, name="pickerSearch", accessible_name=tr("Search: {label}").format(label=label))
        self.field.setPlaceholderText(tr("Search"))
        self.field.textChanged.connect(self.refresh)

    def _make_list(self, label: str) -> None:
        view = set_up(self.list, name="pickerList", accessible_name=label)
        view.setModel(self.model)
        view.setItemDelegate(self.delegate)
        view.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        view.setMouseTracking(True)
        view.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        view.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        view.setResizeMode(QListView.ResizeMode.Adjust)
        view.selectionModel().currentChanged.connect(self._on_current)

    def press_row(self, index: QModelIndex, position: QPoint) -> None:
        """Choose the row below the pointer, or press its mark."""
        item = self.model.rows[index.row()].item if index.isValid() else None
        if item is None:
            return
        self._select(index.row())
        mark = self.delegate.mark_rect(self.list.visualRect(index))
        on_mark = position.x() >= mark.left() - self._theme.px(GAP) / 2
        if not item.reason and not (on_mark and self._picker.press_mark(item.data)):
            self._choose_current()
        self.list.viewport().update()

    def _make_buttons(self) -> None:
        """Create the buttons of the picker's commands."""
        commands = self._picker.commands
        if [button.objectName() for button in self.buttons] != [f"command.{command.name}" for command in commands]:
            for button in self.buttons:
                self._flow.removeWidget(button)
                button.deleteLater()
            self.buttons = []
            for command in commands:
                button = set_up(QPushButton(parent=self._buttons_part), name=f"command.{command.name}", role="quiet")
                button.setText(caption(command.title))
                button.setProperty("icon_name", command.icon)
                button.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
                button.setCursor(Qt.CursorShape.PointingHandCursor)
                set_up(button, accessible_name=command.title, description=command.description)
                button.setToolTip(tooltip(command.description))
                button.clicked.connect(self._on_button)
                self._flow.addWidget(button)
                self.buttons.append(button)
            self._style_buttons(self._theme)
        self._buttons_part.setVisible(bool(commands))

    def _style_buttons(self, theme: Theme) -> None:
        for button in self.buttons:
            px = theme.px(16)
            button.setIcon(icons.create_icon(str(button.property("icon_name")), theme.muted, px))
            button.setIconSize(QSize(px, px))

    @Slot()
    def _on_button(self) -> None:
        name = self.sender().objectName().removeprefix("command.")
        self.close_list()
        self._picker.commandChosen.emit(name)

    def _place(self) -> None:
        """Place the popup below its picker, as large as its rows need and the window allows."""
        host, theme = self.parentWidget(), self._theme
        if host is None or host is self._picker:
            return
        space = host.rect().adjusted(EDGE, EDGE, -EDGE, -EDGE)
        items = (*self._picker.recent_items, *self._picker.items)
        needed = self.delegate.width_for(items, theme) + theme.px(12)  # the scroll bar
        width = min(max(needed, theme.px(MIN_WIDTH)), theme.px(MAX_WIDTH), space.width())
        corner = self._picker.mapTo(host, QPoint(0, self._picker.height() + theme.px(4)))
        self.setFixedWidth(width)
        rows = sum(
            self.delegate.sizeHint(_option(self.list), self.model.index(n)).height()
            for n in range(self.model.rowCount())
        )
        fixed = sum(
            part.heightForWidth(width) if part.hasHeightForWidth() else part.sizeHint().height()
            for part in (self.field, self.empty_label, self.note_label, self._buttons_part)
            if not part.isHidden()
        )
        list_height = 0 if self.list.isHidden() else rows + theme.px(8) + 2
        available = space.bottom() - corner.y()
        height = min(fixed + list_height + 2, max(theme.px(180), min(theme.px(MAX_HEIGHT), available)))
        self.setFixedHeight(min(height, space.height()))
        x = min(max(corner.x(), space.left()), space.right() - width + 1)
        self.move(x, min(corner.y(), max(space.top(), space.bottom() - self.height() + 1)))


class _RowList(QListView):
    """List whose rows are highlighted below a pointer that moves, and chosen when the mouse button is released."""

    _pointer: QPoint | None = None
    """Where the pointer was last: a list that opens or scrolls below a resting pointer sends events of moves, too."""

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        popup, here = self.parentWidget(), event.globalPosition().toPoint()
        if isinstance(popup, PickerPopup) and here not in (self._pointer, popup.opened_at):
            popup.hover_row(self.indexAt(event.position().toPoint()))
        self._pointer = here
        event.accept()

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        popup = self.parentWidget()
        if event.button() == Qt.MouseButton.LeftButton and isinstance(popup, PickerPopup):
            popup.press_row(self.indexAt(event.position().toPoint()), event.position().toPoint())
        event.accept()


def _option(view: QListView) -> QStyleOptionViewItem:
    option = QStyleOptionViewItem()
    option.widget = view
    return option


def _host(picker: QWidget) -> QWidget:
    """Return the widget that the popup is laid over: the window's contents, which are replaced with the picker."""
    window = picker.window()
    central = window.centralWidget() if isinstance(window, QMainWindow) else None
    return central if central is not None and central.isAncestorOf(picker) else window
