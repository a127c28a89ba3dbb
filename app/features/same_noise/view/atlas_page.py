"""The atlas page: all texts of one seed while a setting takes every value of a range."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtWidgets import QHBoxLayout, QLineEdit, QPushButton, QWidget

from decodescope.app.features.same_noise.state import (
    AtlasInput,
    AtlasResult,
    MarkedWord,
    PageState,
    atlas_table,
    first_differing_word,
    mean_probability,
    round_value_in,
    value_label,
    varied_setting,
)
from decodescope.app.features.same_noise.view.atlas_map import AtlasMap, range_text
from decodescope.app.features.same_noise.view.page import Cell, CellModel, NoisePage, ResultsTable, heading
from decodescope.app.theme.theme import Theme
from decodescope.app.views.base import Excerpt, Table
from decodescope.app.widgets.accessibility.accessible_widget import announce
from decodescope.app.widgets.building import STRETCH, arrange, set_up
from decodescope.app.widgets.buttons import SegmentedControl
from decodescope.app.widgets.inputs import ComboBox, DoubleSpinBox, Slider, SpinBox
from decodescope.app.widgets.labels import TextBlock, WrappedLabel
from decodescope.app.widgets.legend import ColourLegend
from decodescope.app.widgets.plain_text import PlainLabel, caption, escape_html
from decodescope.core import VariedSetting, words
from decodescope.resources.language import join_sentences, mark, tr, trn

_DEFAULT_TOKENS, _MAX_TOKENS = 24, 500
_DEFAULT_PASSES, _MAX_PASSES = 2_000, 1_000_000
_DECIMALS = 4
_TO_SCALE, _EQUAL = "scale", "equal"
_TITLES = (mark("No."), mark("Above"), mark("Up to"), mark("Share"), mark("Mean probability"), mark("Text"))
_TEXT_COLUMN = len(_TITLES) - 1


class _ShortNumberBox(DoubleSpinBox):
    """A number without trailing zeros."""

    def textFromValue(self, value: float) -> str:
        return f"{value:.{self.decimals()}f}".rstrip("0").rstrip(".") if self.decimals() else f"{value:.0f}"


class AtlasPage(NoisePage):
    """The page. `useRequested(value)`: run with this value of the setting and the same noise."""

    useRequested = Signal(float)
    introduction = mark(
        "With one seed and noise that depends only on position and token, the text changes at certain values of a "
        "setting and stays the same in between. The atlas finds all these values and all texts."
    )

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("atlasPage", tr("Atlas"), tr("Map all texts"), parent)
        self.setting = set_up(ComboBox(self.inputs), name="atlasSetting")
        self.low, self.high = (self._number_box(name) for name in ("atlasLow", "atlasHigh"))
        self.word = set_up(QLineEdit(self.inputs), name="atlasWord")
        self.word.setPlaceholderText(tr("the word, with the space before it"))
        self.word.setText(" ")
        self.tokens = set_up(SpinBox(self.inputs), name="atlasTokens")
        self.tokens.setRange(1, _MAX_TOKENS)
        self.tokens.setValue(_DEFAULT_TOKENS)
        self.passes = set_up(SpinBox(self.inputs), name="atlasPasses")
        self.passes.setRange(1, _MAX_PASSES)
        self.passes.setValue(_DEFAULT_PASSES)
        self.passes.setSingleStep(100)
        self.add_field(tr("Setting"), self.setting)
        self.add_field(tr("From"), self.low)
        self.add_field(tr("To"), self.high)
        self._word_field = self.add_field(tr("Word"), self.word)
        self.add_field(tr("Number of tokens"), self.tokens)
        self.add_field(tr("At most forward passes"), self.passes)
        self._settings: Sequence[VariedSetting] = ()
        self._result: AtlasResult | None = None
        self._build_results()
        self.setting.currentIndexChanged.connect(self._on_setting)
        self.show_settings(0)

    def _number_box(self, name: str) -> DoubleSpinBox:
        box = set_up(_ShortNumberBox(self.inputs), name=name)
        box.setDecimals(_DECIMALS)
        return box

    def _build_results(self) -> None:
        parent = self.results
        self.axis = SegmentedControl(
            ((_TO_SCALE, tr("To scale")), (_EQUAL, tr("Equal widths"))), tr("Widths of the texts"), parent
        )
        self.axis.chosen.connect(self._on_axis)
        self.legend = ColourLegend(self.current_theme, parent)
        self.legend.set_labels(
            tr("unlikely"), tr("likely"), tr("mean probability of the text's tokens, by the model alone")
        )
        self.map = AtlasMap(parent)
        self.map.picked.connect(self.select)
        self.slider = set_up(
            Slider(Qt.Orientation.Horizontal, parent), name="atlasSlider", accessible_name=tr("Text of the atlas")
        )
        self.slider.setPageStep(5)
        self.slider.valueChanged.connect(self.select)
        self.place = set_up(PlainLabel("", parent), name="atlasPlace")
        self.text = set_up(TextBlock(parent, rich=True), name="atlasText")
        self.difference = set_up(WrappedLabel("", parent), name="atlasDifference", role="muted")
        self.use = set_up(QPushButton(caption(""), parent), name="atlasUse", clicked=self._on_use)
        self.use.setAutoDefault(False)
        self.table = ResultsTable(
            "atlasTable", tr("Texts"), CellModel(_TITLES, (0, 1, 2, 3, 4), parent), _TEXT_COLUMN,
            {0: 44, 1: 76, 2: 76, 3: 72, 4: 130}, parent,
        )  # fmt: skip
        self.table.activatedRow.connect(self.select)
        arrange(
            self.results_column, arrange(QHBoxLayout(), self.place, STRETCH, self.use, spacing=12),
            self.text, self.difference, self.slider, self.map,
            arrange(QHBoxLayout(), self.axis, (self.legend, 1), spacing=16), heading(tr("Texts"), parent), self.table,
        )  # fmt: skip

    # Input

    def show_settings(self, vocabulary: int) -> None:
        """Offer the settings that can be followed; keep the choice."""
        from decodescope import core

        current = self.setting.currentData()
        self._settings = core.varied_settings(vocabulary)
        self.setting.blockSignals(True)
        self.setting.clear()
        for one in self._settings:
            self.setting.addItem(tr(one.title), one.name)
        self.setting.setCurrentIndex(max(0, self.setting.findData(current)))
        self.setting.blockSignals(False)
        self._on_setting()

    @property
    def chosen(self) -> VariedSetting:
        """The chosen setting."""
        return self._settings[self.setting.currentIndex()]

    @property
    def wanted(self) -> AtlasInput:
        """The current input."""
        return AtlasInput(
            self.chosen.name, self.low.value(), self.high.value(), self.word.text(), self.tokens.value(),
            self.passes.value(),
        )  # fmt: skip

    def set_input(self, wanted: AtlasInput) -> None:
        """Restore an input."""
        self.setting.setCurrentIndex(max(0, self.setting.findData(wanted.setting)))
        self.low.setValue(wanted.low)
        self.high.setValue(wanted.high)
        self.word.setText(wanted.word)
        self.tokens.setValue(wanted.tokens)
        self.passes.setValue(wanted.passes)

    @Slot()
    def _on_setting(self) -> None:
        one = self.chosen
        for box, value in ((self.low, one.low), (self.high, one.high)):
            box.setDecimals(0 if one.is_whole else _DECIMALS)
            box.setRange(one.minimum, one.maximum)
            box.setSingleStep(1 if one.is_whole else (one.high - one.low) / 20)
            box.setValue(value)
        self._word_field.setVisible(one.has_word)
        self.inputs.updateGeometry()

    # Results

    def show_progress(self, progress: Any) -> None:
        if progress is None:
            super().show_progress(progress)
            return
        self.bar.setRange(0, 1000)
        self.bar.setValue(round(1000 * progress.covered))
        template = tr("{covered} of the range is finished: {texts:,} texts, {open:,} open, {passes:,} forward passes.")
        text = template.format(
            covered=words.percent(progress.covered), texts=progress.texts, open=progress.open_texts,
            passes=progress.passes,
        )  # fmt: skip
        self.status.setText(text)

    def show_result(self, state: PageState) -> None:
        result: AtlasResult = state.result
        is_new = result is not self._result
        self._result = result
        atlas = result.atlas
        texts = len({one.ids for one in atlas})
        counts = trn("{n:,} text in {seconds}, with {passes:,} forward passes.", "{n:,} texts in {seconds}, with "
                     "{passes:,} forward passes.", texts).format(
            n=texts, seconds=words.duration(result.seconds), passes=atlas.passes)  # fmt: skip
        saved = tr("Separate runs would have needed {runs:,}.").format(runs=atlas.passes_of_runs)
        open_part = sum(one.high - one.low for one in atlas if one.ending == "unfinished") / (atlas.high - atlas.low)
        unfinished = tr(
            "Unfinished: {share} of the range is open, because the work was stopped or reached its limit. The texts "
            "there end early, and may split further on."
        ).format(share=words.percent(open_part))
        self.status.setText(join_sentences(counts, saved if atlas.is_complete else unfinished))
        if is_new:
            self._show_new(result)

    def _show_new(self, result: AtlasResult) -> None:
        atlas = result.atlas
        known = varied_setting(atlas.setting)
        self._name = tr(known.title) if known is not None else atlas.setting
        self.map.show_atlas(result, self._lower_name, known is not None and known.is_whole)
        self.slider.blockSignals(True)
        self.slider.setRange(0, len(atlas) - 1)
        self.slider.setValue(0)
        self.slider.blockSignals(False)
        span = atlas.high - atlas.low
        rows = []
        for number, one in enumerate(atlas):
            shown = result.text_of(number).replace("\n", "↵")
            share, mean = (one.high - one.low) / span, mean_probability(one.log_probability, len(one.ids))
            before = result.text_of(number - 1).replace("\n", "↵") if number else ""
            marked = first_differing_word(shown, before) if number else None
            rows.append((
                Cell(f"{number + 1:,}", number), Cell(value_label(one.low), one.low),
                Cell(value_label(one.high), one.high), Cell(words.percent(share), share),
                Cell(words.percent(mean), mean),
                Cell(shown + (" …" if one.ending == "unfinished" else ""), shown, marked.start if marked else None),
            ))  # fmt: skip
        self.table.show_cells(rows)
        self._show_text(self._start_number())

    def _start_number(self) -> int:
        """Return the widest text: the one that most values give."""
        assert self._result is not None
        widths = [one.high - one.low for one in self._result.atlas]
        return widths.index(max(widths))

    @property
    def _lower_name(self) -> str:
        return self._name[:1].lower() + self._name[1:]

    @Slot(int)
    def select(self, number: int) -> None:
        """Show a text of the atlas."""
        if self._result is not None and 0 <= number < len(self._result.atlas):
            self._show_text(number)

    def _show_text(self, number: int) -> None:
        assert self._result is not None
        atlas, one = self._result.atlas, self._result.atlas[number]
        self.map.select(number)
        self.slider.blockSignals(True)
        self.slider.setValue(number)
        self.slider.blockSignals(False)
        self.table.select_number(number)
        share = words.percent((one.high - one.low) / (atlas.high - atlas.low), is_exact=True)
        place = tr("Text {number:,} of {count:,} · {range} · {share} of the range").format(
            number=number + 1, count=len(atlas), range=range_text(self._result, number, self._lower_name), share=share
        )
        self.place.setText(place)
        self.slider.setAccessibleDescription(place)
        text, neighbour = self._result.text_of(number), number - 1 if number else 1
        other = self._result.text_of(neighbour) if neighbour < len(atlas) else text
        marked = first_differing_word(text, other)
        self.text.set_text(self._html(text, marked))
        self.difference.setText(self._difference_text(text, marked, is_first=not number))
        self.use.setText(caption(self._use_text(number)))
        announce(self, place)

    def _html(self, text: str, marked: MarkedWord | None) -> str:
        theme = self.current_theme
        if marked is None or marked.start >= len(text):
            return _escaped(text)
        style, word = f"background:{theme.tint}", _escaped(text[marked.start : marked.stop])
        marked_word = f"<b style='{style}'>{word}</b>"
        return f"{_escaped(text[: marked.start])}{marked_word}{_escaped(text[marked.stop :])}"

    def _difference_text(self, text: str, marked: MarkedWord | None, *, is_first: bool) -> str:
        if marked is None:
            return tr("All values of the range give this text.")
        word, other = text[marked.start : marked.stop].strip() or tr("(end)"), marked.other.strip() or tr("(end)")
        if is_first:
            return tr("The next text has “{other}” in place of “{word}”.").format(word=word, other=other)
        return tr("The text before has “{other}” in place of “{word}”.").format(word=word, other=other)

    def value_of(self, number: int) -> float:
        """Return the value that “Use” sets for a text."""
        assert self._result is not None
        one, known = self._result.atlas[number], varied_setting(self._result.atlas.setting)
        return round_value_in(one.low, one.high, known is not None and known.is_whole)

    def _use_text(self, number: int) -> str:
        return tr("Run with {name} {value}").format(name=self._lower_name, value=f"{self.value_of(number):.10g}")

    @Slot()
    def _on_use(self) -> None:
        self.useRequested.emit(self.value_of(self.map.selected))

    @Slot(str)
    def _on_axis(self, value: str) -> None:
        self.map.set_equal_widths(value == _EQUAL)

    def restyle(self, theme: Theme) -> None:
        for box, width in ((self.low, 92), (self.high, 92), (self.tokens, 92), (self.passes, 120), (self.word, 150)):
            box.setFixedWidth(theme.px(width))
        self.text.set_min_text_height(2 * self.text.label.fontMetrics().lineSpacing())
        if self._result is not None:
            self._show_text(self.map.selected)

    def wording_changed(self) -> None:
        """Do nothing: the texts are the same at every level of detail."""

    def export_table(self) -> Table:
        """Return a row per interval."""
        return atlas_table(self._result) if self._result is not None else ()

    def excerpt(self) -> Excerpt | None:
        """Return the ranges with their texts."""
        if self._result is None:
            return None
        lines = [
            f"{range_text(self._result, number, self._lower_name)}: {self._result.text_of(number)}"
            for number in range(len(self._result.atlas))
        ]
        return Excerpt("\n".join(lines), "<br>".join(map(escape_html, lines)))


def _escaped(text: str) -> str:
    return escape_html(text).replace("\n", "<br>")
