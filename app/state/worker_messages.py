"""Messages between the window and the worker thread: plain data."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field, replace
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, TypeGuard

from decodescope.core import Modalities, Request, catalog, strategies, words
from decodescope.core.common.lightweight_dataclass import plain
from decodescope.core.errors import DecodescopeError, ParameterError
from decodescope.core.strategies import Strategy
from decodescope.resources.depth import EXACT, current_depth
from decodescope.resources.language import mark, tr
from decodescope.resources.retranslation import retranslate

Prompt = str | tuple[Mapping[str, str], ...] | tuple[int, ...]
"""Text, the turns of a chat, each `{"role", "content"}`, or the token ids of a script's run."""


def is_token_ids(prompt: object) -> TypeGuard[tuple[int, ...]]:
    """Return whether a prompt consists of token ids; only runs made by a script have such prompts."""
    return isinstance(prompt, list | tuple) and any(isinstance(item, int) for item in prompt)


def is_turns(prompt: object) -> TypeGuard[tuple[Mapping[str, str], ...]]:
    """Return whether a prompt is a chat."""
    return not isinstance(prompt, str) and not is_token_ids(prompt)


OutcomeKind = Literal["completed", "stopped", "failed"]

ALL_IN_MEMORY, AS_FITS = -1, 0
"""Special values instead of a number of MiB for the weights."""


@plain(frozen=True)
class LoadRequest:
    """The model to load, where to run it, and its permissions."""

    model: str = ""
    """Name of the model; empty if none is chosen."""
    device: str = "auto"
    dtype: str = "auto"
    threads: int = 0
    """CPU threads for computation; 0 means automatic."""
    allow_pickle: bool = False
    allow_remote_code: bool = False
    weights: str = "auto"
    """Data type of the weights: auto, float32, bfloat16, float16, int8, int4 or fp8."""
    memory: int = ALL_IN_MEMORY
    """Memory for the weights in MiB, with the remaining layers read from disk; or `ALL_IN_MEMORY`, or `AS_FITS`."""
    allow_plain: bool = False
    """Whether a remote engine may be contacted over unencrypted http."""

    @property
    def memory_limit(self) -> int | Literal["fit"] | None:
        """The memory limit in the core's form."""
        if self.memory == ALL_IN_MEMORY:
            return None
        return "fit" if self.memory == AS_FITS else self.memory * 2**20


def is_quantized(weights: str) -> bool:
    """Return whether weights of that kind are quantized on loading, with fewer bits than any float type."""
    return weights in catalog.QUANTIZED_FORMATS


GRAMMAR = "grammar"
"""Name of the setting and of the stage that constrain a text to a grammar."""


@dataclass(frozen=True, slots=True)
class RunRequest(Request):
    """The core's request in plain values, with additional fields for the window."""

    prompt: Prompt
    strategy: str = "greedy"
    config: Mapping[str, Any] = field(default_factory=dict)
    """Generation settings by name. Phrases are allowed where the core expects token ids; the worker tokenizes them."""
    _: KW_ONLY
    load: LoadRequest = field(default_factory=LoadRequest)
    """The model and its load options."""
    draft_names: tuple[str, ...] = ()
    """Names of the draft models, for strategies that use them."""
    prefix_budget: int = 0
    """Bytes available for cached prefixes of earlier runs; 0 means that no prefix is reused."""
    when_full: str = ""
    """Policy for a chat whose context is full (`app.state.conversation`); empty for none."""
    parent: str = ""
    """Id of the run whose text this one continues or scores; empty for none."""
    shared_tokens: int = 0
    """For a branch: number of the answer's tokens shared with the parent; the rest of `beginning` is new."""
    scored: bool = False
    """Whether to score the prompt and the beginning as a text, without generating."""
    second: str = ""
    """Scoring: name of a comparison model that scores the same text; empty for none."""
    prompt_text: str = ""
    """The text of a prompt of token ids, without special tokens."""

    @property
    def model(self) -> str:
        """Name of the model."""
        return self.load.model

    @property
    def is_branch(self) -> bool:
        """Whether it continues from a position in another run's text."""
        return bool(self.parent) and not self.scored

    @property
    def grammar(self) -> object:
        """The grammar that constrains the text; None for none."""
        return self.settings.get(GRAMMAR)

    def with_strategy(self, strategy: Strategy, values: Mapping[str, Any]) -> RunRequest:
        """Return the request with another strategy and these settings."""
        return replace(self, strategy=strategy.name, config=values, options={})


def without_speculation(request: RunRequest) -> RunRequest:
    """Return the request without speculation: sampling if it samples, greedy decoding otherwise."""
    strategy = strategies.selected_by(strategies.Flags(samples=bool(request.settings.get("do_sample"))))
    values = {name: value for name, value in request.settings.items() if name in strategy.parameter_names}
    return replace(request.with_strategy(strategy, values), draft_names=())


class ModelInfo(NamedTuple):
    """Properties of a loaded model that the window needs."""

    name: str
    title: str = ""
    device: str = "cpu"
    dtype: str = "float32"
    threads: int = 0
    note: str = ""
    """Why the device is not the requested one; empty if it is."""
    parameters: int = 0
    context: int | None = None
    vocabulary: int = 0
    has_chat: bool = False
    modalities: Modalities = Modalities()
    """Its input modalities."""
    defaults: Mapping[str, Any] = MappingProxyType({})
    """Settings of the model's own generation_config that differ from transformers' defaults."""
    unsupported_strategies: Mapping[str, str] = MappingProxyType({})
    """Strategy name → why this model does not support it."""
    unsupported_caches: Mapping[str, str] = MappingProxyType({})
    unsupported_settings: Mapping[str, str] = MappingProxyType({})
    """Strategy setting → why it has no effect on this model."""
    engine: str = ""
    """The remote engine that runs it; empty for a local model."""


