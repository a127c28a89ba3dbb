"""Pages with the results of a study: tables of cells and runs, curves, heat map, texts side by side, right answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from PySide6.QtCore import QAbstractTableModel, QModelIndex, QPersistentModelIndex, QRect, QSize, Qt, Signal, Slot
from PySide6.QtGui import QFontMetrics, QKeyEvent, QMouseEvent, QPainter
from PySide6.QtWidgets import (
    QAbstractItemView,
    QComboBox,
    QFrame,
    QGridLayout,
    QHBoxLayout,
    QHeaderView,
    QLineEdit,
    QPushButton,
    QSizePolicy,
    QStyle,
    QStyleOptionViewItem,
    QTableView,
    QVBoxLayout,
    QWidget,
)

from decodescope.app.features.studies import state
from decodescope.app.features.studies.state import StudyResults, TableCell, TableColumn, TableRow
from decodescope.app.features.studies.view.study_plots import HeatMap, IntervalPlot, legend_keys
from decodescope.app.state.setting_values import is_number
from decodescope.app.theme.theme import Theme
from decodescope.app.theme.themed import Themed, inherit_theme
from decodescope.app.widgets.building import STRETCH, Item, arrange, set_up, show_text
from decodescope.app.widgets.buttons import SegmentedControl
from decodescope.app.widgets.flow_layout import FlowRow, clear_layout
from decodescope.app.widgets.inputs import ComboBox, ScrollArea
from decodescope.app.widgets.labels import WrappedLabel
from decodescope.app.widgets.legend import KeyLegend
from decodescope.app.widgets.painted_rows import ThemedDelegate
from decodescope.app.widgets.plain_text import PlainLabel, tooltip
from decodescope.app.widgets.text_documents import ExactTextEdit
from decodescope.core import studies
from decodescope.resources.language import join_names, tr, trc, trn

Index = QModelIndex | QPersistentModelIndex
CELL_ROLE = Qt.ItemDataRole.UserRole + 1
"""Item data role: the `TableCell`."""
_NO_PARENT = QModelIndex()
_MIN_WIDTH, _MAX_WIDTH, _TEXT_WIDTH = 56, 240, 260
"""Widths of columns in pixels at 100 %."""


class StudyTableModel(QAbstractTableModel):
    """Rows that are sorted by any column; cells without a value come last."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.columns: list[TableColumn] = []
        self.rows: list[TableRow] = []
        self.order: tuple[int, bool] | None = None
        """Sort column, and whether it is descending; None for the order of the study."""

    def show_table(self, columns: Sequence[TableColumn], rows: Sequence[TableRow]) -> None:
        """Show a table; the sort order stays while the columns are the same."""
        self.beginResetModel()
        if list(columns) != self.columns:
            self.order = None
        self.columns, self.rows = list(columns), list(rows)
        self._sort()
        self.endResetModel()

    def sort(self, column: int, order: Qt.SortOrder = Qt.SortOrder.AscendingOrder) -> None:
        self.layoutAboutToBeChanged.emit()
        self.order = (column, order == Qt.SortOrder.DescendingOrder) if column >= 0 else None
        self._sort()
        self.layoutChanged.emit()
        self.headerDataChanged.emit(Qt.Orientation.Horizontal, 0, len(self.columns) - 1)

    def _sort(self) -> None:
        if self.order is None or self.order[0] >= len(self.columns):
            return
        column, is_descending = self.order
        known = [row for row in self.rows if row.cells[column].value is not None]
        others = [row for row in self.rows if row.cells[column].value is None]
        known.sort(key=lambda row: _sort_key(row.cells[column].value), reverse=is_descending)
        self.rows = known + others

    def rowCount(self, parent: Index = _NO_PARENT) -> int:
        return 0 if parent.isValid() else len(self.rows)

    def columnCount(self, parent: Index = _NO_PARENT) -> int:
        return 0 if parent.isValid() else len(self.columns)

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        cell = self.rows[index.row()].cells[index.column()]
        if role == CELL_ROLE:
            return cell
        if role == Qt.ItemDataRole.DisplayRole:
            return cell.text
        if role == Qt.ItemDataRole.AccessibleTextRole:
            return f"{self.columns[index.column()].title}: {cell.text} {cell.note}".strip()
        if role == Qt.ItemDataRole.ToolTipRole and self.columns[index.column()].is_text:
            return tooltip(str(cell.value or cell.text))
        return None

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if orientation != Qt.Orientation.Horizontal or section >= len(self.columns):
            return None
        column = self.columns[section]
        if role == Qt.ItemDataRole.DisplayRole:
            arrow = "" if self.order is None or self.order[0] != section else " ↓" if self.order[1] else " ↑"
            return f"{column.title}{arrow}"
        if role == Qt.ItemDataRole.ToolTipRole:
            return tooltip(column.tip) if column.tip else None
        if role == Qt.ItemDataRole.TextAlignmentRole:
            side = Qt.AlignmentFlag.AlignRight if column.is_number else Qt.AlignmentFlag.AlignLeft
            return side | Qt.AlignmentFlag.AlignVCenter
        return None


