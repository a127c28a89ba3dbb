"""Inside the step that the inspector speaks of: looked at when asked, by the model that took it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QComboBox, QPushButton, QVBoxLayout, QWidget

from app.state.layer_queries import Kind, LayerAttention, LayerQuery, LayerView, Weight
from app.theme.theme import Theme, theme_for
from app.views.inspector import inside_rows as told
from app.views.inspector.inspector_section import Section
from app.views.shared.glossary_link import explain
from app.views.text.token_wording import token_text
from app.widgets.bars import Bars
from app.widgets.flow_layout import FlowRow
from app.widgets.inputs import ComboBox
from app.widgets.segmented import Segmented
from app.widgets.wrapped_label import WrappedLabel
from core import words
from resources.language import mark, tr

if TYPE_CHECKING:
    from core import Unit
    from core.events import TokenChosen

_TITLES: dict[Kind, str] = {
    "layers": mark("Layer by layer"),
    "influence": mark("What it hangs on"),
    "attention": mark("Where it looked"),
}
LEAST_LETTERS = 8
"""Of a choice that are always shown; its list has all of it."""
_UNITS: dict[str, Unit] = {"word": "word", "sentence": "sentence", "token": "token"}
_TERMS: dict[Kind, str] = {"layers": "logit_lens", "influence": "occlusion", "attention": "attention_weights"}


class InsidePart(QWidget):
    """`lookWanted(Wish)`; `stopWanted` ends what is under way; `left` once another step is spoken of;
    `attentionShown(weights)`; `pageWanted`: all tokens, layer by layer."""

    lookWanted = Signal(object)
    stopWanted = Signal()
    left = Signal()
    attentionShown = Signal(object)
    pageWanted = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._wish: LayerQuery | None = None
        self._token: TokenChosen | None = None
        self._is_busy = False
        self._attention: Sequence[LayerAttention] = ()
        self._texts: Sequence[str] = ()
        self.buttons: dict[Kind, QPushButton] = {}
        self._row = FlowRow(self)
        for kind, title in _TITLES.items():
            button = self.buttons[kind] = QPushButton(tr(title), self._row)
            button.setObjectName(f"{kind}Button")
            button.clicked.connect(partial(self._press, kind))
            explain(button, _TERMS[kind])
            self._row.flow.addWidget(button)
        self.page = QPushButton(tr("All tokens…"), self._row)
        self.page.setObjectName("lensPageButton")
        self.page.setToolTip(tr("Every token of the text, layer by layer"))
        self.page.clicked.connect(self.pageWanted)
        self._row.flow.addWidget(self.page)
        units = [("word", tr("Each word")), ("sentence", tr("Each sentence")), ("token", tr("Each token"))]
        self.unit = Segmented(units, tr("What is left out"), self, breaks=True)
        self.unit.chosen.connect(lambda _unit: self._ask("influence"))
        self.other = self._choice("otherChoice", tr("Why this and not"))
        self.instead = self._choice("insteadChoice", tr("What stands in its place"))
        for value, title in told.replacements():
            self.instead.addItem(title, value)
        self.layer = self._choice("layerChoice", tr("Attention of which layer"))
        for choice in (self.other, self.instead):
            choice.activated.connect(lambda _row: self._ask("influence"))
        self.layer.activated.connect(lambda _row: self._tell_attention())
        self.remark = WrappedLabel("", self)
        self.remark.setProperty("role", "muted")
        self.bars = Bars(theme_for("light"), tr("Inside this step"), whole_labels=False)
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)
        for part in (self._row, self.unit, self.instead, self.other, self.layer, self.remark, self.bars):
            self._column.addWidget(part)
        self._show(())

    def _choice(self, name: str, label: str) -> QComboBox:
        combo = ComboBox(self)
        combo.setObjectName(name)
        combo.setAccessibleName(label)
        combo.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        combo.setMinimumContentsLength(LEAST_LETTERS)
        return combo

    def set_theme(self, theme: Theme) -> None:
        """Take other colours and sizes."""
        self._column.setSpacing(theme.px(7))
        self.bars.set_theme(theme)

    def begin(self, token: TokenChosen) -> None:
        """Speak of another step."""
        was_asked, self._wish = self._wish is not None, None
        self._token = token
        self.other.clear()
        self.other.addItem(tr("The choice itself"), None)
        for item in token.alternatives:
            if item.id != token.id:
                self.other.addItem(tr("…and not {word}").format(word=token_text(item.text, item.special)), item.id)
        self.set_busy(False)
        self._show(())
        if was_asked:
            self.left.emit()

    @property
    def wish(self) -> LayerQuery | None:
        """What is shown, or on its way; None where nothing was asked."""
        return self._wish

    def set_busy(self, on: bool, done: int = 0, total: int = 0) -> None:
        """The button that asked stops it now, and says how far it is."""
        self._is_busy = on
        for kind, button in self.buttons.items():
            share = f" · {words.whole_percent(done / total)}" if total else ""
            stops = on and self._wish is not None and self._wish.kind == kind
            button.setText(tr("Stop") + share if stops else tr(_TITLES[kind]))

    def show_layers(self, layers: Sequence[LayerView]) -> None:
        """What each layer would have chosen."""
        self.remark.setText(told.layers_told(layers))
        self.bars.set_rows(told.layer_rows(layers), (tr("first choice"),), words.WIDEST_PERCENT)
        self._show((self.remark, self.bars))

    def show_influence(self, weights: Sequence[Weight], texts: Sequence[str], share: tuple[int, int]) -> None:
        """What in the text matters most, of what is known so far: of `share` (parts looked at, parts in all)."""
        wish, token = self._wish, self._token
        if wish is None or token is None:
            return
        other = words.quote(self._text_of(wish.other))
        self.remark.setText(
            told.influence_told(weights, texts, wish, words.quote(token.piece, token.is_special), other, share)
        )
        self.bars.set_rows(told.weight_rows(weights, texts), (tr("nats"),), "+00.00")
        self._show((self.unit, self.instead, self.other, self.remark, self.bars))

    def show_attention(self, layers: Sequence[LayerAttention], texts: Sequence[str]) -> None:
        """Where attention looked, by layer or on average."""
        self._attention, self._texts = layers, texts
        self.layer.clear()
        for one in layers:
            self.layer.addItem(tr("Layer {layer}").format(layer=one.layer) if one.layer else tr("All layers, averaged"))
        self._tell_attention()

    def _tell_attention(self) -> None:
        if not self._attention:
            return
        weights = told.attention_weights(self._attention[max(0, self.layer.currentIndex())])
        self.remark.setText(told.attention_told())
        self.bars.set_rows(told.attention_rows(weights, self._texts), (tr("share"),), words.WIDEST_PERCENT)
        self._show((self.layer, self.remark, self.bars))
        self.attentionShown.emit(weights)

    def refuse(self, reason: str) -> None:
        """Nothing of this step can be asked for; empty: it can."""
        for button in (*self.buttons.values(), self.page):
            button.setEnabled(not reason)
        if reason:
            self.show_reason(reason)

    def show_reason(self, reason: str) -> None:
        """Why nothing is seen."""
        self.remark.setText(reason)
        self._show(
            (self.instead, self.remark) if self._wish is not None and self._wish.instead is not None else (self.remark,)
        )

    def _text_of(self, token: int | None) -> str:
        alternatives = self._token.alternatives if self._token is not None else ()
        return next((item.text for item in alternatives if item.id == token), "")

    def _show(self, parts: Sequence[QWidget]) -> None:
        for part in (self.unit, self.instead, self.other, self.layer, self.remark, self.bars):
            part.setVisible(part in parts)
        self._column.activate()
        self.updateGeometry()

    def _press(self, kind: Kind, _on: bool = False) -> None:
        """Ask, or end what is under way by the same button."""
        if self._is_busy and self._wish is not None and self._wish.kind == kind:
            self.stopWanted.emit()
        else:
            self._ask(kind)

    def _ask(self, kind: Kind) -> None:
        leaves_out = kind == "influence"
        other, instead = (self.other.currentData(), self.instead.currentData()) if leaves_out else (None, None)
        self._wish = LayerQuery(kind, _UNITS[self.unit.value], other, instead)
        self.lookWanted.emit(self._wish)


class InsideSection(Section):
    """The part below its heading, with the space that sections of the inspector have."""

    def __init__(self, parent: QWidget) -> None:
        self.part = InsidePart()
        super().__init__(tr("Inside this step"), self.part, "logit_lens", parent)

    def set_theme(self, theme: Theme) -> None:
        """Take other colours and sizes."""
        super().set_theme(theme)
        self.part.set_theme(theme)
        self.setContentsMargins(0, theme.px(14), 0, 0)
