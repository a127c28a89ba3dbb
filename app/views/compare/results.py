"""The table of a comparison: sortable, and a click on a row shows that run in the other views."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QModelIndex, Qt, Signal, Slot
from PySide6.QtGui import QFontMetrics, QKeyEvent, QResizeEvent
from PySide6.QtWidgets import QAbstractItemView, QFrame, QHeaderView, QTableView, QWidget

from app.state.comparison.results import Comparison, ComparisonEntry
from app.theme.theme import Theme, theme_for
from app.views.compare.columns import METRIC_COLUMNS, TEXT_COLUMN_PRIORITY, MetricColumn
from app.views.compare.results_model import NAME, SUMMARY, ResultsModel
from resources.language import tr

_NAME_MIN_WIDTH, _NAME_MAX_WIDTH, _SUMMARY_MIN_WIDTH = 110, 240, 150
"""Pixels at 100 %: the names' column, and what the words keep at least."""


class ResultTable(QTableView):
    """`entryPicked(Entry)`: a row was clicked, or Enter pressed on it."""

    entryPicked = Signal(object)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme_for("light")
        self._order: Sequence[MetricColumn] = TEXT_COLUMN_PRIORITY
        self.rows_model = ResultsModel(self)
        self.setModel(self.rows_model)
        self.setObjectName("compareTable")
        self.setAccessibleName(tr("Comparison"))
        self.setAccessibleDescription(tr("A row for each run. Enter shows the run in the other views."))
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

    def set_theme(self, theme: Theme) -> None:
        """Other colours and sizes."""
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
        """Fill it; where there is no room for all figures, the first ones of `order` are shown."""
        self._order = order
        self.rows_model.show_rows(comparison, shown)
        self._update_geometry()
        if shown in self.rows_model.rows:
            self.selectRow(self.rows_model.rows.index(shown))

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Enter and Space show the run of the row."""
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Space) and self.currentIndex().isValid():
            self._on_picked(self.currentIndex())
        else:
            super().keyPressEvent(event)

    @Slot(QModelIndex)
    def _on_picked(self, index: QModelIndex) -> None:
        entry = self.rows_model.rows[index.row()]
        if entry.result is not None:
            self.entryPicked.emit(entry)

    # Room

    def resizeEvent(self, event: QResizeEvent) -> None:
        """In a narrow view fewer figures, but always how the texts compare."""
        super().resizeEvent(event)
        self._update_columns()

    def _name_width(self) -> int:
        theme = self._theme
        metrics = QFontMetrics(theme.font(12, 600))
        names = (metrics.horizontalAdvance(f"◆ {entry.candidate.title}") for entry in self.rows_model.rows)
        wanted = max(names, default=0) + theme.px(16)
        max_width = min(theme.px(_NAME_MAX_WIDTH), max(theme.px(_NAME_MIN_WIDTH), self.width() * 2 // 5))
        return max(theme.px(_NAME_MIN_WIDTH), min(wanted, max_width))

    def displayed_columns(self) -> list[MetricColumn]:
        """The figures that are known and have room, in the order of the table."""
        theme = self._theme
        room = self.width() - self._name_width() - theme.px(_SUMMARY_MIN_WIDTH)
        shown: set[str] = set()
        for column in (column for column in self._order if self.rows_model.has_values(column)):
            room -= theme.px(column.width)
            if room < 0:
                break
            shown.add(column.title)
        return [column for column in METRIC_COLUMNS if column.title in shown]

    def _update_columns(self) -> None:
        shown = self.displayed_columns()
        self.setColumnWidth(NAME, self._name_width())
        for number, column in enumerate(METRIC_COLUMNS, SUMMARY + 1):
            self.setColumnHidden(number, column not in shown)
            self.setColumnWidth(number, self._theme.px(column.width))

    @Slot()
    def _update_spans(self) -> None:
        """A reason why there is no result takes the room of the figures that are not there."""
        self.clearSpans()
        width = self.rows_model.columnCount() - SUMMARY
        for number, entry in enumerate(self.rows_model.rows):
            if entry.state == "failed":
                self.setSpan(number, SUMMARY, 1, width)

    def _update_geometry(self) -> None:
        """As high as its rows: the page scrolls, not the table."""
        self._update_columns()
        self._update_spans()
        height = self._theme.px(26)
        self.verticalHeader().setDefaultSectionSize(height)
        self.setFixedHeight(self.horizontalHeader().sizeHint().height() + height * len(self.rows_model.rows) + 2)
