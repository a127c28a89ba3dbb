"""Status line: model, speed, memory and outcome of the shown run, and buttons for the panels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from PySide6.QtCore import QTimer, Signal, Slot
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QPushButton, QSizePolicy, QWidget

from decodescope.app.panels.commands import key_of
from decodescope.app.state import run_status
from decodescope.app.state.run import Run
from decodescope.app.state.setting_changes import SettingChange
from decodescope.app.state.worker_messages import DecodeBackend, ModelInfo
from decodescope.app.theme.theme import Theme
from decodescope.app.theme.themed import Themed
from decodescope.app.widgets.building import STRETCH, arrange, set_up
from decodescope.app.widgets.icons import IconButton
from decodescope.app.widgets.labels import ElidedLabel
from decodescope.app.widgets.plain_text import PlainLabel, tooltip
from decodescope.core import words
from decodescope.resources.language import join_names, mark, tr

if TYPE_CHECKING:
    from decodescope.core.events import RunStarted

Number = TypeVar("Number", int, float)
REFRESH_MS = 1000
GAP = 20


class StatusLine(Themed, QFrame):
    """Status line; numbers are updated once per second during a run, and when it ends.

    It shows only what belongs to the shown run. Before the first run it shows the loaded model; the hardware is in the
    tooltip.
    """

    settingsRequested = Signal()
    historyRequested = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        set_up(self, name="statusLine", role="foot")
        self._run: Run | None = None
        self._model: ModelInfo | None = None
        self._backend: DecodeBackend | None = None
        self._shown_start: RunStarted | None = None
        self._state, self._is_loading, self._shows_failure = "", False, False
        self._details = ""
        self._timer = QTimer(self, interval=REFRESH_MS)
        self._timer.timeout.connect(self.refresh)
        self.device = self._label(tr("Model"), ElidedLabel())
        self.number_labels = {name: self._label(tr(title), PlainLabel()) for name, title in _TITLES.items()}
        self.outcome = self._label(tr("Outcome"), ElidedLabel())
        self.settings_button = set_up(QPushButton(), name="usedSettings", role="quiet", clicked=self.settingsRequested)
        self.settings_button.hide()
        self.setup_toggle = IconButton("panel-left", tr("Prompt and parameters"))
        self.timeline_toggle = IconButton("panel-bottom", tr("Timeline"))
        self.inspector_toggle = IconButton("panel-right", tr("Inspector"))
        self.history_button = IconButton("history", f"History ({key_of('toggle_history')})")
        self.history_button.setObjectName("historyButton")
        self.history_button.clicked.connect(self.historyRequested)
        self.toggles = (self.setup_toggle, self.timeline_toggle, self.inspector_toggle)
        for toggle in self.toggles:
            toggle.setCheckable(True)
        self._lay_out()
        self.show_changes(())

    def show_changes(self, changes: Sequence[SettingChange]) -> None:
        """Show which settings have changed since the run."""
        changes_text = join_names(f"{title} {how}" for title, how in changes)
        hint = (
            tr("Changed since this run: {told}.").format(told=changes_text)
            if changes
            else tr("Settings of the last run")
        )
        if hint == self.settings_button.toolTip():
            return
        self.settings_button.setText(tr("Settings changed") if changes else tr("Settings used"))
        self.settings_button.setToolTip(tooltip(hint))
        self.settings_button.setAccessibleDescription(hint)
        if bool(self.settings_button.property("changed")) != bool(changes):
            self.settings_button.setProperty("changed", bool(changes))
            self.settings_button.style().unpolish(self.settings_button)
            self.settings_button.style().polish(self.settings_button)
        self._fit()

    @Slot(object)
    def show_run(self, run: Run | None) -> None:
        """Show the numbers of `run` from now on."""
        self._run = run
        self._shows_failure = False
        self.outcome.setText("")
        self._timer.start()
        self._update_model()
        self.refresh()

    @Slot()
    def refresh_first_token(self) -> None:
        """Refresh if the time to the first token is not shown yet; all other numbers wait for the timer."""
        if not self.number_labels["first_token"].text():
            self.refresh()

    @Slot()
    def clear_failure(self) -> None:
        """Clear a failure message once it was read or its cause was changed."""
        if self._shows_failure:
            self._shows_failure = False
            self.outcome.setText("")

    def show_outcome(self, text: str, is_failure: bool = False) -> None:
        """Show the outcome of a finished run."""
        self._timer.stop()
        self._shows_failure = is_failure
        self.outcome.setText(text)
        self.refresh()

    @Slot(str)
    def show_loading(self, name: str) -> None:
        """Show that a model is being loaded."""
        is_remote = "://" in name
        self.show_state(
            tr("Connecting to {name}…").format(name=name.rpartition("#")[2])
            if is_remote
            else tr("Loading {name}…").format(name=Path(name).name),
            is_loading=True,
        )

    @Slot(object)
    def show_model(self, model: ModelInfo) -> None:
        """Show the loaded model where no run is shown, and its hardware in the tooltip."""
        self._model, self._state, self._is_loading = model, "", False
        self._update_model()

    @Slot(object)
    def show_backend(self, backend: DecodeBackend | None) -> None:
        """Show the decode backend of the loaded model; None if it does not apply."""
        self._backend = backend
        self._update_model()

    def show_state(self, text: str, is_loading: bool = False) -> None:
        """Show that there is no model, or that one is being loaded, which goes before the model of the shown run."""
        self._model, self._state, self._is_loading = None, text, is_loading
        self._update_model()

    def _update_model(self) -> None:
        """Show the state of the model, or the model of the shown run, or else the loaded model."""
        started, model = self._run.started if self._run is not None else None, self._model
        if self._is_loading or (self._state and started is None):
            name = details = self._state
        elif started is not None:
            name = " · ".join(filter(None, (started.engine, _short_name(started.model))))
            is_loaded = model is not None and _is_run_by(started, model)
            details = _model_hardware(model, self._backend) if model and is_loaded else _run_hardware(started)
        elif model is not None:
            name = " · ".join(filter(None, (model.engine, model.title or _short_name(model.name))))
            details = _model_hardware(model, self._backend)
        else:
            return
        self._details = details
        self.device.setText(f"● {name}")
        self._fit()

    def stop_timer(self) -> None:
        """Stop the timer."""
        self._timer.stop()

    @Slot()
    def refresh(self) -> None:
        """Update all numbers."""
        if self._run is not None and self._run.started is not self._shown_start:
            self._shown_start = self._run.started
            self._update_model()
        known = run_status.compute_status_numbers(self._run) if self._run is not None else run_status.StatusNumbers()
        texts = {
            "first_token": _labelled_value(tr("first token"), known.first_token, words.duration),
            "prefill": " · ".join(
                filter(None, (_labelled_value(tr("prefill"), known.prefill, words.rate), _reused_text(self._run)))
            ),
            "decode": _labelled_value(tr("decode"), known.decode, words.rate),
            "cache": _labelled_value(tr("cache"), known.cache, words.size),
            "acceptance": _labelled_value(tr("accepted"), known.acceptance, words.whole_percent),
        }
        is_used = self._run is not None and self._run.started is not None
        # Keep the layout until the settings of a starting run are known.
        is_shown = is_used or (self._timer.isActive() and not self.settings_button.isHidden())
        self.settings_button.setEnabled(is_used)
        if all(self.number_labels[name].text() == text for name, text in texts.items()) and (
            is_shown != self.settings_button.isHidden()
        ):
            return
        for name, text in texts.items():
            self.number_labels[name].setText(text)
        self.settings_button.setVisible(is_shown)
        self._fit()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    def _fit(self) -> None:
        """Show the available numbers, dropping the least important ones in a narrow window.

        A long name of a model leaves them their room: it is cut, and its tooltip begins with the whole name.
        """
        names = [name for name, label in self.number_labels.items() if label.text()]
        widths = {name: self.number_labels[name].sizeHint().width() + GAP for name in names}
        always = (self.outcome, self.settings_button, self.history_button, *self.toggles)
        others = sum(part.sizeHint().width() + GAP for part in always)
        name_width = self.device.sizeHint().width()
        least = min(name_width, round(self.width() * _NAME_SHARE)) + GAP
        for name in _DROP_ORDER:
            if name in widths and others + least + sum(widths.values()) > self.width():
                del widths[name]
        for name, label in self.number_labels.items():
            label.setVisible(name in widths)
        room = max(least, self.width() - others - sum(widths.values())) - GAP
        self.device.setMaximumWidth(room)
        whole_name = f"{self.device.text()}\n" if name_width > room else ""
        self.device.setToolTip(tooltip(whole_name + self._details))

    def restyle(self, theme: Theme) -> None:
        font = theme.font(12, tabular=True)
        for label in (self.device, *self.number_labels.values(), self.outcome):
            label.setFont(font)
        self.setFixedHeight(theme.px(28))

    def _label(self, title: str, label: QLabel) -> QLabel:
        label.setProperty("role", "muted")
        label.setAccessibleName(title)
        return label

    def _lay_out(self) -> None:
        row = arrange(QHBoxLayout(self), margins=(16, 0, 10, 0), spacing=GAP)
        self.device.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Preferred)
        row.addWidget(self.device)
        for label in self.number_labels.values():
            row.addWidget(label)
        arrange(row, STRETCH, self.outcome, self.settings_button)
        ends = arrange(QHBoxLayout(), self.history_button, *self.toggles, spacing=2)
        row.addLayout(ends)


_TITLES = {
    "first_token": mark("Time to the first token"),
    "prefill": mark("Prefill speed"),
    "decode": mark("Decode speed"),
    "cache": mark("Cache size"),
    "acceptance": mark("Accepted draft tokens"),
}


_DROP_ORDER = ("prefill", "cache", "first_token", "acceptance")
_NAME_SHARE = 0.25
"""Part of the line that a long name of a model gets before numbers are dropped."""


def _is_run_by(started: RunStarted, model: ModelInfo) -> bool:
    """Return whether the run is one of the loaded model, as it is loaded now."""
    is_same = started.model in (model.name, model.title)
    return is_same and (started.device, started.dtype) == (model.device, model.dtype)


def _short_name(model: str) -> str:
    return Path(model).name or model


def _run_hardware(started: RunStarted) -> str:
    return started.device if started.engine else f"{_device_name(started.device)}, {started.dtype}"


def _model_hardware(model: ModelInfo, backend: DecodeBackend | None) -> str:
    """Return device, data type and threads of a model, why they differ from the requested ones, and the backend."""
    parts = [model.engine, model.device] if model.engine else [_device_name(model.device), model.dtype]
    if model.threads:
        parts.append(words.count(model.threads, "thread"))
    if backend is not None and backend.uses_native_code:
        parts.append(tr("native code"))
    hardware = join_names(parts) + (f" ({model.note})" if model.note else "")
    return f"{hardware}\n{backend.sentence}" if backend is not None else hardware


def _device_name(device: str) -> str:
    return device.upper() if device in ("cpu", "mps", "cuda") else device


def _reused_text(run: Run | None) -> str:
    """Return how many prompt tokens were reused from the cache."""
    reused = run.prefilled.reused if run is not None and run.prefilled is not None else 0
    return tr("{reused:,} reused").format(reused=reused) if reused else ""


def _labelled_value(word: str, value: Number | None, words: Callable[[Number], str]) -> str:
    return "" if value is None else f"{word} {words(value)}"
