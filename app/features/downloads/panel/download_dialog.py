"""Dialog to get a model: a hub search, the list of results or local models, and the page of the selected one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import QRect, QRectF, Qt, Signal, Slot
from PySide6.QtGui import QFont, QFontMetrics, QPainter
from PySide6.QtWidgets import (
    QDialogButtonBox,
    QHBoxLayout,
    QLineEdit,
    QListWidget,
    QListWidgetItem,
    QPushButton,
    QStyle,
    QStyleOptionViewItem,
    QVBoxLayout,
    QWidget,
)

from decodescope.app.features.downloads.panel.model_page import ModelPage
from decodescope.app.theme.theme import Theme
from decodescope.app.theme.themed import Themed
from decodescope.app.widgets.building import arrange, set_role, set_up, show_text
from decodescope.app.widgets.dialog import BaseDialog
from decodescope.app.widgets.labels import WrappedLabel
from decodescope.app.widgets.painted_rows import ABOVE, BETWEEN, Index, LinesDelegate, paint_line
from decodescope.app.widgets.plain_text import PlainLabel, tooltip
from decodescope.resources.language import tr

SIDE, BAR = 12, 3
ROW_ROLE = Qt.ItemDataRole.UserRole


@dataclass(frozen=True, slots=True)
class HubModelRow:
    """Texts of one model in the list."""

    name: str
    facts: str
    status: str
    """Whether the model fits, or the download's progress."""
    status_color: str = "muted"
    """Colour of `status`: a field of the theme."""
    progress: float | None = None
    """Downloaded fraction while the download runs."""

    @property
    def sentence(self) -> str:
        """All texts, for the screen reader."""
        return ". ".join(part for part in (self.name, self.facts, self.status) if part)


class HubModelList(Themed, QListWidget):
    """List of models. Emits `picked(name)` when the selection changes, with an empty name if nothing is selected."""

    picked = Signal(str)

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        set_up(self, name="downloadList", accessible_name=tr("Models"))
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setVerticalScrollMode(QListWidget.ScrollMode.ScrollPerPixel)
        self._delegate = _HubModelDelegate(self)
        self.setItemDelegate(self._delegate)
        self.currentItemChanged.connect(self._on_current)

    @property
    def name(self) -> str:
        """Name of the selected model, or an empty string."""
        row = self.currentIndex().data(ROW_ROLE)
        return row.name if isinstance(row, HubModelRow) else ""

    def pick(self, name: str) -> None:
        """Select the model called `name`, if it is listed."""
        for place in range(self.count()):
            if self.item(place).data(ROW_ROLE).name == name:
                self.setCurrentRow(place)

    def show_rows(self, rows: Sequence[HubModelRow]) -> None:
        """List these rows. The selection is kept if possible; otherwise the first row is selected."""
        picked = self.name
        self.blockSignals(True)
        self.clear()
        for row in rows:
            self.addItem(_item(row))
        places = [place for place, row in enumerate(rows) if row.name == picked] or [0]
        self.setCurrentRow(places[0] if rows else -1)
        self.blockSignals(False)
        if self.name != picked:
            self.picked.emit(self.name)

    def show_row(self, row: HubModelRow) -> None:
        """Update the row of a listed model."""
        for place in range(self.count()):
            item = self.item(place)
            if item.data(ROW_ROLE).name == row.name:
                _fill(item, row)

    def restyle(self, theme: Theme) -> None:
        self._delegate.theme = theme
        self.scheduleDelayedItemsLayout()
        self.viewport().update()

    @Slot()
    def _on_current(self) -> None:
        self.picked.emit(self.name)


def _item(row: HubModelRow) -> QListWidgetItem:
    item = QListWidgetItem()
    _fill(item, row)
    return item


def _fill(item: QListWidgetItem, row: HubModelRow) -> None:
    item.setData(ROW_ROLE, row)
    item.setData(Qt.ItemDataRole.AccessibleTextRole, row.sentence)
    item.setToolTip(tooltip(row.status))


class _HubModelDelegate(LinesDelegate):
    """Paint three lines and, during a download, a progress bar below them."""

    def line_fonts(self, theme: Theme) -> tuple[QFont, ...]:
        return _fonts(theme)

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        row, theme = index.data(ROW_ROLE), self.theme
        if theme is None or not isinstance(row, HubModelRow):
            return
        painter.save()
        _paint_background(painter, option, theme, row.progress)
        side = theme.space(SIDE)
        top = option.rect.top() + theme.space(ABOVE)
        colors = (theme.color("text"), theme.color("muted"), theme.ink(row.status_color))
        for font, color, text in zip(_fonts(theme), colors, (row.name, row.facts, row.status), strict=True):
            height = QFontMetrics(font).lineSpacing()
            paint_line(
                painter,
                QRect(option.rect.left() + side, top, option.rect.width() - 2 * side, height),
                font,
                color,
                text,
            )
            top += height + theme.px(BETWEEN)
        painter.restore()


