"""The twin page: two runs that differ in one thing and share their noise."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from PySide6.QtCore import Qt, Slot
from PySide6.QtWidgets import QHBoxLayout, QLineEdit, QVBoxLayout, QWidget

from decodescope.app.features.same_noise.state import (
    TWIN_KINDS,
    PageState,
    TwinInput,
    TwinKind,
    TwinResult,
    twin_table,
    value_label,
    varied_setting,
)
from decodescope.app.features.same_noise.view.page import Cell, CellModel, NoisePage, ResultsTable, heading, set_or_hide
from decodescope.app.state.setting_values import InvalidValueError, format_text, parse
from decodescope.app.theme.theme import Theme, blend
from decodescope.app.views.base import Excerpt, Table
from decodescope.app.widgets.building import arrange, set_up
from decodescope.app.widgets.inputs import ComboBox, Slider
from decodescope.app.widgets.labels import TextBlock, WrappedLabel
from decodescope.app.widgets.plain_text import PlainLabel, escape_html
from decodescope.app.widgets.text_documents import ExactTextEdit
from decodescope.core import TwinToken, words
from decodescope.core.strategies import Parameter
from decodescope.resources.language import join_sentences, mark, tr, trn

_SLIDER_STEPS = 400
_TITLES = (mark("No."), mark("Word"), mark("Other side"), mark("Flips"), mark("Probability of a flip"))
_CAUSED = mark(
    "Words with a background differ. Bold, underlined ones were caused by the change. “Caused” is said of the final "
    "distributions, after all settings: the change gave another word the larger sum of log-probability and noise. It "
    "is not a statement about the model's scores before the settings."
)
_EDITABLE_KINDS = ("int", "float", "bool", "choice", "text", "lines", "words", "word_values")
"""Kinds of settings that can be written in one line."""


class TwinPage(NoisePage):
    """The page: what differs, both texts, and where the words flip."""

    introduction = mark(
        "Both sides use the same random numbers for the same word at the same position. Where the texts differ, the "
        "change did it, and not chance. After an inserted word, positions no longer agree: noise after equal text lets "
        "the texts run together again."
    )

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("twinPage", tr("Twin"), tr("Compare"), parent)
        self._result: TwinResult | None = None
        self._parameters: dict[str, Parameter] = {}
        self._current: Callable[[str], object] = lambda _name: None
        self.length = 0
        """Tokens that are compared, if known."""
        titles = (tr("Setting"), tr("Prompt"), tr("Cache"), tr("Model"))
        self.kind = set_up(ComboBox(self.inputs), name="twinKind")
        for kind, title in zip(TWIN_KINDS, titles, strict=True):
            self.kind.addItem(title, kind)
        self.name = set_up(ComboBox(self.inputs), name="twinName")
        self.value = set_up(QLineEdit(self.inputs), name="twinValue")
        self.draws = set_up(ComboBox(self.inputs), name="twinDraws")
        self.draws.addItem(tr("Two new texts with the same noise"), True)
        self.draws.addItem(tr("The shown text: probabilities only"), False)
        self.noise = set_up(ComboBox(self.inputs), name="twinNoise")
        self.noise.addItem(tr("At the same position"), False)
        self.noise.addItem(tr("After equal text"), True)
        self.prompt = set_up(
            ExactTextEdit(self.body), name="twinPrompt", accessible_name=tr("Prompt of the other side")
        )
        self.add_field(tr("What differs"), self.kind)
        self._name_field = self.add_field(tr("Which"), self.name)
        self._value_field = self.add_field(tr("Other value"), self.value)
        self.add_field(tr("Texts"), self.draws)
        self._noise_field = self.add_field(tr("Same noise"), self.noise)
        self.draws.currentIndexChanged.connect(self._on_draws)
        self.column.insertWidget(2, self.prompt)
        self._names: dict[TwinKind, Sequence[tuple[str, str]]] = {}
        self.kind.currentIndexChanged.connect(self._on_kind)
        self.name.currentIndexChanged.connect(self._on_name)
        self._build_results()
        self._on_kind()

    def _build_results(self) -> None:
        parent = self.results
        self.summary = set_up(WrappedLabel("", parent), name="twinSummary")
        self.caused_note = set_up(WrappedLabel(tr(_CAUSED), parent), role="muted")
        self.first, self.second = (set_up(TextBlock(parent, rich=True), name=n) for n in ("twinFirst", "twinSecond"))
        columns = QHBoxLayout()
        for title, text in ((tr("As it was"), self.first), (tr("Changed"), self.second)):
            columns.addLayout(arrange(QVBoxLayout(), heading(title, parent), (text, 1), spacing=6), 1)
        columns.setSpacing(24)
        self.flips = QWidget(parent)
        self.slider = set_up(
            Slider(Qt.Orientation.Horizontal, self.flips), name="twinSlider", accessible_name=tr("Value of the setting")
        )
        self.slider.setRange(0, _SLIDER_STEPS)
        self.slider.setPageStep(_SLIDER_STEPS // 20)
        self.slider.valueChanged.connect(self._show_flips)
        self.place = set_up(PlainLabel("", self.flips), name="twinPlace")
        self.flip_text = set_up(TextBlock(self.flips, rich=True), name="twinFlips")
        arrange(
            QVBoxLayout(self.flips), heading(tr("Where each word flips"), self.flips), self.slider, self.place,
            self.flip_text, margins=0, spacing=8,
        )  # fmt: skip
        self.flips_problem = set_up(WrappedLabel("", parent), role="muted")
        self.table = ResultsTable(
            "twinTable", tr("Words of the first text"), CellModel(_TITLES, (0, 4), parent), 1,
            {0: 48, 2: 150, 3: 76, 4: 150}, parent,
        )  # fmt: skip
        self._table_heading = heading(tr("Word by word, each after the first text"), parent)
        arrange(
            self.results_column, self.summary, columns, self.caused_note, self.flips, self.flips_problem,
            self._table_heading, self.table,
        )  # fmt: skip

    # Input

    def show_choices(
        self, parameters: Sequence[Parameter], current: Callable[[str], object], prompt: str | None,
        caches: Sequence[tuple[str, str]], models: Sequence[tuple[str, str]],
    ) -> None:  # fmt: skip
        """Offer the settings of the run, of which `current` returns the values, its prompt (None if it cannot be
        edited), other caches and other models, each as (title, name).
        """
        self._parameters = {one.name: one for one in parameters if one.kind in _EDITABLE_KINDS}
        self._current = current
        settings = [(tr(one.title), one.name) for one in self._parameters.values()]
        self._names = {"setting": settings, "cache": caches, "model": models}
        model = self.kind.model()
        for number, kind in enumerate(TWIN_KINDS):
            can = prompt is not None if kind == "prompt" else bool(self._names[kind])
            item = model.index(number, 0)
            model.setData(item, None if can else 0, Qt.ItemDataRole.UserRole - 1)
        if prompt is not None and not self.prompt.toPlainText():
            self.prompt.setPlainText(prompt)
        self._on_kind()

    def set_prompt(self, prompt: str) -> None:
        """Show the prompt of another run."""
        self.prompt.setPlainText(prompt)

    @Slot()
    def _on_kind(self) -> None:
        kind: TwinKind = self.kind.currentData()
        current = self.name.currentData()
        self.name.blockSignals(True)
        self.name.clear()
        for title, name in self._names.get(kind, ()):
            self.name.addItem(title, name)
        if kind == "setting" and self.name.findData(current) < 0:
            current = "temperature"
        self.name.setCurrentIndex(max(0, self.name.findData(current)))
        self.name.blockSignals(False)
        self._name_field.setVisible(kind != "prompt")
        self._value_field.setVisible(kind == "setting")
        self.prompt.setVisible(kind == "prompt")
        self._on_name()
        self.inputs.updateGeometry()

    @Slot()
    def _on_name(self) -> None:
        name = self.name.currentData()
        if self.kind.currentData() == "setting" and name in self._parameters:
            self.value.setText(format_text(self._current(name)))

    @Slot()
    def _on_draws(self) -> None:
        """The noise of a recorded text is unknown, so its key has no effect."""
        self._noise_field.setVisible(bool(self.draws.currentData()))
        self.inputs.updateGeometry()

    def wanted(self) -> TwinInput:
        """Return the current input. Raises InvalidValueError for a value that the setting cannot have."""
        kind, name, draws = self.kind.currentData(), self.name.currentData() or "", bool(self.draws.currentData())
        realigns = draws and bool(self.noise.currentData())
        if kind == "prompt":
            return TwinInput(kind, "", self.prompt.toPlainText(), draws, realigns)
        if kind != "setting":
            return TwinInput(kind, name, None, draws, realigns)
        if name not in self._parameters:
            raise InvalidValueError(tr("Choose a setting."))
        return TwinInput(kind, name, parse(self._parameters[name], self.value.text()), draws, realigns)

    # Results

    def show_progress(self, progress: Any) -> None:
        if progress is None:
            super().show_progress(progress)
            return
        self.bar.setRange(0, max(progress, self.length))
        self.bar.setValue(progress)
        self.status.setText(trn("Compared {n:,} word.", "Compared {n:,} words.", progress).format(n=progress))

    def show_result(self, state: PageState) -> None:
        result: TwinResult = state.result
        self._result = result
        self.status.setText(tr("Stopped: the comparison covers the words so far.") if state.was_stopped else "")
        self.summary.setText(_summary(result))
        self.caused_note.setVisible(len(result.twin) > 0)
        self._show_texts()
        self.flips.setVisible(result.flips is not None and len(result.flips) > 0)
        set_or_hide(self.flips_problem, result.flips_problem)
        if result.flips is not None and len(result.flips):
            self._show_flips()
        rows = [
            (
                Cell(f"{token.position + 1:,}", token.position), Cell(words.visible(token.text).strip(), token.text),
                Cell(_other_word(token), token.other_text),
                Cell("–" if token.flips is None else tr("yes") if token.flips else tr("no"), bool(token.flips)),
                Cell(words.percent(token.flip_probability), token.flip_probability),
            )
            for token in result.twin
        ]  # fmt: skip
        self.table.show_cells(rows)
        for part in (self.table, self._table_heading):
            part.setVisible(bool(rows))

    def _show_texts(self) -> None:
        assert self._result is not None
        twin, pieces = self._result.twin, self._result.pieces
        flips = {token.position for token in twin if token.flips}
        changed: tuple[set[int], set[int]] = (set(), set())
        for part in twin.alignment:
            if not part.is_equal:
                changed[0].update(range(part.start, part.stop))
                changed[1].update(range(part.other_start, part.other_stop))
        has_second = bool(twin.ids[1]) or twin.first_difference is not None
        self.first.set_text(self._html(pieces[0], changed[0] if has_second else set(), flips))
        second = self._html(pieces[1], changed[1], set()) if pieces[1] else ""
        self.second.set_text(
            second or escape_html(tr("Nothing is drawn for a recorded text.") if not has_second else "")
        )

    @property
    def _mark_color(self) -> str:
        theme = self.current_theme
        return blend(theme.color("refused"), theme.color("panel"), 0.25).name()

    def _html(self, pieces: Sequence[str], changed: set[int], underlined: set[int]) -> str:
        """Return a text whose differing words have a background, and those that the change caused a line below."""
        color, found = self._mark_color, list[str]()
        for number, piece in enumerate(pieces):
            shown = escape_html(piece).replace("\n", "<br>")
            if number in underlined:
                shown = f"<b><u>{shown}</u></b>"
            found.append(f"<span style='background:{color}'>{shown}</span>" if number in changed else shown)
        return "".join(found)

    @property
    def slider_value(self) -> float:
        """The value of the setting at the slider."""
        assert self._result is not None
        assert self._result.flips is not None
        flips = self._result.flips
        value = flips.low + (flips.high - flips.low) * max(1, self.slider.value()) / _SLIDER_STEPS
        known = varied_setting(flips.setting)
        return float(max(1, round(value))) if known is not None and known.is_whole else value

    @Slot()
    def _show_flips(self) -> None:
        if self._result is None or self._result.flips is None:
            return
        flips, value = self._result.flips, self.slider_value
        flipped = set(flips.flips_at(value))
        known = varied_setting(flips.setting)
        name = tr(known.title) if known is not None else flips.setting
        text = trn(
            "{name} {value}: {flips:,} of {n:,} word flips", "{name} {value}: {flips:,} of {n:,} words flip", len(flips)
        ).format(name=name, value=value_label(value), flips=len(flipped), n=len(flips))
        self.place.setText(text)
        self.slider.setAccessibleDescription(text)
        color, parts = self._mark_color, list[str]()
        for number, token in enumerate(flips):
            own = escape_html(token.text).replace("\n", "<br>")
            other = escape_html(words.visible(token.at(value).text).strip())
            parts.append(f"<b style='background:{color}'>{own} → {other}</b>" if number in flipped else own)
        self.flip_text.set_text("".join(parts))

    def restyle(self, theme: Theme) -> None:
        self.prompt.setFixedHeight(4 * self.prompt.fontMetrics().lineSpacing() + theme.px(16))
        self.value.setFixedWidth(theme.px(160))
        self.name.setMinimumWidth(theme.px(160))
        if self._result is not None:
            self._show_texts()
            self._show_flips()

    def export_table(self) -> Table:
        """Return a row per word of the first text."""
        return twin_table(self._result) if self._result is not None else ()

    def excerpt(self) -> Excerpt | None:
        """Return both texts."""
        if self._result is None:
            return None
        lines = [_summary(self._result), *self._result.twin.written]
        return Excerpt("\n\n".join(lines), "".join(f"<p>{escape_html(line)}</p>" for line in lines))


def _other_word(token: TwinToken) -> str:
    """Return the other side's choice; = for the same one."""
    if token.flips is None:
        return "–"
    return words.visible(token.other_text).strip() if token.flips else "="


