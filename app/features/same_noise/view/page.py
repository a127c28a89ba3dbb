"""Base class of the pages: a scrolling column, the state of the query, and tables."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any, NamedTuple

from PySide6.QtCore import QModelIndex, QPersistentModelIndex, Qt, Signal
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QProgressBar, QPushButton, QVBoxLayout, QWidget

from decodescope.app.features.same_noise.state import PageState
from decodescope.app.state.text_formats import to_csv
from decodescope.app.theme.theme import Theme
from decodescope.app.views.base import View
from decodescope.app.views.tree.rows_table import DIFFERS_AT_ROLE, SortableTable, SortedRowsModel
from decodescope.app.widgets.building import STRETCH, arrange, set_up
from decodescope.app.widgets.buttons import MenuButton
from decodescope.app.widgets.flow_layout import FlowRow
from decodescope.app.widgets.inputs import ScrollArea
from decodescope.app.widgets.labels import DetailsText, WrappedLabel
from decodescope.app.widgets.plain_text import PlainLabel, caption, tooltip
from decodescope.resources.language import join_sentences, tr

_Index = QModelIndex | QPersistentModelIndex
MAX_TABLE_ROWS = 12
"""Rows of a table before it scrolls."""


class Field(QWidget):
    """An editor with its label above it."""

    def __init__(self, title: str, editor: QWidget, parent: QWidget) -> None:
        super().__init__(parent)
        self.editor = editor
        self.label = set_up(PlainLabel(title, self), role="muted")
        self.label.setBuddy(editor)
        if not editor.accessibleName():
            editor.setAccessibleName(title)
        arrange(QVBoxLayout(self), self.label, editor, margins=0, spacing=4)


class NoisePage(View):
    """A page of the window. `startRequested`: compute; `stopRequested`: stop and keep the result so far;
    `exportRequested`: save a picture or the table.
    """

    startRequested = Signal()
    stopRequested = Signal()
    exportRequested = Signal()
    introduction = ""
    """What the page computes, marked for translation; shown until there is a result."""

    def __init__(self, name: str, title: str, start_text: str, parent: QWidget | None = None) -> None:
        super().__init__(name, parent)
        set_up(self, accessible_name=title, role="panel")
        self._start_text = start_text
        self.body = QWidget(self)
        self.column = arrange(QVBoxLayout(self.body), margins=(20, 16, 20, 16), spacing=12)
        self.subject = set_up(WrappedLabel("", self.body), name=f"{name}Subject", role="muted")
        self.inputs = FlowRow(self.body, 12)
        self.start = set_up(
            QPushButton(caption(start_text), self.body), name=f"{name}Start", role="primary", clicked=self._on_pressed
        )
        self.start.setAutoDefault(False)
        actions = ((tr("Save as picture or data…"), self.exportRequested.emit), (tr("Copy as CSV"), self.copy_table))
        self.export_button = MenuButton(f"{name}Export", tr("Export"), tr("Export the results"), actions, self.body)
        self.bar = set_up(QProgressBar(self.body), accessible_name=tr("Progress"))
        self.bar.setTextVisible(False)
        self.status = set_up(WrappedLabel("", self.body), name=f"{name}Status", role="muted")
        self.problem = set_up(WrappedLabel("", self.body), name=f"{name}Problem", role="danger")
        self.details = set_up(DetailsText(self.body), accessible_name=tr("Details of the message"))
        self.results = QWidget(self.body)
        self.results_column = arrange(QVBoxLayout(self.results), margins=0, spacing=12)
        arrange(
            self.column, self.subject, self.inputs,
            arrange(QHBoxLayout(), self.start, (self.status, 1), self.export_button, spacing=12),
            self.bar, self.problem, self.details, self.results, STRETCH,
        )  # fmt: skip
        self.scroll_area = set_up(ScrollArea(self), accessible_name=title)
        self.scroll_area.setWidgetResizable(True)
        self.scroll_area.setFrameShape(QFrame.Shape.NoFrame)
        self.scroll_area.setWidget(self.body)
        arrange(QVBoxLayout(self), self.scroll_area, margins=0)
        self.status.setMinimumWidth(1)
        self._is_busy = False

    def add_field(self, title: str, editor: QWidget) -> Field:
        """Add an editor to the inputs."""
        field = Field(title, editor, self.inputs)
        self.inputs.flow.addWidget(field)
        return field

    def show_state(self, state: PageState, disabled_reason: str = "") -> None:
        """Show progress, result and error of the page's query; `disabled_reason`: why nothing can be computed now."""
        self._is_busy = state.is_busy
        self.start.setText(caption(tr("Stop") if state.is_busy else self._start_text))
        self.start.setEnabled(state.is_busy or not disabled_reason)
        self.inputs.setEnabled(not state.is_busy and not disabled_reason)
        self.bar.setVisible(state.is_busy)
        error = state.error
        set_or_hide(self.problem, join_sentences(error.cause, error.remedy) if error is not None else "")
        self.details.setText(error.details if error is not None else "")
        self.details.setVisible(error is not None and bool(error.details))
        self.export_button.setEnabled(state.result is not None)
        self.results.setVisible(state.result is not None)
        if state.is_busy:
            self.show_progress(state.progress)
        elif disabled_reason and state.result is None:
            self.status.setText(disabled_reason)
        elif state.result is None:
            stopped = tr("Stopped before there was a result.") if state.was_stopped else ""
            self.status.setText(stopped or ("" if error is not None else tr(self.introduction)))
        else:
            self.show_result(state)

    def show_stopping(self) -> None:
        """Show that stopping is in progress."""
        self.start.setText(caption(tr("Stopping…")))
        self.start.setEnabled(False)

    def show_progress(self, progress: Any) -> None:
        """Show the progress of the query; None before its first step."""
        self.bar.setRange(0, 0)
        self.status.setText(tr("Waiting for the model."))

    def show_result(self, state: PageState) -> None:
        """Show the result, which is not None."""
        raise NotImplementedError

    def copy_table(self) -> None:
        """Copy the results as CSV."""
        from PySide6.QtGui import QGuiApplication

        QGuiApplication.clipboard().setText(to_csv(self.export_table()))

    def _on_pressed(self) -> None:
        if self._is_busy:
            self.show_stopping()
            self.stopRequested.emit()
        else:
            self.startRequested.emit()


