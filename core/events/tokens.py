"""Events about one token: why it was chosen, its alternatives, and its rating by a comparison model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal, Protocol, TypeAlias

from decodescope.core.events.columns import Columns
from decodescope.core.events.run import Event

StageKind = Literal["model", "shift", "ban", "cut"]
"""What a stage does: nothing (the model's raw distribution), shift scores, forbid single tokens, or cut all but some of
the likeliest tokens.
"""


@dataclass(frozen=True, slots=True)
class Repeat:
    """A token that DRY penalized because it followed an earlier occurrence of the passage that the text ends with."""

    id: int
    text: str
    back: int
    """Distance in tokens to its earlier occurrence: the latest one with the longest passage."""
    length: int
    """Length of the passage in tokens."""
    penalty: float
    """Amount subtracted from its logit."""
    special: bool | None = None
    """Whether the tokenizer marks it as special (skipped in decoding); None if unknown (older recordings)."""


@dataclass(frozen=True, slots=True)
class Repeats:
    """DRY at one step."""

    found: tuple[Repeat, ...] = ()
    """The penalized tokens, largest penalty first; at most sixteen."""
    count: int = 0
    """Number of penalized tokens."""


@dataclass(frozen=True, slots=True)
class Likely:
    """A token above XTC's threshold, with its probability before the cut."""

    id: int
    text: str
    probability: float
    special: bool | None = None
    """Whether the tokenizer marks it as special (skipped in decoding); None if unknown (older recordings)."""


@dataclass(frozen=True, slots=True)
class TopCut:
    """XTC at one step: with probability `chance`, a cut from the top of the distribution."""

    chance: float
    """Probability that it cuts."""
    die: float
    """The random number in [0, 1) drawn for this step: it cuts if this is below `chance`."""
    threshold: float
    likely: tuple[Likely, ...] = ()
    """Tokens at least as likely as the threshold, most likely first; at most sixteen."""
    count: int = 0
    """Number of tokens above the threshold: a cut leaves the least likely of them, so it needs two."""
    removed: int = 0
    """Number of removed tokens; also 0 if the end token or a line break would have been removed."""


@dataclass(frozen=True, slots=True)
class ScoreSpread:
    """Top-nσ at one step: where the cut lies among the scores."""

    best: float
    deviation: float
    """Standard deviation σ of all finite scores."""
    floor: float
    """Lowest score that is kept: best − n · σ."""
    lowest: float
    counts: tuple[int, ...] = ()
    """Histogram of the finite scores: counts in equal intervals from the lowest to the best."""


@dataclass(frozen=True, slots=True)
class SurpriseAim:
    """Mirostat at one step, in bits."""

    target: float
    limit: float
    """μ: tokens with a higher surprise were cut, except the likeliest one."""
    surprise: float
    """Surprise of the chosen token, before the cut."""


@dataclass(frozen=True, slots=True)
class StepTemperature:
    """Dynamic temperature at one step."""

    temperature: float
    low: float
    """Temperature where one token is certain."""
    high: float
    """Temperature where all tokens are equally likely."""


@dataclass(frozen=True, slots=True)
class WatermarkSign:
    """One token's contribution to the watermark statistic of the whole text."""

    share: float
    """1 on the green list, 0 off it; SynthID: mean of its g-values."""
    weighted: float
    """SynthID: weighted mean, earlier rounds weigh more; otherwise `share`."""
    expected: float
    """Expected value of `share` without a watermark."""
    deviation: float
    """Distance from `expected` in standard deviations."""
    counts: bool = True
    """False if too few tokens precede it, or if the same context has already been counted (SynthID)."""


@dataclass(frozen=True, slots=True)
class StageDetail:
    """Details for a stage's diagram: the one field that belongs to the stage is set."""

    repeats: Repeats | None = None
    top_cut: TopCut | None = None
    spread: ScoreSpread | None = None
    aim: SurpriseAim | None = None
    heat: StepTemperature | None = None
    sign: WatermarkSign | None = None


@dataclass(frozen=True, slots=True)
class Stage:
    """One processor of the funnel and the tokens it left."""

    name: str
    """Setting that switches it on (`temperature`, `top_p`, …); `raw` for the model's raw distribution."""
    label: str
    """Short label with the value: `T 0.8`, `top-p 0.92`."""
    survivors: int
    mass: float
    """Probability mass of the survivors in the distribution *entering* the stage (1.0 if it cuts nothing)."""
    raw_mass: float
    """Probability mass of the survivors in the model's raw distribution."""
    top: tuple[tuple[int, float], ...] = ()
    """The n likeliest (token id, probability) after the stage, most likely first."""
    value: float | None = None
    """The setting's value, or the number of entries of a list: the number in the label."""
    kind: StageKind = "shift"
    phrase: str = ""
    """Name of the stage in a sentence: `top-p 0.92`, `the repetition penalty of 1.3`."""
    detail: StageDetail | None = None
    """Details of this step for the stage's diagram; None without tracing."""


Method: TypeAlias = Literal["greedy", "sampled", "contrastive", "dola", "dola_sampled", "beam", "scored"] | str
"""How a token was chosen; `scored`: not chosen, it belongs to a given text. A picker may have a name of its own
(`is_method_name`), which is explained in general words.
"""
MAX_METHOD_LENGTH = 60


def is_method_name(value: object) -> bool:
    """Return whether a picker may have this name: 1 to `MAX_METHOD_LENGTH` printable characters."""
    return isinstance(value, str) and 0 < len(value) <= MAX_METHOD_LENGTH and value.isprintable()


Origin = Literal["target", "draft", "correction", "bonus", "forced"]
"""Who proposed a token. `forced`: it was written by a setting such as a thinking budget; its probability after
processing is 1, and `raw_probability` is the model's own.
"""


@dataclass(frozen=True, slots=True)
class Alternative:
    """One token that could have been chosen at a step."""

    id: int
    text: str
    raw_probability: float
    """Probability before any processing."""
    probability: float
    """Probability after every processor; 0.0 if it was cut."""
    raw_log_probability: float
    log_probability: float
    """-inf if it was cut."""
    rank: int
    """Rank by raw probability, 1 = the model's first choice."""
    degeneration_penalty: float | None = None
    """Contrastive search: largest cosine similarity with any earlier token."""
    score: float | None = None
    """Contrastive search: (1 - alpha) * confidence - alpha * penalty."""
    special: bool | None = None
    """Whether the tokenizer marks it as special (skipped in decoding); None if unknown (older recordings)."""


@dataclass(frozen=True, slots=True)
class LayerChoice:
    """DoLa: the premature layer that the final layer was contrasted with."""

    layer: int
    divergences: tuple[tuple[int, float], ...]
    """(candidate layer, Jensen–Shannon divergence from the final layer)."""


class StepDetailSource(Protocol):
    """The numbers of a step from which its alternatives and stages are built on first access."""

    def alternatives(self) -> tuple[Alternative, ...]:
        """Return the value of `TokenChosen.alternatives`."""

    def funnel(self) -> tuple[Stage, ...]:
        """Return the value of `TokenChosen.funnel`."""

    def details(self) -> tuple[StageDetail, ...]:
        """Return the details of the funnel's stages."""

    def to_columns(self, steps: Sequence[StepDetailSource | None]) -> tuple[Columns, Columns] | None:
        """Return alternatives and funnels of many steps as columns; None if not supported."""


class LazyDetails:
    """Base of records that build details on first access: most steps of a run are never inspected, and building them
    for every step takes a tenth of a small model's time.
    """

    __slots__ = ("source",)
    source: StepDetailSource | None
    """Source of the lazy fields; not a field of the record."""
    _lazy_fields: ClassVar[Mapping[str, str]] = {}
    """Method of the source for each lazy field."""

    if not TYPE_CHECKING:  # called only for unset fields; the declarations define their types

        def __getattr__(self, name):
            if name == "source":
                return None
            if name not in self._lazy_fields:
                raise AttributeError(f"{type(self).__name__} has no {name}", name=name, obj=self)
            if (source := self.source) is not None:
                for field, method in self._lazy_fields.items():
                    object.__setattr__(self, field, getattr(source, method)())
            return object.__getattribute__(self, name)


_LAZY_FIELDS = ("alternatives", "funnel")


class _LazyDetailEvent(LazyDetails, Event):
    """Base of events that build alternatives and funnel on first access."""

    __slots__ = ()
    _lazy_fields: ClassVar[Mapping[str, str]] = {name: name for name in _LAZY_FIELDS}


@dataclass(frozen=True, slots=True)
class WithdrawnToken:
    """A token that was chosen and withdrawn."""

    id: int
    text: str
    raw_probability: float
    special: bool | None = None
    """Whether the tokenizer marks it as special (skipped in decoding); None if unknown (older recordings)."""


@dataclass(frozen=True, slots=True)
class WithdrawnPhrase:
    """Tokens that were withdrawn because they completed a word to avoid; the first one was then forbidden here."""

    phrase: str
    tokens: tuple[WithdrawnToken, ...]


@dataclass(frozen=True, slots=True)
class TokenChosen(_LazyDetailEvent):
    """A token was chosen for one sequence."""

    step: int
    """0 for the first new token of its sequence."""
    sequence: int
    id: int
    piece: str
    """The token's own text; single bytes of a UTF-8 character appear as ⟨E2⟩."""
    text: str
    """Text that it adds: empty while a character is incomplete, then whole characters."""
    raw_probability: float
    probability: float
    raw_log_probability: float
    log_probability: float
    rank: int
    """Rank by raw probability, 1 = the model's first choice."""
    entropy: float
    """Entropy of the model's raw distribution, in nats."""
    seconds: float
    """Seconds since the previous token (or since the prefill)."""
    alternatives: tuple[Alternative, ...] = ()
    """The n likeliest tokens of the raw distribution and the n likeliest after processing, by raw probability, most
    likely first; includes the chosen one unless tracing is off.
    """
    funnel: tuple[Stage, ...] = ()
    method: Method = "greedy"
    layer_choice: LayerChoice | None = None
    special: bool = False
    """An end-of-sequence or other control token: it adds no text."""
    origin: Origin = "target"
    final_rank: int | None = None
    """Rank by probability after every processor; None if nothing was processed and it equals `rank`."""
    varentropy: float | None = None
    """Σ p (−ln p − H)² of the model's raw distribution, in nats²: how unevenly surprise is spread. None in older files
    and for the tokens of a beam.
    """
    withdrawn: tuple[WithdrawnPhrase, ...] = ()
    """What was written from this token on, and withdrawn before the token was chosen (`banned_phrases_step_back`)."""

    @property
    def is_special(self) -> bool | None:
        """As `Alternative.special`; None if it is not marked as special, yet does not add its own piece to the text:
        remote engines and older recordings may not report it.
        """
        if self.special or self.text.strip() == self.piece.strip():
            return self.special
        return None

    @property
    def details(self) -> tuple[StageDetail, ...]:
        """Details of the stages that have their own diagram, in stage order, without building the rest of the
        funnel.
        """
        if self.source is not None:
            return self.source.details()
        return tuple([stage.detail for stage in self.funnel if stage.detail is not None])


def details_to_columns(tokens: Sequence[TokenChosen]) -> dict[str, Columns]:
    """Return the lazy fields of many tokens as columns, by field; empty if they must be read token by token."""
    first = tokens[0].source if tokens else None
    laid = first.to_columns([token.source for token in tokens]) if first is not None else None
    return dict(zip(_LAZY_FIELDS, laid, strict=True)) if laid is not None else {}


@dataclass(frozen=True, slots=True)
class TokenCompared(Event):
    """The comparison model's rating of the last emitted token, after the same text."""

    step: int
    id: int
    probability: float
    log_probability: float
    rank: int
    entropy: float
    """Entropy of its distribution, in nats."""
    divergence: float
    """KL(first ‖ second) of the two distributions, in bits."""
    alternatives: tuple[Alternative, ...] = ()
    """Its own likeliest tokens."""