def _sort_key(value: float | str | None) -> tuple[int, float, str]:
    return (0, float(value), "") if isinstance(value, int | float) else (1, 0.0, str(value))


class CellDelegate(ThemedDelegate):
    """Paints a number with its interval below it in small type."""

    def __init__(self, parent: QWidget, model: StudyTableModel) -> None:
        super().__init__(parent)
        self._model = model

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        theme = self.theme
        if theme is None:
            super().paint(painter, option, index)
            return
        cell: TableCell = index.data(CELL_ROLE)
        column, row = self._model.columns[index.column()], self._model.rows[index.row()]
        painter.save()
        if option.state & QStyle.StateFlag.State_Selected:
            painter.fillRect(option.rect, theme.color("tint"))
        painter.setPen(theme.color("line"))
        painter.drawLine(option.rect.bottomLeft(), option.rect.bottomRight())
        rect = option.rect.adjusted(theme.px(8), 0, -theme.px(8), -1)
        side = Qt.AlignmentFlag.AlignRight if column.is_number else Qt.AlignmentFlag.AlignLeft
        large, small = theme.font(13, 600 if row.is_marked and row.key[-1] != -1 else 400, tabular=True), theme.font(11)
        is_failed = row.key[-1] == -1 and column.is_text
        lines = [(cell.text, large, "danger" if is_failed else "text")]
        lines += [(cell.note, small, "muted")] if cell.note else []
        height = sum(QFontMetrics(font).height() for _text, font, _colour in lines)
        top = rect.center().y() - height // 2 + 1
        for text, font, colour in lines:
            painter.setFont(font)
            painter.setPen(theme.color(colour))
            fm = QFontMetrics(font)
            shown = fm.elidedText(text, Qt.TextElideMode.ElideRight, rect.width())
            painter.setLayoutDirection(Qt.LayoutDirection.LayoutDirectionAuto)
            painter.drawText(QRect(rect.left(), top, rect.width(), fm.height()), side, shown)
            top += fm.height()
        painter.restore()

    def width_of(self, cell: TableCell, theme: Theme) -> int:
        """Return the width that a cell needs."""
        large = QFontMetrics(theme.font(13, 600, tabular=True)).horizontalAdvance(cell.text)
        small = QFontMetrics(theme.font(11)).horizontalAdvance(cell.note)
        return max(large, small) + theme.px(18)


