"""Definition of a strategy: name, parameters, requirements, and its event generator."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import field
from typing import TYPE_CHECKING, NamedTuple

from decodescope.core.caches.base import CacheOperation
from decodescope.core.common.claim import Claim
from decodescope.core.common.entry_description import EntryDescription
from decodescope.core.common.hf_generation import DEFAULTS, SAME_SETTINGS, GenerateEquivalent
from decodescope.core.common.lightweight_dataclass import plain
from decodescope.core.parameter import Parameter, Settings, check_values
from decodescope.resources.language import mark

if TYPE_CHECKING:
    from transformers import GenerationConfig

    from decodescope.core.decoding.run import DecodingRun
    from decodescope.core.decoding.step_replayer import StepReplayer
    from decodescope.core.events import Event
    from decodescope.core.models.loaded_model import LoadedModel
    from decodescope.core.request import Request

FLAG_PARAMETERS = (
    Parameter("num_beams", mark("Beams"), "int", 1, "", minimum=1, maximum=100_000),
    Parameter("num_beam_groups", mark("Groups"), "int", 1, "", minimum=1, maximum=100_000),
    Parameter("do_sample", mark("Sample"), "bool", False, ""),
    Parameter("top_k", "top_k", "int", DEFAULTS["top_k"], ""),
    Parameter("penalty_alpha", "penalty_alpha", "float", 0.0, ""),
)
"""Settings that select a strategy; the ranges of the last two depend on it."""

ONE_TOKEN, CONTRAST = mark("One token at a time"), mark("By contrast")
SEVERAL_TEXTS, DRAFTS = mark("Several texts at once"), mark("With drafts")
GROUPS = (ONE_TOKEN, SEVERAL_TEXTS, DRAFTS, CONTRAST)
"""Titles of the strategies' groups, in the order of the picker; plug-ins may add more."""


class Flags(NamedTuple):
    """Settings that determine the strategy; created by `flags_of`."""

    beams: bool = False
    groups: bool = False
    samples: bool = False
    forced: bool = False
    """Whether the text must contain given words."""
    contrasts: bool = False
    """Whether there are a degeneration penalty and candidates to compare."""
    layers: bool = False
    """Whether there are layers to contrast (DoLa)."""
    drafters: bool = False
    lookup: bool = False
    early_exit: bool = False
    heads: bool = False
    """Whether the model's own prediction heads draft (MTP)."""

    @property
    def searches(self) -> bool:
        """Whether beams are used without forced words."""
        return self.beams and not self.forced

    @property
    def single(self) -> bool:
        """Whether tokens are generated one by one, greedily or by sampling; other features may be added to that."""
        return not (self.beams or self.forced or (self.contrasts and not self.samples))

    @property
    def plain(self) -> bool:
        """Whether nothing is added to that."""
        return self.single and not (self.drafters or self.lookup or self.early_exit or self.heads or self.layers)


def flags_of(settings: Settings, drafters: bool = False) -> Flags:
    """Derive the flags from settings by GenerationConfig's names; missing ones and None have their default.

    Raises ParameterError for a value of a wrong type or outside its range.
    """
    check_values(FLAG_PARAMETERS, settings)
    values = ((parameter.default, settings.get(parameter.name)) for parameter in FLAG_PARAMETERS)
    beams, groups, samples, top_k, alpha = (default if value is None else value for default, value in values)
    return Flags(
        beams=beams != 1,
        groups=groups > 1,
        samples=samples,
        forced=any(settings.get(name) is not None for name in ("constraints", "force_words_ids")),
        contrasts=top_k > 1 and alpha > 0,
        layers=settings.get("dola_layers") is not None,
        drafters=drafters,
        lookup=settings.get("prompt_lookup_num_tokens") is not None,
        early_exit=settings.get("assistant_early_exit") is not None,
        heads=bool(settings.get("use_mtp")),
    )


def sequence_rows(config: GenerationConfig, vocabulary: int) -> int:
    """Return the rows of strategies that generate full texts: one per text; greedy decoding has only one."""
    return int(config.num_return_sequences or 1) if config.do_sample else 1


