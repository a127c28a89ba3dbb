"""Speculation: what was drafted in a round, what the target thought of it, and what it cost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from core.events.run import Ending, Event

DraftFate = Literal["accepted", "refused", "unreached"]
ChoiceReason = Literal["best", "untried", "retried", "silent"]
ExtraKind = Literal["bonus", "correction", "none"]
"""What a round of speculation adds of the target's own."""


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
    special: bool | None = None
    """Whether decoding skips it, by the tokenizer's own mark; None where that is not known (older recordings)."""


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
    extra_special: bool | None = None
    """As `DraftNode.special`, of the target's own token."""


@dataclass(frozen=True, slots=True)
class CostCurve(Event):
    """What this machine pays for checking several tokens in one pass of the target, over one token."""

    curve: tuple[tuple[int, float], ...]
    """(tokens in the pass, time ÷ the time of one token), by tokens."""


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
