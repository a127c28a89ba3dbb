"""Entries of the model picker: local models and engines with their descriptions. Does not import torch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from decodescope.app.state.model_description import describe_model, is_chat_model
from decodescope.app.state.worker_messages import ALL_IN_MEMORY, AS_FITS, ModelInfo
from decodescope.app.widgets.picker_items import PickerCommand, PickerItem
from decodescope.core import Modalities, ModelEntry, catalog, words
from decodescope.core.errors import DecodescopeError
from decodescope.resources.language import mark, tr

if TYPE_CHECKING:
    from decodescope.core.remote import LocalEngine

FOLDER, FILE, HUB, WEIGHTS, ENGINE_ADDRESS, LOCAL_ENGINES, ADAPTER = (
    "folder", "file", "hub", "weights", "engine", "local_engines", "adapter",
)  # fmt: skip
"""Names of the commands below the list: open a folder or a GGUF file, get a model from the Hub, set the selected
model's weights, connect to an engine, search this computer for engines, and add an adapter.
"""


_RECURRENT = ("amba", "rwkv", "recurrent")
"""Parts of the model types of architectures with a recurrent state."""
_SOURCES = (mark("bundled"), mark("hub"), mark("folder"), mark("file"), *catalog.PROGRAMS, mark("engine"))
ENGINE = "engine"
"""Source of a model on another machine."""
MAX_BITS = 64
"""Most bits of a number; a file with more for a parameter contains something else too."""
MAX_RECENT = 4
"""Number of recently used models above the list."""
MIN_FOR_RECENT = 11
"""Number of models from which on the recently used ones are repeated above the list."""
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
        """Return the lines of the picker, in groups."""
        here, engines = [], []
        for entry in self._entries.values():
            if entry.source == ENGINE:
                engines.append(_engine_model_item(entry, self._engine_facts.get(entry.name, "")))
            else:
                here.append(_model_item(entry, *self._run_size, self.memory_limits.get(entry.name, ALL_IN_MEMORY)))
        here.sort(key=lambda item: item.group != tr("Bundled"))
        group = tr("Engines")
        problems = [PickerItem(title, None, reason=problem, group=group) for title, problem in self._engine_problems]
        if self.search_status:
            problems.append(PickerItem(tr("Engines on this computer"), None, reason=self.search_status, group=group))
        return [*here, *engines, *problems]

    def recent_items(self, names: Sequence[str]) -> list[PickerItem]:
        """Return the lines of the recently used models, if the list is long enough to repeat them."""
        items = {item.data: item for item in self.items() if item.data and not item.reason}
        if len(items) < MIN_FOR_RECENT:
            return []
        return [items[name]._replace(group=tr("Recent")) for name in names if name in items][:MAX_RECENT]

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

    def suggested_draft(self, name: str) -> str:
        """Return the smallest usable draft with the tokenizer of `name`; empty without one."""
        usable = (str(item.data) for item in self.drafts_for(name) if not item.reason)
        return next((draft for draft in usable if self.has_same_tokenizer(draft, name)), "")

    def has_same_tokenizer(self, draft: str, name: str) -> bool:
        """Return whether two listed models have the same tokenizer, judged by their files."""
        one, other = self.get(draft), self.get(name)
        return one is not None and other is not None and catalog.same_tokenizer(one, other)

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


def commands() -> tuple[PickerCommand, ...]:
    """Return the commands below the list."""
    return (
        PickerCommand(HUB, tr("Get model…"), tr("Search the Hugging Face Hub and download"), "save"),
        PickerCommand(FOLDER, tr("Folder…"), tr("Open a local model in Hugging Face format"), "folder"),
        PickerCommand(FILE, tr("GGUF file…"), tr("Open a model file of llama.cpp, LM Studio or Ollama"), "file"),
        PickerCommand(
            ENGINE_ADDRESS, tr("Connect to an engine…"),
            tr("A model on another machine: vLLM, SGLang, llama.cpp server and others"), "server",
        ),
        PickerCommand(
            LOCAL_ENGINES, tr("Engines on this computer…"), tr("Search this computer for running Ollama and LM Studio"),
            "search",
        ),
        PickerCommand(ADAPTER, tr("Adapter…"), tr("Add a LoRA adapter to the selected model"), "plug"),
        PickerCommand(
            WEIGHTS, tr("Weights…"), tr("Quantize the weights of the selected model, or keep part of them on the disk"),
            "layers",
        ),
    )  # fmt: skip


def _engine_model_item(entry: ModelEntry, facts: str) -> PickerItem:
    if not facts:
        from decodescope.core import remote

        is_here = remote.parse(entry.name, allow_plain=True).is_here
        about = tr("Runs in an engine on this computer") if is_here else tr("Runs on another machine")
        facts = f"{about} · {entry.architecture}"
    return PickerItem(entry.title, entry.name, facts, "", entry.name, tr("Engines"), "server")


def _model_item(entry: ModelEntry, tokens: int, rows: int, memory: int) -> PickerItem:
    fit = catalog.fits(entry, tokens=tokens, rows=rows)
    problem = entry.problem if entry.problem and not needs_permission_only(entry) else ""
    parts = [describe_model(entry), *([] if entry.source == "bundled" else [tr(entry.source)])]
    if entry.problem:
        parts = [entry.problem]
    elif _is_offloaded(entry, memory):
        parts.append(tr("layers read from disk"))
    elif not fit.ok:
        parts.append(fit.sentence)
        parts.append(tr("can be read from disk: see “Weights…”"))
    help_text = f"{entry.architecture} · {fit.sentence}\n{entry.path}"
    group = tr("Bundled") if entry.source == "bundled" else tr("This computer")
    columns = (_parameters(entry), _bits(entry), words.size(entry.bytes))
    return PickerItem(
        entry.title, entry.name, " · ".join(parts), problem or "", help_text, group, _icon(entry), columns,
        keywords=f"{entry.architecture} {entry.source}",
    )  # fmt: skip


def _parameters(entry: ModelEntry) -> str:
    """Return the number of parameters; empty if it is not known."""
    return words.magnitude(entry.parameters) if entry.parameters else ""


def _bits(entry: ModelEntry) -> str:
    """Return the format of the weights: that of a GGUF file, otherwise the bits that the file has for a parameter."""
    if entry.format_name or not entry.parameters:
        return entry.format_name
    bits = round(8 * entry.bytes / entry.parameters)
    return tr("{bits} bits").format(bits=bits) if 0 < bits <= MAX_BITS else ""


def _icon(entry: ModelEntry) -> str:
    """Return the icon for what a model does."""
    if entry.modalities.sound:
        return "sound"
    if entry.modalities.picture:
        return "picture"
    if entry.encoder_decoder:
        return "translate"
    if has_recurrent_state(entry):
        return "loop"
    return "chat" if is_chat_model(entry) else "text"


def has_recurrent_state(entry: ModelEntry) -> bool:
    """Return whether the architecture has a recurrent state, judged by its name."""
    return any(word in entry.model_type for word in _RECURRENT)


def _is_offloaded(entry: ModelEntry, memory: int) -> bool:
    """Return whether some layers stay on the disk under that memory limit, judged by size."""
    if memory == AS_FITS:
        return not catalog.fits(entry).ok
    return memory != ALL_IN_MEMORY and memory * 2**20 < catalog.weight_bytes(entry, "auto")


def _draft_item(draft: ModelEntry, target: ModelEntry) -> PickerItem:
    parts = [describe_model(draft), tr(draft.source)]
    help_text, reason = "", _draft_unsupported_reason(draft, target)
    group = tr("Cannot draft for {model}").format(model=target.title) if reason else tr("Same tokenizer")
    if not reason and not catalog.same_tokenizer(draft, target):
        parts.append(tr("different tokenizer"))
        group = tr("Different tokenizer")
        help_text = tr("It has a different tokenizer: its drafts are converted to text and tokenized again.")
    columns = (_parameters(draft), _bits(draft))
    return PickerItem(
        draft.title, draft.name, " · ".join(parts), reason, help_text, group, _icon(draft), columns,
        keywords=draft.architecture,
    )  # fmt: skip


def _draft_unsupported_reason(draft: ModelEntry, target: ModelEntry) -> str:
    """Return why `draft` cannot be used, judged by its files; the core checks again when the run starts."""
    if draft.problem:
        return draft.problem
    if draft.encoder_decoder != target.encoder_decoder:
        return tr("One of the two is an encoder–decoder model.")
    if has_recurrent_state(draft):
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
