"""A combo box with two lines: the choice, and a muted subtitle."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from PySide6.QtCore import QEvent, QRect, QRectF, QSize, Qt
from PySide6.QtGui import (
    QAccessibleInterface,
    QColor,
    QEnterEvent,
    QFontMetrics,
    QPainter,
    QPaintEvent,
    QPen,
    QStandardItem,
    QStandardItemModel,
)
from PySide6.QtWidgets import QWidget

from decodescope.app.theme.theme import Theme
from decodescope.app.theme.themed import Themed
from decodescope.app.widgets import icons
from decodescope.app.widgets.accessibility import AccessibleWidget
from decodescope.app.widgets.building import set_up
from decodescope.app.widgets.inputs import LazyComboBox
from decodescope.app.widgets.painted_rows import Index, ThemedDelegate
from decodescope.app.widgets.plain_text import tooltip
from decodescope.app.widgets.screen import available_rect
from decodescope.resources.language import tr

if TYPE_CHECKING:
    from PySide6.QtWidgets import QStyleOptionViewItem

MIN_LIST_WIDTH, MAX_LIST_WIDTH = 300, 640
"""Minimum and maximum width of the list in pixels at 100 %; longer subtitles wrap."""
SUBTITLE = Qt.ItemDataRole.UserRole + 1


class PickerItem(NamedTuple):
    """One list item. With a `reason` it is shown but cannot be chosen."""

    title: str
    data: Any
    subtitle: str = ""
    reason: str = ""
    help: str = ""


class TwoLineDelegate(ThemedDelegate):
    """Paints an item's title and subtitle, muted if the item is disabled."""

    def sizeHint(self, option: QStyleOptionViewItem, index: Index) -> QSize:
        """Return the height that the subtitle needs at the list's width."""
        if self.theme is None:
            return super().sizeHint(option, index)
        height = self.theme.px(46)
        subtitle = index.data(SUBTITLE)
        if subtitle and (width := self._view_width(option)):
            metrics = QFontMetrics(self.theme.font(11))
            room = QRect(0, 0, width - 2 * self.theme.px(10), 10_000)
            needed = metrics.boundingRect(room, Qt.TextFlag.TextWordWrap, subtitle).height()
            height += max(0, needed - metrics.height())
        return QSize(0, height)

    @staticmethod
    def _view_width(option: QStyleOptionViewItem) -> int:
        from PySide6.QtWidgets import QAbstractItemView  # import only when the list is opened

        view = option.widget
        return view.viewport().width() if isinstance(view, QAbstractItemView) else 0

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        if self.theme is None:
            super().paint(painter, option, index)
            return
        from PySide6.QtWidgets import QStyle  # its many enums take 5 ms to create

        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        if option.state & (QStyle.StateFlag.State_Selected | QStyle.StateFlag.State_MouseOver):
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(self.theme.color("tint"))
            painter.drawRoundedRect(QRectF(option.rect).adjusted(1, 1, -1, -1), 6, 6)
        enabled = bool(index.flags() & Qt.ItemFlag.ItemIsEnabled)
        margin = self.theme.px(10)
        paint_two_lines(painter, self.theme, option.rect.adjusted(margin, self.theme.px(5), -margin, -self.theme.px(5)),
                  index.data(), index.data(SUBTITLE) or "", enabled)  # fmt: skip
        painter.restore()


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
    if bottom.height() >= 2 * metrics.lineSpacing():
        painter.drawText(bottom, side | Qt.TextFlag.TextWordWrap, subtitle)
    else:
        painter.drawText(bottom, side, metrics.elidedText(subtitle, Qt.TextElideMode.ElideRight, bottom.width()))


def _standard_item(item: PickerItem) -> QStandardItem:
    row = QStandardItem(item.title)
    subtitle = item.reason or item.subtitle
    row.setData(item.data, Qt.ItemDataRole.UserRole)
    row.setData(subtitle, SUBTITLE)
    row.setToolTip(tooltip(item.reason or item.help or item.subtitle))
    row.setAccessibleText(", ".join(part for part in (item.title, subtitle) if part))
    row.setEnabled(not item.reason)
    return row


