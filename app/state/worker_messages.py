"""What the window asks for and what it is told back: plain data that crosses to the worker's thread and home."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field, replace
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from core import Request, Takes, catalog, strategies, words
from core.common.lightweight_dataclass import plain
from core.errors import DecodescopeError, ParameterError
from core.strategies import Strategy
from resources.language import mark, tr
from resources.retranslation import retranslate

Prompt = str | tuple[Mapping[str, str], ...]
"""Text, or the turns of a chat: `{"role", "content"}` each."""
OutcomeKind = Literal["completed", "stopped", "failed"]

ALL_IN_MEMORY, AS_FITS = -1, 0
"""Instead of MiB that a model's weights may take."""


@plain(frozen=True)
class LoadRequest:
    """Which model to hold ready, where, and what it may do."""

    model: str = ""
    """Its name; empty while none is chosen."""
    device: str = "auto"
    dtype: str = "auto"
    threads: int = 0
    """CPU threads for arithmetic; 0 leaves the choice to the program."""
    allow_pickle: bool = False
    allow_remote_code: bool = False
    weights: str = "auto"
    """What its weights are kept as: auto, float32, bfloat16, float16, int8 or int4."""
    memory: int = ALL_IN_MEMORY
    """MiB that its weights may take, the layers beyond are read from the disk; or `ALL_IN_MEMORY`, or `AS_FITS`."""
    allow_plain: bool = False
    """An engine on another machine may be spoken to over http, which anybody on the way can read."""

    @property
    def memory_limit(self) -> int | Literal["fit"] | None:
        """What the core calls it."""
        if self.memory == ALL_IN_MEMORY:
            return None
        return "fit" if self.memory == AS_FITS else self.memory * 2**20


def is_quantized(weights: str) -> bool:
    """Whether that kind of weights is made while loading, with fewer bits than any float has."""
    return weights in catalog.PACKED


GRAMMAR = "grammar"
"""The setting, and the stage, that holds a text to a form."""


@dataclass(frozen=True, slots=True)
class RunRequest(Request):
    """The core's request of a run, in plain values, and what only the window needs beside it."""

    prompt: Prompt
    strategy: str = "greedy"
    config: Mapping[str, Any] = field(default_factory=dict)
    """Generation settings by name. Phrases may stand where the core wants token ids: the worker spells them."""
    _: KW_ONLY
    load: LoadRequest = field(default_factory=LoadRequest)
    """The model, and how it is to be loaded."""
    draft_names: tuple[str, ...] = ()
    """Of the models that draft, for strategies that have them do so."""
    prefix_budget: int = 0
    """Bytes that what earlier runs have read may take, for this one to begin from; 0: it begins from nothing."""
    when_full: str = ""
    """For a chat, what is left out when the context is full (`app.state.conversation`); empty: nothing is."""
    parent: str = ""
    """The run (its id) whose text this one takes up or scores; empty for one of its own."""
    place: int = 0
    """Of a branch: how many tokens of the answer are the parent's; the rest of `beginning` stands instead."""
    scored: bool = False
    """Nothing is written: the prompt, with the beginning behind it, is a text that is scored."""
    second: str = ""
    """Scoring: a second model that reads the same text; empty for none."""

    @property
    def model(self) -> str:
        """The model's name."""
        return self.load.model

    @property
    def is_branch(self) -> bool:
        """Whether it goes on from a place in another run's text."""
        return bool(self.parent) and not self.scored

    @property
    def settings(self) -> dict[str, Any]:
        """Generation settings and the strategy's own options together, by name."""
        return {**self.config, **self.options}

    @property
    def grammar(self) -> object:
        """What its text is held to; None for nothing."""
        return self.settings.get(GRAMMAR)

    def with_strategy(self, strategy: Strategy, values: Mapping[str, Any]) -> RunRequest:
        """The same run by another strategy, with these settings of it."""
        config, options = split_settings(strategy, values)
        return replace(self, strategy=strategy.name, config=config, options=options)