class StudyTable(Themed, QTableView):
    """A sortable table. `rowClicked(key)`: one click or moved by keys; `rowOpened(key)`: double click or Enter."""

    rowClicked = Signal(object)
    rowOpened = Signal(object)

    def __init__(self, name: str, title: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        set_up(self, name=name, accessible_name=title)
        self._model = StudyTableModel(self)
        self._delegate = CellDelegate(self, self._model)
        self.setModel(self._model)
        self.setItemDelegate(self._delegate)
        self.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        self.setShowGrid(False)
        self.setWordWrap(False)
        self.setTabKeyNavigation(False)
        self.setHorizontalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.verticalHeader().hide()
        head = self.horizontalHeader()
        head.setHighlightSections(False)
        head.setSectionsClickable(True)
        head.setSectionResizeMode(QHeaderView.ResizeMode.Interactive)
        head.sectionClicked.connect(self._on_header)
        self._is_filling = False
        self.selectionModel().currentRowChanged.connect(self._on_current)
        self.doubleClicked.connect(lambda index: self.rowOpened.emit(self._model.rows[index.row()].key))
        self.clicked.connect(lambda index: self.rowClicked.emit(self._model.rows[index.row()].key))

    @property
    def table_model(self) -> StudyTableModel:
        """The model."""
        return self._model

    @property
    def current_key(self) -> tuple[object, ...] | None:
        """The key of the selected row; None without one."""
        index = self.currentIndex()
        return self._model.rows[index.row()].key if index.isValid() else None

    def show_table(self, table: state.Table) -> None:
        """Show a table; the selected row stays selected."""
        key, columns = self.current_key, self._model.columns
        scroll = self.horizontalScrollBar().value(), self.verticalScrollBar().value()
        self._is_filling = True
        self._model.show_table(*table)
        place = next((number for number, row in enumerate(self._model.rows) if row.key == key), None)
        if place is not None:
            self.selectRow(place)
        self._is_filling = False
        if [one.title for one in columns] != [one.title for one in table[0]] or self._model.rows:
            self._fit_columns()
        for bar, value in zip((self.horizontalScrollBar(), self.verticalScrollBar()), scroll, strict=True):
            bar.setValue(value)

    def restyle(self, theme: Theme) -> None:
        self._delegate.theme = theme
        self.setStyleSheet(
            f"QTableView {{ background: {theme.panel}; border: 1px solid {theme.line}; border-radius: 8px; }}"
            "QTableView { padding: 0; }"
            f"QTableView:focus {{ border: 1px solid {theme.accent}; }}"
            f"QHeaderView::section {{ padding: {theme.px(6)}px {theme.px(8)}px; }}"
            "QHeaderView::down-arrow, QHeaderView::up-arrow { image: none; width: 0; height: 0; }"
        )
        self._fit_columns()

    def _fit_columns(self) -> None:
        """Give each column the width of its widest cell, and the rest to the text column."""
        theme = self._theme
        fm = QFontMetrics(theme.font(12))
        notes = any(cell.note for row in self._model.rows[:200] for cell in row.cells)
        self.verticalHeader().setDefaultSectionSize(theme.px(46 if notes else 30))
        widths = []
        for number, column in enumerate(self._model.columns):
            head = fm.horizontalAdvance(f"{column.title} ↓") + theme.px(20)
            if column.is_text:
                widths.append(max(head, theme.px(_TEXT_WIDTH)))
                continue
            cells = (self._delegate.width_of(row.cells[number], theme) for row in self._model.rows[:200])
            widths.append(max(theme.px(_MIN_WIDTH), head, min(max(cells, default=0), theme.px(_MAX_WIDTH))))
        rest = self.viewport().width() - sum(widths)
        texts = [number for number, column in enumerate(self._model.columns) if column.is_text]
        for number, width in enumerate(widths):
            share = rest // len(texts) if rest > 0 and number in texts else 0
            if rest > 0 and not texts:
                share = min(rest // len(widths), round(width * 0.45))
            self.setColumnWidth(number, width + share)

    def resizeEvent(self, event: Any) -> None:
        super().resizeEvent(event)
        self._fit_columns()

    @Slot(int)
    def _on_header(self, section: int) -> None:
        order, column = self._model.order, self._model.columns[section]
        first = Qt.SortOrder.DescendingOrder if column.is_number else Qt.SortOrder.AscendingOrder
        if order is not None and order[0] == section:
            first = Qt.SortOrder.AscendingOrder if order[1] else Qt.SortOrder.DescendingOrder
        self._is_filling = True
        self._model.sort(section, first)
        self._is_filling = False

    @Slot()
    def _on_current(self, *_indexes: object) -> None:
        key = self.current_key
        if key is not None and not self._is_filling and self.hasFocus():
            self.rowClicked.emit(key)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        key = self.current_key
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter) and key is not None and not event.modifiers():
            self.rowOpened.emit(key)
        else:
            super().keyPressEvent(event)


class ResultPage(Themed, QWidget):
    """Base of the pages. `cellChosen(label)`: a cell whose runs are wanted; `runChosen(key, number, is_raised)`: a run
    to show in the main window, which comes to the front with `is_raised`.
    """

    cellChosen = Signal(str)
    runChosen = Signal(str, int, bool)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.results: StudyResults | None = None
        self.controls = FlowRow(self, 10)
        self.note = set_up(WrappedLabel("", self), role="muted")

    def lay_out(self, *content: Item) -> None:
        """Lay out the controls, the content and the note about intervals."""
        arrange(QVBoxLayout(self), self.controls, *content, self.note, margins=0, spacing=10)

    def show_results(self, results: StudyResults) -> None:
        """Show results."""
        self.results = results
        self.note.setText(state.interval_note(results.summary, self.shows_differences))
        self.update_content(results)

    @property
    def shows_differences(self) -> bool:
        """Whether differences to the baseline are shown."""
        return False

    def update_content(self, results: StudyResults) -> None:
        """Show the results in the page's own widgets."""
        raise NotImplementedError

    def refresh(self) -> None:
        """Show the results again, as the page's settings have changed."""
        if self.results is not None:
            self.show_results(self.results)

    def add_choice(self, name: str, title: str) -> ComboBox:
        """Add a labelled combo box to the controls."""
        box = QWidget(self)
        combo = set_up(ComboBox(box), name=name, accessible_name=title)
        combo.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToContents)
        combo.setMinimumContentsLength(8)
        combo.setMaximumWidth(360)
        combo.activated.connect(self.refresh)
        label = set_up(PlainLabel(title, box), role="muted")
        label.setBuddy(combo)
        arrange(QHBoxLayout(box), label, combo, margins=0, spacing=6)
        self.controls.flow.addWidget(box)
        return combo


