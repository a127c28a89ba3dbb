"""What a view may be told, by subject: on a stage, while runs go on beside the shown one, of what is set. By default:
no matter."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QRect

if TYPE_CHECKING:
    from app.session.side_runs import MeasurementProgress
    from app.state.run import Run


class PresentationHooks:
    """A view before an audience."""

    def set_presenting(self, on: bool) -> None:
        """On a stage: leave out what nobody there can use, and what is said beside the view in larger type."""

    def spotlight_rect(self) -> QRect:
        """Where what is being chosen at the cursor stands, in the view's own pixels; empty where it is nowhere."""
        return QRect()

    def presentation_caption(self) -> str:
        """Why, in a sentence, of what this view speaks of; empty where it speaks of the token at the cursor."""
        return ""


class ComparisonHooks:
    """A view of runs that go on beside the shown one."""

    @property
    def shows_side_runs(self) -> bool:
        """Whether what is measured now is shown here, its failure too."""
        return False

    def side_runs_changed(self, on: bool) -> None:
        """Runs beside the shown one begin, or have ended."""

    def side_runs_progressed(self, progress: MeasurementProgress) -> None:
        """How far the runs beside the shown one have come."""

    def compare_with(self, run: Run) -> None:
        """A kept run is to be held beside the shown one."""

    def side_run_finished(self, run: Run) -> None:
        """One of the runs beside the shown one has ended."""


class SettingsHooks:
    """A view of what a new run would be."""

    grammar: object = None
    """What its text would be held to; None for nothing."""

    def grammar_changed(self, grammar: object) -> None:
        """A new run would be held to another grammar from now on."""
        self.grammar = grammar
