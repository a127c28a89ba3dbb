"""Looks inside the step that the inspector speaks of: asks the worker, and shows what comes where it belongs."""

from __future__ import annotations

from PySide6.QtCore import QObject, Signal, Slot

from app.session.session import Session
from app.state.layer_queries import (
    InfluenceMap,
    LayerAttention,
    LayerQuery,
    LayerResult,
    ModelQuery,
    PositionWeight,
    make_model_query,
    query_unsupported_reason,
)
from app.state.run import Run
from app.views.inspector.inside_section import StepInternalsPanel
from app.views.inspector.panel import Inspector


class LayerInspectionController(QObject):
    """One question at a time: another one, another step or another run ends it. `influence(Influence | None)`."""

    influence = Signal(object)

    def __init__(self, session: Session, inspector: Inspector, part: StepInternalsPanel) -> None:
        super().__init__(part)
        self._session, self._inspector, self._part = session, inspector, part
        self._request: ModelQuery | None = None
        self._weights: list[PositionWeight] = []
        part.queryRequested.connect(self.inspect)
        part.stopWanted.connect(self.stop)
        part.left.connect(self.clear)
        part.attentionShown.connect(self._on_attention)
        part.pageWanted.connect(self.open_logit_lens)
        session.layersInspected.connect(self._on_result)
        for signal in (session.runStarted, session.runShown):
            signal.connect(self.clear)

    @Slot(object)
    def inspect(self, query: LayerQuery) -> None:
        """Ask what the reader wants to see of the step that the inspector speaks of."""
        self.clear()
        run, index = self._session.run, self._inspector.current_index
        reason = query_unsupported_reason(run, index)
        if run is None or index is None or reason:
            self._part.show_reason(reason)
            return
        self._request = make_model_query(run, index, query)
        self._part.set_busy(True)
        self._session.inspect_layers(self._request)

    @Slot()
    def stop(self) -> None:
        """End what is under way; what was found stays."""
        if self._request is not None:
            self._request.cancel.set()

    @Slot()
    def clear(self) -> None:
        """End what is under way, and forget what was found."""
        self.stop()
        self._request = None
        if self._weights:
            self._weights = []
            self.influence.emit(None)

    @Slot(object)
    def _on_result(self, result: LayerResult) -> None:
        if self._request is None or result.request is not self._request:
            return
        if result.error is not None:
            self._part.show_reason(f"{result.error.cause} {result.error.remedy}".strip())
        elif result.findings or not (result.total or result.request.cancel.is_set()):
            self._show(result)
        self._part.set_busy(not result.has_ended, result.done, result.total)

    def _show(self, result: LayerResult) -> None:
        run, kind = self._session.run, result.request.query.kind
        layers = [one for one in result.findings if not isinstance(one, (PositionWeight, LayerAttention))]
        attention = [one for one in result.findings if isinstance(one, LayerAttention)]
        if attention and run is not None:
            self._part.show_attention(attention, token_texts(run))
        elif kind == "layers" and layers:
            self._part.show_layers(layers[0])
        elif kind == "influence" and run is not None:
            self._weights += [one for one in result.findings if isinstance(one, PositionWeight)]
            self._part.show_influence(self._weights, token_texts(run), (len(self._weights), result.total))
            self.influence.emit(InfluenceMap(kind, tuple(self._weights)))

    @Slot(object)
    def _on_attention(self, weights: tuple[PositionWeight, ...]) -> None:
        """The layer that was chosen is drawn on the text."""
        self._weights = list(weights)
        self.influence.emit(InfluenceMap("attention", weights))

    @Slot()
    def open_logit_lens(self) -> None:
        """Every token of the shown text, layer by layer, in a window of its own."""
        run = self._session.run
        reason = query_unsupported_reason(run, 0)
        if run is None or reason:
            self._part.show_reason(reason)
            return
        from app.panels.lens_page import LensDialog

        self.clear()
        request = make_model_query(run, 0, LayerQuery("page"))
        page = LensDialog(request, token_texts(run)[request.step :], self._part.window())
        page.finished.connect(request.cancel.set)
        page.stopRequested.connect(request.cancel.set)
        self._session.layersInspected.connect(page.handle_result)
        page.open()
        self._session.inspect_layers(request)


def token_texts(run: Run) -> list[str]:
    """The text of every place of prompt and answer."""
    return [*(token.text for token in run.before), *(token.piece for token in run.tokens)]
