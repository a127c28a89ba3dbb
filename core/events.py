"""What a run says of itself: frozen dataclasses of plain numbers, strings and tuples, never tensors.

A strategy is a generator of these events; the window, the recorder, the tests and the benchmarks consume them.
Probabilities are shares of 1, log-probabilities natural logarithms, times seconds, sizes bytes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from core.arithmetic import Term

Method = Literal["greedy", "sampled", "contrastive", "dola", "dola_sampled", "beam", "scored"]
"""How a token was picked; `scored`: not at all, it stands in a text that was given."""
Origin = Literal["target", "draft", "correction", "bonus"]
"""Who proposed a token."""
Ending = Literal["eos", "length", "context", "time", "stop_string", "stopped", "given", "grammar"]
"""Why a sequence ended: by itself, at a limit, at a stop text, because somebody stopped it, where the text that was
given ends, or because its grammar allows nothing more."""
BeamFate = Literal["kept", "pruned", "finished", "early_stopped"]
DraftFate = Literal["accepted", "refused", "unreached"]
ChoiceReason = Literal["best", "untried", "retried", "silent"]
ExtraKind = Literal["bonus", "correction", "none"]
"""What a round of speculation adds of the target's own."""
StageKind = Literal["model", "shift", "ban", "cut"]
"""What a stage of the funnel does: nothing (the model's own distribution), change weights, forbid single tokens, or
cut all tokens but some of the likeliest."""
NoticeKind = Literal["memory_fallback", "setting_ignored", "read_anew", "half_precision", "not_told"]
RunEnd = Literal["completed", "stopped"]


@dataclass(frozen=True, slots=True)
class Event:
    """Base of everything `core.stream` yields."""


@dataclass(frozen=True, slots=True)
class PromptToken:
    """One token of the prompt: its id and the text it adds."""

    id: int
    text: str
    """Whole characters: one made of several tokens comes with the last of them."""
    piece: str = ""
    """The token by itself where that is not its text: the bytes of a part of a character, ⟨E2⟩."""


@dataclass(frozen=True, slots=True)
class ModelIdentity:
    """Which model it was, wherever it lay: two that differ in any of these are not the same."""

    name: str
    architecture: str = ""
    """The class of the network: LlamaForCausalLM."""
    config_hash: str = ""
    """SHA-256 of its configuration."""
    weights_hash: str = ""
    """SHA-256 of what lists its weights (an index, the headers of the files, or the parameters' shapes): not of the
    weights themselves, which would take minutes to read."""
    kept_in: str = ""
    """int8 or int4 where the weights were packed while loading; empty where they are the file's own numbers."""


@dataclass(frozen=True, slots=True)
class RunStarted(Event):
    """The run as it will be done: every default resolved, nothing computed yet."""

    strategy: str
    model: str
    device: str
    dtype: str
    cache: str
    seed: int
    prompt: tuple[PromptToken, ...]
    settings: tuple[tuple[str, object], ...]
    """Effective settings that differ from the defaults, sorted by name; (name, value)."""
    sequences: int = 1
    vocabulary: int = 0
    context: int | None = None
    """Longest text the model was built for, in tokens; None when it has no limit of its own."""
    beginning: tuple[PromptToken, ...] = ()
    """What the answer begins with (`Request.beginning`): a branch of another run's text."""
    second: str = ""
    """Scoring: the name of a second model that reads the same text; empty without one."""
    identity: ModelIdentity | None = None
    engine: str = ""
    """The engine on another machine that runs the model (`vLLM`), `device` its address; empty for one of ours. What an
    engine does not tell is NaN where it is a share or a logarithm, 0 where it is a rank; a token whose id it does not
    tell has a negative number, which only tells it from others."""


@dataclass(frozen=True, slots=True)
class Prefilled(Event):
    """The prompt, and what the answer begins with, has been read (one forward pass, the encoder's included)."""

    tokens: int
    seconds: float
    reused: int = 0
    """Tokens taken from a cache of an earlier run instead of being computed."""


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


@dataclass(frozen=True, slots=True)
class LayerChoice:
    """DoLa: the premature layer that the final one was contrasted with."""

    layer: int
    divergences: tuple[tuple[int, float], ...]
    """(candidate layer, Jensen–Shannon divergence from the final layer)."""


@dataclass(frozen=True, slots=True)
class TokenChosen(Event):
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


