"""The model: what its picker lists, and what it says of the chosen one."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from PySide6.QtCore import QObject, QTimer, Signal, Slot
from PySide6.QtWidgets import QWidget

from app.control.messages import Messages
from app.control.model_list import (
    ENGINE_ITEM,
    FOLDER_ITEM,
    HUB_ITEM,
    NO_MODELS,
    WEIGHTS_ITEM,
    ModelList,
    subtitle,
)
from app.control.registry_choice import StrategyChoice
from app.panels.toolbar import DraftPicker
from app.state.suggestions import truncate_name, unknown_name_message
from app.state.worker_messages import ModelInfo
from app.storage.settings import ModelsSection
from app.widgets.file_dialogs import open_folder_dialog
from app.widgets.picker_combo import PickerCombo
from core import ModelEntry, catalog
from resources.language import tr

_POLL_MS = 40


class HubScan(QObject):
    """`found(list of ModelEntry)` once, soon after `start`, when there is anything in the cache."""

    found = Signal(object)

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self._entries: list[ModelEntry] | None = None
        self._timer = QTimer(self, interval=_POLL_MS)
        self._timer.timeout.connect(self._poll)

    def start(self) -> None:
        """Begin. A thread that outlives the window touches nothing of it: the result is fetched, not sent."""
        if catalog.hub_has_models():
            threading.Thread(target=self._scan, name="hub-scan", daemon=True).start()
            self._timer.start()

    def _scan(self) -> None:
        entries: list[ModelEntry] = []
        try:
            entries = catalog.hub_cached()
        finally:  # whatever happens here, the timer that waits for an answer ends
            self._entries = entries

    @Slot()
    def _poll(self) -> None:
        if self._entries is not None:
            self._timer.stop()
            self.found.emit(self._entries)


class ModelChoice(QObject):
    """`changed` when another is chosen; `ready(ModelInfo)` once the chosen one is loaded; `listed` when there are
    more to choose from."""

    changed = Signal()
    listed = Signal()
    ready = Signal(object)
    folderRequested = Signal()
    hubRequested = Signal()
    weightsRequested = Signal()
    engineRequested = Signal()

    def __init__(self, picker: PickerCombo, models: ModelList, settings: ModelsSection, initial: str) -> None:
        """`initial`: the one to begin with."""
        super().__init__(picker)
        self._picker, self._models, self._settings = picker, models, settings
        self._info: ModelInfo | None = None
        models.memory_limits = settings.memory
        models.refresh(settings.folders, initial)
        for address in settings.engines:
            models.add_engine(address)
        self._show_models()
        picker.select_data(initial)
        self._show_subtitle()
        picker.currentIndexChanged.connect(self._on_chosen)
        picker.activated.connect(self._on_activated)
        scan = HubScan(self)
        scan.found.connect(self._add_entries)
        scan.start()

    @property
    def name(self) -> str:
        """The chosen model's name; empty when there is none."""
        name = self._picker.currentData()
        return "" if name in NO_MODELS else str(name)

    @property
    def entry(self) -> ModelEntry | None:
        """What is known of the chosen model; None where there is none, or none of that name is listed."""
        return self._models.get(self.name)

    @property
    def entries(self) -> Sequence[ModelEntry]:
        """Every model that is listed."""
        return self._models.entries

    def choose(self, name: str) -> list[str]:
        """Choose by name or folder; gives back a sentence when there is none."""
        if self._picker.select_data(name) or self.add_engine(name) or self.add_folder(name):
            return []
        return [unknown_name_message("model", name, self._models.names)]

    def add_folder(self, folder: str, select: bool = True) -> bool:
        """List a model folder, now and later on, and choose it, or have what is chosen stay; False when it holds no
        model."""
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
        """List a model on another machine and choose it; False for what is no address."""
        entry = self._models.add_engine(address)
        if entry is None:
            return False
        if entry.name not in self._settings.engines:
            self._settings.engines.append(entry.name)
        self._show_models()
        self.listed.emit()
        return self._picker.select_data(entry.name)

    @Slot(object)
    def add_hub_model(self, entry: ModelEntry) -> None:
        """List a model that has come from the hub."""
        self._add_entries([entry])

    @Slot(str)
    def remove(self, name: str) -> None:
        """List it no more; another is chosen where it was."""
        self._models.remove(name)
        self._show_models()
        self.listed.emit()

    def choose_hub_model(self, name: str) -> bool:
        """Choose a model of the hub's cache; False when it is not there."""
        entry = catalog.hub_entry(name)
        if entry is not None and self._models.get(name) is None:
            self.add_hub_model(entry)
        return self._picker.select_data(name)

    def folder_problem(self, folder: str) -> tuple[str, str]:
        """Why a folder cannot be listed: cause and remedy."""
        return self._models.folder_problem(folder)

    def set_run_size(self, tokens: int, rows: int) -> None:
        """Say of each listed model what a run of that size would take; not while the list is open."""
        if not self._picker.is_open and self._models.set_run_size(tokens, rows):
            self._show_models()

    def _show_models(self) -> None:
        self._picker.set_items(self._models.items())
        self._last_index = self._picker.currentIndex()
        self._show_subtitle()

    def _show_subtitle(self, loading: bool = False) -> None:
        info = self._info if self._info is not None and self._info.name == self.name else None
        words = subtitle(self.entry, info, loading, self.name in self._settings.memory)
        self._picker.set_subtitle(words if self.name else tr("choose a model"))

    @Slot(object)
    def _add_entries(self, entries: list[ModelEntry]) -> None:
        self._models.add(entries)
        self._show_models()
        self.listed.emit()

    @Slot(str)
    def on_loading(self, _name: str) -> None:
        """A model is being loaded."""
        self._info = None
        self._show_subtitle(loading=True)

    @Slot(object)
    def on_ready(self, info: ModelInfo) -> None:
        """One is loaded, the chosen one or that of an earlier run."""
        self._info = info
        self._show_subtitle()
        if info.name == self.name:
            self.ready.emit(info)

    @Slot(object)
    def on_failed(self, _error: object) -> None:
        """Loading may have failed: stop saying that it goes on."""
        self._show_subtitle()

    @Slot()
    def _on_chosen(self) -> None:
        if self.name:
            self._last_index = self._picker.currentIndex()
            self._show_subtitle()
            self.changed.emit()

    @Slot(int)
    def _on_activated(self, index: int) -> None:
        actions = {
            FOLDER_ITEM: self.folderRequested,
            HUB_ITEM: self.hubRequested,
            WEIGHTS_ITEM: self.weightsRequested,
            ENGINE_ITEM: self.engineRequested,
        }
        signal = actions.get(self._picker.itemData(index))
        if signal is not None:
            self._picker.setCurrentIndex(self._last_index)
            signal.emit()


