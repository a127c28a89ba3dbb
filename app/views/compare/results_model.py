"""The rows of a comparison for a table: they sort as numbers, and what is not known comes last."""

from __future__ import annotations

from typing import Any

from PySide6.QtCore import QAbstractTableModel, QModelIndex, QPersistentModelIndex, Qt
from PySide6.QtWidgets import QWidget

from app.state.comparison.results import Comparison, ComparisonEntry
from app.theme.theme import theme_for
from app.views.compare.columns import METRIC_COLUMNS, MetricColumn
from app.views.compare.comparison_wording import REFERENCE_MARK, entry_summary
from app.widgets.plain_text import tooltip
from resources.language import tr

NAME, SUMMARY = 0, 1
"""Columns before the figures: the run's name, and how its text compares."""
_FIRST_METRIC = 2
_Index = QModelIndex | QPersistentModelIndex
_NO_PARENT = QModelIndex()


class ResultsModel(QAbstractTableModel):
    """An entry a row, in the comparison's order until a column is sorted by."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.theme = theme_for("light")
        self.comparison = Comparison()
        self.rows: list[ComparisonEntry] = []
        self.shown: ComparisonEntry | None = None
        """The one that the other views show."""
        self._order = (-1, Qt.SortOrder.AscendingOrder)

    def show_rows(self, comparison: Comparison, shown: ComparisonEntry | None) -> None:
        """Other rows, sorted as those before."""
        self.beginResetModel()
        self.comparison, self.shown = comparison, shown
        self.rows = self._sorted()
        self.endResetModel()

    def has_values(self, column: MetricColumn) -> bool:
        """Whether any row has that figure."""
        return any(entry.metrics is not None and column.value(entry.metrics) is not None for entry in self.rows)

    def sort(self, column: int, order: Qt.SortOrder = Qt.SortOrder.AscendingOrder) -> None:
        """Sort by a column, now and from now on; -1 for the comparison's own order."""
        self._order = (column, order)
        self.layoutAboutToBeChanged.emit()
        self.rows = self._sorted()
        self.layoutChanged.emit()
        self.headerDataChanged.emit(Qt.Orientation.Horizontal, 0, self.columnCount() - 1)

    def _sorted(self) -> list[ComparisonEntry]:
        column, order = self._order
        entries = list(self.comparison.entries)
        if column < 0:
            return entries
        if column < _FIRST_METRIC:
            return sorted(
                entries, key=lambda e: self.cell_text(e, column), reverse=order == Qt.SortOrder.DescendingOrder
            )
        known = [entry for entry in entries if self.value(entry, column) is not None]
        known.sort(key=lambda e: self.value(e, column) or 0.0, reverse=order == Qt.SortOrder.DescendingOrder)
        return [*known, *(entry for entry in entries if self.value(entry, column) is None)]

    def value(self, entry: ComparisonEntry, column: int) -> float | None:
        """A figure; None where it is not known."""
        return METRIC_COLUMNS[column - _FIRST_METRIC].value(entry.metrics) if entry.metrics is not None else None

    def cell_text(self, entry: ComparisonEntry, column: int) -> str:
        """What a cell says."""
        if column == NAME:
            return entry.candidate.title
        if column == SUMMARY:
            return entry_summary(self.comparison, entry)
        value = self.value(entry, column)
        return "–" if value is None else METRIC_COLUMNS[column - _FIRST_METRIC].format(value)

    def tooltip_text(self, entry: ComparisonEntry) -> str:
        """All that is known of a row, for its tip."""
        lines = [entry.candidate.title, entry_summary(self.comparison, entry)]
        if entry.metrics is not None:
            values = [(column, column.value(entry.metrics)) for column in METRIC_COLUMNS]
            lines += [
                tr("{what}: {figures}").format(what=tr(column.help), figures=column.format(value))
                for column, value in values
                if value is not None
            ]
        return "\n".join(lines)

    # What Qt asks

    def rowCount(self, parent: _Index = _NO_PARENT) -> int:
        """How many runs there are."""
        return 0 if parent.isValid() else len(self.rows)

    def columnCount(self, parent: _Index = _NO_PARENT) -> int:
        """Name, words and figures."""
        return 0 if parent.isValid() else _FIRST_METRIC + len(METRIC_COLUMNS)

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """Titles, with the arrow of the one that sorts; what they mean as tips."""
        if orientation != Qt.Orientation.Horizontal:
            return None
        column = METRIC_COLUMNS[section - _FIRST_METRIC] if section >= _FIRST_METRIC else None
        if role == Qt.ItemDataRole.DisplayRole:
            title = tr(column.title) if column is not None else (tr("Run"), tr("Text"))[section]
            arrow = "↓" if self._order[1] == Qt.SortOrder.DescendingOrder else "↑"
            return f"{title} {arrow}" if section == self._order[0] else title
        if role == Qt.ItemDataRole.ToolTipRole and column is not None:
            return tooltip(tr(column.help))
        return _alignment(section) if role == Qt.ItemDataRole.TextAlignmentRole else None

    def data(self, index: _Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """A cell."""
        entry, column = self.rows[index.row()], index.column()
        match role:
            case Qt.ItemDataRole.DisplayRole:
                return (
                    f"{REFERENCE_MARK} {self.cell_text(entry, column)}"
                    if self._is_reference_cell(entry, column)
                    else self.cell_text(entry, column)
                )
            case Qt.ItemDataRole.ToolTipRole:
                return tooltip(self.tooltip_text(entry))
            case Qt.ItemDataRole.AccessibleTextRole:
                return f"{self.headerData(column, Qt.Orientation.Horizontal)}: {self.cell_text(entry, column)}"
            case Qt.ItemDataRole.TextAlignmentRole:
                return _alignment(column)
            case Qt.ItemDataRole.FontRole:
                strong = entry is self.shown and column == NAME
                return self.theme.font(12, 600 if strong else 400, tabular=column >= _FIRST_METRIC)
            case Qt.ItemDataRole.ForegroundRole:
                return self.theme.color(self._colour(entry, column))
        return None

    def _is_reference_cell(self, entry: ComparisonEntry, column: int) -> bool:
        return column == NAME and entry is self.comparison.reference and len(self.comparison.entries) > 1

    def _colour(self, entry: ComparisonEntry, column: int) -> str:
        if column == SUMMARY:
            return "danger" if entry.state == "failed" else "muted"
        if column == NAME and entry is self.shown:
            return "accent"
        return "text" if entry.result is not None or entry.state == "failed" else "muted"


def _alignment(column: int) -> Qt.AlignmentFlag:
    side = Qt.AlignmentFlag.AlignRight if column >= _FIRST_METRIC else Qt.AlignmentFlag.AlignLeft
    return side | Qt.AlignmentFlag.AlignVCenter
