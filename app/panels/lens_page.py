"""Logit lens of a whole text: each layer's top token, and the probability of the chosen token."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from PySide6.QtCore import QAbstractTableModel, QModelIndex, QPersistentModelIndex, Qt, Signal, Slot
from PySide6.QtGui import QColor, QKeyEvent, QPalette
from PySide6.QtWidgets import QDialogButtonBox, QHBoxLayout, QPushButton, QTableView, QVBoxLayout, QWidget

from decodescope.app.session.queries.base import Answer
from decodescope.app.session.queries.layer_inspection import LayerInspectionQuery
from decodescope.app.state.layer_queries import (
    AdapterFinding,
    LayerAttention,
    LayerResult,
    LayerView,
    PositionWeight,
    deciding_layer,
)
from decodescope.app.theme.theme import theme_for
from decodescope.app.views.text.token_wording import token_text
from decodescope.app.widgets.building import arrange, set_up
from decodescope.app.widgets.dialog import BaseDialog
from decodescope.app.widgets.labels import WrappedLabel
from decodescope.app.widgets.plain_text import PlainLabel, caption, tooltip
from decodescope.core import words
from decodescope.resources.language import tr, trn

Index = QModelIndex | QPersistentModelIndex
MIN_FONT_SIZE, MAX_FONT_SIZE = 9, 32
"""Smallest and largest font size of the cells, in pixels."""

_STYLE = "* { font-size: %dpx; } QTableCornerButton::section { background: transparent; border: 0; }"


class LensTableModel(QAbstractTableModel):
    """Table with one column per token and one row per layer, the last layer on top; columns are added as they
    arrive.
    """

    def __init__(self, texts: Sequence[str], is_dark: bool, parent: QWidget) -> None:
        super().__init__(parent)
        self._texts, self._theme = texts, theme_for("dark" if is_dark else "light")
        self.columns: list[tuple[LayerView, ...]] = []

    def add_columns(self, columns: Sequence[tuple[LayerView, ...]]) -> None:
        """Append columns."""
        if not self.columns and columns:
            self.beginResetModel()
            self.columns = list(columns)
            self.endResetModel()
        elif columns:
            first = len(self.columns)
            self.beginInsertColumns(QModelIndex(), first, first + len(columns) - 1)
            self.columns += columns
            self.endInsertColumns()

    def rowCount(self, _parent: Index | None = None) -> int:
        """Return the number of layers, including the input embeddings."""
        return len(self.columns[0]) if self.columns else 0

    def columnCount(self, _parent: Index | None = None) -> int:
        """Return the number of tokens so far."""
        return len(self.columns)

    def view_at(self, index: Index) -> LayerView:
        """Return the layer view of a cell."""
        column = self.columns[index.column()]
        return column[len(column) - 1 - index.row()]

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """Return the top token as text, the chosen token's probability as background, and both as tooltip and for the
        screen reader.
        """
        view = self.view_at(index)
        if role == Qt.ItemDataRole.DisplayRole:
            return token_text(view.word, view.special)
        if role == Qt.ItemDataRole.BackgroundRole:
            colour = QColor(self._theme.ramp(view.probability))
            colour.setAlphaF(0.12 + 0.38 * view.probability)
            return colour
        if role == Qt.ItemDataRole.ToolTipRole:
            return tooltip(self._description(index, view))
        if role == Qt.ItemDataRole.AccessibleTextRole:
            return self._description(index, view)
        return None

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """Return the text's tokens or the layer numbers."""
        if role != Qt.ItemDataRole.DisplayRole:
            return None
        if orientation == Qt.Orientation.Horizontal:
            return token_text(self._texts[section])
        layer = self.rowCount() - 1 - section
        return str(layer) if layer else tr("words")

    def _description(self, index: Index, view: LayerView) -> str:
        return tr(
            "{token}: layer {layer} would have written {word} ({share}); {token} has {chosen}, rank {rank:,}; "
            "decided at layer {decided}"
        ).format(
            token=words.quote(self._texts[index.column()]), layer=view.layer, word=words.quote(view.word, view.special),
            share=words.percent(view.first_probability), chosen=words.percent(view.probability), rank=view.rank,
            decided=deciding_layer(self.columns[index.column()]),
        )  # fmt: skip


