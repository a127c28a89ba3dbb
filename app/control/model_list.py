"""What the model picker lists: models on this disk, in the words it shows. Does not import torch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from app.state.model_description import describe_model
from app.state.worker_messages import ALL_IN_MEMORY, AS_FITS, ModelInfo
from app.widgets.picker_combo import PickerItem
from core import ModelEntry, Takes, catalog, words
from core.errors import DecodescopeError
from resources.language import mark, tr

FOLDER_ITEM = "…folder"
"""Data of the line that opens a folder instead of naming a model."""
HUB_ITEM = "…hub"
"""Data of the line before it, which leads to the hub's models."""
WEIGHTS_ITEM = "…weights"
"""Data of the last line, which asks what the chosen model's weights are kept as."""
ENGINE_ITEM = "…engine"
"""Data of the line that connects to an engine on another machine."""
NO_MODELS = (None, FOLDER_ITEM, HUB_ITEM, WEIGHTS_ITEM, ENGINE_ITEM)
"""Data of lines that name no model."""


_RECURRENT = ("amba", "rwkv", "recurrent")
"""In the names of architectures whose memory is a state."""
_SOURCES = (mark("bundled"), mark("hub"), mark("folder"), mark("engine"))
ENGINE = "engine"
"""Source of a model on another machine."""
DEFAULT_LENGTH = 2048
"""Tokens of the text that each model's memory is reckoned for, until it is known what is to be run."""


class ModelList:
    """Every model that can be chosen, found by name."""

    def __init__(self) -> None:
        self._entries: dict[str, ModelEntry] = {}
        self._run_size = (DEFAULT_LENGTH, 1)
        self._limited_models: frozenset[str] = frozenset()
        self.memory_limits: Mapping[str, int] = {}
        """What single models' weights may take (`Models.memory`): the others have to fit."""

    def set_run_size(self, tokens: int, rows: int) -> bool:
        """From now on say what so many texts of that length take; False when that is what is said already."""
        before = (self._run_size, self._limited_models)
        self._run_size, self._limited_models = (tokens, rows), frozenset(self.memory_limits)
        return (self._run_size, self._limited_models) != before

    def refresh(self, folders: Iterable[str], hub_name: str = "") -> None:
        """Look again at what ships with the program and at the folders added by hand, those with a problem too.

        Of the hub's cache only `hub_name` is looked for; the rest takes longer, and comes by `add`: it stays.
        """
        hub = [entry for entry in self._entries.values() if entry.source == "hub"]
        self._entries = {entry.name: entry for entry in (*catalog.bundled(), *hub)}
        if hub_name not in self._entries and (entry := catalog.hub_entry(hub_name)) is not None:
            self._entries[hub_name] = entry
        for folder in folders:
            if self.add_folder(folder) is None:
                self._entries[folder] = catalog.describe(Path(folder), folder, "folder")

    def add(self, entries: Iterable[ModelEntry]) -> None:
        """List these too: by where they come from, else in the order in which they were found."""
        merged = {**self._entries, **{entry.name: entry for entry in entries}}
        self._entries = dict(sorted(merged.items(), key=lambda item: _SOURCES.index(item[1].source)))

    def add_engine(self, address: str) -> ModelEntry | None:
        """Add a model on another machine; None for what is no address. Nobody is asked whether it is there."""
        from core import remote  # few have one

        try:
            parsed = remote.parse(address, allow_plain=True)
        except DecodescopeError:
            return None
        title = parsed.model or parsed.place
        entry = ModelEntry(str(parsed), title, ENGINE, Path(), parsed.place, "", None, 0, None, False)
        self.add([entry])
        return entry

    def remove(self, name: str) -> None:
        """List that one no more."""
        self._entries.pop(name, None)

    def add_folder(self, folder: str) -> ModelEntry | None:
        """Add a model folder; None when it is none (the worker says why when it is tried)."""
        try:
            entry = catalog.inspect(folder)
        except DecodescopeError:
            return None
        self._entries[entry.name] = entry
        return entry

    def folder_problem(self, folder: str) -> tuple[str, str]:
        """Why a folder cannot be listed: cause and remedy; empty when it can."""
        try:
            catalog.inspect(folder)
        except DecodescopeError as error:
            return error.cause, error.remedy
        return "", ""

    def get(self, name: str) -> ModelEntry | None:
        """The entry of that name."""
        return self._entries.get(name)

    @property
    def entries(self) -> Sequence[ModelEntry]:
        """All of them, in the order they are listed."""
        return list(self._entries.values())

    @property
    def names(self) -> Sequence[str]:
        """All names, in the order they are listed."""
        return list(self._entries)

    def items(self) -> list[PickerItem]:
        """The picker's lines, ending with those that do something instead of naming a model."""
        lines = [
            _model_item(entry, *self._run_size, self.memory_limits.get(entry.name, ALL_IN_MEMORY))
            for entry in self._entries.values()
        ]
        return [*lines, _hub_item(), _folder_item(), _engine_item(), _weights_item()]

    def drafts_for(self, name: str) -> list[PickerItem]:
        """Every other model as a draft for `name`: those that fit first, the smallest foremost, then those that write
        with another tokenizer; the others with the reason."""
        target = self.get(name)
        if target is None or target.source == ENGINE:
            return []
        others = [entry for entry in self._entries.values() if entry.name != name and entry.source != ENGINE]
        others.sort(key=lambda entry: (not catalog.same_tokenizer(entry, target), entry.parameters or 0))
        return sorted((_draft_item(entry, target) for entry in others), key=lambda item: bool(item.reason))

    def fits(self, name: str, weights: str = "auto", memory: int = ALL_IN_MEMORY) -> bool:
        """Whether it may be loaded without being asked for: it is known, whole, and smaller than the free memory, or
        no more of it than fits is to be in memory."""
        entry = self.get(name)
        if entry is not None and entry.source == ENGINE:
            return True
        if entry is None or entry.problem is not None:
            return False
        fit = catalog.fits(entry, weights)
        return fit.ok or memory == AS_FITS or 0 < memory * 2**20 < fit.free


