"""What the model picker lists: models on this disk, in the words it shows. Does not import torch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from app.state.model_purpose import purpose
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
USUAL_LENGTH = 2048
"""Tokens of the text that each model's memory is reckoned for, until it is known what is to be run."""


class ModelList:
    """Every model that can be chosen, found by name."""

    def __init__(self) -> None:
        self._entries: dict[str, ModelEntry] = {}
        self._size = (USUAL_LENGTH, 1)
        self._on_disk: frozenset[str] = frozenset()
        self.memory: Mapping[str, int] = {}
        """What single models' weights may take (`Models.memory`): the others have to fit."""

    def reckon(self, tokens: int, rows: int) -> bool:
        """From now on say what so many texts of that length take; False when that is what is said already."""
        said = (self._size, self._on_disk)
        self._size, self._on_disk = (tokens, rows), frozenset(self.memory)
        return (self._size, self._on_disk) != said

    def refresh(self, folders: Iterable[str], wanted: str = "") -> None:
        """Look again at what ships with the program and at the folders added by hand, those with a problem too.

        Of the hub's cache only `wanted` is looked for; the rest takes longer, and comes by `add`: it stays.
        """
        hub = [entry for entry in self._entries.values() if entry.source == "hub"]
        self._entries = {entry.name: entry for entry in (*catalog.bundled(), *hub)}
        if wanted not in self._entries and (entry := catalog.hub_entry(wanted)) is not None:
            self._entries[wanted] = entry
        for folder in folders:
            if self.add_folder(folder) is None:
                self._entries[folder] = catalog.describe(Path(folder), folder, "folder")

    def add(self, entries: Iterable[ModelEntry]) -> None:
        """List these too: by where they come from, else in the order in which they were found."""
        found = {**self._entries, **{entry.name: entry for entry in entries}}
        self._entries = dict(sorted(found.items(), key=lambda item: _SOURCES.index(item[1].source)))

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

    def drop(self, name: str) -> None:
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

    def why_not(self, folder: str) -> tuple[str, str]:
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
            _item(entry, *self._size, self.memory.get(entry.name, ALL_IN_MEMORY)) for entry in self._entries.values()
        ]
        return [*lines, _hub(), _folder(), _engine(), _weights()]

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


def _hub() -> PickerItem:
    return PickerItem(tr("Get a model…"), HUB_ITEM, tr("Search the Hugging Face hub, and download"))


def _folder() -> PickerItem:
    return PickerItem(tr("Folder…"), FOLDER_ITEM, tr("Open a model in Hugging Face format from this disk"))


def _engine() -> PickerItem:
    about = tr("A model on another machine: vLLM, SGLang, llama.cpp's server and others")
    return PickerItem(tr("Connect to an engine…"), ENGINE_ITEM, about)


def _weights() -> PickerItem:
    about = tr("Keep the chosen model's weights in fewer bits, or part of them on the disk")
    return PickerItem(tr("Weights…"), WEIGHTS_ITEM, about)


def _item(entry: ModelEntry, tokens: int, rows: int, memory: int) -> PickerItem:
    if entry.source == ENGINE:
        about = tr("Writes text on another machine")
        return PickerItem(entry.title, entry.name, f"{about} · {entry.architecture}", "", entry.name)
    fit = catalog.fits(entry, tokens=tokens, rows=rows)
    problem = entry.problem if entry.problem and not is_permission(entry) else ""
    parts = [purpose(entry), *_sizes(entry), tr(entry.source)]
    if entry.problem:
        parts = [entry.problem]
    elif _is_on_disk(entry, memory):
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


def _is_on_disk(entry: ModelEntry, memory: int) -> bool:
    """Whether layers of it stay on the disk under that limit; as far as its size tells."""
    if memory == AS_FITS:
        return not catalog.fits(entry).ok
    return memory != ALL_IN_MEMORY and memory * 2**20 < catalog.weight_bytes(entry, "auto")


def _draft_item(draft: ModelEntry, target: ModelEntry) -> PickerItem:
    parts = [purpose(draft), *_sizes(draft)[:1], tr(draft.source)]
    help_text, reason = "", _why_no_draft(draft, target)
    if not reason and not catalog.same_tokenizer(draft, target):
        parts.append(tr("another tokenizer"))
        help_text = tr("It writes with another tokenizer: the text of its guesses is read anew by the model's own.")
    return PickerItem(draft.title, draft.name, " · ".join(parts), reason, help_text)


def _why_no_draft(draft: ModelEntry, target: ModelEntry) -> str:
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


def takes_of(entry: ModelEntry | None, info: ModelInfo | None) -> Takes:
    """What a model reads beside text: as it was loaded, or else by its configuration."""
    if info is not None and entry is not None and info.name == entry.name:
        return info.takes
    return entry.takes if entry is not None else Takes()


def is_permission(entry: ModelEntry) -> bool:
    """Whether its only problem is one that a permission lifts."""
    return entry.pickled


def subtitle(entry: ModelEntry | None, info: ModelInfo | None, loading: bool, on_disk: bool = False) -> str:
    """Second line of the picker's box: `5.7 M · bundled · CPU`; `on_disk`: some layers are read from there."""
    if entry is not None and entry.source == ENGINE:
        told = tr("connecting…") if loading else info.engine if info is not None else tr(ENGINE)
        return f"{told} · {entry.architecture}"
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