@dataclass(frozen=True, slots=True)
class BeamCandidate:
    """One continuation that beam search considered at a step: a node of the tree."""

    node: int
    """Its number in the run, from 1; the prompt is node 0."""
    parent: int
    id: int
    piece: str
    probability: float
    """Of the token, after processing, given its parent."""
    log_probability: float
    score: float
    """Sum of log-probabilities from the prompt to here, as the search ranks it."""
    normalized: float
    """score / length ** length_penalty: what finished hypotheses are compared by."""
    rank: int
    """Place among the candidates of its step (of its group, in diverse search), 1 = best."""
    fate: BeamFate
    raw_probability: float
    """By the model alone, before any processing, given its parent."""
    raw_log_probability: float
    raw_rank: int
    """Place among all tokens by raw probability, 1 = the model's first choice behind this parent."""
    entropy: float
    """Of the model's own distribution behind the parent, in nats."""
    group: int = 0
    diversity_penalty: float = 0.0
    """What diverse search took off this token's log-probability at this step."""
    progress: int = 0
    """Constraint tokens met on the way from the prompt to here."""
    text: str = ""
    """What it adds to the text of its path (as TokenChosen.text)."""
    ended: Ending | None = None
    """Why the text ends with it; None where it would go on."""


@dataclass(frozen=True, slots=True)
class BeamStep(Event):
    """All continuations considered at one step, best first within each group."""

    step: int
    candidates: tuple[BeamCandidate, ...]
    best: int
    """Node of the hypothesis that leads now, running or finished."""
    seconds: float
    required: int = 0
    """Constraint tokens in all: what `progress` is when everything is met."""
    length_penalty: float = 1.0
    """Exponent of the length that scores are divided by."""


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """One result of a beam search."""

    node: int
    """Its last node in the tree."""
    ids: tuple[int, ...]
    text: str
    log_probability: float
    """Sum over its tokens."""
    length: int
    """Tokens the score is divided by a power of."""
    score: float
    finished: bool
    """Ended by itself (an end token) rather than by the limit."""
    group: int = 0


@dataclass(frozen=True, slots=True)
class BeamsRanked(Event):
    """The final ranking, best first: score = log_probability ÷ length ** length_penalty."""

    hypotheses: tuple[Hypothesis, ...]
    length_penalty: float = 1.0
    diversity_penalty: float = 0.0
    """What a group pays for a token that an earlier one took; 0.0 without groups."""


@dataclass(frozen=True, slots=True)
class DraftNode:
    """One drafted token of a round's tree."""

    node: int
    """Its number in the round, from 1, parents before children; 0 is the last token of the text so far."""
    parent: int
    id: int
    piece: str
    depth: int
    drafter: int
    """Which drafter proposed it, from 0."""
    draft_probability: float
    target_probability: float
    fate: DraftFate
    ratio: float | None = None
    """min(1, p/q) where it was decided by a die; None where the target's own choice decided or it was not reached."""
    die: float | None = None
    """The number in [0, 1) drawn for the decision."""
    cut_by: str = ""
    """The stage of the target's funnel that left it no chance (`grammar`, `top_p`, …); empty where it had one."""
    proposers: tuple[int, ...] = ()
    """All drafters that proposed it, ascending; empty when `drafter` alone did."""


@dataclass(frozen=True, slots=True)
class DrafterChoice:
    """Which of several drafters a round asked, and why."""

    asked: int
    reason: ChoiceReason
    """It had earned most (best), had hardly been tried (untried), was tried again though another had earned more
    (retried), or those before it had no guess (silent)."""
    worths: tuple[float, ...]
    """For each drafter the speed with it ÷ without drafts, by the latest rounds; 0.0 before it was tried."""
    times: tuple[int, ...]
    """How often each had been asked."""
    silent: tuple[int, ...] = ()
    """Drafters that were asked before it and had no guess."""
    is_counted: bool = False
    """Costs were counted instead of measured: with dice a text must not follow the clock."""


@dataclass(frozen=True, slots=True)
class NgramPool:
    """What lookahead decoding has collected."""

    size: int
    """N-grams in the pool behind the round."""
    found: tuple[tuple[str, ...], ...]
    """Those that the round's pass brought, in pieces."""


@dataclass(frozen=True, slots=True)
class DraftRound(Event):
    """One round of speculation: what was drafted, what the target thought of it, what became text."""

    round: int
    step: int
    """New tokens written before the round."""
    nodes: tuple[DraftNode, ...]
    accepted: tuple[int, ...]
    """Nodes of the accepted path, in order."""
    extra_id: int
    extra_piece: str
    extra_kind: ExtraKind
    """bonus (everything on the path was accepted), correction (a drafted token was refused) or none (cut short)."""
    draft_seconds: float
    verify_seconds: float
    overhead_seconds: float
    length: int
    """Draft length (depth) asked for in this round."""
    choice: DrafterChoice | None = None
    """None where there was none."""
    pool: NgramPool | None = None
    """Of lookahead decoding; None for any other."""