class DraftChoice(QObject):
    """Shown only where the strategy has a use for a draft."""

    def __init__(self, picker: DraftPicker, models: ModelList, model: ModelChoice, strategy: StrategyChoice) -> None:
        super().__init__(picker)
        self._picker, self._models, self._model, self._strategy = picker, models, model, strategy
        self.changed = picker.chosenChanged
        model.changed.connect(self.offer)
        model.listed.connect(self.offer)
        strategy.chosen.connect(self._show)
        self.offer()
        self._show()

    @property
    def names(self) -> tuple[str, ...]:
        """The draft models of a strategy that has some; empty for any other."""
        return self._picker.chosen if self._strategy.strategy.takes_drafters else ()

    @property
    def selected_names(self) -> list[str]:
        """What is chosen, whether the strategy has a use for it or not."""
        return list(self._picker.chosen)

    @property
    def problems(self) -> list[str]:
        """Why no run can start with this choice, a sentence each."""
        if self.names or not self._strategy.strategy.takes_drafters:
            return []
        return [tr("No draft model is chosen: this strategy needs one that is smaller than the model.")]

    def restore(self, names: Sequence[str]) -> None:
        """Choose those that are still there."""
        self._picker.choose_all(names)

    def choose(self, names: Sequence[str]) -> list[str]:
        """Choose by name or folder; gives back a sentence for each that cannot draft."""
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
            return tr("There is no draft model “{name}” here.").format(name=truncate_name(name))
        return tr("“{draft}” cannot draft for {model}. {reason}").format(
            draft=name, model=self._model.name, reason=reason or tr("There are enough drafts already.")
        )

    @Slot()
    def offer(self) -> None:
        """List the drafts that fit the chosen model; what was chosen stays as far as it can."""
        self._picker.offer(self._models.drafts_for(self._model.name))

    @Slot()
    def _show(self) -> None:
        self._picker.setVisible(self._strategy.strategy.takes_drafters)


class ModelFolders(QObject):
    """Asks for a folder above the window that `over` lies in, and lists the model that it holds."""

    def __init__(self, over: QWidget, model: ModelChoice, messages: Messages) -> None:
        super().__init__(over)
        self._over, self._model, self._messages = over, model, messages
        model.folderRequested.connect(self.open)

    @Slot()
    def open(self) -> None:
        """Choose a model folder."""
        open_folder_dialog(self._over, tr("Open a model folder"), self.use)

    @Slot(str)
    def use(self, folder: str) -> None:
        """List a model folder and choose it."""
        if not self._model.add_folder(folder):
            self._messages.show_setup_error(tr("This folder holds no model"), *self._model.folder_problem(folder))
