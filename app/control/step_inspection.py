"""Controller of “What if”: replays the selected step with changed settings before a new run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal, Slot

from decodescope.app.control.requests import RequestBuilder
from decodescope.app.control.settings_controller import SettingsController
from decodescope.app.session.queries.layer_inspection import LayerInspectionQuery, make_inspection_query
from decodescope.app.session.queries.step_replay import StepReplayQuery, make_replay_query
from decodescope.app.session.session import Session
from decodescope.app.state.layer_queries import (
    AdapterFinding,
    InfluenceMap,
    LayerAttention,
    LayerQuery,
    LayerResult,
    PositionWeight,
    QueryKind,
    query_unsupported_reason,
)
from decodescope.app.state.run import Run
from decodescope.app.state.setting_changes import original_settings
from decodescope.app.views.inspector.panel import Inspector
from decodescope.app.views.inspector.step_internals import StepInternalsPanel
from decodescope.app.views.inspector.what_if_card import WhatIfContent

if TYPE_CHECKING:
    from decodescope.app.session.queries.base import Answer


class WhatIfController(QObject):
    """Sends a query for the latest settings to the worker, and shows the result in the inspector."""

    def __init__(
        self, session: Session, requests: RequestBuilder, setup: SettingsController, inspector: Inspector
    ) -> None:
        super().__init__(inspector)
        self._session, self._requests, self._setup, self._inspector = session, requests, setup, inspector
        self._query: StepReplayQuery | None = None
        session.answered.connect(self._on_answer)
        session.finished.connect(self.update_result)
        inspector.backWanted.connect(self._restore_values)

    @Slot()
    def update_result(self) -> None:
        """Check settings, selection and run, and request a replay if needed."""
        run = self._session.run
        query = None if self._session.busy else make_replay_query(run, self._requests.current_request())
        if query == self._query:
            return
        self._query = query
        if query is None:
            self._inspector.show_what_if(None)
        else:
            self._session.request(query)

    @Slot(object)
    def _on_answer(self, answer: Answer) -> None:
        if self._query is not None and answer.query is self._query:
            self._inspector.show_what_if(WhatIfContent.from_answer(self._query, answer))

    @Slot()
    def _restore_values(self) -> None:
        """Restore the settings of the run."""
        if self._query is not None:
            self._setup.update_values(original_settings(self._query.request, self._query.changes))


class LayerInspectionController(QObject):
    """Handles one query at a time; another query, step or run ends it. `influence(Influence | None)`: the shown
    weights.
    """

    influence = Signal(object)

    def __init__(self, session: Session, inspector: Inspector, part: StepInternalsPanel) -> None:
        super().__init__(part)
        self._session, self._inspector, self._part = session, inspector, part
        self._query: LayerInspectionQuery | None = None
        self._weights: list[PositionWeight] = []
        part.queryRequested.connect(self.inspect)
        part.stopWanted.connect(self.stop)
        part.left.connect(self.clear)
        part.attentionShown.connect(self._on_attention)
        part.pageWanted.connect(self.open_logit_lens)
        session.answered.connect(self._on_answer)
        for signal in (session.runStarted, session.runShown):
            signal.connect(self.clear)

    @Slot(object)
    def inspect(self, query: LayerQuery) -> None:
        """Inspect the step that the inspector shows."""
        self.clear()
        run, index = self._session.run, self._inspector.current_index
        reason = query_unsupported_reason(run, index)
        if run is None or index is None or reason:
            self._part.show_reason(reason)
            return
        self._query = make_inspection_query(run, index, query)
        self._part.set_busy(True)
        self._session.request(self._query)

    @Slot()
    def stop(self) -> None:
        """Stop the running query; keep its results."""
        if self._query is not None:
            self._query.cancel.set()

    @Slot()
    def clear(self) -> None:
        """Stop the running query and clear its results."""
        self.stop()
        self._query = None
        if self._weights:
            self._weights = []
            self.influence.emit(None)

    @Slot(object)
    def _on_answer(self, answer: Answer) -> None:
        query = self._query
        if query is None or answer.query is not query:
            return
        result = answer.result or LayerResult()
        if answer.error is not None:
            self._part.show_reason(f"{answer.error.cause} {answer.error.remedy}".strip())
        elif result.findings or not (result.total or query.cancel.is_set()):
            self._show(query.query.kind, result)
        self._part.set_busy(not answer.has_ended, result.done, result.total)

    def _show(self, kind: QueryKind, result: LayerResult) -> None:
        run = self._session.run
        adapted = [one for one in result.findings if isinstance(one, AdapterFinding)]
        others = (PositionWeight, LayerAttention, AdapterFinding)
        layers = [one for one in result.findings if not isinstance(one, others)]
        attention = [one for one in result.findings if isinstance(one, LayerAttention)]
        if attention and run is not None:
            self._part.show_attention(attention, token_texts(run))
        elif adapted:
            self._part.show_adapters(adapted[0])
        elif kind == "layers" and layers:
            self._part.show_layers(layers[0])
        elif kind == "influence" and run is not None:
            self._weights += [one for one in result.findings if isinstance(one, PositionWeight)]
            self._part.show_influence(self._weights, token_texts(run), (len(self._weights), result.total))
            self.influence.emit(InfluenceMap(kind, tuple(self._weights)))

    @Slot(object)
    def _on_attention(self, weights: tuple[PositionWeight, ...]) -> None:
        """Draw the selected layer's attention on the text."""
        self._weights = list(weights)
        self.influence.emit(InfluenceMap("attention", weights))

    @Slot()
    def open_logit_lens(self) -> None:
        """Open the logit lens of every token of the shown text in its own window."""
        run = self._session.run
        reason = query_unsupported_reason(run, 0)
        if run is None or reason:
            self._part.show_reason(reason)
            return
        from decodescope.app.panels.lens_page import LensDialog

        self.clear()
        query = make_inspection_query(run, 0, LayerQuery("page"))
        page = LensDialog(query, token_texts(run)[query.step :], self._part.window())
        page.finished.connect(query.cancel.set)
        page.stopRequested.connect(query.cancel.set)
        self._session.answered.connect(page.handle_answer)
        page.open()
        self._session.request(query)


def token_texts(run: Run) -> list[str]:
    """Return the text of every position of prompt and answer."""
    return [*(token.text for token in run.before), *(token.piece for token in run.tokens)]
