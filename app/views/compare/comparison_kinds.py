"""The kinds of comparison: what each says of itself, and what its button runs. No Qt."""

from __future__ import annotations

from collections.abc import Sequence

import core
from app.state.comparison import candidates as choose
from app.state.comparison.candidates import ComparisonCandidate
from app.state.run import Run
from app.state.worker_messages import ModelInfo, RunRequest
from core import ModelEntry, strategies
from resources.language import join_sentences, mark, tr

CACHES, STRATEGIES, SEEDS, MODELS, SWEEP, RUNS = "caches", "strategies", "seeds", "models", "sweep", "runs"
GRAMMAR = "grammar"
KINDS = (
    (CACHES, mark("Caches")),
    (STRATEGIES, mark("Strategies")),
    (SEEDS, mark("Seeds")),
    (MODELS, mark("Models")),
    (SWEEP, mark("Sweep")),
    (GRAMMAR, mark("Grammar")),
    (RUNS, mark("Runs")),
)
DESCRIPTIONS = {
    CACHES: mark(
        "The prompt, seed and settings of the shown run, once on each cache. Dynamic is what they are measured by."
    ),
    STRATEGIES: mark("The prompt and seed of the shown run, once with each strategy at its own defaults."),
    SEEDS: mark("The shown run again and again, each time with the next seed."),
    MODELS: mark("The shown run by other models, each loaded when its turn comes; then the shown one is loaded again."),
    SWEEP: mark("The shown run with one setting at several values, each with the same few seeds."),
    GRAMMAR: mark("The shown run, and what it would have been without its grammar, all else as it was."),
    RUNS: mark("Runs that are there already, as they were: those of this window, and those opened from elsewhere."),
}
KINDS_WITH_REFERENCE = frozenset({CACHES, STRATEGIES, GRAMMAR})
"""Kinds whose first candidate is always compared: the others are measured by it."""


def comparison_unsupported_reason(kind: str, request: RunRequest) -> str:
    """Why a run cannot be compared so; empty when it can. Runs as they are always can."""
    if kind == RUNS:
        return ""
    if request.strategy not in strategies.registry:
        return tr("This program has no strategy “{strategy}”: this run can be compared as it is only.").format(
            strategy=request.strategy
        )
    if request.scored and kind != MODELS:
        return tr("The shown run scores a text that was given: nothing is chosen in it.")
    if kind == GRAMMAR and not request.grammar:
        return tr("The shown run has no grammar.")
    return choose.seeds_unsupported_reason(request) if kind == SEEDS else ""


def kind_description(kind: str, run: Run | None) -> str:
    """What the kind says of itself, and of the shown run what is worth knowing for it."""
    grammar_effect = core.explain_grammar(_grammar_figures(run)) if run is not None and kind == GRAMMAR else ""
    return join_sentences(tr(DESCRIPTIONS[kind]), grammar_effect)


def _grammar_figures(run: Run) -> core.GrammarFigures | None:
    """What its grammar did to the text that is shown."""
    if run.beams is None:
        return core.grammar_figures(run.tokens)
    node = run.beams.node_of(run.tokens[-1]) if run.tokens else 0
    return core.beam_grammar_figures(run.beams.steps, node)


def candidates_of(
    kind: str, base: RunRequest, info: ModelInfo | None, entries: Sequence[ModelEntry], runs: Sequence[Run]
) -> list[ComparisonCandidate]:
    """What a reader chooses from by chips; nothing for kinds that are chosen otherwise."""
    match kind:
        case "caches":
            return choose.cache_candidates(base, info)
        case "strategies":
            return choose.strategy_candidates(base, info)
        case "models":
            return choose.model_candidates(base, entries)
        case "runs":
            return choose.run_candidates(runs)
        case "grammar":
            return choose.grammar_candidates(base)
    return []
