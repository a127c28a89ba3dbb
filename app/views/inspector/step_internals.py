"""Analyse the inside of the inspected step, on request, with the model that generated it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QComboBox, QPushButton, QVBoxLayout, QWidget

from decodescope.app.state.layer_queries import (
    AdapterFinding,
    LayerAttention,
    LayerQuery,
    LayerView,
    PositionWeight,
    QueryKind,
)
from decodescope.app.theme.theme import Theme, theme_for
from decodescope.app.theme.themed import Themed
from decodescope.app.views.inspector import layer_rows
from decodescope.app.views.inspector.inspector_section import InspectorSection
from decodescope.app.views.shared.glossary_tooltip import add_glossary_tooltip
from decodescope.app.views.text.token_wording import token_text
from decodescope.app.widgets.bars import BarList
from decodescope.app.widgets.building import arrange, set_up
from decodescope.app.widgets.buttons import SegmentedControl
from decodescope.app.widgets.flow_layout import FlowRow
from decodescope.app.widgets.inputs import ComboBox
from decodescope.app.widgets.labels import WrappedLabel
from decodescope.core import words
from decodescope.resources.language import mark, tr

if TYPE_CHECKING:
    from decodescope.core import Unit
    from decodescope.core.events import TokenChosen

_TITLES: dict[QueryKind, str] = {
    "layers": mark("Layer by layer"),
    "influence": mark("What it depends on"),
    "attention": mark("Attention"),
    "adapters": mark("What the adapter changed"),
}
MIN_CONTENTS_LENGTH = 8
"""Minimum number of letters shown of a choice; the drop-down list has the full text."""
_UNITS: dict[str, Unit] = {"word": "word", "sentence": "sentence", "token": "token"}
_TERMS: dict[QueryKind, str] = {
    "layers": "logit_lens",
    "influence": "occlusion",
    "attention": "attention_weights",
    "adapters": "lora",
}


class StepInternalsPanel(Themed, QWidget):
    """Controls and results of the analysis. Signals: `queryRequested(LayerQuery)`; `stopWanted` stops a running
    analysis; `left` when another step is shown; `attentionShown(weights)`; `pageWanted` opens the page of all tokens,
    layer by layer.
    """

    queryRequested = Signal(object)
    stopWanted = Signal()
    left = Signal()
    attentionShown = Signal(object)
    pageWanted = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._query: LayerQuery | None = None
        self._token: TokenChosen | None = None
        self._is_busy = False
        self._attention: Sequence[LayerAttention] = ()
        self._texts: Sequence[str] = ()
        self.buttons: dict[QueryKind, QPushButton] = {}
        self._row = FlowRow(self)
        for kind, title in _TITLES.items():
            button = self.buttons[kind] = QPushButton(tr(title), self._row)
            button.setObjectName(f"{kind}Button")
            button.clicked.connect(partial(self._on_button, kind))
            add_glossary_tooltip(button, _TERMS[kind])
            self._row.flow.addWidget(button)
        self.page = QPushButton(tr("All tokens…"), self._row)
        self.page.setObjectName("lensPageButton")
        self.page.setToolTip(tr("Every token of the text, layer by layer"))
        self.page.clicked.connect(self.pageWanted)
        self._row.flow.addWidget(self.page)
        units = [("word", tr("Each word")), ("sentence", tr("Each sentence")), ("token", tr("Each token"))]
        self.unit = SegmentedControl(units, tr("Unit to leave out"), self, wraps=True)
        self.unit.chosen.connect(lambda _unit: self._request("influence"))
        self.other = self._make_combo("otherChoice", tr("Compare with"))
        self.instead = self._make_combo("insteadChoice", tr("Replace with"))
        for value, title in layer_rows.replacements():
            self.instead.addItem(title, value)
        self.layer = self._make_combo("layerChoice", tr("Layer of the attention"))
        for choice in (self.other, self.instead):
            choice.activated.connect(lambda _row: self._request("influence"))
        self.layer.activated.connect(lambda _row: self._update_attention())
        self.remark = set_up(WrappedLabel("", self), role="muted")
        self.bars = BarList(theme_for("light"), tr("Influence on this step"), fits_labels=False)
        self._column = arrange(QVBoxLayout(self), margins=0)
        arrange(self._column, self._row, self.unit, self.instead, self.other, self.layer, self.remark, self.bars)
        self._show_only(())

    def _make_combo(self, name: str, label: str) -> QComboBox:
        combo = set_up(ComboBox(self), name=name, accessible_name=label)
        combo.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        combo.setMinimumContentsLength(MIN_CONTENTS_LENGTH)
        return combo

    def restyle(self, theme: Theme) -> None:
        self._column.setSpacing(theme.px(7))

    def set_adapted(self, has_adapters: bool) -> None:
        """Offer what the adapters changed, if the run has any."""
        self.buttons["adapters"].setVisible(has_adapters)

    def show_adapters(self, finding: AdapterFinding) -> None:
        """Show the likeliest tokens with and without the adapters."""
        self.remark.setText(layer_rows.adapter_sentence(finding))
        heads = (tr("base model"), tr("adapter"))
        self.bars.set_rows(layer_rows.adapter_rows(finding), heads, words.LONGEST_PERCENT)
        self._show_only((self.remark, self.bars))

    def set_token(self, token: TokenChosen) -> None:
        """Switch to another step."""
        had_query, self._query = self._query is not None, None
        self._token = token
        self.other.clear()
        self.other.addItem(tr("No comparison"), None)
        for item in token.alternatives:
            if item.id != token.id:
                self.other.addItem(tr("…and not {word}").format(word=token_text(item.text, item.special)), item.id)
        self.set_busy(False)
        self._show_only(())
        if had_query:
            self.left.emit()

    @property
    def query(self) -> LayerQuery | None:
        """The query that is shown or running; None if there is none."""
        return self._query

    def set_busy(self, on: bool, finished_count: int = 0, total: int = 0) -> None:
        """Turn the button of the running query into a stop button with progress."""
        self._is_busy = on
        for kind, button in self.buttons.items():
            progress = f" · {words.whole_percent(finished_count / total)}" if total else ""
            stops = on and self._query is not None and self._query.kind == kind
            button.setText(tr("Stop") + progress if stops else tr(_TITLES[kind]))

    def show_layers(self, layers: Sequence[LayerView]) -> None:
        """Show what each layer would have chosen."""
        self.remark.setText(layer_rows.layers_sentence(layers))
        self.bars.set_rows(layer_rows.layer_rows(layers), (tr("first choice"),), words.LONGEST_PERCENT)
        self._show_only((self.remark, self.bars))

    def show_influence(
        self, weights: Sequence[PositionWeight], texts: Sequence[str], progress: tuple[int, int]
    ) -> None:
        """Show the most influential parts so far; `progress` is (parts examined, total parts)."""
        query, token = self._query, self._token
        if query is None or token is None:
            return
        other = words.quote(self._text_of(query.other_token))
        self.remark.setText(
            layer_rows.influence_sentence(
                weights, texts, query, words.quote(token.piece, token.is_special), other, progress
            )
        )
        self.bars.set_rows(layer_rows.weight_rows(weights, texts), (tr("nats"),), "+00.00")
        self._show_only((self.unit, self.instead, self.other, self.remark, self.bars))

    def show_attention(self, layers: Sequence[LayerAttention], texts: Sequence[str]) -> None:
        """Show where attention looked, by layer or on average."""
        self._attention, self._texts = layers, texts
        self.layer.clear()
        for one in layers:
            self.layer.addItem(tr("Layer {layer}").format(layer=one.layer) if one.layer else tr("All layers, averaged"))
        self._update_attention()

    def _update_attention(self) -> None:
        if not self._attention:
            return
        weights = layer_rows.attention_weights(self._attention[max(0, self.layer.currentIndex())])
        self.remark.setText(layer_rows.attention_sentence())
        self.bars.set_rows(layer_rows.attention_rows(weights, self._texts), (tr("fraction"),), words.LONGEST_PERCENT)
        self._show_only((self.layer, self.remark, self.bars))
        self.attentionShown.emit(weights)

    def set_unsupported(self, reason: str) -> None:
        """Disable the analysis with a reason, or enable it if the reason is empty."""
        for button in (*self.buttons.values(), self.page):
            button.setEnabled(not reason)
        if reason:
            self.show_reason(reason)

    def show_reason(self, reason: str) -> None:
        """Show why there is no result."""
        self.remark.setText(reason)
        self._show_only(
            (self.instead, self.remark)
            if self._query is not None and self._query.replacement is not None
            else (self.remark,)
        )

    def _text_of(self, token: int | None) -> str:
        alternatives = self._token.alternatives if self._token is not None else ()
        return next((item.text for item in alternatives if item.id == token), "")

    def _show_only(self, parts: Sequence[QWidget]) -> None:
        for part in (self.unit, self.instead, self.other, self.layer, self.remark, self.bars):
            part.setVisible(part in parts)
        self._column.activate()
        self.updateGeometry()

    def _on_button(self, kind: QueryKind, _on: bool = False) -> None:
        """Start the query of a button, or stop it if it is running."""
        if self._is_busy and self._query is not None and self._query.kind == kind:
            self.stopWanted.emit()
        else:
            self._request(kind)

    def _request(self, kind: QueryKind) -> None:
        is_influence = kind == "influence"
        other, instead = (self.other.currentData(), self.instead.currentData()) if is_influence else (None, None)
        self._query = LayerQuery(kind, _UNITS[self.unit.value], other, instead)
        self.queryRequested.emit(self._query)


class StepInternalsSection(InspectorSection):
    """The panel below a heading, with the spacing of inspector sections."""

    def __init__(self, parent: QWidget) -> None:
        self.part = StepInternalsPanel()
        super().__init__(tr("Inside this step"), self.part, "logit_lens", parent)

    def restyle(self, theme: Theme) -> None:
        super().restyle(theme)
        self.setContentsMargins(0, theme.px(14), 0, 0)