def beam_rows(config: GenerationConfig, vocabulary: int) -> int:
    """Return the rows of beam strategies."""
    return int(config.num_beams or 1)


def never(flags: Flags) -> bool:
    """Return False: no flags select it, so a request has to name it."""
    return False


def same_generate_equivalent(request: Request) -> GenerateEquivalent:
    """Return the unchanged counterpart: `generate` supports it with the same settings."""
    return SAME_SETTINGS


def no_draft_sources(options: Settings) -> tuple[str, ...]:
    """Return no other sources: drafts come from draft models, if any."""
    return ()


def default_replayer(run: DecodingRun) -> StepReplayer:
    """Return the replayer for the best score or sampling."""
    from decodescope.core.decoding.step_replayer import StepReplayer  # torch is loaded only when something runs

    return StepReplayer(run)


@plain(frozen=True)
class Strategy:
    """A decoding strategy; one per file of `core/strategies/`."""

    name: str
    title: str
    summary: str
    parameters: tuple[Parameter, ...]
    decode: Callable[[DecodingRun], Iterator[Event]]
    flags: Settings = field(default_factory=dict)
    """GenerationConfig values that select it; they take precedence when a request names the strategy."""
    defaults: Settings = field(default_factory=dict)
    """Defaults for settings that such a request leaves open; they take precedence over the model's own."""
    paper: str = ""
    description: EntryDescription | None = None
    """Its term of the glossary, unless `resources/glossary` has one."""
    claims: tuple[Claim, ...] = ()
    """Published claims about it, each with the comparison that tests it."""
    aliases: tuple[str, ...] = ()
    """Other names, including transformers' `GenerationMode` values."""
    order: int = 100
    """Sort key in a picker."""
    selects: Callable[[Flags], bool] = never
    """Whether these flags select it when no strategy is named; exactly one strategy matches."""
    needs: frozenset[CacheOperation] = frozenset()
    """Required cache capabilities beyond growing."""
    rows: Callable[[GenerationConfig, int], int] = sequence_rows
    """(resolved settings, vocabulary size) → number of cache rows while tokens are chosen."""
    speculates: bool = False
    """Whether it drafts tokens for the model to verify."""
    takes_drafters: bool = False
    """Whether it needs draft models (`Request.drafters`) and can merge several."""
    drafts_from: Callable[[Settings], tuple[str, ...]] = no_draft_sources
    """(options) → other draft sources, as shown to users."""
    required_settings: tuple[str, ...] = ()
    """Settings of which at least one is required, the usual one first."""
    group: str = ""
    """Title of its group in the picker; empty: one of `GROUPS` that follows from its other fields."""
    is_starting_point: bool = False
    """Whether the picker recommends it to begin with."""
    is_compared_by_default: bool = False
    """Whether it is in the default selection for comparisons."""
    rejection_reason: Callable[[LoadedModel, Request | None], str | None] | None = None
    generate_equivalent: Callable[[Request], GenerateEquivalent] = same_generate_equivalent
    """Returns the equivalent transformers `generate` call, or why there is none."""
    make_replayer: Callable[[DecodingRun], StepReplayer] = default_replayer
    """Creates the replayer of a finished run's steps (`core.replay_step`), for token-by-token strategies."""
    replayable_settings: tuple[str, ...] = ()
    """Own settings, besides those of stages, that a replay can change."""

    def unsupported_reason(self, model: LoadedModel, request: Request | None = None) -> str | None:
        """Return why `model` (with `request`) is not supported; None if it is."""
        return self.rejection_reason(model, request) if self.rejection_reason else None

    def parameter(self, name: str) -> Parameter:
        """Return the parameter with this name. Raises KeyError."""
        return {parameter.name: parameter for parameter in self.parameters}[name]

    @property
    def group_title(self) -> str:
        """Title of its group in the picker, in English."""
        if self.group:
            return self.group
        if self.speculates:
            return DRAFTS
        return ONE_TOKEN if self.rows is sequence_rows else SEVERAL_TEXTS

    @property
    def parameter_names(self) -> tuple[str, ...]:
        """Parameter names in panel order."""
        return tuple(p.name for p in self.parameters)