def split_settings(strategy: Strategy, values: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """What of `values` are generation settings, and what are the strategy's own options."""
    own = {parameter.name for parameter in strategy.parameters if parameter.option}
    config = {name: value for name, value in values.items() if name not in own}
    return config, {name: value for name, value in values.items() if name in own}


def without_speculation(request: RunRequest) -> RunRequest:
    """The same run without speculation: sampling if it samples, greedy decoding otherwise."""
    strategy = strategies.selected_by(strategies.Flags(samples=bool(request.settings.get("do_sample"))))
    values = {name: value for name, value in request.settings.items() if name in strategy.parameter_names}
    return replace(request.with_strategy(strategy, values), draft_names=())


class PrefixRequest(NamedTuple):
    """A prefix to be saved to a file, or to be loaded from one, for that model."""

    path: str
    load: LoadRequest
    budget: int
    """Bytes that kept prefixes may take; 0 when none are kept."""
    ids: tuple[int, ...] | None = None
    """To save: the text whose beginning is meant. None: load."""


class StepReplayRequest(NamedTuple):
    """What if: one step of a run that is over, under other settings."""

    request: RunRequest
    """The run's."""
    ids: tuple[int, ...]
    """The tokens of the shown text."""
    step: int
    sequence: int
    changes: Mapping[str, Any]
    """Settings by name, as `core.what_if` takes them."""


class PrefixResult(NamedTuple):
    """A prefix that was saved or loaded: its tokens, its bytes, and the text to write for it (empty: none does)."""

    path: str
    tokens: int
    bytes: int
    text: str = ""


class MemoryEstimate(NamedTuple):
    """What a run would take in memory, in words and in the figures that others reckon on with."""

    summary: str
    advice: str
    """What would make it fit; empty when it does."""
    tokens: int
    """Of the longest text."""
    rows: int
    """Texts, beams or candidates side by side."""
    needed: int = 0
    """Bytes of everything."""
    cache: int = 0
    """Bytes of the cache."""
    speed: str = ""
    """How quick it is, said beforehand, where layers are read from the disk."""


class ModelInfo(NamedTuple):
    """A loaded model, as far as the window must know it."""

    name: str
    title: str = ""
    device: str = "cpu"
    dtype: str = "float32"
    threads: int = 0
    note: str = ""
    """Why the device is not the one asked for; empty when it is."""
    parameters: int = 0
    context: int | None = None
    vocabulary: int = 0
    has_chat: bool = False
    modalities: Takes = Takes()
    """What it reads beside text."""
    defaults: Mapping[str, Any] = MappingProxyType({})
    """Settings of the model's own generation_config that differ from transformers' defaults."""
    unsupported_strategies: Mapping[str, str] = MappingProxyType({})
    """Strategy name → why this model cannot do it."""
    unsupported_caches: Mapping[str, str] = MappingProxyType({})
    unsupported_settings: Mapping[str, str] = MappingProxyType({})
    """Settings of strategies → why they have no effect on this model."""
    engine: str = ""
    """The engine on another machine that runs it; empty for one in memory."""


class ErrorReport(NamedTuple):
    """An error in words a person can act on."""

    title: str
    cause: str
    remedy: str = ""
    details: str = ""
    kind: str = ""
    """Name of the exception's class."""
    parameter: str = ""
    """The setting to blame, if it is one."""

    def translated(self) -> ErrorReport:
        """The same error in the current language, if its words were made in another."""
        title, cause, remedy = (retranslate(text) for text in (self.title, self.cause, self.remedy))
        return self._replace(title=title, cause=cause, remedy=remedy)


class Outcome(NamedTuple):
    """How a run ended; every run has exactly one."""

    kind: OutcomeKind
    message: str = ""
    error: ErrorReport | None = None


_REMEDIES: Mapping[type[BaseException], str] = {
    MemoryError: mark("Close other programs, choose a smaller model, or write fewer tokens."),
    OSError: mark("Check that the folder is there and can be read."),
}


def make_error_report(error: BaseException, details: str = "") -> ErrorReport:
    """`error` in words: an error of the core brings its own, any other one its message and its class."""
    kind = type(error).__name__
    if not isinstance(error, DecodescopeError):
        remedy = next((tr(words) for cls, words in _REMEDIES.items() if isinstance(error, cls)), tr("Try again."))
        return ErrorReport(tr("Something unexpected went wrong"), str(error) or kind, remedy, details, kind)
    unfolded = "\n\n".join(part for part in (error.details, details) if part)
    blamed = error.parameter if isinstance(error, ParameterError) else ""
    return ErrorReport(tr(error.title), error.cause, error.remedy, unfolded, kind, blamed)


ALL, FIT = "all", "fit"
"""On the command line."""
_UNITS = {"": 1024, "g": 1024, "gb": 1024, "gib": 1024, "m": 1, "mb": 1, "mib": 1}
"""MiB each; a bare number is gigabytes."""


def memory_text(memory: int) -> str:
    """`all`, `as much as fits`, `4.0 GiB`."""
    if memory == ALL_IN_MEMORY:
        return tr("all of them")
    return tr("as much as fits") if memory == AS_FITS else words.size(memory * 2**20)


def parse_memory(text: str) -> int:
    """What `all`, `fit`, `6`, `6GB` or `800MB` mean, in MiB. Raises ValueError."""
    if text in (ALL, FIT):
        return ALL_IN_MEMORY if text == ALL else AS_FITS
    match = re.fullmatch(r"([0-9]{1,7}(?:\.[0-9]{1,3})?) ?([a-z]*)", text.strip().lower())
    if match is None or match[2] not in _UNITS or not (found := round(float(match[1]) * _UNITS[match[2]])):
        raise ValueError
    return found


AVAILABLE_STATES = ("ready", "built")
"""States in which the machine code is there."""
_NATIVE_SENTENCE = mark("Steps are taken in machine code that was built for this processor.")
_UNSUPPORTED_SENTENCE = mark("PyTorch takes the steps: the machine code has no way through a model of this kind.")
_SENTENCES = {
    "ready": mark("Machine code for this processor is there."),
    "built": mark("Machine code for this processor is there."),
    "missing": mark("PyTorch takes the steps. Machine code for this processor is built when nothing else is to do."),
    "cancelled": mark("PyTorch takes the steps. Machine code for this processor is built when nothing else is to do."),
    "building": mark("PyTorch takes the steps. Machine code for this processor is being built meanwhile."),
    "off": mark("PyTorch takes the steps: machine code is switched off."),
    "no_compiler": mark(
        "PyTorch takes the steps. With a C++ compiler (g++ or clang++) on this machine they could be taken in machine "
        "code, which is quicker."
    ),
    "failed": mark("PyTorch takes the steps: machine code could not be built on this machine."),
}


class BackendRequest(NamedTuple):
    """Asks whether the model of that name, which is held ready, has its steps taken in machine code."""

    model: str


class DecodeBackend(NamedTuple):
    """What is known of it."""

    state: str
    """Of the machine code: `building`, or as `core.Quickened` says."""
    uses_native_code: bool | None = None
    """Whether the model in memory has its steps taken so; None while that is not known."""
    details: str = ""
    """What the compiler said where it failed."""

    @property
    def sentence(self) -> str:
        """The same for a reader."""
        if self.state in AVAILABLE_STATES and self.uses_native_code is not None:
            return tr(_NATIVE_SENTENCE if self.uses_native_code else _UNSUPPORTED_SENTENCE)
        return tr(_SENTENCES[self.state])


HubModelState = Literal["none", "fetching", "stopping", "paused", "failed", "checking", "whole"]


@dataclass(frozen=True, slots=True)
class DownloadStatus:
    """One model: how far it has come."""

    status: HubModelState = "none"
    done: int = 0
    """Bytes that are there, of `total`."""
    total: int = 0
    progress: catalog.Progress | None = None
    """While it comes, or is checked."""
    error: ErrorReport | None = None
    """Why it failed, or was paused by itself."""
    damaged: tuple[str, ...] | None = None
    """Files that a check has found damaged; None before one."""

    @property
    def is_busy(self) -> bool:
        """Whether something is done for it now."""
        return self.status in ("fetching", "stopping", "checking")
