"""The Speed view: what is measured to the left, how far it is above, a card for each way below."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtWidgets import QHBoxLayout, QProgressBar, QWidget

from app.state.speed import SpeedResults
from app.theme.theme import Theme, theme_for
from app.views.base import Excerpt, Table, View
from app.views.labs.settings import lay_out_beside_settings
from app.views.labs.speed import told
from app.views.labs.speed.card import TechniqueCard
from app.views.labs.speed.figures import legend_text
from app.views.labs.speed.settings import SpeedSettings
from app.widgets.menu_button import MenuButton
from app.widgets.plain_text import PlainLabel
from app.widgets.wrapped_label import WrappedLabel
from core import ModelEntry
from core.labs import speed
from resources.language import join_sentences, mark, tr

_INTRODUCTION = mark(
    "Every way to make a model write more quickly, measured on this machine and on the model of your choice: several "
    "texts at once, weights of fewer bits, guessing ahead, weights on the disk, several processes, compiled steps. "
    "Each row stands beside what reading the weights from memory allows. It takes minutes, and more for a large model; "
    "runs in the window meanwhile make all of it slower."
)


class SpeedView(View):
    """`startWanted(model, draft, ways)`, `stopWanted`; `exportWanted` and `copyWanted` for what was measured."""

    startWanted = Signal(str, str, object)
    stopWanted = Signal()
    exportWanted = Signal()
    copyWanted = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("speedView", parent)
        self.setAccessibleName(tr("Speed lab"))
        self.setProperty("role", "panel")
        self.speeds = SpeedResults()
        self.settings = SpeedSettings(self)
        self.settings.startStopPressed.connect(self._on_pressed)
        self.bar = QProgressBar(self)
        self.bar.setTextVisible(False)
        self.bar.setAccessibleName(tr("Progress"))
        self.progress, self.conditions, self.problem, self.details, self.legend = (_label(self) for _ in range(5))
        self.progress.setObjectName("speedProgress")
        self.problem.setObjectName("speedProblem")
        self.problem.setProperty("role", "danger")
        for muted in (self.progress, self.details, self.legend):
            muted.setProperty("role", "muted")
        takes = ((tr("Save as a picture or as figures…"), self.exportWanted.emit), (tr("Copy the text"), self._on_copy))
        self.export_button = MenuButton(
            "speedTake", tr("Take along"), tr("What was measured, for elsewhere"), takes, self
        )
        self.cards = {way: TechniqueCard(way, self) for way in speed.WAYS}
        self._lay_out()
        self.set_theme(theme_for("light"))
        self.show_speeds(self.speeds)

    def _lay_out(self) -> None:
        column = lay_out_beside_settings(self, self.settings, tr("What was measured"))
        above = QHBoxLayout()
        title = PlainLabel(tr("What limits it").upper(), self)
        title.setProperty("role", "heading")
        above.addWidget(title)
        above.addStretch(1)
        above.addWidget(self.export_button)
        column.addLayout(above)
        for part in (self.problem, self.details, self.conditions, self.bar, self.progress, self.legend,
                     *self.cards.values()):  # fmt: skip
            column.addWidget(part)
        column.addStretch(1)

    def set_theme(self, theme: Theme) -> None:
        """Take other colours and sizes."""
        self.settings.set_theme(theme)
        for card in self.cards.values():
            card.set_theme(theme)

    def wording_changed(self) -> None:
        """Say it all again: at another depth."""
        self.show_speeds(self.speeds)

    def models_changed(self, entries: Sequence[ModelEntry]) -> None:
        """These can be measured; the first is the window's own."""
        self.settings.show_models(entries, entries[0].name if entries else "")

    def show_speeds(self, speeds: SpeedResults) -> None:
        """What was measured so far, and what ended it."""
        self.speeds = speeds
        self.settings.show_running(speeds.is_running)
        self.conditions.setText(
            str(speed.explain_ground(speeds.ground)) if speeds.ground is not None else tr(_INTRODUCTION)
        )
        self._show_progress()
        error = speeds.error
        _set_or_hide(self.problem, join_sentences(error.cause, error.remedy) if error is not None else "")
        _set_or_hide(self.details, error.details if error is not None else "")
        _set_or_hide(
            self.legend, legend_text(any(one.foretold for one in speeds.measured.values())) if speeds.measured else ""
        )
        self.export_button.setEnabled(not speeds.is_empty)
        for card in self.cards.values():
            card.show_speeds(speeds)

    def export_table(self) -> Table:
        """A row for each that was measured or left out."""
        return told.speed_table(self.speeds)

    def excerpt(self) -> Excerpt | None:
        """Its sentences."""
        return told.speed_excerpt(self.speeds)

    def _show_progress(self) -> None:
        speeds = self.speeds
        self.bar.setVisible(speeds.is_running)
        self.bar.setRange(0, len(speeds.rows))
        self.bar.setValue(speeds.done_count)
        _set_or_hide(self.progress, _progress_text(speeds))

    @Slot()
    def _on_pressed(self) -> None:
        if self.speeds.is_running:
            self.settings.show_stopping()
            self.stopWanted.emit()
        else:
            chosen = self.settings
            self.startWanted.emit(chosen.model.currentData(), chosen.draft.currentData(), chosen.chosen)

    def _on_copy(self) -> None:
        self.copyWanted.emit()


def _progress_text(speeds: SpeedResults) -> str:
    """How far it is, or how it ended."""
    counts = {"done": speeds.done_count, "count": len(speeds.rows)}
    if speeds.is_running and speeds.current is None:
        return tr("The model is being loaded in a process of its own.")
    if speeds.current is not None:
        way, row = tr(speed.TITLES[speeds.current.way]), speed.row_title(speeds.current)
        return tr("{done} of {count}. Now: {way}, {row}.").format(way=way, row=row, **counts)
    if speeds.seconds is not None:
        return tr("Measured in {seconds:.0f} s.").format(seconds=speeds.seconds)
    if not speeds.rows:
        return ""
    return tr("It ended after {done} of {count}; what was measured stays.").format(**counts)


def _label(parent: QWidget) -> WrappedLabel:
    label = WrappedLabel("", parent)
    label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
    return label


def _set_or_hide(label: WrappedLabel, text: str) -> None:
    label.setText(text)
    label.setVisible(bool(text))
