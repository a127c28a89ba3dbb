"""The adapters of each model: the list beside the prompt, its settings, and their check by the worker."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from PySide6.QtCore import QObject, Signal, Slot
from PySide6.QtWidgets import QWidget

from decodescope.app.control.messages import Messages
from decodescope.app.control.model_choice import ModelChoice
from decodescope.app.control.model_list import ENGINE
from decodescope.app.control.model_loading import ModelLoadController
from decodescope.app.panels.adapter_panel import AdapterEntry, AdapterPanel
from decodescope.app.session.queries.base import Query, Report
from decodescope.app.session.session import Session
from decodescope.app.storage.settings import ModelsSection
from decodescope.app.widgets.file_dialogs import open_file_dialog, open_folder_dialog
from decodescope.core import AdapterChoice, adapters, words
from decodescope.core.common.lightweight_dataclass import plain
from decodescope.resources.language import tr, trc

if TYPE_CHECKING:
    from decodescope.app.session.local_models import LocalModels
    from decodescope.app.session.queries.base import Answer


class AdapterInfo(NamedTuple):
    """Properties of an adapter."""

    kind: str
    """Kind of adapter and file, for people."""
    base: str
    """The model it was trained for; empty if unknown."""
    ranks: tuple[int, ...]
    layers: int
    """Number of layers that it changes."""
    bytes: int


@plain(frozen=True)
class AdapterQuery(Query):
    """Query whether an adapter fits the loaded model, and what it is; None if the model is not loaded, or remote."""

    path: str

    def run(self, models: LocalModels, report: Report) -> AdapterInfo | None:
        """Load the adapter, again if its files have changed, and describe it. Raises DecodescopeError."""
        model = models.find(self.load)
        if model is None:
            return None
        if model.adapters.is_outdated(self.path):
            model.adapters.remove(self.path)
        found = model.adapters.load(self.path, self.load.allow_pickle)
        return AdapterInfo(found.kind, found.base, found.ranks, len(found.layers), found.nbytes)


class AdapterController(QObject):
    """Keeps the panel and the saved lists in sync. `changed`: an adapter was added, removed, switched or weighted;
    `listed(entries)`: the list was shown or changed.
    """

    changed = Signal()
    listed = Signal(object)

    def __init__(
        self, panel: AdapterPanel, model: ModelChoice, loading: ModelLoadController, settings: ModelsSection,
        session: Session, messages: Messages, parent_window: QWidget,
    ) -> None:  # fmt: skip
        super().__init__(parent_window)
        self._panel, self._model, self._loading = panel, model, loading
        self._settings, self._session, self._messages = settings, session, messages
        self._parent_window = parent_window
        panel.changed.connect(self._on_changed)
        panel.addRequested.connect(self.open)
        model.changed.connect(self.show_model)
        model.adapterRequested.connect(self.open)
        session.modelReady.connect(self._check_all)
        session.answered.connect(self._on_answer)
        self.show_model()

    @property
    def entries(self) -> Sequence[AdapterEntry]:
        """The adapters of the selected model."""
        return self._panel.entries

    @property
    def choices(self) -> tuple[AdapterChoice, ...]:
        """The adapters that are switched on, with their strengths."""
        return tuple(AdapterChoice(one.path, one.strength) for one in self._panel.entries if one.is_on)

    @Slot()
    def show_model(self) -> None:
        """Show the adapters of the selected model."""
        saved = self._settings.adapters.get(self._model.name, [])
        self._panel.set_entries([AdapterEntry(*one) for one in saved] if self._accepts_adapters else [])
        self.listed.emit(self.entries)
        self._check_all()

    @Slot(str, bool)
    def switch(self, path: str, is_on: bool) -> None:
        """Switch an adapter of the list on or off."""
        entries = [one._replace(is_on=is_on) if one.path == path else one for one in self.entries]
        self._panel.set_entries(entries)
        self._on_changed()

    @property
    def _accepts_adapters(self) -> bool:
        entry = self._model.entry
        return entry is not None and entry.source != ENGINE

    @Slot()
    def open(self) -> None:
        """Open the dialog for the folder of an adapter."""
        if self._can_add():
            open_folder_dialog(self._parent_window, tr("Add adapter"), self.add)

    @Slot()
    def open_file(self) -> None:
        """Open the dialog for a GGUF adapter."""
        if self._can_add():
            open_file_dialog(self._parent_window, tr("Add adapter"), tr("GGUF adapters (*.gguf)"), self.add)

    def _can_add(self) -> bool:
        if not self._accepts_adapters:
            self._messages.show_setup_error(
                tr("The adapter cannot be used"),
                tr("Adapters are not applied to models on another machine."),
                tr("Select a model on this computer, or start the engine with the adapter."),
            )
        return self._accepts_adapters

    @Slot(str)
    def add(self, path: str, strength: float = 1.0) -> None:
        """Add an adapter, or set the strength of one in the list, and check it."""
        if not self._can_add():
            return
        if problem := adapters.adapter_problem(path):
            self._messages.show_setup_error(tr("The adapter cannot be used"), *problem)
            return
        others = [one for one in self._panel.entries if one.path != path]
        self._panel.set_entries([*others, AdapterEntry(path, strength)])
        self._on_changed()
        self._check_all()

    @Slot(object)
    def apply(self, chosen: Sequence[AdapterChoice] | None) -> None:
        """Switch exactly these adapters on, as in a run; others stay in the list, switched off."""
        wanted = {one.path: one for one in chosen or ()}
        if not wanted and not self.choices:
            return
        kept = [one._replace(is_on=one.path in wanted) for one in self._panel.entries]
        kept = [one._replace(strength=wanted[one.path].strength) if one.is_on else one for one in kept]
        listed = {one.path for one in kept}
        new = [AdapterEntry(one.path, one.strength) for path, one in wanted.items() if path not in listed]
        self._panel.set_entries([*kept, *new])
        self._on_changed()
        self._check_all()

    @Slot()
    def _on_changed(self) -> None:
        name = self._model.name
        self._settings.adapters.pop(name, None)
        if name and self._panel.entries:
            self._settings.adapters[name] = [list(one) for one in self._panel.entries]
        self.changed.emit()
        self.listed.emit(self.entries)

    @Slot()
    def _check_all(self) -> None:
        """Request the properties of every adapter once the model is loaded."""
        info = self._session.model
        if info is None or info.name != self._model.name:
            return
        for one in self._panel.entries:
            if Path(one.path).exists():
                self._session.request(AdapterQuery(one.path, load=self._loading.request()))
            else:
                self._panel.show_remark(one.path, tr("The file is no longer there."), is_problem=True)

    @Slot(object)
    def _on_answer(self, answer: Answer) -> None:
        query = answer.query
        if not isinstance(query, AdapterQuery) or query.load.model != self._model.name:
            return
        if answer.error is not None:
            text = f"{answer.error.cause} {answer.error.remedy}".strip()
            self._panel.show_remark(query.path, text, is_problem=True)
        elif isinstance(answer.result, AdapterInfo):
            self._panel.show_remark(query.path, describe(answer.result))


def describe(info: AdapterInfo) -> str:
    """Return what an adapter is: `LoRA · rank 8 · 1.2 MB`."""
    ranks = ", ".join(map(str, info.ranks))
    rank = [trc("an adapter", "rank {rank}").format(rank=ranks)] if ranks else []
    parts = [info.kind, *rank, words.size(info.bytes)]
    return " · ".join(parts)
