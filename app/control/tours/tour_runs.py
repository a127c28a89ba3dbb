"""What a tour shows: its runs, and the places in them that its steps speak of."""

from __future__ import annotations

from PySide6.QtCore import QObject

from app.panels.centre import Centre
from app.session.session import Session
from app.state.run import Run
from app.state.tours import StepNarration, TourStep
from app.views.speculation.view import SpeculationView
from app.views.tree.view import TreeView


class TourViews(QObject):
    """Shows runs and places; it knows of no step but the one it is told."""

    def __init__(self, session: Session, centre: Centre) -> None:
        super().__init__(centre)
        self._session, self._centre = session, centre

    def show_view(self, name: str) -> None:
        """The view in which a run is seen."""
        self._centre.show_view(name)

    def show_run(self, run: Run) -> None:
        """Show a run that was made before, whole."""
        if self._session.run is not run:
            self._session.show(run)
        self._session.move_cursor(run.length)

    def show_position(self, step: TourStep, narration: StepNarration) -> None:
        """The view, the cursor, the token, the round and the node that a step speaks of."""
        if step.view:
            self._centre.show_view(step.view)
        cursor = narration.index_of(step.cursor)
        if cursor is not None:
            self._session.move_cursor(cursor)
        self._session.select_token(narration.index_of(step.token))
        self._show_in_view(narration.index_of(step.round), narration.index_of(step.node))

    def _show_in_view(self, number: int | None, node: int | None) -> None:
        view = self._centre.columns[0].current_view
        if isinstance(view, SpeculationView) and number is not None:
            view.show_round(number)
        if isinstance(view, SpeculationView | TreeView):
            view.canvas.selection.pick(node)