@dataclass(frozen=True, slots=True)
class CostCurve(Event):
    """What this machine pays for checking several tokens in one pass of the target, over one token."""

    curve: tuple[tuple[int, float], ...]
    """(tokens in the pass, time ÷ the time of one token), by tokens."""


@dataclass(frozen=True, slots=True)
class SequenceFinished(Event):
    """One sequence ended."""

    sequence: int
    reason: Ending
    stop_string: str = ""
    """The one that ended it."""
    limit: float | None = None
    """What ended it: new tokens (length), tokens of the whole text (context) or seconds (time)."""
    tail: str = ""
    """Text that was still held back (an incomplete character), released as it is."""
    whole: bool | None = None
    """Whether it is a whole text of the run's grammar; None where there is none."""


@dataclass(frozen=True, slots=True)
class CacheMeasured(Event):
    """Bytes the key–value cache holds now. `parts` sums up to `bytes`."""

    step: int
    tokens: int
    bytes: int
    peak: int
    parts: tuple[tuple[str, str, int], ...] = ()
    """(place, part, bytes): place device/host/disk; part keys, values, scales, residual, self, cross, state."""
    layers: tuple[int, ...] = ()
    held: tuple[tuple[int, int], ...] = ()
    """Places in the text, [start, stop), that the most forgetful layer still holds; () when none forgets."""
    error: float | None = None
    """Quantized caches: relative error of the keys."""


@dataclass(frozen=True, slots=True)
class CachePlan(Event):
    """What the cache of this run is going to take, by length of the text; told once the prompt has been read."""

    backend: str
    size: Term
    """Bytes as arithmetic on named figures and the length of the text (tokens read)."""
    start: int
    """Length of the text the decoder has read with the prompt."""
    lengths: tuple[int, ...]
    """Lengths in tokens that were predicted, ascending, up to the run's limit."""
    predicted: tuple[int, ...]
    """Bytes at those lengths."""
    dynamic: tuple[int, ...]
    """Bytes a cache that keeps everything would take at those lengths."""
    capacity: int | None = None
    """Tokens it was allocated for; None when it grows."""
    sinks: int = 0
    """First tokens that are never forgotten."""
    window: int | None = None
    """Tokens seen at a time by the layer that forgets most; None when none forgets."""
    block: int | None = None
    """Quantized: tokens that are written at a time; fewer than that wait unharmed."""
    bits: int | None = None


@dataclass(frozen=True, slots=True)
class Notice(Event):
    """Something the reader should know and that did not stop the run."""

    kind: NoticeKind
    message: str


@dataclass(frozen=True, slots=True)
class Metrics:
    """Numbers on a run; None where a run has no such number."""

    prompt_tokens: int = 0
    new_tokens: int = 0
    seconds: float = 0.0
    time_to_first_token: float | None = None
    prefill_tokens_per_second: float | None = None
    decode_tokens_per_second: float | None = None
    """After the first token, all sequences together."""
    target_passes: int = 0
    tokens_per_target_pass: float | None = None
    acceptance_rate: float | None = None
    """Speculation: accepted ÷ examined drafted tokens."""
    draft_seconds: float | None = None
    verify_seconds: float | None = None
    overhead_seconds: float | None = None
    predicted_speedup: float | None = None
    """Speculation: by the formula (1 − β^(γ+1)) / ((1 − β)(γc + 1))."""
    cache_bytes: int = 0
    cache_peak_bytes: int = 0
    peak_memory_bytes: int | None = None
    """Weights, cache and activations together, measured: what torch took on a graphics card, or the whole process on a
    CPU; None where the system does not tell."""


@dataclass(frozen=True, slots=True)
class Finished(Event):
    """Last event of every run that was not ended by an error; best sequence first."""

    reason: RunEnd
    sequences: tuple[tuple[int, ...], ...]
    """New tokens only: without the prompt, and without what the answer begins with."""
    texts: tuple[str, ...]
    metrics: Metrics
    scores: tuple[float, ...] | None = None
    order: tuple[int, ...] = ()
    """Which `sequence` number each of `sequences` had while it streamed."""