def set_or_hide(label: WrappedLabel, text: str) -> None:
    """Show a text, or hide the label if it is empty."""
    label.setText(text)
    label.setVisible(bool(text))


def heading(text: str, parent: QWidget) -> QLabel:
    """Return a heading."""
    return set_up(PlainLabel(text.upper(), parent), role="heading")


class Cell(NamedTuple):
    """A cell of a table: its text, and the value by which rows are sorted."""

    text: str
    value: Any
    differs_at: int | None = None
    """Index of the first character that must stay visible."""


class CellModel(SortedRowsModel):
    """A table of cells; the first item of a row is its number in the order of the result."""

    def __init__(self, titles: Sequence[str], numbers: Collection[int], parent: QWidget) -> None:
        super().__init__(titles, numbers, (0, Qt.SortOrder.AscendingOrder), parent)

    def sort_key(self, row: tuple[Cell, ...], column: int) -> Any:
        """Return the cell's value; unknown values first."""
        value = row[column].value
        return (value is not None, value if value is not None else 0)

    def data(self, index: _Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """Return text, tooltip and alignment of a cell."""
        if not index.isValid():
            return None
        cell: Cell = self.rows[index.row()][index.column()]
        match role:
            case Qt.ItemDataRole.DisplayRole:
                return cell.text
            case Qt.ItemDataRole.ToolTipRole:
                return tooltip(cell.text)
            case Qt.ItemDataRole.AccessibleTextRole:
                return f"{self.column_title(index.column())}: {cell.text}"
            case Qt.ItemDataRole.TextAlignmentRole:
                return self.alignment(index.column())
        return cell.differs_at if role == DIFFERS_AT_ROLE else None


class ResultsTable(SortableTable):
    """A table of results. `activatedRow(number)`: the row with that number in the result was selected."""

    activatedRow = Signal(int)

    def __init__(
        self, name: str, title: str, model: CellModel, text: int, widths: dict[int, int], parent: QWidget
    ) -> None:
        """Create the table; arguments as of `SortableTable`."""
        super().__init__(name, model, text, widths, parent)
        self.cells = model
        self.setAccessibleName(title)
        self.setTabKeyNavigation(False)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.sortByColumn(0, Qt.SortOrder.AscendingOrder)
        self._is_selecting = False
        self.selectionModel().currentRowChanged.connect(self._on_row)

    def show_cells(self, rows: Sequence[tuple[Cell, ...]]) -> None:
        """Fill the table."""
        self._is_selecting = True
        self.cells.show_sorted(rows)
        self._is_selecting = False
        self._update_height()

    def select_number(self, number: int) -> None:
        """Select the row of a number without emitting a signal."""
        self._is_selecting = True
        place = next((n for n, row in enumerate(self.cells.rows) if row[0].value == number), None)
        if place is not None:
            self.selectRow(place)
        self._is_selecting = False

    def restyle(self, theme: Theme) -> None:
        super().restyle(theme)
        self._update_height()

    def _update_height(self) -> None:
        row = self.verticalHeader().defaultSectionSize()
        shown = min(MAX_TABLE_ROWS, max(1, len(self.cells.rows)))
        self.setFixedHeight(self.horizontalHeader().sizeHint().height() + row * shown + 2)

    def _on_row(self, current: QModelIndex, _previous: QModelIndex) -> None:
        if current.isValid() and not self._is_selecting:
            self.activatedRow.emit(self.cells.rows[current.row()][0].value)


Formatter = Callable[[float], str]
