"""The speculation view: rounds to step through, the tree of one round, and the gain from drafting."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QMargins, QObject, QPoint, QRect, QSize, Signal, Slot
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QHBoxLayout, QToolButton, QVBoxLayout, QWidget

from decodescope.app.state.empty_view import DRAFT, fill_unsupported_reason
from decodescope.app.state.run import Run
from decodescope.app.state.worker_messages import ModelInfo
from decodescope.app.theme.theme import Theme
from decodescope.app.theme.themed import Themed
from decodescope.app.views.base import Table, View
from decodescope.app.views.node_reports import NodeReport
from decodescope.app.views.shared.empty_page import add_fill_button, paint_empty_page
from decodescope.app.views.shared.table_export import draft_round_table
from decodescope.app.views.speculation.round_page import DraftComparison, RoundPage
from decodescope.app.views.speculation.round_report import RoundSelection, describe_round, node_report
from decodescope.app.views.speculation.round_strip import RoundStrip
from decodescope.app.widgets.building import arrange, set_up
from decodescope.app.widgets.plain_text import PlainLabel, tooltip
from decodescope.app.widgets.tree_canvas import TreeCanvas
from decodescope.core.events import Event
from decodescope.resources.language import mark, tr


class SelectedNodeReporter(QObject):
    """Observe the canvas that shows the round of `selection`."""

    reported = Signal(object)
    """The NodeReport to show; None if no node is selected, or the word before the round."""

    def __init__(self, canvas: TreeCanvas, round_selection: RoundSelection) -> None:
        super().__init__(canvas)
        self._canvas, self._selection = canvas, round_selection
        canvas.selection.nodeSelected.connect(self._on_node)
        canvas.selection.selectionCleared.connect(self._on_nothing)

    def report_again(self) -> None:
        """Report the selected node again, with updated texts."""
        if self._canvas.selection.selected is not None:
            self._on_node(self._canvas.selection.selected)

    @Slot(int)
    def _on_node(self, node: int) -> None:
        entry = self._selection.entry
        self.reported.emit(
            node_report(entry, node, self._selection.drafters) if entry is not None and node != 0 else None
        )

    @Slot()
    def _on_nothing(self) -> None:
        self.reported.emit(None)


class SpeculationTools(Themed, QWidget):
    """Widget at the right end of the tab bar."""

    stepped = Signal(int)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.label = set_up(PlainLabel("", self), role="muted")
        row = arrange(QHBoxLayout(self), self.label, margins=0, spacing=2)
        for text, name, slot in (("‹", tr("Previous round"), self._back), ("›", tr("Next round"), self._on)):
            button = set_up(QToolButton(self), accessible_name=name, tooltip=tooltip(name), clicked=slot)
            button.setText(text)
            row.addWidget(button)

    @Slot()
    def _back(self) -> None:
        self.stepped.emit(-1)

    @Slot()
    def _on(self) -> None:
        self.stepped.emit(1)

    def restyle(self, theme: Theme) -> None:
        for button in self.findChildren(QToolButton):
            button.setFont(theme.font(12))


_TITLE = mark("Short guesses, verified at once")
_HINT = mark(
    "Choose assisted decoding, prompt lookup, early exit or a token tree and press Ctrl+Enter. Every "
    "round of guesses appears here, with the tokens that the model accepted."
)


class SpeculationView(View):
    """Strip, tree, description and cards of a run with drafts. A selected node is shown in the inspector; the
    measurement repeats the run without a draft and with it.
    """

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("speculationView", parent)
        self.selection = RoundSelection()
        self.strip, self.page, self._tools = RoundStrip(self), RoundPage(self), SpeculationTools(self)
        self.canvas, self.cards = self.page.canvas, self.page.cards
        self._node_reporter, self._draft_comparison = (
            SelectedNodeReporter(self.canvas, self.selection),
            DraftComparison(self.cards, self.selection, self.signals),
        )
        self._tools.hide()
        self._info: ModelInfo | None = None
        self.offer = add_fill_button(self, self, tr("Choose a draft and run"), DRAFT, lambda: (tr(_TITLE), tr(_HINT)))
        self.setAccessibleName(tr("Speculation"))
        arrange(QVBoxLayout(self), self.strip, (self.page, 1), margins=0, spacing=0)
        self.setFocusProxy(self.strip)
        self.strip.roundPicked.connect(self.show_round)
        self.cards.roundPicked.connect(self.show_round)
        self._tools.stepped.connect(lambda by: self.show_round(self.selection.neighbour(by)))
        self._node_reporter.reported.connect(self._report)
        self.set_theme(self._theme)

    def header_widget(self) -> QWidget:
        """Return the widget at the right end of the tab bar."""
        return self._tools

    def export_table(self) -> Table:
        """Return all rounds up to the cursor as a table."""
        return draft_round_table(self.selection.rounds.rounds[: self.selection.count]) if self.selection.count else ()

    def wording_changed(self) -> None:
        """Rebuild all texts."""
        self._draw()
        if self.report is not None:
            self._node_reporter.report_again()

    def show_run(self, run: Run | None) -> None:
        """Show another run from its start."""
        self.selection.begin(run)
        self.page.clear()
        if run is not None:
            self.selection.update(run)
        self._draw()

    def model_ready(self, info: ModelInfo) -> None:
        """Update the offer for the loaded model, which may not support verification."""
        self._info = info
        self._draw()

    def events_arrived(self, run: Run, events: Sequence[Event]) -> None:
        """Show the new rounds."""
        self.selection.update(run)
        self._draw()

    def cursor_moved(self, run: Run) -> None:
        """Show the rounds up to the cursor."""
        self.selection.update(run, follow_newest=True)
        self._draw()

    def selection_changed(self, run: Run) -> None:
        """Show the round that wrote the selected token."""
        self.selection.run = run
        if self.selection.show_token(run.selected):
            self._draw()

    @Slot(object)
    def side_run_finished(self, run: Run) -> None:
        """Pass on the metrics of a measured run."""
        self._draft_comparison.add_result(run)

    @Slot(bool)
    def side_runs_changed(self, on: bool) -> None:
        """Update the button when a measurement starts or ends."""
        self.cards.set_measuring(on)

    def set_presenting(self, on: bool) -> None:
        """Show only the strip and the tree; the description is shown beside the view."""
        self.page.set_presenting(on)

    def spotlight_rect(self) -> QRect:
        """Return the area of the round's tree."""
        canvas = self.canvas
        if not self.selection.count:
            return QRect()
        around = canvas.canvas_state.camera.rect_from_canvas(canvas.canvas_state.scene.bounds()).toAlignedRect()
        grown = around.marginsAdded(QMargins(12, 12, 12, 12)).intersected(canvas.rect())
        return grown.translated(canvas.mapTo(self, QPoint()))

    def presentation_caption(self) -> str:
        """Return the description of the round."""
        return describe_round(self.selection.entry) if self.selection.entry is not None else ""

    def _draw(self) -> None:
        selection = self.selection
        for part in (self.strip, self.page):
            part.setVisible(selection.count > 0)
        waits = selection.run is not None and selection.run.outcome is None
        self.offer.update_state(
            not selection.count and not waits, fill_unsupported_reason(DRAFT, self._info), tr(_HINT)
        )
        self._tools.label.setText(
            tr("Round {number} of {count}").format(number=selection.number + 1, count=selection.count)
            if selection.count
            else ""
        )
        self.strip.set_rounds(selection.rounds.rounds, selection.count, selection.number)
        self.page.show_round(selection)
        self.update()

    @Slot(int)
    def show_round(self, number: int) -> None:
        """Show a round by its index, from 0."""
        self.selection.pick(number)
        self._draw()

    @Slot(object)
    def _report(self, report: NodeReport | None) -> None:
        self.report = report
        self.signals.reportSelected.emit(report)

    def sizeHint(self) -> QSize:
        """Return the preferred size."""
        return QSize(self._theme.px(640), self._theme.px(520))

    def paintEvent(self, event: QPaintEvent) -> None:
        """Paint the hint while the page is empty."""
        if not self.selection.count:
            painter = QPainter(self)
            paint_empty_page(painter, self.rect(), self._theme, (tr(_TITLE), tr(_HINT)))
            painter.end()
