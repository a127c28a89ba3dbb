"""A beam search: what it considered at each step, and what it found."""

from dataclasses import dataclass
from typing import Literal

from core.events.run import Ending, Event

BeamFate = Literal["kept", "pruned", "finished", "early_stopped"]


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
    special: bool | None = None
    """Whether decoding skips it, by the tokenizer's own mark; None where that is not known (older recordings)."""


@dataclass(frozen=True, slots=True)
class Overruled:
    """What the model wanted most behind a beam, where the form that the text is held to forbids it."""

    parent: int
    """The node it would have continued."""
    id: int
    piece: str
    raw_probability: float
    """By the model alone."""
    special: bool | None = None
    """Whether decoding skips it, by the tokenizer's own mark; None where that is not known (older recordings)."""


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
    overruled: tuple[Overruled, ...] = ()
    """The model's first choices that a grammar forbade, at most one for each beam."""
    forbidden: tuple[tuple[int, float], ...] = ()
    """(node that was continued, share of the model's own distribution behind it that a grammar took out), for each beam
    that one held."""


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
