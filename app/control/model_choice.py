"""The model: what its picker lists, and what it says of the chosen one."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QObject, Signal, Slot

from app.control.hub_scan import HubScan
from app.control.model_list import (
    ENGINE_ITEM,
    FOLDER_ITEM,
    HUB_ITEM,
    NO_MODELS,
    WEIGHTS_ITEM,
    ModelList,
    subtitle,
)
from app.state.suggestions import unknown
from app.state.worker_messages import ModelInfo
from app.storage.settings import Models
from app.widgets.picker_combo import PickerCombo
from core import ModelEntry, catalog
from resources.language import tr


class ModelChoice(QObject):
    """`changed` when another is chosen; `ready(ModelInfo)` once the chosen one is loaded; `listed` when there are
    more to choose from."""

    changed = Signal()
    listed = Signal()
    ready = Signal(object)
    folderWanted = Signal()
    hubWanted = Signal()
    weightsWanted = Signal()
    engineWanted = Signal()

    def __init__(self, picker: PickerCombo, models: ModelList, kept: Models, first: str) -> None:
        """`first`: the one to begin with."""
        super().__init__(picker)
        self._picker, self._models, self._kept = picker, models, kept
        self._info: ModelInfo | None = None
        models.memory = kept.memory
        models.refresh(kept.folders, first)
        for address in kept.engines:
            models.add_engine(address)
        self._show_models()
        picker.choose(first)
        self._show_words()
        picker.currentIndexChanged.connect(self._on_chosen)
        picker.activated.connect(self._on_activated)
        scan = HubScan(self)
        scan.found.connect(self._on_found)
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
        if self._picker.choose(name) or self.add_engine(name) or self.add_folder(name):
            return []
        return [unknown("model", name, self._models.names)]

    def add_folder(self, folder: str, chooses: bool = True) -> bool:
        """List a model folder, now and later on, and choose it, or have what is chosen stay; False when it holds no
        model."""
        entry, chosen = self._models.add_folder(folder), self.name
        if entry is None:
            return False
        if folder not in self._kept.folders:
            self._kept.folders.append(folder)
        self._show_models()
        if not chooses:
            self._picker.choose(chosen)
        self.listed.emit()
        return not chooses or self._picker.choose(entry.name)

    def add_engine(self, address: str) -> bool:
        """List a model on another machine and choose it; False for what is no address."""
        entry = self._models.add_engine(address)
        if entry is None:
            return False
        if entry.name not in self._kept.engines:
            self._kept.engines.append(entry.name)
        self._show_models()
        self.listed.emit()
        return self._picker.choose(entry.name)

    @Slot(object)
    def add_hub(self, entry: ModelEntry) -> None:
        """List a model that has come from the hub."""
        self._on_found([entry])

    @Slot(str)
    def drop(self, name: str) -> None:
        """List it no more; another is chosen where it was."""
        self._models.drop(name)
        self._show_models()
        self.listed.emit()

    def use_hub(self, name: str) -> bool:
        """Choose a model of the hub's cache; False when it is not there."""
        entry = catalog.hub_entry(name)
        if entry is not None and self._models.get(name) is None:
            self.add_hub(entry)
        return self._picker.choose(name)

    def why_not(self, folder: str) -> tuple[str, str]:
        """Why a folder cannot be listed: cause and remedy."""
        return self._models.why_not(folder)

    def reckon(self, tokens: int, rows: int) -> None:
        """Say of each listed model what a run of that size would take; not while the list is open."""
        if not self._picker.is_open and self._models.reckon(tokens, rows):
            self._show_models()

    def _show_models(self) -> None:
        self._picker.set_items(self._models.items())
        self._last = self._picker.currentIndex()
        self._show_words()

    def _show_words(self, loading: bool = False) -> None:
        info = self._info if self._info is not None and self._info.name == self.name else None
        words = subtitle(self.entry, info, loading, self.name in self._kept.memory)
        self._picker.set_subtitle(words if self.name else tr("choose a model"))

    @Slot(object)
    def _on_found(self, entries: list[ModelEntry]) -> None:
        self._models.add(entries)
        self._show_models()
        self.listed.emit()

    @Slot(str)
    def on_loading(self, _name: str) -> None:
        """A model is being loaded."""
        self._info = None
        self._show_words(loading=True)

    @Slot(object)
    def on_ready(self, info: ModelInfo) -> None:
        """One is loaded, the chosen one or that of an earlier run."""
        self._info = info
        self._show_words()
        if info.name == self.name:
            self.ready.emit(info)

    @Slot(object)
    def on_failed(self, _error: object) -> None:
        """Loading may have failed: stop saying that it goes on."""
        self._show_words()

    @Slot()
    def _on_chosen(self) -> None:
        if self.name:
            self._last = self._picker.currentIndex()
            self._show_words()
            self.changed.emit()

    @Slot(int)
    def _on_activated(self, index: int) -> None:
        actions = {
            FOLDER_ITEM: self.folderWanted,
            HUB_ITEM: self.hubWanted,
            WEIGHTS_ITEM: self.weightsWanted,
            ENGINE_ITEM: self.engineWanted,
        }
        wanted = actions.get(self._picker.itemData(index))
        if wanted is not None:
            self._picker.setCurrentIndex(self._last)
            wanted.emit()