def fill_choice(combo: QComboBox, items: Sequence[tuple[str, str]], fallback: int = 0) -> str:
    """Offer (title, value) items, keep the selection where possible, and return the selected value."""
    current = combo.currentData()
    if [(combo.itemText(n), combo.itemData(n)) for n in range(combo.count())] != list(items):
        combo.blockSignals(True)
        combo.clear()
        for title, value in items:
            combo.addItem(title, value)
        place = combo.findData(current) if current is not None else -1
        combo.setCurrentIndex(place if place >= 0 else min(fallback, combo.count() - 1))
        combo.blockSignals(False)
    return str(combo.currentData() or "")


def _measures(summary: studies.StudySummary) -> list[tuple[str, str]]:
    return [(one.name, one.name) for one in summary.measures]


def _measure(summary: studies.StudySummary, name: str) -> studies.StudyMeasure | None:
    return next((one for one in summary.measures if one.name == name), None)


class CellsPage(ResultPage):
    """The table of cells."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.kind = SegmentedControl(
            (("means", tr("Means")), ("differences", tr("Differences to the baseline"))), tr("Shown numbers"), self
        )
        self.kind.chosen.connect(self.refresh)
        self.controls.flow.addWidget(self.kind)
        self.table = StudyTable("studyCells", tr("Cells"), self)
        self.table.rowOpened.connect(lambda key: self.cellChosen.emit(str(key[0])))
        self.lay_out((self.table, 1))

    @property
    def shows_differences(self) -> bool:
        return self.kind.value == "differences"

    def update_content(self, results: StudyResults) -> None:
        has_baseline = any(cell.differences for cell in results.summary.cells)
        self.kind.button("differences").setEnabled(has_baseline)
        if not has_baseline:
            self.kind.set_value("means")
        self.kind.button("differences").setToolTip(
            "" if has_baseline else tooltip(tr("The study has no baseline: choose one under “Compare with the cell”."))
        )
        self.table.show_table(state.cell_table(results.summary, self.shows_differences))


class RunsPage(ResultPage):
    """The table of runs, and the text of the selected one."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.cell = self.add_choice("studyRunsCell", tr("Cell"))
        self.search = set_up(QLineEdit(self), name="studyRunsSearch", accessible_name=tr("Search texts and prompts"))
        self.search.setPlaceholderText(tr("Search texts and prompts"))
        self.search.setClearButtonEnabled(True)
        self.search.setMinimumWidth(220)
        self.search.textChanged.connect(self.refresh)
        self.controls.flow.addWidget(self.search)
        self.table = StudyTable("studyRuns", tr("Runs"), self)
        self.table.rowClicked.connect(lambda key: self._on_row(key, False))
        self.table.rowOpened.connect(lambda key: self._on_row(key, True))
        self.text = set_up(ExactTextEdit(self), name="studyRunText", accessible_name=tr("Text of the selected run"))
        self.text.setReadOnly(True)
        self.text.setTabChangesFocus(True)
        self.open_button = set_up(QPushButton(tr("Open in the window"), self), name="studyOpenRun")
        self.open_button.setAutoDefault(False)
        self.open_button.clicked.connect(lambda: self._on_row(self.table.current_key, True))
        below = QWidget(self)
        top = Qt.AlignmentFlag.AlignTop
        arrange(QHBoxLayout(below), (self.text, 1), (self.open_button, 0, top), margins=0, spacing=10)
        self.lay_out((self.table, 1), below)

    def restyle(self, theme: Theme) -> None:
        self.text.setFixedHeight(self.text.fontMetrics().lineSpacing() * 4 + theme.px(18))

    def show_cell(self, label: str) -> None:
        """Show the runs of a cell only; all with an empty label."""
        place = self.cell.findData(label)
        self.cell.setCurrentIndex(max(0, place))
        self.refresh()

    def update_content(self, results: StudyResults) -> None:
        cells = [(tr("All"), ""), *((cell.label, cell.label) for cell in results.summary.cells)]
        chosen = fill_choice(self.cell, cells)
        self.table.show_table(state.run_table(results, chosen, self.search.text()))
        self._show_text(self.table.current_key)
        count = len(self.table.table_model.rows)
        self.note.setText(trn("{count:,} text.", "{count:,} texts.", count).format(count=count) + " "
                          + tr("Click a run to show it with its inspector in the main window."))  # fmt: skip

    def _on_row(self, key: tuple[object, ...] | None, is_raised: bool) -> None:
        self._show_text(key)
        if key is not None:
            self.runChosen.emit(str(key[0]), int(str(key[1])), is_raised)

    def _show_text(self, key: tuple[object, ...] | None) -> None:
        text, results = "", self.results
        if key is not None and results is not None:
            if key[1] == -1:
                text = next((str(row["error"]) for row in results.failed if row["key"] == key[0]), "")
            else:
                row = next((r for r in results.rows if (r["key"], r["text_number"]) == key), None)
                text = f"{state.prompt_text(row['prompt'])}▸{row['text']}" if row is not None else ""
        if self.text.toPlainText() != text:
            self.text.setPlainText(text)
        self.open_button.setEnabled(bool(text))