class LensDialog(BaseDialog):
    """Window of the logit lens of a whole text. + and − change the font size.

    Emits `stopRequested` to stop computing; the columns shown so far stay.
    """

    stopRequested = Signal()

    def __init__(self, query: LayerInspectionQuery, texts: Sequence[str], parent: QWidget | None = None) -> None:
        super().__init__(parent, "lensPage", tr("All tokens, layer by layer"))
        self._query = query
        self.ensurePolished()
        self._count, self._pixels = len(texts), self.fontInfo().pixelSize()
        is_dark = self.palette().color(QPalette.ColorRole.Window).lightness() < 128
        self.table = LensTableModel(texts, is_dark, self)
        self.head = WrappedLabel(tr("Words: each layer's top token. The bluer, the more likely the chosen token."))
        self.head.setProperty("role", "muted")
        self.grid = QTableView(self)
        self.grid.setModel(self.table)
        self.grid.setCornerButtonEnabled(False)
        self.grid.setTabKeyNavigation(False)
        self.grid.setAccessibleName(self.windowTitle())
        self.progress, self.stop = PlainLabel(self), QPushButton(tr("Stop"), self)
        self.stop.clicked.connect(self.stopRequested)
        self._lay_out()
        self._update_progress()
        self.resize(980, 560)

    def _lay_out(self) -> None:
        foot = arrange(QHBoxLayout(), (self.progress, 1), self.stop)
        for title, name, step in (("−", tr("Smaller"), -1), ("+", tr("Larger"), 1)):
            button = set_up(QPushButton(caption(title), self), accessible_name=name, tooltip=tooltip(name))
            button.clicked.connect(lambda _on=False, step=step: self.zoom(step))
            foot.addWidget(button)
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Close, self)
        buttons.rejected.connect(self.close)
        foot.addWidget(buttons)
        arrange(QVBoxLayout(self), self.head, (self.grid, 1), foot, margins=(20, 16, 20, 16), spacing=12)

    @Slot(object)
    def handle_answer(self, answer: Answer) -> None:
        """Show an answer to this window's own query; ignore others, and all answers after closing."""
        if answer.query is not self._query or not self.isVisible():
            return
        if answer.error is not None:
            self.show_reason(f"{answer.error.cause} {answer.error.remedy}".strip())
            return
        result = answer.result or LayerResult()
        self.add_columns(
            [one for one in result.findings if not isinstance(one, (PositionWeight, LayerAttention, AdapterFinding))]
        )
        if answer.has_ended:
            self.finish()

    def add_columns(self, columns: Sequence[tuple[LayerView, ...]]) -> None:
        """Add the columns of further tokens."""
        if columns:
            self.table.add_columns(columns)
            self._update_progress()

    @Slot()
    def finish(self) -> None:
        """Finish: no more columns will follow."""
        self.stop.hide()
        self.zoom(0)
        if self.table.columns and self.grid.currentIndex().row() < 0:
            self.grid.setCurrentIndex(self.table.index(0, 0))
            self.grid.setFocus()

    def show_reason(self, reason: str) -> None:
        """Show why there is no result."""
        self.stop.hide()
        self.head.setText(reason)

    def zoom(self, step: int) -> None:
        """Change the font size and the column widths."""
        self._pixels = min(max(self._pixels + step, MIN_FONT_SIZE), MAX_FONT_SIZE)
        self.grid.setStyleSheet(_STYLE % self._pixels)
        self.grid.resizeColumnsToContents()
        self.grid.resizeRowsToContents()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Zoom with + and −."""
        step = {"+": 1, "=": 1, "-": -1}.get(event.text())
        if step is not None:
            self.zoom(step)
        else:
            super().keyPressEvent(event)

    def _update_progress(self) -> None:
        done = self.table.columnCount()
        self.progress.setText(
            trn("{done:,} of {count:,} token", "{done:,} of {count:,} tokens", self._count).format(
                done=done, count=self._count
            )
        )
