"""The table of a comparison: sortable; a click on a row shows that run in the other views."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from PySide6.QtCore import QAbstractTableModel, QModelIndex, QPersistentModelIndex, Qt, Signal, Slot
from PySide6.QtGui import QFontMetrics, QKeyEvent, QResizeEvent
from PySide6.QtWidgets import QAbstractItemView, QFrame, QHeaderView, QTableView, QWidget

from decodescope.app.state.comparison.results import Comparison, ComparisonEntry
from decodescope.app.theme.theme import Theme, theme_for
from decodescope.app.theme.themed import Themed
from decodescope.app.views.compare.comparison_kinds import REFERENCE_MARK, entry_summary
from decodescope.app.views.compare.plots import METRIC_COLUMNS, TEXT_COLUMN_PRIORITY, MetricColumn, measure_columns
from decodescope.app.widgets.plain_text import tooltip
from decodescope.resources.language import tr

NAME, SUMMARY = 0, 1
"""Columns before the metrics: the run's name, and the summary of its text's differences."""
_FIRST_METRIC = 2
_Index = QModelIndex | QPersistentModelIndex
_NO_PARENT = QModelIndex()


class ResultsModel(QAbstractTableModel):
    """One entry per row, in the comparison's order until the user sorts by a column."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.theme = theme_for("light")
        self.comparison = Comparison()
        self.columns: tuple[MetricColumn, ...] = METRIC_COLUMNS
        """The metrics, and the measures of plug-ins."""
        self.rows: list[ComparisonEntry] = []
        self.shown: ComparisonEntry | None = None
        """The entry that the other views show."""
        self._order = (-1, Qt.SortOrder.AscendingOrder)

    def show_rows(self, comparison: Comparison, shown: ComparisonEntry | None) -> None:
        """Replace the rows, keeping the sort order."""
        self.beginResetModel()
        self.comparison, self.shown = comparison, shown
        self.columns = (*METRIC_COLUMNS, *measure_columns())
        if self._order[0] >= self.columnCount():  # the measure that it was sorted by is gone
            self._order = (-1, Qt.SortOrder.AscendingOrder)
        self.rows = self._sorted()
        self.endResetModel()

    def has_values(self, column: MetricColumn) -> bool:
        """Return whether any row has a value for that metric."""
        return any(entry.metrics is not None and column.value(entry.metrics) is not None for entry in self.rows)

    def sort(self, column: int, order: Qt.SortOrder = Qt.SortOrder.AscendingOrder) -> None:
        """Sort by a column and keep that order for later rows; -1 is the comparison's own order."""
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
        """Return a metric's value; None if unknown."""
        return self.columns[column - _FIRST_METRIC].value(entry.metrics) if entry.metrics is not None else None

    def cell_text(self, entry: ComparisonEntry, column: int) -> str:
        """Return the text of a cell."""
        if column == NAME:
            return entry.candidate.title
        if column == SUMMARY:
            return entry_summary(self.comparison, entry)
        value = self.value(entry, column)
        return "–" if value is None else self.columns[column - _FIRST_METRIC].format(value)

    def tooltip_text(self, entry: ComparisonEntry) -> str:
        """Return the tooltip of a row: all its metrics."""
        lines = [entry.candidate.title, entry_summary(self.comparison, entry)]
        if entry.metrics is not None:
            values = [(column, column.value(entry.metrics)) for column in self.columns]
            lines += [
                tr("{what}: {figures}").format(what=tr(column.help), figures=column.format(value))
                for column, value in values
                if value is not None
            ]
        return "\n".join(lines)

    # Qt model interface

    def rowCount(self, parent: _Index = _NO_PARENT) -> int:
        """Return the number of runs."""
        return 0 if parent.isValid() else len(self.rows)

    def columnCount(self, parent: _Index = _NO_PARENT) -> int:
        """Return the number of columns: name, summary and metrics."""
        return 0 if parent.isValid() else _FIRST_METRIC + len(self.columns)

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """Return the titles, with an arrow on the sorted column, and the explanations as tooltips."""
        if orientation != Qt.Orientation.Horizontal:
            return None
        column = self.columns[section - _FIRST_METRIC] if section >= _FIRST_METRIC else None
        if role == Qt.ItemDataRole.DisplayRole:
            title = tr(column.title) if column is not None else (tr("Run"), tr("Text"))[section]
            arrow = "↓" if self._order[1] == Qt.SortOrder.DescendingOrder else "↑"
            return f"{title} {arrow}" if section == self._order[0] else title
        if role == Qt.ItemDataRole.ToolTipRole and column is not None:
            return tooltip(tr(column.help))
        return _alignment(section) if role == Qt.ItemDataRole.TextAlignmentRole else None

    def data(self, index: _Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """Return the data of a cell."""
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


_NAME_MIN_WIDTH, _NAME_MAX_WIDTH, _SUMMARY_MIN_WIDTH = 110, 240, 150
"""Pixels at 100 %: minimum and maximum width of the name column, minimum width of the summary."""


class ResultTable(Themed, QTableView):
    """The table of a comparison, one row per run. `entryPicked(ComparisonEntry)`: a row was clicked, or Enter was
    pressed on it.
    """

    entryPicked = Signal(object)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._order: Sequence[MetricColumn] = TEXT_COLUMN_PRIORITY
        self.rows_model = ResultsModel(self)
        self.setModel(self.rows_model)
        self.setObjectName("compareTable")
        self.setAccessibleName(tr("Comparison"))
        self.setAccessibleDescription(tr("One row per run. Press Enter to show the run in the other views."))
        self.verticalHeader().hide()
        self.setShowGrid(False)
        self.setWordWrap(False)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        self.setTabKeyNavigation(False)
        for policy in (self.setVerticalScrollBarPolicy, self.setHorizontalScrollBarPolicy):
            policy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self._set_up_header()
        self.clicked.connect(self._on_picked)
        self.rows_model.layoutChanged.connect(self._update_spans)

    def _set_up_header(self) -> None:
        header = self.horizontalHeader()
        header.setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
        header.setSectionResizeMode(SUMMARY, QHeaderView.ResizeMode.Stretch)
        header.setMinimumSectionSize(20)
        header.setHighlightSections(False)
        header.setSectionsClickable(True)
        header.setSortIndicator(-1, Qt.SortOrder.DescendingOrder)
        self.setSortingEnabled(True)

    def restyle(self, theme: Theme) -> None:
        self._theme = self.rows_model.theme = theme
        self.setStyleSheet(
            "QTableView { border: 0; padding: 0; background: transparent; }"
            "QHeaderView, QHeaderView::section { background: transparent; }"
            f"QTableView::item, QHeaderView::section {{ padding: 0 {theme.px(6)}px; }}"
            f"QTableView::item:selected {{ background: {theme.tint}; color: {theme.text}; }}"
            "QHeaderView::down-arrow, QHeaderView::up-arrow { image: none; width: 0; height: 0; }"
        )
        self._update_geometry()

    def show_rows(self, comparison: Comparison, shown: ComparisonEntry | None, order: Sequence[MetricColumn]) -> None:
        """Fill the table; if there is no room for all metrics, those first in `order` are shown."""
        self._order = (*measure_columns(), *order)
        self.rows_model.show_rows(comparison, shown)
        self._update_geometry()
        if shown in self.rows_model.rows:
            self.selectRow(self.rows_model.rows.index(shown))

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Show the run of the row on Enter and Space."""
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Space) and self.currentIndex().isValid():
            self._on_picked(self.currentIndex())
        else:
            super().keyPressEvent(event)

    @Slot(QModelIndex)
    def _on_picked(self, index: QModelIndex) -> None:
        entry = self.rows_model.rows[index.row()]
        if entry.result is not None:
            self.entryPicked.emit(entry)

    # Geometry

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Show fewer metrics in a narrow view, but always the summary of differences."""
        super().resizeEvent(event)
        self._update_columns()

    def _name_width(self) -> int:
        theme = self._theme
        metrics = QFontMetrics(theme.font(12, 600))
        names = (metrics.horizontalAdvance(f"◆ {entry.candidate.title}") for entry in self.rows_model.rows)
        preferred_width = max(names, default=0) + theme.px(16)
        max_width = min(theme.px(_NAME_MAX_WIDTH), max(theme.px(_NAME_MIN_WIDTH), self.width() * 2 // 5))
        return max(theme.px(_NAME_MIN_WIDTH), min(preferred_width, max_width))

    def displayed_columns(self) -> list[MetricColumn]:
        """Return the metrics that have values and fit, in the table's order."""
        theme = self._theme
        room = self.width() - self._name_width() - theme.px(_SUMMARY_MIN_WIDTH)
        shown: set[str] = set()
        for column in (column for column in self._order if self.rows_model.has_values(column)):
            room -= theme.px(column.width)
            if room < 0:
                break
            shown.add(column.title)
        return [column for column in self.rows_model.columns if column.title in shown]

    def _update_columns(self) -> None:
        shown = self.displayed_columns()
        self.setColumnWidth(NAME, self._name_width())
        for number, column in enumerate(self.rows_model.columns, SUMMARY + 1):
            self.setColumnHidden(number, column not in shown)
            self.setColumnWidth(number, self._theme.px(column.width))

    @Slot()
    def _update_spans(self) -> None:
        """Let the reason of a failed run span the empty metric columns."""
        self.clearSpans()
        width = self.rows_model.columnCount() - SUMMARY
        for number, entry in enumerate(self.rows_model.rows):
            if entry.state == "failed":
                self.setSpan(number, SUMMARY, 1, width)

    def _update_geometry(self) -> None:
        """Set the height to that of all rows: the page scrolls, not the table."""
        self._update_columns()
        self._update_spans()
        height = self._theme.px(26)
        self.verticalHeader().setDefaultSectionSize(height)
        self.setFixedHeight(self.horizontalHeader().sizeHint().height() + height * len(self.rows_model.rows) + 2)