class ChartPage(ResultPage):
    """Curves with intervals over one setting."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.measure = self.add_choice("studyChartMeasure", trc("of a text", "Measure"))
        self.over = self.add_choice("studyChartSetting", tr("Over"))
        self.plot = set_up(IntervalPlot(self), name="studyChart")
        self.plot.chosen.connect(self.cellChosen)
        self.legend = KeyLegend(self)
        self.lay_out(self.legend, (self.plot, 1))

    def update_content(self, results: StudyResults) -> None:
        summary = results.summary
        measure = _measure(summary, fill_choice(self.measure, _measures(summary)))
        names = state.factor_names(summary, varying=True) or state.factor_names(summary)
        numeric = next(
            (n for n, name in enumerate(names) if all(map(is_number, state.factor_values(summary, name)))), 0
        )
        x_name = fill_choice(self.over, [(name, name) for name in names], numeric)
        data = state.plot_of(summary, measure, x_name) if measure is not None else state.PlotData()
        self.plot.show_data(data)
        self.legend.set_keys(legend_keys(data))
        self.note.setText(f"{self.note.text()} {hidden_text(data)}".strip())


def hidden_text(data: state.PlotData) -> str:
    """Return how many curves are left out; empty if none are."""
    if not data.hidden:
        return ""
    return trn(
        "{count} further curve is in the table.", "{count} further curves are in the table.", data.hidden
    ).format(count=data.hidden)


class MapPage(ResultPage):
    """A heat map over two settings; the others are fixed."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.measure = self.add_choice("studyMapMeasure", trc("of a text", "Measure"))
        self.row = self.add_choice("studyMapRows", tr("Rows"))
        self.column = self.add_choice("studyMapColumns", tr("Columns"))
        self._fixed: dict[str, ComboBox] = {}
        self.map = set_up(HeatMap(self), name="studyHeatMap")
        self.map.chosen.connect(self.cellChosen)
        self.empty = set_up(WrappedLabel("", self), role="muted")
        self.lay_out(self.empty, (self.map, 1))

    def update_content(self, results: StudyResults) -> None:
        summary = results.summary
        names = state.factor_names(summary, varying=True)
        has_two = len(names) >= 2
        self.map.setVisible(has_two)
        self.controls.setVisible(has_two)
        self.empty.setVisible(not has_two)
        self.empty.setText(tr("A heat map needs two settings with several values each. Add them to the study."))
        if not has_two:
            return
        items = [(name, name) for name in names]
        measure = _measure(summary, fill_choice(self.measure, _measures(summary)))
        row, column = fill_choice(self.row, items, 0), fill_choice(self.column, items, 1)
        if row == column:
            column = next(name for name in names if name != row)
            self.column.setCurrentIndex(self.column.findData(column))
        others = [name for name in names if name not in (row, column)]
        for name in [one for one in self._fixed if one not in others]:
            box = self._fixed.pop(name).parentWidget()
            assert box is not None
            self.controls.flow.removeWidget(box)
            box.hide()
            box.deleteLater()
        fixed = {}
        for name in others:
            if name not in self._fixed:
                self._fixed[name] = self.add_choice(f"studyMapFixed.{name}", name)
                box = self._fixed[name].parentWidget()
                assert box is not None
                inherit_theme(box)
            values = [studies.format_value(value) for value in state.factor_values(summary, name)]
            fixed[name] = fill_choice(self._fixed[name], [(one, one) for one in values])
        if measure is not None:
            self.map.show_data(state.heat_map(summary, measure, row, column, fixed))


