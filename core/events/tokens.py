"""One token of a text: why it was chosen, among which others, and what a second model holds of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

from core.events.columns import Columns
from core.events.run import Event

StageKind = Literal["model", "shift", "ban", "cut"]
"""What a stage of the funnel does: nothing (the model's own distribution), change weights, forbid single tokens, or
cut all tokens but some of the likeliest."""


@dataclass(frozen=True, slots=True)
class Repeat:
    """A token that DRY held back, for it stood behind an earlier passage with which the text ends."""

    id: int
    text: str
    back: int
    """How many tokens before the one that is being chosen it stood; the latest place where the passage is longest."""
    length: int
    """Tokens of the passage."""
    penalty: float
    """Taken off its logit."""
    special: bool | None = None
    """Whether decoding skips it, by the tokenizer's own mark; None where that is not known (older recordings)."""


@dataclass(frozen=True, slots=True)
class Repeats:
    """DRY at one step."""

    found: tuple[Repeat, ...] = ()
    """What it held back, the heaviest penalty first; sixteen at most."""
    count: int = 0
    """How many tokens it held back in all."""


@dataclass(frozen=True, slots=True)
class Likely:
    """A token above XTC's threshold, and its probability before the cut."""

    id: int
    text: str
    probability: float
    special: bool | None = None
    """Whether decoding skips it, by the tokenizer's own mark; None where that is not known (older recordings)."""


@dataclass(frozen=True, slots=True)
class TopCut:
    """XTC at one step: a cut from the top of the distribution, if the die falls for it."""

    chance: float
    """How often it cuts."""
    die: float
    """The number in [0, 1) drawn for this step: it cuts where that is below `chance`."""
    threshold: float
    likely: tuple[Likely, ...] = ()
    """The tokens at least as likely as the threshold, most likely first; sixteen at most."""
    count: int = 0
    """How many tokens are so likely in all: a cut leaves the least likely one of them, so it takes two."""
    removed: int = 0
    """How many it took away; 0 as well where the end token or a line break would have gone too."""


@dataclass(frozen=True, slots=True)
class ScoreSpread:
    """Top-nσ at one step: where the cut lies among the scores."""

    best: float
    deviation: float
    """σ of all finite scores."""
    floor: float
    """The least score that stays: best − n · σ."""
    lowest: float
    counts: tuple[int, ...] = ()
    """How many finite scores lie in each of so many equal parts from the lowest to the best."""


@dataclass(frozen=True, slots=True)
class SurpriseAim:
    """Mirostat at one step, in bits."""

    target: float
    limit: float
    """μ: what surprises more was cut, but for the likeliest token."""
    surprise: float
    """Of the chosen token, before the cut."""


@dataclass(frozen=True, slots=True)
class StepTemperature:
    """Dynamic temperature at one step."""

    temperature: float
    low: float
    """What it is where one token is certain."""
    high: float
    """What it is where all tokens are equally likely."""


@dataclass(frozen=True, slots=True)
class WatermarkSign:
    """What one token shows of a watermark: of the whole text's shares a statistic is made."""

    share: float
    """1 on the green list, 0 off it; SynthID: the mean of its g-values."""
    weighted: float
    """SynthID: the mean in which earlier rounds weigh more; else `share`."""
    expected: float
    """What `share` is on average without a watermark."""
    deviation: float
    """How far it lies from that, by its standard deviation."""
    counts: bool = True
    """False where too few tokens of the text stand before it, or where they have decided before (SynthID)."""


@dataclass(frozen=True, slots=True)
class StageDetail:
    """What a picture of a stage needs beyond its survivors: of what follows, the one that belongs to the stage."""

    repeats: Repeats | None = None
    top_cut: TopCut | None = None
    spread: ScoreSpread | None = None
    aim: SurpriseAim | None = None
    heat: StepTemperature | None = None
    sign: WatermarkSign | None = None


@dataclass(frozen=True, slots=True)
class Stage:
    """One processor of the funnel and what it left over."""

    name: str
    """Setting that switches it on (`temperature`, `top_p`, …); `raw` for the model's own distribution."""
    label: str
    """Short, with its value: `T 0.8`, `top-p 0.92`."""
    survivors: int
    mass: float
    """Share of the distribution *entering* the stage that its survivors hold (1.0 when it cuts nothing)."""
    raw_mass: float
    """Share of the model's own distribution that the survivors hold."""
    top: tuple[tuple[int, float], ...] = ()
    """The n likeliest (token id, probability) after the stage, most likely first."""
    value: float | None = None
    """The setting's value where it is one number, or how many a list holds: what its label says."""
    kind: StageKind = "shift"
    phrase: str = ""
    """What a sentence calls it: `top-p 0.92`, `the repetition penalty of 1.3`."""
    detail: StageDetail | None = None
    """More of this step, from a stage that has a picture of its own; None where nothing is traced."""


Method = Literal["greedy", "sampled", "contrastive", "dola", "dola_sampled", "beam", "scored"]
"""How a token was picked; `scored`: not at all, it stands in a text that was given."""
Origin = Literal["target", "draft", "correction", "bonus"]
"""Who proposed a token."""


@dataclass(frozen=True, slots=True)
class Alternative:
    """One token that could have been chosen at a step."""

    id: int
    text: str
    raw_probability: float
    """By the model alone, before any processing."""
    probability: float
    """After every processor; 0.0 when it was cut."""
    raw_log_probability: float
    log_probability: float
    """-inf when it was cut."""
    rank: int
    """Place by raw probability, 1 = the model's first choice."""
    degeneration_penalty: float | None = None
    """Contrastive search: largest cosine similarity with any earlier token."""
    score: float | None = None
    """Contrastive search: (1 - alpha) * confidence - alpha * penalty."""
    special: bool | None = None
    """Whether decoding skips it, by the tokenizer's own mark; None where that is not known (older recordings)."""


@dataclass(frozen=True, slots=True)
class LayerChoice:
    """DoLa: the premature layer that the final one was contrasted with."""

    layer: int
    divergences: tuple[tuple[int, float], ...]
    """(candidate layer, Jensen–Shannon divergence from the final layer)."""


class StepDetailSource(Protocol):
    """The figures of a step, of which its alternatives and its funnel are made once somebody reads them."""

    def alternatives(self) -> tuple[Alternative, ...]:
        """As `TokenChosen` has them."""

    def funnel(self) -> tuple[Stage, ...]:
        """As `TokenChosen` has it."""

    def details(self) -> tuple[StageDetail, ...]:
        """Those of the funnel's stages."""

    def to_columns(self, steps: Sequence[StepDetailSource | None]) -> tuple[Columns, Columns] | None:
        """Alternatives and funnels of many steps in columns; None where they cannot be had so."""


class _LazyDetailEvent(Event):
    """Its alternatives and its funnel may be left to be made when they are read first: most steps of a run are never
    looked at so closely, and to make them of every step takes a tenth of a small model's time."""

    __slots__ = ("source",)
    source: StepDetailSource | None
    """Of which they are made; no field of the event."""

    if not TYPE_CHECKING:  # fields are known by their declaration; this is called where one was not set

        def __getattr__(self, name):
            if name == "source":
                return None
            if name not in _LAZY_FIELDS:
                raise AttributeError(f"{type(self).__name__} has no {name}", name=name, obj=self)
            if (source := self.source) is not None:
                for field in _LAZY_FIELDS:
                    object.__setattr__(self, field, getattr(source, field)())
            return object.__getattribute__(self, name)


_LAZY_FIELDS = ("alternatives", "funnel")


@dataclass(frozen=True, slots=True)
class TokenChosen(_LazyDetailEvent):
    """A token was decided for one sequence."""

    step: int
    """0 for the first new token of its sequence."""
    sequence: int
    id: int
    piece: str
    """The token's own text; lone bytes of a UTF-8 character appear as ⟨E2⟩."""
    text: str
    """What it adds to the text: empty while a character is incomplete, whole characters afterwards."""
    raw_probability: float
    probability: float
    raw_log_probability: float
    log_probability: float
    rank: int
    """Place by raw probability, 1 = the model's first choice."""
    entropy: float
    """Of the model's own distribution, in nats."""
    seconds: float
    """Since the token before it (or since the prompt was read)."""
    alternatives: tuple[Alternative, ...] = ()
    """The n likeliest by the model alone and the n likeliest after processing, by raw probability, most likely first;
    the chosen one is always among them unless tracing is off."""
    funnel: tuple[Stage, ...] = ()
    method: Method = "greedy"
    layer_choice: LayerChoice | None = None
    special: bool = False
    """An end-of-sequence or other control token: it adds no text."""
    origin: Origin = "target"
    final_rank: int | None = None
    """Place by probability after every processor; None where nothing was processed, so that it is `rank`."""
    varentropy: float | None = None
    """Σ p (−ln p − H)² of the model's own distribution, in nats²: how unevenly surprise is spread. None in files from
    before it was told, and for the tokens of a beam."""

    @property
    def is_special(self) -> bool | None:
        """As `Alternative.special`; None where it is not marked and does not add its own piece to the text either: an
        engine on another machine or an older recording may not tell."""
        if self.special or self.text.strip() == self.piece.strip():
            return self.special
        return None

    @property
    def details(self) -> tuple[StageDetail, ...]:
        """What stages with a picture of their own tell, in their order; the rest of the funnel need not be made."""
        if self.source is not None:
            return self.source.details()
        return tuple([stage.detail for stage in self.funnel if stage.detail is not None])


def details_to_columns(tokens: Sequence[TokenChosen]) -> dict[str, Columns]:
    """What may be left to be made of each, laid out at once, by field; empty where it has to be read token by token."""
    first = tokens[0].source if tokens else None
    laid = first.to_columns([token.source for token in tokens]) if first is not None else None
    return dict(zip(_LAZY_FIELDS, laid, strict=True)) if laid is not None else {}


@dataclass(frozen=True, slots=True)
class TokenCompared(Event):
    """What a second model holds of the token that was told last, behind the same text."""

    step: int
    id: int
    probability: float
    log_probability: float
    rank: int
    entropy: float
    """Of its distribution, in nats."""
    divergence: float
    """KL(first ‖ second) of the two distributions, in bits."""
    alternatives: tuple[Alternative, ...] = ()
    """Its own likeliest tokens."""
