"""Events of speculative decoding: drafted tokens of each round, their verification, and the costs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

from decodescope.core.events.run import Ending, Event
from decodescope.core.events.tokens import LazyDetails, Stage, StepDetailSource

DraftFate = Literal["accepted", "refused", "unreached"]
ChoiceReason = Literal["best", "untried", "retried", "silent"]
ExtraKind = Literal["bonus", "correction", "none"]
"""The target model's own token that a round of speculation appends."""


@dataclass(frozen=True, slots=True)
class DraftNode:
    """One drafted token of a round's tree."""

    node: int
    """Number of the node in the round, from 1, parents before children; 0 is the last token of the text so far."""
    parent: int
    id: int
    piece: str
    depth: int
    drafter: int
    """Index of the drafter that proposed it."""
    draft_probability: float
    target_probability: float
    fate: DraftFate
    ratio: float | None = None
    """min(1, p/q) where a random number decided; None where the target's greedy choice decided or it was not reached.
    """
    die: float | None = None
    """The random number in [0, 1) drawn for the decision."""
    cut_by: str = ""
    """The target's processing stage that removed it (`grammar`, `top_p`, …); empty if none did."""
    proposers: tuple[int, ...] = ()
    """All drafters that proposed it, ascending; empty if only `drafter` did."""
    special: bool | None = None
    """Whether the tokenizer marks it as special (skipped in decoding); None if unknown (older recordings)."""


@dataclass(frozen=True, slots=True)
class DrafterChoice:
    """The drafter that a round used, of several, and the reason."""

    asked: int
    reason: ChoiceReason
    """Best measured speed (best), hardly tried yet (untried), retried although another was faster (retried), or earlier
    drafters proposed nothing (silent).
    """
    worths: tuple[float, ...]
    """Speed-up of each drafter in the latest rounds (speed with it ÷ without drafts); 0.0 before it was tried."""
    times: tuple[int, ...]
    """How often each drafter has been used."""
    silent: tuple[int, ...] = ()
    """Drafters that were tried first and proposed nothing."""
    is_counted: bool = False
    """Whether costs are counted instead of measured: a sampled text must not depend on timing."""


@dataclass(frozen=True, slots=True)
class NgramPool:
    """N-grams collected by lookahead decoding."""

    size: int
    """Number of n-grams in the pool after the round."""
    found: tuple[tuple[str, ...], ...]
    """N-grams added by the round's pass, as token pieces."""


@dataclass(frozen=True, slots=True)
class DraftRound(Event):
    """One round of speculation: drafted tokens, their verification and the accepted path."""

    round: int
    step: int
    """Number of new tokens before the round."""
    nodes: tuple[DraftNode, ...]
    accepted: tuple[int, ...]
    """Nodes of the accepted path, in order."""
    extra_id: int
    extra_piece: str
    extra_kind: ExtraKind
    """bonus (everything on the path was accepted), correction (a drafted token was rejected) or none (cut short)."""
    draft_seconds: float
    verify_seconds: float
    overhead_seconds: float
    length: int
    """Requested draft length (depth) of this round."""
    choice: DrafterChoice | None = None
    """None if there was only one drafter."""
    pool: NgramPool | None = None
    """Only for lookahead decoding."""
    extra_special: bool | None = None
    """As `DraftNode.special`, for the target's own token."""


@dataclass(frozen=True, slots=True)
class CostCurve(Event):
    """Relative cost on this machine of verifying several tokens in one pass of the target."""

    curve: tuple[tuple[int, float], ...]
    """(tokens in the pass, time ÷ time for one token), by number of tokens."""


BeamFate = Literal["kept", "pruned", "finished", "early_stopped"]


