"""A combo box with two lines, the choice and a muted subtitle; its list can be searched and has groups."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QEvent, QRect, QRectF, QSize, Qt, Slot
from PySide6.QtGui import (
    QAccessibleInterface,
    QColor,
    QEnterEvent,
    QFontMetrics,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPen,
    QStandardItem,
    QStandardItemModel,
)
from PySide6.QtWidgets import QWidget

from decodescope.app.theme.theme import Theme
from decodescope.app.widgets import icons
from decodescope.app.widgets.accessibility import AccessibleWidget
from decodescope.app.widgets.building import set_up
from decodescope.app.widgets.picker_items import Picker, PickerItem
from decodescope.app.widgets.plain_text import tooltip
from decodescope.resources.language import tr

if TYPE_CHECKING:
    from PySide6.QtWidgets import QAbstractItemView

    from decodescope.app.widgets.picker_popup import PickerPopup

SUBTITLE = Qt.ItemDataRole.UserRole + 1
MAX_WIDTH = 440
"""Largest width of the box in pixels at 100 %; longer texts are elided."""


def paint_two_lines(
    painter: QPainter, theme: Theme, rect: QRect, title: str, subtitle: str, enabled: bool = True
) -> None:
    """Paint `title` over a muted `subtitle` into `rect`, both elided; a title without subtitle is centred."""
    top, bottom = QRect(rect), QRect(rect)
    if subtitle:
        top.setHeight(theme.px(19))
        bottom.setTop(top.bottom() + 1)
    side = Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft
    painter.setFont(theme.font(13, 500))
    painter.setPen(QPen(theme.text if enabled else theme.muted))
    painter.drawText(top, side, painter.fontMetrics().elidedText(title, Qt.TextElideMode.ElideRight, top.width()))
    painter.setFont(theme.font(11))
    painter.setPen(QPen(theme.muted))  # also for disabled items: the reason must be readable
    metrics = painter.fontMetrics()
    painter.drawText(bottom, side, metrics.elidedText(subtitle, Qt.TextElideMode.ElideRight, bottom.width()))


def _standard_item(item: PickerItem) -> QStandardItem:
    row = QStandardItem(item.title)
    subtitle = item.reason or item.subtitle
    row.setData(item.data, Qt.ItemDataRole.UserRole)
    row.setData(subtitle, SUBTITLE)
    row.setToolTip(tooltip(item.reason or item.help or item.subtitle))
    row.setAccessibleText(item.accessible_text)
    row.setEnabled(not item.reason)
    return row


class PickerCombo(Picker, AccessibleWidget):
    """Shows title and subtitle; opens a `PickerPopup` below."""

    def __init__(self, name: str, label: str, width: int = 160, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        set_up(self, name=name, accessible_name=label)
        self._width = width
        self._assigned_width: int | None = None
        self._subtitle: str | None = None
        self._hovered = False
        self._popup: PickerPopup | None = None
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.currentIndexChanged.connect(self._on_index)

    def accessible_interface(self) -> QAccessibleInterface:
        """Return an interface that separates the box's name from its choice."""
        from decodescope.app.widgets.accessibility.qt_interfaces import (
            ComboInterface,  # import lazily: most sessions have no screen reader
        )

        return ComboInterface(self)

    @property
    def popup(self) -> PickerPopup:
        """The list with its search field, created on first use."""
        if self._popup is None:
            from decodescope.app.widgets.picker_popup import PickerPopup

            self._popup = PickerPopup(self)
        return self._popup

    @property
    def is_open(self) -> bool:
        """Whether the list is open."""
        return self._popup is not None and not self._popup.isHidden()

    def view(self) -> QAbstractItemView:
        """Return the list of the popup."""
        return self.popup.list

    def showPopup(self) -> None:
        self.popup.open()

    def hidePopup(self) -> None:
        if self._popup is not None:
            self._popup.close_list()

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Open or close the list, without Qt's own list."""
        if event.button() == Qt.MouseButton.LeftButton:
            self.hidePopup() if self.is_open else self.showPopup()
        event.accept()

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        event.accept()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Open the list on Alt+Down, F4, Space and Enter, and on a letter, which becomes the search."""
        key, has_alt = event.key(), bool(event.modifiers() & Qt.KeyboardModifier.AltModifier)
        opening = (Qt.Key.Key_F4, Qt.Key.Key_Space, Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Select)
        text = event.text()
        other = event.modifiers() & (Qt.KeyboardModifier.ControlModifier | Qt.KeyboardModifier.MetaModifier)
        if key in opening or (has_alt and key in (Qt.Key.Key_Down, Qt.Key.Key_Up)):
            self.showPopup()
        elif text and text.isprintable() and not has_alt and not other:
            self.showPopup()
            self.popup.field.setText(text)
        else:
            super().keyPressEvent(event)

    def set_items(self, items: Iterable[PickerItem], recent: Iterable[PickerItem] = ()) -> None:
        """Replace the items and keep the choice if it still exists. Emits a signal only if the choice changes."""
        self.items, self.recent_items = tuple(items), tuple(recent)
        chosen = self.currentData()
        blocked = self.blockSignals(True)
        self.clear()
        for item in self.items:
            self._add(item)
        self.setCurrentIndex(max(0, self.findData(chosen)) if self.count() else -1)
        self.blockSignals(blocked)
        if self.currentData() != chosen:
            self.currentIndexChanged.emit(self.currentIndex())
        if self.is_open:
            self.popup.refresh()
        self.updateGeometry()
        self.update()

    def select_data(self, data: Any) -> bool:
        """Select the item with that data. Returns False if there is none."""
        index = self.findData(data)
        if index >= 0:
            self.setCurrentIndex(index)
        return index >= 0

    def show_list_at(self, data: Any) -> None:
        """Open the list at the item with that data."""
        if not self.is_open:
            self.showPopup()
        self.popup.show_item(data)

    def set_subtitle(self, text: str | None) -> None:
        """Set the second line of the box; None for the chosen item's own."""
        if text != self._subtitle:
            self._subtitle = text
            self.updateGeometry()
        self.setAccessibleDescription(text or "")
        self.update()

    def restyle(self, theme: Theme) -> None:
        self.updateGeometry()
        self.update()

    @property
    def preferred_width(self) -> int:
        """Preferred width in pixels: what its texts need, and not less than its usual width."""
        return max(self._scaled(self._width).width(), self.text_width)

    @property
    def text_width(self) -> int:
        """Width in pixels that shows both lines completely, within limits."""
        second = QFontMetrics(self._theme.font(11)).horizontalAdvance(self._second_line())
        return min(max(self.title_width, second + self._space_around), self._theme.px(MAX_WIDTH))

    @property
    def title_width(self) -> int:
        """Width in pixels at which the first line is fully visible, within limits."""
        first = QFontMetrics(self._theme.font(13, 500)).horizontalAdvance(self._title())
        return min(first + self._space_around, self._theme.px(MAX_WIDTH))

    @property
    def _space_around(self) -> int:
        return self._theme.px(10) + self._theme.px(14) + self._theme.px(12) + 2

    def set_assigned_width(self, width: int | None) -> None:
        """Set the width that the toolbar assigned; None for the preferred width."""
        if width != self._assigned_width:
            self._assigned_width = width
            self.updateGeometry()

    def sizeHint(self) -> QSize:
        width = self.preferred_width if self._assigned_width is None else self._assigned_width
        return QSize(width, self._theme.px(38))

    def minimumSizeHint(self) -> QSize:
        return self._scaled(64)

    def enterEvent(self, event: QEnterEvent) -> None:
        self._hovered = True
        super().enterEvent(event)

    def leaveEvent(self, event: QEvent) -> None:
        self._hovered = False
        super().leaveEvent(event)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        self._paint_box(painter, self._theme)
        self._paint_words(painter, self._theme)

    def _paint_box(self, painter: QPainter, theme: Theme) -> None:
        is_active = self.hasFocus() or self.is_open
        border = theme.accent if is_active else theme.faint if self._hovered else theme.line
        width = 2 if is_active else 1  # a colour alone would not stand out against the darker border on hover
        pen = QPen(QColor(border))  # not from a brush, which would load the gradient classes
        pen.setWidth(width)
        painter.setPen(pen)
        painter.setBrush(theme.color("hover" if self._hovered else "field"))
        inset = width / 2
        painter.drawRoundedRect(QRectF(self.rect()).adjusted(inset, inset, -inset, -inset), 8, 8)

    def _paint_words(self, painter: QPainter, theme: Theme) -> None:
        side = theme.px(14)
        chevron = QRectF(self.width() - side - theme.px(8), (self.height() - side) / 2, side, side)
        icons.paint_icon(painter, "chevron-down", theme.muted, chevron)
        margin = theme.px(10)
        words = self.rect().adjusted(margin, theme.px(3), -(side + theme.px(12)), -theme.px(3))
        paint_two_lines(painter, theme, words, self._title(), self._second_line(), self.isEnabled())

    def _title(self) -> str:
        """Return the first line of the box."""
        return self.currentText() or tr("none")

    def _second_line(self) -> str:
        """Return the second line of the box."""
        own = self.currentData(SUBTITLE) or (self.accessibleName() if self.currentIndex() < 0 else "")
        return str(own if self._subtitle is None else self._subtitle)

    @Slot()
    def _on_index(self) -> None:
        self.updateGeometry()

    def _add(self, item: PickerItem) -> None:
        model = self.model()
        assert isinstance(model, QStandardItemModel)
        model.appendRow(_standard_item(item))  # append the complete row: each later change would emit signals

    def _scaled(self, width: int) -> QSize:
        return QSize(self._theme.px(width), self._theme.px(38))