class ClickableTextCard(Themed, QFrame):
    """A text that can be clicked. `chosen`: clicked, or Enter."""

    chosen = Signal()

    def __init__(self, text: str, about: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        set_up(self, role="card", accessible_name=f"{about}: {text}")
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.text_label = WrappedLabel(text, self)
        arrange(
            QVBoxLayout(self), self.text_label, set_up(WrappedLabel(about, self), role="muted"), margins=(10, 8, 10, 8),
            spacing=4,
        )  # fmt: skip

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        if event.button() == Qt.MouseButton.LeftButton and self.rect().contains(event.position().toPoint()):
            self.chosen.emit()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Space):
            self.chosen.emit()
        else:
            super().keyPressEvent(event)

    def paintEvent(self, event: Any) -> None:
        super().paintEvent(event)
        if self.hasFocus():
            painter = QPainter(self)
            painter.setPen(self._theme.color("accent"))
            painter.drawRoundedRect(self.rect().adjusted(0, 0, -1, -1), 10, 10)
            painter.end()


class TextsPage(ResultPage):
    """The texts of one prompt, a column per cell."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.prompt = self.add_choice("studyTextsPrompt", tr("Prompt"))
        self.previous = set_up(
            QPushButton("‹", self), name="studyPreviousPrompt", accessible_name=tr("Previous prompt")
        )
        self.next = set_up(QPushButton("›", self), name="studyNextPrompt", accessible_name=tr("Next prompt"))
        for button, step in ((self.previous, -1), (self.next, 1)):
            button.setAutoDefault(False)
            button.clicked.connect(lambda _=False, step=step: self._move(step))
            self.controls.flow.addWidget(button)
        self.shown_prompt = set_up(WrappedLabel("", self), name="studyTextsPromptText")
        self.page = QWidget(self)
        self.grid = arrange(QGridLayout(self.page), margins=0)
        self.grid.setHorizontalSpacing(10)
        self.grid.setVerticalSpacing(8)
        self.area = set_up(ScrollArea(self), accessible_name=tr("Texts side by side"))
        self.area.setWidgetResizable(True)
        self.area.setFrameShape(QFrame.Shape.NoFrame)
        self.area.setWidget(self.page)
        self.cards: list[ClickableTextCard] = []
        self._drawn: object = None
        self.lay_out(self.shown_prompt, (self.area, 1))

    def _move(self, step: int) -> None:
        self.prompt.setCurrentIndex(max(0, min(self.prompt.count() - 1, self.prompt.currentIndex() + step)))
        self.refresh()

    def update_content(self, results: StudyResults) -> None:
        prompts = results.prompts
        items = [(f"{one}  {state.one_line(text)[:48]}", one) for one, text in prompts.items()]
        chosen = fill_choice(self.prompt, items)
        self.previous.setEnabled(self.prompt.currentIndex() > 0)
        self.next.setEnabled(self.prompt.currentIndex() < self.prompt.count() - 1)
        self.shown_prompt.setText(prompts.get(chosen, ""))
        rows = [row for row in results.rows if row["prompt_id"] == chosen]
        drawn = (chosen, [(row["key"], row["text_number"], tuple(row["values"].items())) for row in rows])
        if drawn != self._drawn:
            self._drawn = drawn
            self._draw(results.summary, rows)
        cells = len(results.summary.cells)
        note = tr("Click a text to show its run in the main window.")
        if cells > state.MAX_COLUMNS:
            note = tr("The first {shown} of {count} cells.").format(shown=state.MAX_COLUMNS, count=cells) + " " + note
        self.note.setText(note)

    def _draw(self, summary: studies.StudySummary, rows: Sequence[studies.Row]) -> None:
        clear_layout(self.grid)
        self.cards = []
        for column, cell in enumerate(summary.cells[: state.MAX_COLUMNS]):
            head = set_up(WrappedLabel(cell.label, self.page), role="heading")
            self.grid.addWidget(head, 0, column)
            own = [row for row in rows if row["cell_label"] == cell.label][: state.MAX_TEXTS]
            for line, row in enumerate(own, 1):
                card = ClickableTextCard(row["text"].strip() or "∅", _about(row, summary), self.page)
                key, number = str(row["key"]), int(row["text_number"])
                card.chosen.connect(lambda key=key, number=number: self.runChosen.emit(key, number, False))
                self.grid.addWidget(card, line, column, Qt.AlignmentFlag.AlignTop)
                self.cards.append(card)
            self.grid.setColumnMinimumWidth(column, self._theme.px(190))
            self.grid.setColumnStretch(column, 1)
        self.grid.setRowStretch(state.MAX_TEXTS + 1, 1)
        inherit_theme(self.page)


def _about(row: studies.Row, summary: studies.StudySummary) -> str:
    """Return the seed of a text and its first measures."""
    values = [
        f"{one.name} {studies.number_text(value, one.digits)}"
        for one in summary.measures[:2]
        if (value := row["values"].get(one.name)) is not None
    ]
    return join_names((tr("seed {seed}").format(seed=row["seed"]), *values))


class AnswersPage(ResultPage):
    """Results of studies with right answers: pass@k, best of k, and the majority of answers."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.kind = SegmentedControl(
            (
                (state.PASS, "pass@k"), (state.BEST, tr("Best of k")), ("majority", tr("Majority")),
                ("votes", tr("Votes")),
            ),
            tr("Shown numbers"), self,
        )  # fmt: skip
        self.kind.chosen.connect(self.refresh)
        self.controls.flow.addWidget(self.kind)
        self.empty = set_up(WrappedLabel("", self), role="muted")
        self.legend = KeyLegend(self)
        self.plot = set_up(IntervalPlot(self), name="studyAnswerPlot")
        self.plot.chosen.connect(self.cellChosen)
        self.table = StudyTable("studyAnswers", tr("Right answers"), self)
        self.table.rowOpened.connect(lambda key: self.cellChosen.emit(str(key[0])))
        self.table.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self.lay_out(self.empty, self.legend, (self.plot, 1), (self.table, 1))

    def update_content(self, results: StudyResults) -> None:
        summary, kind = results.summary, self.kind.value
        has_votes = any(cell.votes for cell in summary.cells)
        is_curve = kind in (state.PASS, state.BEST)
        data = state.answer_plot(summary, kind) if is_curve else state.PlotData()
        reason = ""
        if not any(cell.majority for cell in summary.cells) and not (kind == "votes" and has_votes):
            reason = tr("No right answers are known. Name their column under “Column with right answers”.")
        elif is_curve and not data.curves:
            reason = tr("Choose a measure under “Best of k texts by”.")
        elif kind == "votes" and not has_votes:
            reason = tr("A majority needs several texts of each prompt: use several seeds.")
        show_text(self.empty, reason)
        self.plot.setVisible(is_curve and not reason)
        self.table.setVisible(not is_curve and not reason)
        self.plot.show_data(data)
        self.legend.set_keys(legend_keys(data))
        if not is_curve:
            self.table.show_table(state.vote_table(summary) if kind == "votes" else state.majority_table(summary))
        note = self.note.text() if kind != "majority" else tr(
            "Majority (self-consistency): the most frequent answer of each prompt is right. Its interval draws prompts "
            "and texts, and votes again."
        )  # fmt: skip
        self.note.setText(f"{note} {hidden_text(data)}".strip())


class NoResults(QWidget):
    """A sentence in place of the result pages, before the first result."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.label = set_up(PlainLabel("", self), role="muted")
        self.label.setWordWrap(True)
        self.label.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.label.setMaximumWidth(460)
        row = arrange(QHBoxLayout(), STRETCH, (self.label, 2), STRETCH, margins=0)
        arrange(QVBoxLayout(self), STRETCH, row, STRETCH, margins=0)

    def sizeHint(self) -> QSize:
        return QSize(300, 200)