@dataclass(frozen=True, slots=True)
class BeamCandidate:
    """One continuation considered by beam search at a step: a node of the tree."""

    node: int
    """Number of the node in the run, from 1; the prompt is node 0."""
    parent: int
    id: int
    piece: str
    probability: float
    """Probability of the token after processing, given its parent."""
    log_probability: float
    """What the token adds to `score`: its log-probability after processing, less the penalty of diverse search. It is
    not normalized again, unlike `probability`.
    """
    score: float
    """Sum of log-probabilities from the prompt to here, as ranked by the search."""
    normalized: float
    """score / length ** length_penalty: used to compare finished hypotheses."""
    rank: int
    """Rank among the candidates of its step (of its group, in diverse search), 1 = best."""
    fate: BeamFate
    raw_probability: float
    """Probability before any processing, given its parent."""
    raw_log_probability: float
    raw_rank: int
    """Rank among all tokens by raw probability, 1 = the model's first choice after this parent."""
    entropy: float
    """Entropy of the model's raw distribution after the parent, in nats."""
    group: int = 0
    diversity_penalty: float = 0.0
    """Penalty of diverse beam search on this token's log-probability at this step."""
    progress: int = 0
    """Number of constraint tokens satisfied from the prompt to here."""
    text: str = ""
    """Text that it adds to its path (as TokenChosen.text)."""
    ended: Ending | None = None
    """Why the text ends with it; None if it continues."""
    special: bool | None = None
    """Whether the tokenizer marks it as special (skipped in decoding); None if unknown (older recordings)."""


@dataclass(frozen=True, slots=True)
class Overruled:
    """The model's first choice after a beam, where the grammar forbids it."""

    parent: int
    """The node it would have continued."""
    id: int
    piece: str
    raw_probability: float
    """Probability before any processing."""
    special: bool | None = None
    """Whether the tokenizer marks it as special (skipped in decoding); None if unknown (older recordings)."""


@dataclass(frozen=True, slots=True)
class BeamFunnel(LazyDetails):
    """The stages of the distribution after a beam, and what each left."""

    _lazy_fields: ClassVar[Mapping[str, str]] = {"stages": "funnel"}

    parent: int
    """The node that its candidates continue."""
    stages: tuple[Stage, ...]
    """The model's own distribution and every stage, as in `TokenChosen.funnel`."""

    @classmethod
    def of(cls, parent: int, source: StepDetailSource) -> BeamFunnel:
        """Return a funnel whose stages are built on first access."""
        made = object.__new__(cls)
        object.__setattr__(made, "parent", parent)
        object.__setattr__(made, "source", source)
        return made


@dataclass(frozen=True, slots=True)
class BeamStep(Event):
    """All continuations considered at one step, best first within each group."""

    step: int
    candidates: tuple[BeamCandidate, ...]
    best: int
    """Node of the leading hypothesis, running or finished."""
    seconds: float
    required: int = 0
    """Total number of constraint tokens: `progress` when all constraints are satisfied."""
    length_penalty: float = 1.0
    """Exponent of the length by which scores are divided."""
    overruled: tuple[Overruled, ...] = ()
    """The model's first choices that the grammar forbids, at most one per beam."""
    forbidden: tuple[tuple[int, float], ...] = ()
    """(continued node, probability mass of the raw distribution after it that the grammar removed), for each
    constrained beam.
    """
    funnels: tuple[BeamFunnel, ...] = ()
    """One for each beam with candidates; () if nothing is processed, or without tracing."""


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """One result of a beam search."""

    node: int
    """Last node of the path in the tree."""
    ids: tuple[int, ...]
    text: str
    log_probability: float
    """Sum over its tokens."""
    length: int
    """Number of tokens, the base of the length penalty."""
    score: float
    finished: bool
    """Whether it ended with an end token rather than at the limit."""
    group: int = 0


@dataclass(frozen=True, slots=True)
class BeamsRanked(Event):
    """The final ranking, best first: score = log_probability ÷ length ** length_penalty."""

    hypotheses: tuple[Hypothesis, ...]
    length_penalty: float = 1.0
    diversity_penalty: float = 0.0
    """Penalty of a group for a token chosen by an earlier one; 0.0 without groups."""
