"""Model selection: the entries of the picker and the subtitle of the selected model."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QTimer, Signal, Slot
from PySide6.QtWidgets import QWidget

from decodescope.app.control.messages import Messages
from decodescope.app.control.model_list import (
    ADAPTER,
    ENGINE,
    ENGINE_ADDRESS,
    FILE,
    FOLDER,
    HUB,
    LOCAL_ENGINES,
    WEIGHTS,
    ModelList,
    commands,
    subtitle,
)
from decodescope.app.control.registry_choice import StrategyChoice
from decodescope.app.panels.toolbar import DraftPicker
from decodescope.app.state.suggestions import truncate_name, unknown_name_message
from decodescope.app.state.worker_messages import ModelInfo
from decodescope.app.storage.settings import ModelsSection
from decodescope.app.widgets.file_dialogs import open_file_dialog, open_folder_dialog
from decodescope.app.widgets.picker_combo import PickerCombo
from decodescope.core import ModelEntry, catalog
from decodescope.resources.language import join_names, join_sentences, tr, trn

if TYPE_CHECKING:
    from decodescope.app.control.local_engine_search import LocalEngineSearch
    from decodescope.core.remote import LocalEngine

_POLL_MS = 40
MAX_REMEMBERED = 12
"""Number of recently used models that are remembered."""


class HubScan(QObject):
    """`found(list of ModelEntry)` is emitted once after `start`: the models in the Hub's cache and the GGUF files of
    other programs.
    """

    found = Signal(object)

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self._entries: list[ModelEntry] | None = None
        self._timer = QTimer(self, interval=_POLL_MS)
        self._timer.timeout.connect(self._poll)

    def start(self) -> None:
        """Start the scan. The thread touches no Qt object, as it may outlive the window; a timer polls its result."""
        threading.Thread(target=self._scan, name="hub-scan", daemon=True).start()
        self._timer.start()

    def _scan(self) -> None:
        entries: list[ModelEntry] = []
        try:
            entries = [*(catalog.hub_cached() if catalog.hub_has_models() else ()), *catalog.other_programs()]
        finally:  # end the polling timer even on failure
            self._entries = entries

    @Slot()
    def _poll(self) -> None:
        if self._entries is not None:
            self._timer.stop()
            if self._entries:
                self.found.emit(self._entries)


class ModelChoice(QObject):
    """Controls the model picker. `changed`: another model was selected; `ready(ModelInfo)`: the selected model is
    loaded; `listed`: the list has changed.
    """

    changed = Signal()
    listed = Signal()
    ready = Signal(object)
    folderRequested = Signal()
    fileRequested = Signal()
    hubRequested = Signal()
    weightsRequested = Signal()
    engineRequested = Signal()
    adapterRequested = Signal()

    def __init__(self, picker: PickerCombo, models: ModelList, settings: ModelsSection, initial: str) -> None:
        """`initial`: the model selected at the start."""
        super().__init__(picker)
        self._picker, self._models, self._settings = picker, models, settings
        self._info: ModelInfo | None = None
        models.memory_limits = settings.memory
        models.refresh(settings.folders, initial)
        for address in settings.engines:
            models.add_engine(address)
        picker.commands = commands()
        self._show_models()
        picker.select_data(initial)
        self._show_subtitle()
        picker.currentIndexChanged.connect(self._on_chosen)
        picker.commandChosen.connect(self._on_command)
        self._engine_search: LocalEngineSearch | None = None
        scan = HubScan(self)
        scan.found.connect(self._add_entries)
        scan.start()

    @property
    def name(self) -> str:
        """Name of the selected model; empty without one."""
        return str(self._picker.currentData() or "")

    @property
    def entry(self) -> ModelEntry | None:
        """Catalog entry of the selected model; None if it is not listed."""
        return self._models.get(self.name)

    @property
    def entries(self) -> Sequence[ModelEntry]:
        """All listed models."""
        return self._models.entries

    def choose(self, name: str) -> list[str]:
        """Select a model by name or folder; return a sentence if there is none."""
        if self._picker.select_data(name) or self.add_engine(name) or self.add_folder(name):
            return []
        return [unknown_name_message("model", name, self._models.names)]

    def add_folder(self, folder: str, select: bool = True) -> bool:
        """Add a model folder permanently, and select it if `select`; return False if it contains no model."""
        entry, chosen = self._models.add_folder(folder), self.name
        if entry is None:
            return False
        if folder not in self._settings.folders:
            self._settings.folders.append(folder)
        self._show_models()
        if not select:
            self._picker.select_data(chosen)
        self.listed.emit()
        return not select or self._picker.select_data(entry.name)

    def add_engine(self, address: str) -> bool:
        """Add a model on another machine and select it; return False for an invalid address."""
        entry = self._models.add_engine(address)
        if entry is None:
            return False
        if entry.name not in self._settings.engines:
            self._settings.engines.append(entry.name)
        self._show_models()
        self.listed.emit()
        return self._picker.select_data(entry.name)

    @Slot()
    def search_local_engines(self) -> LocalEngineSearch:
        """Search this computer for running engines; the picker opens with their models."""
        if self._engine_search is None:
            from decodescope.app.control.local_engine_search import LocalEngineSearch

            self._engine_search = LocalEngineSearch(self)
            self._engine_search.found.connect(self._show_local_engines)
        self._engine_search.start()
        self._models.search_status = tr("Searching…")
        self._show_models()
        return self._engine_search

    @Slot()
    def stop_search(self) -> None:
        """Stop the search for engines, if there is one."""
        if self._engine_search is not None:
            self._engine_search.stop()

    @Slot(object)
    def _show_local_engines(self, found: Sequence[LocalEngine]) -> None:
        names = self._models.add_local_engines(found)
        if names:
            engines = join_names(engine.title for engine in found if engine.models)
            status = trn("Found {n} model: {engines}", "Found {n} models: {engines}", len(names))
            self._models.search_status = status.format(n=len(names), engines=engines)
        elif found:
            self._models.search_status = tr("No models found")
        else:
            self._models.search_status = tr("Neither Ollama nor LM Studio answers here. Start one, then search again.")
        self._show_models()
        self.listed.emit()
        if self._picker.isVisible():
            self._picker.show_list_at(names[0] if names else None)

    @Slot(object)
    def add_hub_model(self, entry: ModelEntry) -> None:
        """Add a downloaded Hub model."""
        self._add_entries([entry])

    @Slot(str)
    def remove(self, name: str) -> None:
        """Remove a model from the list; if it was selected, another one becomes selected."""
        self._models.remove(name)
        self._show_models()
        self.listed.emit()

    def choose_hub_model(self, name: str) -> bool:
        """Select a model in the Hub cache, or a GGUF model by `owner/name:model`; return False if it is missing."""
        entry = catalog.hub_entry(name)
        if entry is not None and self._models.get(entry.name) is None:
            self.add_hub_model(entry)
        return self._picker.select_data(entry.name if entry is not None else name)

    def folder_problem(self, folder: str) -> tuple[str, str]:
        """Return why a folder cannot be added: cause and remedy."""
        return self._models.folder_problem(folder)

    def set_run_size(self, tokens: int, rows: int) -> None:
        """Show for each model whether a run of this size fits; does nothing while the list is open."""
        if not self._picker.is_open and self._models.set_run_size(tokens, rows):
            self._show_models()

    def _show_models(self) -> None:
        self._picker.set_items(self._models.items(), self._models.recent_items(self._settings.recent))
        self._show_subtitle()

    def _show_subtitle(self, loading: bool = False) -> None:
        info = self._info if self._info is not None and self._info.name == self.name else None
        words = subtitle(self.entry, info, loading, self.name in self._settings.memory)
        self._picker.set_subtitle(words if self.name else tr("select a model"))

    @Slot(object)
    def _add_entries(self, entries: list[ModelEntry]) -> None:
        self._models.add(entries)
        self._show_models()
        self.listed.emit()

    @Slot(str)
    def on_loading(self, _name: str) -> None:
        """Show that a model is being loaded."""
        self._info = None
        self._show_subtitle(loading=True)

    @Slot(object)
    def on_ready(self, info: ModelInfo) -> None:
        """Show the loaded model, which is the selected one or that of an earlier run."""
        self._info = info
        self._show_subtitle()
        if info.name == self.name:
            self.ready.emit(info)

    @Slot(object)
    def on_failed(self, _error: object) -> None:
        """Stop showing the loading state, as loading may have failed."""
        self._show_subtitle()

    @Slot()
    def _on_chosen(self) -> None:
        if self.name:
            self._keep_engine()
            self._remember()
            self._show_subtitle()
            self.changed.emit()

    def _keep_engine(self) -> None:
        """Remember a chosen model of an engine for the next start."""
        entry = self.entry
        if entry is not None and entry.source == ENGINE and entry.name not in self._settings.engines:
            self._settings.engines.append(entry.name)

    def _remember(self) -> None:
        """Put the chosen model first among the recently used ones."""
        others = [name for name in self._settings.recent if name != self.name]
        self._settings.recent[:] = [self.name, *others][:MAX_REMEMBERED]
        self._picker.recent_items = tuple(self._models.recent_items(self._settings.recent))

    @Slot(str)
    def _on_command(self, name: str) -> None:
        signals = {
            FOLDER: self.folderRequested,
            FILE: self.fileRequested,
            HUB: self.hubRequested,
            WEIGHTS: self.weightsRequested,
            ENGINE_ADDRESS: self.engineRequested,
            ADAPTER: self.adapterRequested,
        }
        if name == LOCAL_ENGINES:
            self.search_local_engines()
        else:
            signals[name].emit()


class DraftChoice(QObject):
    """Controls the draft picker, which is visible only for strategies that use drafts. `removed(text)`: a draft was
    removed because it does not fit the selected model.
    """

    removed = Signal(str)

    def __init__(self, picker: DraftPicker, models: ModelList, model: ModelChoice, strategy: StrategyChoice) -> None:
        super().__init__(picker)
        self._picker, self._models, self._model, self._strategy = picker, models, model, strategy
        self.changed = picker.chosenChanged
        self._target = ""
        """The model that the current selection was made for."""
        self._removed: list[str] = []
        """Titles of the drafts removed since the last notice."""
        model.changed.connect(self.offer)
        model.listed.connect(self.offer)
        strategy.chosen.connect(self._show)
        self.offer()
        self._show()

    @property
    def names(self) -> tuple[str, ...]:
        """The selected draft models; empty for strategies without drafts."""
        return self._picker.chosen if self._strategy.strategy.takes_drafters else ()

    @property
    def selected_names(self) -> list[str]:
        """The selected draft models, even if the strategy does not use them."""
        return list(self._picker.chosen)

    @property
    def problems(self) -> list[str]:
        """Return the reasons why no run can start with this choice, a sentence each."""
        if self.names or not self._strategy.strategy.takes_drafters:
            return []
        return [tr("No draft model selected. This strategy needs one that is smaller than the model.")]

    def restore(self, names: Sequence[str]) -> None:
        """Select those drafts that still exist."""
        self._removed.clear()
        self._picker.choose_all(names)

    def choose(self, names: Sequence[str]) -> list[str]:
        """Select drafts by name or folder; return a sentence for each that cannot be used."""
        if names:
            self._removed.clear()
        new = [
            name for name in names if self._picker.unsupported_reason(name) is None and self._models.add_folder(name)
        ]
        if new:
            self.offer()
        refused = self._picker.choose_all(names) if names else []
        return [self._rejection_text(name) for name in refused]

    def _rejection_text(self, name: str) -> str:
        reason = self._picker.unsupported_reason(name)
        if reason is None:
            return tr("No draft model “{name}” was found here.").format(name=truncate_name(name))
        return tr("“{draft}” cannot draft for {model}. {reason}").format(
            draft=name, model=self._model.name, reason=reason or tr("The maximum number of drafts is selected.")
        )

    @Slot()
    def offer(self) -> None:
        """List the drafts that fit the selected model. Those that do not fit it any more are removed, with a notice."""
        target, before = self._model.name, self._picker.chosen
        items = self._models.drafts_for(target)
        usable = {str(item.data) for item in items if not item.reason}
        lost = [name for name in before if name not in usable or self._loses_tokenizer(name, target)]
        kept = [name for name in before if name not in lost]
        if lost and not kept:
            self._picker.setCurrentIndex(-1)  # otherwise it would be kept
        self._picker.offer(items, self._models.suggested_draft(target))
        if lost and kept:
            self._picker.choose_all(kept)
        if target != self._target and lost:
            self._removed += [self._title_of(name) for name in lost]
            QTimer.singleShot(0, self, self._report_removed)  # a caller may choose other drafts with the model
        self._target = target

    def _loses_tokenizer(self, draft: str, target: str) -> bool:
        """Return whether a draft has the tokenizer of the model before, but not that of `target`."""
        models = self._models
        return models.has_same_tokenizer(draft, self._target) and not models.has_same_tokenizer(draft, target)

    def _title_of(self, name: str) -> str:
        entry = self._models.get(name)
        return entry.title if entry is not None else name

    @Slot()
    def _report_removed(self) -> None:
        titles, self._removed = self._removed, []
        if not titles or not self._strategy.strategy.takes_drafters:
            return
        removed = trn(
            "{drafts} cannot draft for {model} and was removed.",
            "{drafts} cannot draft for {model} and were removed.",
            len(titles),
        ).format(drafts=join_names(titles), model=self._title_of(self._target))
        names = join_names(map(self._title_of, self._picker.chosen))
        now = tr("Now drafting: {drafts}.").format(drafts=names) if names else tr("Choose another draft model.")
        self.removed.emit(join_sentences(removed, now))

    @Slot()
    def _show(self) -> None:
        self._picker.setVisible(self._strategy.strategy.takes_drafters)


class ModelFolders(QObject):
    """Opens a folder dialog above `parent_window` and adds the model in the folder."""

    def __init__(self, parent_window: QWidget, model: ModelChoice, messages: Messages) -> None:
        super().__init__(parent_window)
        self._parent_window, self._model, self._messages = parent_window, model, messages
        model.folderRequested.connect(self.open)
        model.fileRequested.connect(self.open_file)

    @Slot()
    def open(self) -> None:
        """Open the folder dialog."""
        open_folder_dialog(self._parent_window, tr("Open model folder"), self.use)

    @Slot()
    def open_file(self) -> None:
        """Open the dialog for a GGUF file."""
        open_file_dialog(self._parent_window, tr("Open GGUF file"), tr("GGUF models (*.gguf)"), self.use)

    @Slot(str)
    def use(self, folder: str) -> None:
        """Add a model folder or a GGUF file and select it."""
        if not self._model.add_folder(folder):
            is_file = folder.lower().endswith(".gguf")
            title = tr("This file cannot be opened") if is_file else tr("This folder contains no model")
            self._messages.show_setup_error(title, *self._model.folder_problem(folder))