class ErrorReport(NamedTuple):
    """An error with cause and remedy."""

    title: str
    cause: str
    remedy: str = ""
    details: str = ""
    kind: str = ""
    """Name of the exception's class."""
    parameter: str = ""
    """The invalid setting, if there is one."""

    def translated(self) -> ErrorReport:
        """Return the error in the current language, if it was created in another."""
        title, cause, remedy = (retranslate(text) for text in (self.title, self.cause, self.remedy))
        return self._replace(title=title, cause=cause, remedy=remedy)


class Outcome(NamedTuple):
    """The end of a run; every ended run has exactly one outcome."""

    kind: OutcomeKind
    message: str = ""
    error: ErrorReport | None = None


_REMEDIES: Mapping[type[BaseException], str] = {
    MemoryError: mark("Close other programs, choose a smaller model, or generate fewer tokens."),
    OSError: mark("Check that the folder exists and can be read."),
}


def make_error_report(error: BaseException, details: str = "") -> ErrorReport:
    """Convert an exception to a report: core errors have cause and remedy, all others a message and a class."""
    kind = type(error).__name__
    if not isinstance(error, DecodescopeError):
        remedy = next((tr(words) for cls, words in _REMEDIES.items() if isinstance(error, cls)), tr("Try again."))
        return ErrorReport(tr("Unexpected error"), str(error) or kind, remedy, details, kind)
    unfolded = "\n\n".join(part for part in (error.details, details) if part)
    blamed = error.parameter if isinstance(error, ParameterError) else ""
    cause = error.cause
    if blamed and current_depth() != EXACT:  # the setting's title is enough where code words are not wanted
        cause = cause.replace(f" ({blamed})", "")
    return ErrorReport(tr(error.title), cause, error.remedy, unfolded, kind, blamed)


ALL, FIT = "all", "fit"
"""Values on the command line."""
_UNITS = {"": 1024, "g": 1024, "gb": 1024, "gib": 1024, "m": 1, "mb": 1, "mib": 1}
"""MiB per unit; a number without a unit means gigabytes."""


def memory_text(memory: int) -> str:
    """Return `all of them`, `as much as fits` or `4.0 GiB`."""
    if memory == ALL_IN_MEMORY:
        return tr("all of them")
    return tr("as much as fits") if memory == AS_FITS else words.size(memory * 2**20)


def parse_memory(text: str) -> int:
    """Parse `all`, `fit`, `6`, `6GB` or `800MB` to MiB.

    Raises ValueError.
    """
    if text in (ALL, FIT):
        return ALL_IN_MEMORY if text == ALL else AS_FITS
    match = re.fullmatch(r"([0-9]{1,7}(?:\.[0-9]{1,3})?) ?([a-z]*)", text.strip().lower())
    if match is None or match[2] not in _UNITS or not (found := round(float(match[1]) * _UNITS[match[2]])):
        raise ValueError
    return found


AVAILABLE_STATES = ("ready", "built")
"""States in which the native code is available."""
_NATIVE_SENTENCE = mark("Decode backend: native code for this processor.")
_UNSUPPORTED_SENTENCE = mark("Decode backend: PyTorch. The native code does not support this kind of model.")
_SENTENCES = {
    "ready": mark("Native code for this processor is ready."),
    "built": mark("Native code for this processor is ready."),
    "missing": mark("Decode backend: PyTorch. Native code for this processor will be built when the program is idle."),
    "cancelled": mark(
        "Decode backend: PyTorch. Native code for this processor will be built when the program is idle."
    ),
    "building": mark("Decode backend: PyTorch. Native code for this processor is being built."),
    "off": mark("Decode backend: PyTorch. Native code is turned off."),
    "no_compiler": mark(
        "Decode backend: PyTorch. No native code came with the program, and there is no C++ compiler to build it."
    ),
    "failed": mark("Decode backend: PyTorch. Native code could not be built on this machine."),
}


class DecodeBackend(NamedTuple):
    """Decode backend of the loaded model."""

    state: str
    """State of the native code: `building`, or a state of `core.BuildResult`."""
    uses_native_code: bool | None = None
    """Whether the loaded model uses it; None while unknown."""
    details: str = ""
    """Compiler output of a failed build."""

    @property
    def sentence(self) -> str:
        """The state as a sentence."""
        if self.state in AVAILABLE_STATES and self.uses_native_code is not None:
            return tr(_NATIVE_SENTENCE if self.uses_native_code else _UNSUPPORTED_SENTENCE)
        return tr(_SENTENCES[self.state])


HubModelState = Literal["none", "fetching", "stopping", "paused", "failed", "checking", "whole"]


@plain(frozen=True)
class DownloadStatus:
    """Download status of a model."""

    status: HubModelState = "none"
    done: int = 0
    """Downloaded bytes, of `total`."""
    total: int = 0
    progress: catalog.DownloadProgress | None = None
    """Set during a download or a check."""
    error: ErrorReport | None = None
    """Why it failed or was paused automatically."""
    damaged: tuple[str, ...] | None = None
    """Files that a check found damaged; None before a check."""

    @property
    def is_busy(self) -> bool:
        """Whether a download or check is running."""
        return self.status in ("fetching", "stopping", "checking")