def _fonts(theme: Theme) -> tuple[QFont, QFont, QFont]:
    return theme.font(13, 600), theme.font(12), theme.font(12, tabular=True)


def _paint_background(painter: QPainter, option: QStyleOptionViewItem, theme: Theme, progress: float | None) -> None:
    state, row = option.state, QRectF(option.rect)
    if state & (QStyle.StateFlag.State_Selected | QStyle.StateFlag.State_MouseOver):
        painter.fillRect(row, theme.color("tint" if state & QStyle.StateFlag.State_Selected else "hover"))
    painter.fillRect(QRectF(row.left(), row.bottom() - 1, row.width(), 1), theme.color("line"))
    if progress is not None:
        height = theme.px(BAR)
        bar = QRectF(row.left(), row.bottom() - height, row.width() * progress, height)
        painter.fillRect(bar, theme.color("accent"))
    if state & QStyle.StateFlag.State_HasFocus:
        painter.setPen(theme.color("accent"))
        painter.drawRect(row.adjusted(0.5, 0.5, -0.5, -1.5))


_COLUMNS, _LINES = 104, 27
"""Visible size, in characters."""


class DownloadDialog(BaseDialog):
    """Search field, model list and the page of the selected model.

    Emits `searchRequested(text)` and `folderRequested`.
    """

    searchRequested = Signal(str)
    folderRequested = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent, "downloadDialog", tr("Get a model"))
        self._make_search()
        self.list, self.page = HubModelList(self), ModelPage(self)
        self.note = set_up(WrappedLabel(), name="downloadNote", role="muted")
        self.hint = WrappedLabel(
            tr(
                "Search the Hugging Face Hub by part of a name, for instance “TinyStories”. For every "
                "model found you can see whether it fits into this machine's memory before you "
                "download it. A download contains the safetensors weights, the configuration and the "
                "tokenizer, or one GGUF file of your choice, but no program code. The network is "
                "not used until you search."
            ),
            self,
        )
        self.hint.setObjectName("downloadHint")
        self.hint.setProperty("role", "muted")
        self._empty = QWidget(self)
        self._lay_out()

    def show_rows(self, rows: Sequence[HubModelRow], note: str, role: str = "muted") -> None:
        """List these models; `note` says what they are, or why there are none; its `role` is danger for an error."""
        self.list.show_rows(rows)
        set_role(self.note, role)
        show_text(self.note, note)
        self.list.setVisible(bool(rows))
        self._results_heading.setVisible(bool(rows))
        self.page.setVisible(bool(rows))
        self.hint.setVisible(not rows)
        self._empty.setVisible(not rows)

    def _make_search(self) -> None:
        self.field = set_up(QLineEdit(self), name="downloadSearch", accessible_name=tr("Search the hub"))
        self.field.setPlaceholderText(tr("Part of a name, or owner/name; leave empty for the most downloaded"))
        self.field.setClearButtonEnabled(True)
        self.field.returnPressed.connect(self._search)
        self.button = set_up(QPushButton(tr("Search the hub"), self), name="searchHub", clicked=self._search)
        self.button.setAutoDefault(False)

    def _lay_out(self) -> None:
        buttons = QDialogButtonBox(self)
        folder = buttons.addButton(tr("Choose a folder on this disk…"), QDialogButtonBox.ButtonRole.ActionRole)
        folder.setObjectName("chooseFolder")
        folder.clicked.connect(self.folderRequested)
        buttons.addButton(QDialogButtonBox.StandardButton.Close)
        buttons.rejected.connect(self.close)
        for button in buttons.buttons():
            if isinstance(button, QPushButton):
                button.setAutoDefault(False)
        above, both, left = QHBoxLayout(), QHBoxLayout(), QVBoxLayout()
        arrange(above, (self.field, 1), self.button)
        self._results_heading = set_up(PlainLabel(tr("Models").upper(), self), role="heading")
        self._results_heading.hide()
        arrange(left, self._results_heading, self.note, (self.list, 1))
        both.setSpacing(18)
        arrange(both, (left, 5), (self.page, 6))
        column = arrange(QVBoxLayout(self), margins=(20, 16, 20, 16), spacing=12)
        heading = set_up(PlainLabel(tr("Hugging Face Hub").upper(), self), role="heading")
        arrange(column, heading, above, self.hint, (both, 1), (self._empty, 1), buttons)
        self.ensurePolished()
        metrics = self.field.fontMetrics()
        self.resize(metrics.horizontalAdvance("x") * _COLUMNS + 80, metrics.lineSpacing() * _LINES + 110)

    @Slot()
    def _search(self) -> None:
        self.searchRequested.emit(self.field.text().strip())
