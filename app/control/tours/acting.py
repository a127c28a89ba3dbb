"""What a tour does in the program, by the controllers that a person's hands would go through."""

from __future__ import annotations

from PySide6.QtCore import QObject

from app.control.requests import Chosen, RequestBuilder
from app.control.runs import RunController
from app.control.setup import SetupController
from app.panels.centre import Centre
from app.panels.setup import SetupPanel
from app.session.session import Session
from app.state.run import Run
from app.state.tours import Setting, Step, Told
from app.views.speculation.view import SpeculationView
from app.views.tree.view import TreeView


class Acting(QObject):
    """Sets, runs, and shows places; it knows of no step but the one it is told."""

    def __init__(
        self,
        controller: SetupController,
        chosen: Chosen,
        setup: SetupPanel,
        centre: Centre,
        requests: RequestBuilder,
        runs: RunController,
        session: Session,
    ) -> None:
        super().__init__(centre)
        self._controller, self._chosen, self._setup = controller, chosen, setup
        self._centre, self._requests, self._runs, self._session = centre, requests, runs, session

    def set(self, setting: Setting) -> list[str]:
        """Everything that a run begins from; gives back a sentence for each thing that is not here."""
        problems = self._controller.choose(setting.model, setting.strategy, setting.cache, setting.drafts)
        self._controller.set_values(setting.parameters)
        self._chosen.cache.parameters.set_values(setting.cache_parameters)
        self._chosen.seed.spin.setValue(setting.seed)
        self._chosen.seed.lock.setChecked(True)
        self._setup.prompt.set_prompt(setting.prompt)
        self._centre.show_view(setting.view)
        return problems

    def run(self) -> bool:
        """Begin the run that is set; False where it cannot be: the window then says why."""
        can = not self._requests.problems
        self._runs.run()
        return can

    def show_run(self, run: Run) -> None:
        """Show a run that was made before, whole."""
        if self._session.run is not run:
            self._session.show(run)
        self._session.move_cursor(run.length)

    def show_place(self, step: Step, told: Told) -> None:
        """The view, the cursor, the token, the round and the node that a step speaks of."""
        if step.view:
            self._centre.show_view(step.view)
        cursor = told.place(step.cursor)
        if cursor is not None:
            self._session.move_cursor(cursor)
        self._session.select_token(told.place(step.token))
        self._show_in_view(told.place(step.round), told.place(step.node))

    def _show_in_view(self, number: int | None, node: int | None) -> None:
        view = self._centre.columns[0].shown
        if isinstance(view, SpeculationView) and number is not None:
            view.show_round(number)
        if isinstance(view, SpeculationView | TreeView):
            view.canvas.selection.pick(node)
