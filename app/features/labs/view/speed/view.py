"""The speed view: settings on the left, progress above, and a card for each technique."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtWidgets import QCheckBox, QComboBox, QFrame, QHBoxLayout, QProgressBar, QPushButton, QVBoxLayout, QWidget

from decodescope.app.features.labs.state import SpeedResults
from decodescope.app.features.labs.view.settings_column import SettingsColumn, lay_out_beside_settings
from decodescope.app.features.labs.view.speed import speed_plots
from decodescope.app.features.labs.view.speed.speed_plots import legend_text, technique_plots
from decodescope.app.state.glossary_terms import find_term
from decodescope.app.theme.theme import theme_for
from decodescope.app.views.base import Excerpt, Table, View
from decodescope.app.views.compare.charts import ChartGrid
from decodescope.app.views.shared.glossary_tooltip import add_glossary_tooltip
from decodescope.app.widgets.building import STRETCH, Gap, arrange, set_up, show_text
from decodescope.app.widgets.buttons import MenuButton
from decodescope.app.widgets.labels import DetailsText, WrappedLabel
from decodescope.app.widgets.plain_text import PlainLabel
from decodescope.core import ModelEntry
from decodescope.core.labs import speed
from decodescope.resources.language import join_sentences, mark, tr


class TechniqueCard(QFrame):
    """Hidden until there is a result for its technique."""

    def __init__(self, technique: speed.Way, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName(f"speedCard.{technique}")
        self.way = technique
        self.sentence = WrappedLabel("", self)
        self.sentence.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.charts = ChartGrid(self)
        self.skipped = set_up(WrappedLabel("", self), role="muted")
        self.skipped.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        heading = set_up(PlainLabel(tr(speed.TITLES[technique]).upper(), self), role="heading")
        arrange(QVBoxLayout(self), heading, self.sentence, self.charts, self.skipped, margins=(0, 8, 0, 8), spacing=8)
        self.hide()

    def show_speeds(self, speeds: SpeedResults) -> None:
        """Show the results of its rows so far."""
        found, left = speeds.measurements_of(self.way), speeds.skipped_of(self.way)
        show_text(self.sentence, str(speed.explain_way(self.way, found)) if len(found) > 1 else "")
        self.charts.show_figures(technique_plots(self.way, found))
        self.charts.setVisible(bool(found))
        template = tr("{row} skipped: {reason}")
        self.skipped.setText(
            "\n".join(template.format(row=speed.row_title(row), reason=reason) for row, reason in left)
        )
        self.skipped.setVisible(bool(left))
        self.setVisible(bool(found or left))


SETTINGS_WIDTH = 240
"""Width in pixels at 100 %."""


class SpeedSettings(SettingsColumn):
    """`startStopPressed`: the button was pressed, to start or to stop."""

    startStopPressed = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(tr("What to measure"), SETTINGS_WIDTH, parent)
        self.model = self._add_choice("speedModel", tr("Model"))
        self.draft = self._add_choice("speedDraft", tr("Draft model"))
        self.column.addSpacing(8)
        self.column.addWidget(self.make_heading(tr("Techniques")))
        self.ways = {way: self._add_way(way) for way in speed.WAYS}
        self.column.addSpacing(10)
        self.button = set_up(QPushButton(self.page), name="speedStart", role="primary", clicked=self.startStopPressed)
        self.button.setAutoDefault(False)
        arrange(self.column, self.button, STRETCH)
        self.show_running(False)

    @property
    def chosen(self) -> tuple[speed.Way, ...]:
        """The checked techniques."""
        return tuple(way for way, box in self.ways.items() if box.isChecked())

    def show_models(self, entries: Sequence[ModelEntry], chosen: str) -> None:
        """Offer the models on disk; keep the current choice, or select `chosen`."""
        _fill_combo(self.model, [(entry.title, entry.name) for entry in entries], chosen)
        by_itself = (tr("Automatic"), "")
        _fill_combo(self.draft, [by_itself, *((entry.title, entry.name) for entry in entries)], "")
        self.update_button()

    def show_running(self, on: bool) -> None:
        """Lock the settings and turn the button into Stop while a measurement is running."""
        self.button.setText(tr("Stop") if on else tr("Measure"))
        for widget in (self.model, self.draft, *self.ways.values()):
            widget.setEnabled(not on)
        self._is_running = on
        self.update_button()

    def show_stopping(self) -> None:
        """Show that stopping is in progress."""
        self.button.setText(tr("Stopping…"))
        self.button.setEnabled(False)

    def update_button(self) -> None:
        """Enable the button only with a model and at least one technique."""
        self.button.setEnabled(self._is_running or (bool(self.chosen) and self.model.count() > 0))

    def _add_choice(self, name: str, title: str) -> QComboBox:
        combo = self.make_combo()
        self.column.addSpacing(4)
        self.column.addWidget(self.editor_label(title, combo, name))
        self.column.addWidget(combo)
        return combo

    def _add_way(self, technique: speed.Way) -> QCheckBox:
        box = set_up(QCheckBox(tr(speed.TITLES[technique]), self.page), name=f"speedWay.{technique}")
        box.setChecked(True)
        box.toggled.connect(self.update_button)
        if find_term(f"control.speed.{technique}") is not None:
            add_glossary_tooltip(box, f"control.speed.{technique}")
        arrange(self.column, Gap(4), box)
        return box


def _fill_combo(combo: QComboBox, items: Sequence[tuple[str, str]], first: str) -> None:
    current = combo.currentData() if combo.count() else first
    combo.blockSignals(True)
    combo.clear()
    for title, name in items:
        combo.addItem(title, name)
    place = combo.findData(current)
    combo.setCurrentIndex(place if place >= 0 else max(0, combo.findData(first)))
    combo.blockSignals(False)


_INTRODUCTION = mark(
    "Measures techniques for faster generation on this machine with a model of your choice: batching, "
    "quantized weights, speculative decoding, weights on disk, several processes, compiled steps. Each "
    "row is compared with the speed limit set by reading the weights from memory. This takes minutes, "
    "or longer for a large model; runs in the main window slow it down."
)


class SpeedView(View):
    """The speed lab: its settings and a card per technique. Emits `startWanted(model, draft, ways)` and `stopWanted`;
    `exportWanted` and `copyWanted` for the results.
    """

    startWanted = Signal(str, str, object)
    stopWanted = Signal()
    exportWanted = Signal()
    copyWanted = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("speedView", parent)
        set_up(self, accessible_name=tr("Speed lab"), role="panel")
        self.speeds = SpeedResults()
        self.settings = SpeedSettings(self)
        self.settings.startStopPressed.connect(self._on_pressed)
        self.bar = set_up(QProgressBar(self), accessible_name=tr("Progress"))
        self.bar.setTextVisible(False)
        self.progress, self.conditions, self.problem, self.legend = (_label(self) for _ in range(4))
        self.details = set_up(DetailsText(self), accessible_name=tr("Details of the message"))
        self.progress.setObjectName("speedProgress")
        self.problem.setObjectName("speedProblem")
        self.problem.setProperty("role", "danger")
        for muted in (self.progress, self.legend):
            muted.setProperty("role", "muted")
        takes = ((tr("Save as picture or data…"), self.exportWanted.emit), (tr("Copy text"), self._on_copy))
        self.export_button = MenuButton("speedTake", tr("Export"), tr("Export the results"), takes, self)
        self.cards = {way: TechniqueCard(way, self) for way in speed.WAYS}
        self._lay_out()
        self.set_theme(theme_for("light"))
        self.show_speeds(self.speeds)

    def _lay_out(self) -> None:
        column = lay_out_beside_settings(self, self.settings, tr("Results"))
        above = QHBoxLayout()
        self.heading = set_up(PlainLabel("", self), role="heading")
        arrange(above, self.heading, STRETCH, self.export_button)
        column.addLayout(above)
        for part in (self.problem, self.details, self.conditions, self.bar, self.progress, self.legend,
                     *self.cards.values()):  # fmt: skip
            column.addWidget(part)
        column.addStretch(1)

    def wording_changed(self) -> None:
        """Rebuild all texts, for example at another level of detail."""
        self.show_speeds(self.speeds)

    def models_changed(self, entries: Sequence[ModelEntry]) -> None:
        """Offer these models; the first is the window's model."""
        self.settings.show_models(entries, entries[0].name if entries else "")

    def show_speeds(self, speeds: SpeedResults) -> None:
        """Show the results so far, and the error that ended the measurement, if any."""
        self.speeds = speeds
        self.settings.show_running(speeds.is_running)
        self.conditions.setText(
            str(speed.explain_reference(speeds.ground)) if speeds.ground is not None else tr(_INTRODUCTION)
        )
        self.heading.setText((tr("Limiting factor") if speeds.ground is not None else tr("No results yet")).upper())
        self._show_progress()
        error = speeds.error
        show_text(self.problem, join_sentences(error.cause, error.remedy) if error is not None else "")
        show_text(self.details, error.details if error is not None else "")
        show_text(
            self.legend, legend_text(any(one.predicted for one in speeds.measured.values())) if speeds.measured else ""
        )
        self.export_button.setEnabled(not speeds.is_empty)
        for card in self.cards.values():
            card.show_speeds(speeds)

    def export_table(self) -> Table:
        """Return a table with a row for each measured or skipped item."""
        return speed_plots.speed_table(self.speeds)

    def excerpt(self) -> Excerpt | None:
        """Return the sentences."""
        return speed_plots.speed_excerpt(self.speeds)

    def _show_progress(self) -> None:
        speeds = self.speeds
        self.bar.setVisible(speeds.is_running)
        self.bar.setRange(0, len(speeds.rows))
        self.bar.setValue(speeds.done_count)
        show_text(self.progress, _progress_text(speeds))

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
    """Return the progress, or how the measurement ended."""
    counts = {"done": speeds.done_count, "count": len(speeds.rows)}
    if speeds.is_running and speeds.current is None:
        return tr("Loading the model in a separate process.")
    if speeds.current is not None:
        way, row = tr(speed.TITLES[speeds.current.way]), speed.row_title(speeds.current)
        return tr("{done} of {count}. Measuring: {way}, {row}.").format(way=way, row=row, **counts)
    if speeds.seconds is not None:
        return tr("Measured in {seconds:.0f} s.").format(seconds=speeds.seconds)
    if not speeds.rows:
        return ""
    return tr("Stopped after {done} of {count}; the results so far are kept.").format(**counts)


def _label(parent: QWidget) -> WrappedLabel:
    label = WrappedLabel("", parent)
    label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
    return label
