"""Entries of the model picker: local models and engines with their descriptions. Does not import torch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from decodescope.app.state.model_description import describe_model
from decodescope.app.state.worker_messages import ALL_IN_MEMORY, AS_FITS, ModelInfo
from decodescope.app.widgets.picker_combo import PickerItem
from decodescope.core import Modalities, ModelEntry, catalog, words
from decodescope.core.errors import DecodescopeError
from decodescope.resources.language import mark, tr

if TYPE_CHECKING:
    from decodescope.core.remote import LocalEngine

FOLDER_ITEM = "…folder"
"""Item data of the line that opens a folder."""
FILE_ITEM = "…file"
"""Item data of the line that opens a GGUF file."""
HUB_ITEM = "…hub"
"""Item data of the line that opens the Hub dialog."""
WEIGHTS_ITEM = "…weights"
"""Item data of the line that opens the weight settings of the selected model."""
ENGINE_ITEM = "…engine"
"""Item data of the line that connects to an engine on another machine."""
LOCAL_ENGINES_ITEM = "…engines"
"""Item data of the line that searches this computer for running engines."""
ADAPTER_ITEM = "…adapter"
"""Item data of the line that adds an adapter."""
_PROBLEM_ITEM = "…problem"
"""Item data of a line with an engine whose models cannot be listed."""
NO_MODELS = (
    None, FOLDER_ITEM, FILE_ITEM, HUB_ITEM, WEIGHTS_ITEM, ENGINE_ITEM, LOCAL_ENGINES_ITEM, ADAPTER_ITEM, _PROBLEM_ITEM,
)  # fmt: skip
"""Item data of lines that are not models."""


_RECURRENT = ("amba", "rwkv", "recurrent")
"""Parts of the model types of architectures with a recurrent state."""
_SOURCES = (mark("bundled"), mark("hub"), mark("folder"), mark("file"), *catalog.PROGRAMS, mark("engine"))
ENGINE = "engine"
"""Source of a model on another machine."""
DEFAULT_LENGTH = 2048
"""Text length in tokens for memory estimates until the size of a run is known."""


class ModelList:
    """All models that can be selected, by name."""

    def __init__(self) -> None:
        self._entries: dict[str, ModelEntry] = {}
        self._run_size = (DEFAULT_LENGTH, 1)
        self._limited_models: frozenset[str] = frozenset()
        self._engine_facts: dict[str, str] = {}
        self._engine_problems: list[tuple[str, str]] = []
        self.search_status = ""
        """Result of the search for engines on this computer, or that it goes on; empty before the first search."""
        self.memory_limits: Mapping[str, int] = {}
        """Memory limits of single models (`Models.memory`); models without one must fit in memory."""

    def set_run_size(self, tokens: int, rows: int) -> bool:
        """Set the run size for memory estimates; return False if nothing changed."""
        before = (self._run_size, self._limited_models)
        self._run_size, self._limited_models = (tokens, rows), frozenset(self.memory_limits)
        return (self._run_size, self._limited_models) != before

    def refresh(self, folders: Iterable[str], hub_name: str = "") -> None:
        """Reload the bundled models and the folders added by hand, including those with a problem.

        Of the Hub cache only `hub_name` is looked up, as the full scan is slow; its results arrive through `add` and
        are kept.
        """
        found = ("hub", *catalog.PROGRAMS)
        hub = [entry for entry in self._entries.values() if entry.source in found]
        self._entries = {entry.name: entry for entry in (*catalog.bundled(), *hub)}
        if hub_name not in self._entries and (entry := catalog.hub_entry(hub_name)) is not None:
            self._entries[hub_name] = entry
        for folder in folders:
            if self.add_folder(folder) is None:
                self._entries[folder] = catalog.describe(Path(folder), folder, "folder")

    def add(self, entries: Iterable[ModelEntry]) -> None:
        """Add entries, sorted by source, else in the order of discovery."""
        merged = {**self._entries, **{entry.name: entry for entry in entries}}
        self._entries = dict(sorted(merged.items(), key=lambda item: _SOURCES.index(item[1].source)))

    def add_engine(self, address: str) -> ModelEntry | None:
        """Add a model on another machine without connecting to it; return None for an invalid address."""
        from decodescope.core import remote  # rarely needed

        try:
            parsed = remote.parse(address, allow_plain=True)
        except DecodescopeError:
            return None
        title = parsed.model or parsed.place
        entry = ModelEntry(str(parsed), title, ENGINE, Path(), parsed.place, "", None, 0, None, False)
        self.add([entry])
        return entry

    def add_local_engines(self, found: Sequence[LocalEngine]) -> list[str]:
        """Add the models of engines on this computer; return their names."""
        names: list[str] = []
        self._engine_problems = [(engine.title, engine.problem) for engine in found if engine.problem]
        for engine in found:
            for model in engine.models:
                entry = self.add_engine(engine.name_of(model))
                if entry is not None:
                    forwarded = [tr("prompts are sent to {host}").format(host=model.host)] if model.host else []
                    self._engine_facts[entry.name] = " · ".join((engine.title, *model.facts, *forwarded))
                    names.append(entry.name)
        return names

    def remove(self, name: str) -> None:
        """Remove a model from the list."""
        self._entries.pop(name, None)

    def add_folder(self, folder: str) -> ModelEntry | None:
        """Add a model folder; return None if it contains no model (the worker reports the reason when it is loaded)."""
        try:
            entry = catalog.inspect(folder)
        except DecodescopeError:
            return None
        self._entries[entry.name] = entry
        return entry

    def folder_problem(self, folder: str) -> tuple[str, str]:
        """Return why a folder cannot be added: cause and remedy; empty if it can."""
        try:
            catalog.inspect(folder)
        except DecodescopeError as error:
            return error.cause, error.remedy
        return "", ""

    def get(self, name: str) -> ModelEntry | None:
        """Return the entry called `name`, or None."""
        return self._entries.get(name)

    @property
    def entries(self) -> Sequence[ModelEntry]:
        """All entries in display order."""
        return list(self._entries.values())

    @property
    def names(self) -> Sequence[str]:
        """All names in display order."""
        return list(self._entries)

    def items(self) -> list[PickerItem]:
        """Return the lines of the picker; the last ones are actions."""
        lines = [
            _engine_model_item(entry, self._engine_facts.get(entry.name, ""))
            if entry.source == ENGINE
            else _model_item(entry, *self._run_size, self.memory_limits.get(entry.name, ALL_IN_MEMORY))
            for entry in self._entries.values()
        ]
        lines += [PickerItem(title, _PROBLEM_ITEM, reason=problem) for title, problem in self._engine_problems]
        engines = (_local_engines_item(self.search_status), _engine_item())
        return [*lines, _hub_item(), _folder_item(), _file_item(), *engines, _adapter_item(), _weights_item()]

    def drafts_for(self, name: str) -> list[PickerItem]:
        """Return every other model as a draft for `name`: compatible ones first, smallest first, then those with
        another tokenizer, then unusable ones with the reason.
        """
        target = self.get(name)
        if target is None or target.source == ENGINE:
            return []
        others = [entry for entry in self._entries.values() if entry.name != name and entry.source != ENGINE]
        others.sort(key=lambda entry: (not catalog.same_tokenizer(entry, target), entry.parameters or 0))
        return sorted((_draft_item(entry, target) for entry in others), key=lambda item: bool(item.reason))

    def fits(self, name: str, weights: str = "auto", memory: int = ALL_IN_MEMORY) -> bool:
        """Return whether a model may be loaded automatically: it is known, has no problem, and fits in free memory or
        has a memory limit.
        """
        entry = self.get(name)
        if entry is not None and entry.source == ENGINE:
            return True
        if entry is None or entry.problem is not None:
            return False
        fit = catalog.fits(entry, weights)
        return fit.ok or memory == AS_FITS or 0 < memory * 2**20 < fit.free


def _hub_item() -> PickerItem:
    return PickerItem(tr("Get model…"), HUB_ITEM, tr("Search the Hugging Face Hub and download"))


def _folder_item() -> PickerItem:
    return PickerItem(tr("Folder…"), FOLDER_ITEM, tr("Open a local model in Hugging Face format"))


def _file_item() -> PickerItem:
    return PickerItem(tr("GGUF file…"), FILE_ITEM, tr("Open a model file of llama.cpp, LM Studio or Ollama"))


def _engine_item() -> PickerItem:
    about = tr("A model on another machine: vLLM, SGLang, llama.cpp server and others")
    return PickerItem(tr("Connect to an engine…"), ENGINE_ITEM, about)


def _local_engines_item(status: str) -> PickerItem:
    about = status or tr("Search this computer for running Ollama and LM Studio")
    return PickerItem(tr("Engines on this computer…"), LOCAL_ENGINES_ITEM, about)


def _adapter_item() -> PickerItem:
    return PickerItem(tr("Adapter…"), ADAPTER_ITEM, tr("Add a LoRA adapter to the selected model"))


def _weights_item() -> PickerItem:
    about = tr("Quantize the weights of the selected model, or keep part of them on the disk")
    return PickerItem(tr("Weights…"), WEIGHTS_ITEM, about)


def _engine_model_item(entry: ModelEntry, facts: str) -> PickerItem:
    if not facts:
        from decodescope.core import remote

        is_here = remote.parse(entry.name, allow_plain=True).is_here
        about = tr("Runs in an engine on this computer") if is_here else tr("Runs on another machine")
        facts = f"{about} · {entry.architecture}"
    return PickerItem(entry.title, entry.name, facts, "", entry.name)


def _model_item(entry: ModelEntry, tokens: int, rows: int, memory: int) -> PickerItem:
    fit = catalog.fits(entry, tokens=tokens, rows=rows)
    problem = entry.problem if entry.problem and not needs_permission_only(entry) else ""
    kind = [entry.format_name] if entry.format_name else []
    parts = [describe_model(entry), *_sizes(entry), *kind, tr(entry.source)]
    if entry.problem:
        parts = [entry.problem]
    elif _is_offloaded(entry, memory):
        parts.append(tr("layers read from disk"))
    elif not fit.ok:
        parts.append(fit.sentence)
        parts.append(tr("can be read from disk: see “Weights…”"))
    help_text = f"{entry.architecture} · {fit.sentence}\n{entry.path}"
    return PickerItem(entry.title, entry.name, " · ".join(parts), problem or "", help_text)


def _sizes(entry: ModelEntry) -> list[str]:
    """Return the size in parameters, if known, and in bytes."""
    count = [tr("{count} parameters").format(count=words.magnitude(entry.parameters))] if entry.parameters else []
    return [*count, words.size(entry.bytes)]


def _is_offloaded(entry: ModelEntry, memory: int) -> bool:
    """Return whether some layers stay on the disk under that memory limit, judged by size."""
    if memory == AS_FITS:
        return not catalog.fits(entry).ok
    return memory != ALL_IN_MEMORY and memory * 2**20 < catalog.weight_bytes(entry, "auto")


def _draft_item(draft: ModelEntry, target: ModelEntry) -> PickerItem:
    parts = [describe_model(draft), *_sizes(draft)[:1], tr(draft.source)]
    help_text, reason = "", _draft_unsupported_reason(draft, target)
    if not reason and not catalog.same_tokenizer(draft, target):
        parts.append(tr("different tokenizer"))
        help_text = tr("It has a different tokenizer: its drafts are converted to text and tokenized again.")
    return PickerItem(draft.title, draft.name, " · ".join(parts), reason, help_text)


def _draft_unsupported_reason(draft: ModelEntry, target: ModelEntry) -> str:
    """Return why `draft` cannot be used, judged by its files; the core checks again when the run starts."""
    if draft.problem:
        return draft.problem
    if draft.encoder_decoder != target.encoder_decoder:
        return tr("One of the two is an encoder–decoder model.")
    if any(word in draft.model_type for word in _RECURRENT):
        return tr("It has a recurrent state, which cannot be rolled back when drafts are rejected.")
    if (draft.parameters or 0) >= (target.parameters or 0):
        return tr("It is not smaller than the model.")
    return ""


def accepted_modalities(entry: ModelEntry | None, info: ModelInfo | None) -> Modalities:
    """Return the modalities a model accepts, from the loaded model or its config."""
    if info is not None and entry is not None and info.name == entry.name:
        return info.modalities
    return entry.modalities if entry is not None else Modalities()


def needs_permission_only(entry: ModelEntry) -> bool:
    """Return whether its only problem can be solved by a permission."""
    return entry.pickled


def subtitle(entry: ModelEntry | None, info: ModelInfo | None, loading: bool, on_disk: bool = False) -> str:
    """Return the second line of the picker: `5.7 M · bundled · CPU`; `on_disk`: some layers are read from the disk."""
    if entry is not None and entry.source == ENGINE:
        status = tr("connecting…") if loading else info.engine if info is not None else tr(ENGINE)
        return f"{status} · {entry.architecture}"
    count = info.parameters if info is not None else entry.parameters if entry is not None else None
    parts = [words.magnitude(count)] if count else []
    if entry is not None:
        parts.append(tr(entry.source))
    if loading:
        parts.append(tr("loading…"))
    elif info is not None:
        parts.append(info.device.upper())
    elif entry is not None and not on_disk and not catalog.fits(entry).ok:
        parts.append(tr("too large"))
    return " · ".join(parts)
