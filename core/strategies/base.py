"""The shape of a strategy: what it is called, what can be set, when it cannot serve, and its generator."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import field
from typing import TYPE_CHECKING, NamedTuple

from core.caches.base import CacheOperation
from core.common.hf_generation import DEFAULTS, SAME_SETTINGS, GenerateEquivalent
from core.common.lightweight_dataclass import plain
from core.parameter import Parameter, Settings, check

if TYPE_CHECKING:
    from transformers import GenerationConfig

    from core.decoding.run import DecodingRun
    from core.decoding.step_replayer import StepReplayer
    from core.events import Event
    from core.models.loaded_model import LoadedModel
    from core.request import Request

_COUNTS = tuple(Parameter(name, name, "int", DEFAULTS[name], "") for name in ("num_beams", "num_beam_groups", "top_k"))
_ALPHA = Parameter("penalty_alpha", "penalty_alpha", "float", 0.0, "")


class Flags(NamedTuple):
    """The settings that decide; made by `flags_of`."""

    beams: bool = False
    groups: bool = False
    samples: bool = False
    forced: bool = False
    """Words that the text must contain."""
    contrasts: bool = False
    """A degeneration penalty, and candidates to compare."""
    layers: bool = False
    """Layers to contrast with (DoLa)."""
    drafters: bool = False
    lookup: bool = False
    early_exit: bool = False
    heads: bool = False
    """The model's own heads for several tokens (MTP)."""

    @property
    def searches(self) -> bool:
        """Beams without words that are forced."""
        return self.beams and not self.forced

    @property
    def single(self) -> bool:
        """One token after the other, greedily or by dice; what else is asked for comes on top of that."""
        return not (self.beams or self.forced or (self.contrasts and not self.samples))

    @property
    def plain(self) -> bool:
        """Nothing on top of it."""
        return self.single and not (self.drafters or self.lookup or self.early_exit or self.heads or self.layers)


def flags_of(settings: Settings, drafters: bool = False) -> Flags:
    """The flags among plain settings by GenerationConfig's names; what is missing or None has its default.

    Raises ParameterError for a count that is no number.
    """

    def value(parameter: Parameter) -> float:
        given: float | None = settings.get(parameter.name)
        if given is not None:
            check(parameter, given)
            return given
        default: float = parameter.default
        return default

    beams, groups, top_k = (value(parameter) for parameter in _COUNTS)
    return Flags(
        beams=(beams or 1) != 1,
        groups=groups > 1,
        samples=bool(settings.get("do_sample")),
        forced=any(settings.get(name) is not None for name in ("constraints", "force_words_ids")),
        contrasts=top_k > 1 and value(_ALPHA) > 0,
        layers=settings.get("dola_layers") is not None,
        drafters=drafters,
        lookup=settings.get("prompt_lookup_num_tokens") is not None,
        early_exit=settings.get("assistant_early_exit") is not None,
        heads=bool(settings.get("use_mtp")),
    )


def sequence_rows(config: GenerationConfig, vocabulary: int) -> int:
    """Rows of strategies that write whole texts: one of each, and greedy decoding has only one."""
    return int(config.num_return_sequences or 1) if config.do_sample else 1


def beam_rows(config: GenerationConfig, vocabulary: int) -> int:
    """Rows of beam strategies."""
    return int(config.num_beams or 1)


def never(flags: Flags) -> bool:
    """No flags mean it: a request has to name it."""
    return False


def same_counterpart(request: Request) -> GenerateEquivalent:
    """transformers' `generate` does it, with the same settings."""
    return SAME_SETTINGS


def no_draft_sources(options: Settings) -> tuple[str, ...]:
    """Draft models alone, if anything."""
    return ()


def default_replayer(run: DecodingRun) -> StepReplayer:
    """The best score, or the token that the dice fall on."""
    from core.decoding.step_replayer import StepReplayer  # torch is loaded only when something runs

    return StepReplayer(run)


@plain(frozen=True)
class Strategy:
    """A way to decide what comes next; one file of `core/strategies/` each."""

    name: str
    title: str
    summary: str
    parameters: tuple[Parameter, ...]
    decode: Callable[[DecodingRun], Iterator[Event]]
    flags: Settings = field(default_factory=dict)
    """GenerationConfig values that select it; they win when a request names the strategy."""
    defaults: Settings = field(default_factory=dict)
    """Values for settings that such a request leaves open; they go before the model's own."""
    paper: str = ""
    aliases: tuple[str, ...] = ()
    """Other names of it, transformers' `GenerationMode` values among them."""
    order: int = 100
    """Place in a picker."""
    selects: Callable[[Flags], bool] = never
    """Whether these flags mean it, when no strategy is named; at most one strategy says so of any flags."""
    needs: frozenset[CacheOperation] = frozenset()
    """What it asks of a cache beyond growing."""
    rows: Callable[[GenerationConfig, int], int] = sequence_rows
    """(resolved settings, size of the vocabulary) → rows the cache holds side by side while tokens are chosen."""
    speculates: bool = False
    """It drafts, and has the model check the drafts."""
    takes_drafters: bool = False
    """Draft models run ahead (`Request.drafters`): it needs one and can merge several."""
    drafts_from: Callable[[Settings], tuple[str, ...]] = no_draft_sources
    """(options) → what else its drafts come from, in the reader's words."""
    wants: tuple[str, ...] = ()
    """Settings of which one has to be given, the usual one first: it can do nothing without."""
    compared: bool = False
    """It is among those that are compared unless the reader chooses others."""
    refuse: Callable[[LoadedModel, Request | None], str | None] | None = None
    counterpart: Callable[[Request], GenerateEquivalent] = same_counterpart
    """How transformers' `generate` is asked for the same, or why that cannot be."""
    again: Callable[[DecodingRun], StepReplayer] = default_replayer
    """How a step of a run that is over is judged again (`core.what_if`), in strategies that write token by token."""
    judging: tuple[str, ...] = ()
    """Settings of its own, beside those of stages, that such a step can be judged again under."""

    def why_not(self, model: LoadedModel, request: Request | None = None) -> str | None:
        """Sentence on why `model` (with `request`) cannot be decoded so; None when it can."""
        return self.refuse(model, request) if self.refuse else None

    def parameter(self, name: str) -> Parameter:
        """The parameter of that name. Raises KeyError."""
        return {parameter.name: parameter for parameter in self.parameters}[name]

    @property
    def parameter_names(self) -> tuple[str, ...]:
        """Names in the order a panel shows them."""
        return tuple(p.name for p in self.parameters)