class PickerCombo(Themed, LazyComboBox, AccessibleWidget):
    """Shows title and subtitle in the box and in its list."""

    delegate_class: ClassVar[type[TwoLineDelegate]] = TwoLineDelegate
    """The delegate of the list."""

    def __init__(self, name: str, label: str, width: int = 160, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        set_up(self, name=name, accessible_name=label)
        self._width = width
        self._assigned_width: int | None = None
        self._subtitle: str | None = None
        self._hovered = False
        self.items: tuple[PickerItem, ...] = ()
        """The current list items."""
        self._delegate: TwoLineDelegate | None = None
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setMaxVisibleItems(12)

    def accessible_interface(self) -> QAccessibleInterface:
        """Return an interface that separates the box's name from its choice."""
        from decodescope.app.widgets.accessibility.qt_interfaces import (
            ComboInterface,  # import lazily: most sessions have no screen reader
        )

        return ComboInterface(self)

    def prepare_list(self) -> None:
        self._delegate = self.delegate_class(self)
        self.setItemDelegate(self._delegate)
        self._apply_theme_to_list()

    def set_items(self, items: Iterable[PickerItem]) -> None:
        """Replace the items and keep the choice if it still exists. Emits a signal only if the choice changes."""
        self.items = tuple(items)
        chosen = self.currentData()
        blocked = self.blockSignals(True)
        self.clear()
        for item in self.items:
            self._add(item)
        self.setCurrentIndex(max(0, self.findData(chosen)) if self.count() else -1)
        self.blockSignals(blocked)
        if self.currentData() != chosen:
            self.currentIndexChanged.emit(self.currentIndex())
        self.update()

    def select_data(self, data: Any) -> bool:
        """Select the item with that data. Returns False if there is none."""
        index = self.findData(data)
        if index >= 0:
            self.setCurrentIndex(index)
        return index >= 0

    def show_list_at(self, data: Any) -> None:
        """Open the list, scrolled to the item with that data."""
        self.showPopup()
        view, index = self.view(), self.model().index(self.findData(data), 0)
        view.scrollTo(index, view.ScrollHint.PositionAtTop)

    def set_subtitle(self, text: str | None) -> None:
        """Set the second line of the box; None for the chosen item's own."""
        self._subtitle = text
        self.setAccessibleDescription(text or "")
        self.update()

    def restyle(self, theme: Theme) -> None:
        self._apply_theme_to_list()
        self.updateGeometry()
        self.update()

    def _apply_theme_to_list(self) -> None:
        """Apply the theme to the list, if it exists, and fit its width to the subtitles."""
        theme = self._theme
        if self._delegate is None:
            return
        self._delegate.theme = theme
        metrics = QFontMetrics(theme.font(11))
        words = [str(self.itemData(row, SUBTITLE) or "") for row in range(self.count())]
        widest = max(map(metrics.horizontalAdvance, words), default=0) + 2 * theme.px(10) + theme.px(24)
        screen = available_rect(self).width()
        self.view().setMinimumWidth(min(max(widest, theme.px(MIN_LIST_WIDTH)), theme.px(MAX_LIST_WIDTH), screen))
        self.view().setTextElideMode(Qt.TextElideMode.ElideRight)

    @property
    def preferred_width(self) -> int:
        """Preferred width in pixels."""
        return self._scaled(self._width).width()

    @property
    def title_width(self) -> int:
        """Width in pixels at which the first line is fully visible."""
        around = self._theme.px(10) + self._theme.px(14) + self._theme.px(12)
        return QFontMetrics(self._theme.font(13, 500)).horizontalAdvance(self._title()) + around + 2

    def set_assigned_width(self, width: int | None) -> None:
        """Set the width that the toolbar assigned; None for the preferred width."""
        if width != self._assigned_width:
            self._assigned_width = width
            self.updateGeometry()

    def sizeHint(self) -> QSize:
        preferred = self._scaled(self._width)
        return preferred if self._assigned_width is None else QSize(self._assigned_width, preferred.height())

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
        border = theme.accent if self.hasFocus() else theme.faint if self._hovered else theme.line
        width = 2 if self.hasFocus() else 1  # a colour alone would not stand out against the darker border on hover
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
        own = self.currentData(SUBTITLE) or (self.accessibleName() if self.currentIndex() < 0 else "")
        subtitle = own if self._subtitle is None else self._subtitle
        paint_two_lines(painter, theme, words, self._title(), subtitle, self.isEnabled())

    def _title(self) -> str:
        """Return the first line of the box."""
        return self.currentText() or tr("none")

    def _add(self, item: PickerItem) -> None:
        model = self.model()
        assert isinstance(model, QStandardItemModel)
        model.appendRow(_standard_item(item))  # append the complete row: each later change would emit signals

    def _scaled(self, width: int) -> QSize:
        return QSize(self._theme.px(width), self._theme.px(38))
