"""The sweep form: the setting, its values (typed, or spread over a range), and the number of seeds per value."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QSignalBlocker, Qt, Signal, Slot
from PySide6.QtWidgets import QHBoxLayout, QLineEdit, QVBoxLayout, QWidget

from decodescope.app.state import setting_values
from decodescope.app.state.comparison import candidates as sweeps
from decodescope.app.state.comparison.candidates import Sweep
from decodescope.app.state.setting_values import InvalidValueError
from decodescope.app.state.worker_messages import RunRequest
from decodescope.app.theme.theme import Theme
from decodescope.app.theme.themed import Themed
from decodescope.app.widgets.building import arrange, set_up, show_text
from decodescope.app.widgets.flow_layout import FlowRow
from decodescope.app.widgets.inputs import ComboBox, SpinBox
from decodescope.app.widgets.plain_text import PlainLabel
from decodescope.core.strategies import Parameter
from decodescope.resources.language import tr, trc

_DEFAULT_SETTING = "temperature"
"""Setting that is swept by default, if the strategy has it."""
_STEPS, _SEEDS, _MAX_STEPS, _MAX_SEEDS = 5, 3, 50, 50
_ENDS_WIDTH, _LIST_WIDTH = 64, 110
"""Return the height of a plot in pixels at 100 %."""


class SweepForm(Themed, QWidget):
    """Form for the setting to sweep, its values and seeds. `changed()`: `sweep` has changed. The list of values counts;
    the range fields write into it.
    """

    changed = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._base: RunRequest | None = None
        self._parameters: Sequence[Parameter] = ()
        self._sweep: Sweep | None = None
        self.parameter = ComboBox(self)
        self.low, self.high, self.list = QLineEdit(self), QLineEdit(self), QLineEdit(self)
        self.steps, self.seeds = SpinBox(self), SpinBox(self)
        self.problem = set_up(PlainLabel(self, wordWrap=True), role="danger")
        self._set_names()
        self._lay_out()
        self.parameter.currentIndexChanged.connect(self._on_parameter)
        for edit in (self.low, self.high):
            edit.editingFinished.connect(self._on_range)
        self.steps.valueChanged.connect(self._on_range)
        self.list.textChanged.connect(self._parse_values)
        self.seeds.valueChanged.connect(self._parse_values)

    def _set_names(self) -> None:
        for part, name, accessible_name in (
            (self.parameter, "sweepParameter", tr("Setting to sweep")), (self.low, "sweepLow", tr("First value")),
            (self.high, "sweepHigh", tr("Last value")), (self.steps, "sweepSteps", tr("Number of values")),
            (self.list, "sweepValues", tr("Values")), (self.seeds, "sweepSeeds", tr("Seeds per value")),
        ):  # fmt: skip
            part.setObjectName(name)
            part.setAccessibleName(accessible_name)
        self.list.setToolTip(tr("The values to run, separated by commas or spaces"))
        for spin in (self.steps, self.seeds):
            spin.setAlignment(Qt.AlignmentFlag.AlignRight)
        self.steps.setSuffix(tr(" steps"))
        self.seeds.setSuffix(tr(" seeds each"))
        self.steps.setRange(2, _MAX_STEPS)
        self.steps.setValue(_STEPS)
        self.seeds.setRange(1, _MAX_SEEDS)
        self.seeds.setValue(_SEEDS)

    def _lay_out(self) -> None:
        fields = FlowRow(self, 12)
        named = (
            (trc("sweep", "Sweep"), self.parameter),
            (trc("sweep", "from"), self.low),
            (trc("sweep", "to"), self.high),
            (trc("sweep", "in"), self.steps),
            (trc("sweep", "with"), self.seeds),
            (trc("sweep", "values"), self.list),
        )
        for words, part in named:
            fields.flow.addWidget(_labelled(words, part, fields))
        arrange(QVBoxLayout(self), fields, self.problem, margins=0)

    def restyle(self, theme: Theme) -> None:
        for edit in (self.low, self.high):
            edit.setFixedWidth(theme.px(_ENDS_WIDTH))
        self.list.setMinimumWidth(theme.px(_LIST_WIDTH))

    @property
    def sweep(self) -> Sweep | None:
        """The sweep, or None while the input is invalid (see `problem`)."""
        return self._sweep

    def set_run(self, base: RunRequest) -> None:
        """Sweep this run; keep the setting and its values if the strategy is the same."""
        before, self._base = self._base, base
        parameters = sweeps.sweepable_parameters(base)
        if before is None or before.strategy != base.strategy:
            chosen = self.parameter.currentData() or _DEFAULT_SETTING
            self._parameters = parameters
            with QSignalBlocker(self.parameter):
                self.parameter.clear()
                for parameter in parameters:
                    self.parameter.addItem(tr(parameter.title), parameter.name)
                names = [parameter.name for parameter in parameters]
                self.parameter.setCurrentIndex(names.index(chosen) if chosen in names else 0)
            self._on_parameter()
        else:
            self._parse_values()

    @property
    def _chosen(self) -> Parameter | None:
        index = self.parameter.currentIndex()
        return self._parameters[index] if 0 <= index < len(self._parameters) else None

    @Slot()
    def _on_parameter(self) -> None:
        """Fill in the slider's range of the chosen setting, or all its values if it has no range."""
        parameter, base = self._chosen, self._base
        if parameter is None or base is None:
            return
        is_number = parameter.kind in ("int", "float")
        for part in (self.low, self.high, self.steps):
            part.setEnabled(is_number)
        if is_number:
            low, high = sweeps.default_range(parameter, base.settings.get(parameter.name, parameter.default))
            self.low.setText(f"{low:.6g}")
            self.high.setText(f"{high:.6g}")
            self._on_range()
            return
        choices = parameter.choices if parameter.kind == "choice" else ("false", "true")
        self.list.setText(", ".join(str(choice) for choice in choices))
        self._parse_values()

    @Slot()
    def _on_range(self) -> None:
        """Write evenly spaced values of the range into the list."""
        parameter = self._chosen
        if parameter is None or not self.low.isEnabled():
            return
        try:
            low, high = (setting_values.parse(parameter, edit.text()) for edit in (self.low, self.high))
            if low is None or high is None:
                raise InvalidValueError(tr("Enter a number at both ends of the range."))
            values = sweeps.make_range(parameter, low, high, self.steps.value())
        except InvalidValueError as problem:
            self._set_problem(str(problem))
            return
        with QSignalBlocker(self.list):
            self.list.setText(", ".join(setting_values.short_text(value) for value in values))
            self.list.setCursorPosition(0)
        self._parse_values()

    @Slot()
    def _parse_values(self) -> None:
        """Parse the fields into a sweep."""
        parameter, base = self._chosen, self._base
        if parameter is None or base is None:
            return
        try:
            values = sweeps.parse_values(parameter, self.list.text())
        except InvalidValueError as problem:
            self._set_problem(str(problem))
            return
        sweep = Sweep(parameter, values, tuple(range(base.seed, base.seed + self.seeds.value())))
        self._set_problem(sweeps.sweep_unsupported_reason(sweep))
        if not self.problem.text():
            self._sweep = sweep
            self.changed.emit()

    def _set_problem(self, reason: str) -> None:
        self._sweep = None
        show_text(self.problem, reason)
        if reason:
            self.changed.emit()


def _labelled(words: str, part: QWidget, parent: QWidget) -> QWidget:
    """Return a field with its label in front, kept together."""
    pair = QWidget(parent)
    row = arrange(QHBoxLayout(pair), margins=0, spacing=6)
    label = PlainLabel(words, pair)
    label.setBuddy(part)
    arrange(row, label, part)
    return pair