def _summary(result: TwinResult) -> str:
    twin = result.twin
    if not len(twin):
        text = tr("The models have different tokens, so only the texts are compared, and no cause is known.")
        return join_sentences(text, _rejoin_sentence(result)) if twin.first_difference is not None else text
    expected = tr("Averaged over all noise that explains the text, the change causes {share} of the words.").format(
        share=words.percent(twin.expected or 0.0)
    )
    if twin.caused is None:
        return expected
    caused = sum(bool(token.flips) for token in twin)
    if twin.first_difference is None:
        return join_sentences(tr("Both texts are equal."), expected)
    place = tr("The texts differ from word {number:,} on.").format(number=twin.first_difference + 1)
<<<<<<< HEAD
    share = trn("The change caused {caused:,} of {n:,} word ({share}); the rest follows from the other beginning.",
                "The change caused {caused:,} of {n:,} words ({share}); the rest follows from the other beginning.",
                len(twin))  # fmt: skip
    share = share.format(caused=caused, n=len(twin), share=words.percent(twin.caused, is_exact=True))
=======
    share = trn(
        "The change caused {caused:,} of {n:,} word ({share}); the rest follows from the other beginning.",
        "The change caused {caused:,} of {n:,} words ({share}); the rest follows from the other beginning.",
        len(twin),
    ).format(caused=caused, n=len(twin), share=words.percent(twin.caused, is_exact=True))
>>>>>>> main
    return join_sentences(place, _rejoin_sentence(result), share, expected)


def _rejoin_sentence(result: TwinResult) -> str:
    """Return where the texts run together again after their first difference."""
    twin = result.twin
    common = tr("{share} of the words are common to both.").format(share=words.percent(twin.common, is_exact=True))
    if not twin.rejoins:
        return join_sentences(tr("They do not run together again."), common)
    first = twin.rejoins[0]
    if first.start == first.other_start:
        place = tr("They run together again from word {number:,} on.").format(number=first.start + 1)
    else:
        place = tr("They run together again at word {number:,}, which is word {other:,} of the changed text.").format(
            number=first.start + 1, other=first.other_start + 1
        )
    return join_sentences(place, common)