def _hub_item() -> PickerItem:
    return PickerItem(tr("Get a model…"), HUB_ITEM, tr("Search the Hugging Face hub, and download"))


def _folder_item() -> PickerItem:
    return PickerItem(tr("Folder…"), FOLDER_ITEM, tr("Open a model in Hugging Face format from this disk"))


def _engine_item() -> PickerItem:
    about = tr("A model on another machine: vLLM, SGLang, llama.cpp's server and others")
    return PickerItem(tr("Connect to an engine…"), ENGINE_ITEM, about)


def _weights_item() -> PickerItem:
    about = tr("Keep the chosen model's weights in fewer bits, or part of them on the disk")
    return PickerItem(tr("Weights…"), WEIGHTS_ITEM, about)


def _model_item(entry: ModelEntry, tokens: int, rows: int, memory: int) -> PickerItem:
    if entry.source == ENGINE:
        about = tr("Writes text on another machine")
        return PickerItem(entry.title, entry.name, f"{about} · {entry.architecture}", "", entry.name)
    fit = catalog.fits(entry, tokens=tokens, rows=rows)
    problem = entry.problem if entry.problem and not needs_permission_only(entry) else ""
    parts = [describe_model(entry), *_sizes(entry), tr(entry.source)]
    if entry.problem:
        parts = [entry.problem]
    elif _is_offloaded(entry, memory):
        parts.append(tr("layers read from the disk"))
    elif not fit.ok:
        parts.append(fit.sentence)
        parts.append(tr("“Weights…” has it read from the disk"))
    help_text = f"{entry.architecture} · {fit.sentence}\n{entry.path}"
    return PickerItem(entry.title, entry.name, " · ".join(parts), problem or "", help_text)


def _sizes(entry: ModelEntry) -> list[str]:
    """How large it is: parameters where they are known, and bytes."""
    count = [tr("{count} parameters").format(count=words.magnitude(entry.parameters))] if entry.parameters else []
    return [*count, words.size(entry.bytes)]


def _is_offloaded(entry: ModelEntry, memory: int) -> bool:
    """Whether layers of it stay on the disk under that limit; as far as its size tells."""
    if memory == AS_FITS:
        return not catalog.fits(entry).ok
    return memory != ALL_IN_MEMORY and memory * 2**20 < catalog.weight_bytes(entry, "auto")


def _draft_item(draft: ModelEntry, target: ModelEntry) -> PickerItem:
    parts = [describe_model(draft), *_sizes(draft)[:1], tr(draft.source)]
    help_text, reason = "", _draft_unsupported_reason(draft, target)
    if not reason and not catalog.same_tokenizer(draft, target):
        parts.append(tr("another tokenizer"))
        help_text = tr("It writes with another tokenizer: the text of its guesses is read anew by the model's own.")
    return PickerItem(draft.title, draft.name, " · ".join(parts), reason, help_text)


def _draft_unsupported_reason(draft: ModelEntry, target: ModelEntry) -> str:
    """Judged by the files alone; the core looks closer when the run begins."""
    if draft.problem:
        return draft.problem
    if draft.encoder_decoder != target.encoder_decoder:
        return tr("One of the two is an encoder–decoder.")
    if any(word in draft.model_type for word in _RECURRENT):
        return tr("It keeps a recurrent state, and refused guesses cannot be taken back out of it.")
    if (draft.parameters or 0) >= (target.parameters or 0):
        return tr("It is not smaller than the model.")
    return ""


def accepted_modalities(entry: ModelEntry | None, info: ModelInfo | None) -> Takes:
    """What a model reads beside text: as it was loaded, or else by its configuration."""
    if info is not None and entry is not None and info.name == entry.name:
        return info.modalities
    return entry.takes if entry is not None else Takes()


def needs_permission_only(entry: ModelEntry) -> bool:
    """Whether its only problem is one that a permission lifts."""
    return entry.pickled


def subtitle(entry: ModelEntry | None, info: ModelInfo | None, loading: bool, on_disk: bool = False) -> str:
    """Second line of the picker's box: `5.7 M · bundled · CPU`; `on_disk`: some layers are read from there."""
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
        parts.append(tr("does not fit"))
    return " · ".join(parts)
