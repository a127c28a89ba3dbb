"""The funnel at one step: its stages, and what those that have a picture of their own tell beyond their survivors."""

from dataclasses import dataclass
from typing import Literal

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
