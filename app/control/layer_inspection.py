"""Looks inside the step that the inspector speaks of: asks the worker, and shows what comes where it belongs."""

from __future__ import annotations

from PySide6.QtCore import QObject, Signal, Slot

from app.session.session import Session
from app.state.layer_queries import (
    Influence,
    LayerAttention,
    LayerQuery,
    LayerResult,
    LookRequest,
    Weight,
    look_at,
    why_not_look,
)
from app.state.run import Run
from app.views.inspector.inside_section import InsidePart
from app.views.inspector.panel import Inspector


class InsideController(QObject):
    """One question at a time: another one, another step or another run ends it. `influence(Influence | None)`."""

    influence = Signal(object)

    def __init__(self, session: Session, inspector: Inspector, part: InsidePart) -> None:
        super().__init__(part)
        self._session, self._inspector, self._part = session, inspector, part
        self._request: LookRequest | None = None
        self._weights: list[Weight] = []
        part.lookWanted.connect(self.look)
        part.stopWanted.connect(self.stop)
        part.left.connect(self.drop)
        part.attentionShown.connect(self._on_attention)
        part.pageWanted.connect(self.open_page)
        session.looked.connect(self._on_looked)
        for signal in (session.runStarted, session.runShown):
            signal.connect(self.drop)

    @Slot(object)
    def look(self, wish: LayerQuery) -> None:
        """Ask what the reader wants to see of the step that the inspector speaks of."""
        self.drop()
        run, index = self._session.run, self._inspector.subject
        reason = why_not_look(run, index)
        if run is None or index is None or reason:
            self._part.show_reason(reason)
            return
        self._request = look_at(run, index, wish)
        self._part.set_busy(True)
        self._session.look(self._request)

    @Slot()
    def stop(self) -> None:
        """End what is under way; what was found stays."""
        if self._request is not None:
            self._request.cancel.set()

    @Slot()
    def drop(self) -> None:
        """End what is under way, and forget what was found."""
        self.stop()
        self._request = None
        if self._weights:
            self._weights = []
            self.influence.emit(None)

    @Slot(object)
    def _on_looked(self, looked: LayerResult) -> None:
        if self._request is None or looked.request is not self._request:
            return
        if looked.error is not None:
            self._part.show_reason(f"{looked.error.cause} {looked.error.remedy}".strip())
        elif looked.found or not (looked.total or looked.request.cancel.is_set()):
            self._show(looked)
        self._part.set_busy(not looked.has_ended, looked.done, looked.total)

    def _show(self, looked: LayerResult) -> None:
        run, kind = self._session.run, looked.request.wish.kind
        layers = [one for one in looked.found if not isinstance(one, (Weight, LayerAttention))]
        attention = [one for one in looked.found if isinstance(one, LayerAttention)]
        if attention and run is not None:
            self._part.show_attention(attention, texts_of(run))
        elif kind == "layers" and layers:
            self._part.show_layers(layers[0])
        elif kind == "influence" and run is not None:
            self._weights += [one for one in looked.found if isinstance(one, Weight)]
            self._part.show_influence(self._weights, texts_of(run), (len(self._weights), looked.total))
            self.influence.emit(Influence(kind, tuple(self._weights)))

    @Slot(object)
    def _on_attention(self, weights: tuple[Weight, ...]) -> None:
        """The layer that was chosen is drawn on the text."""
        self._weights = list(weights)
        self.influence.emit(Influence("attention", weights))

    @Slot()
    def open_page(self) -> None:
        """Every token of the shown text, layer by layer, in a window of its own."""
        run = self._session.run
        reason = why_not_look(run, 0)
        if run is None or reason:
            self._part.show_reason(reason)
            return
        from app.panels.lens_page import LensPage

        self.drop()
        request = look_at(run, 0, LayerQuery("page"))
        page = LensPage(request, texts_of(run)[request.step :], self._part.window())
        page.finished.connect(request.cancel.set)
        page.stopWanted.connect(request.cancel.set)
        self._session.looked.connect(page.hear)
        page.open()
        self._session.look(request)


def texts_of(run: Run) -> list[str]:
    """The text of every place of prompt and answer."""
    return [*(token.text for token in run.before), *(token.piece for token in run.tokens)]
