"""The kinds of comparison: what each says of itself, and what its button runs. No Qt."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import core
from app.session.side_runs import MeasurementProgress
from app.state.comparison import candidates as choose
from app.state.comparison.candidates import ComparisonCandidate
from app.state.comparison.results import Comparison, ComparisonEntry, token_ids
from app.state.run import Run
from app.state.worker_messages import ModelInfo, RunRequest
from app.views.text.token_wording import token_text
from core import ModelEntry, strategies
from resources.language import join_sentences, mark, tr, trn

_NBSP = "\N{NO-BREAK SPACE}"
REFERENCE_MARK = "◆"
"""Stands before what the others are compared with: a cue beside its weight."""


def entry_summary(comparison: Comparison, entry: ComparisonEntry) -> str:
    """How its text compares with the reference's; of an entry without a result, its state."""
    run, reference = entry.result, comparison.reference
    if run is None:
        return state_text(entry)
    if reference is None or reference.result is None:
        return ""
    difference = (
        tr("the reference")
        if entry is reference
        else _difference_text(comparison.first_difference(entry), run, reference.result)
    )
    return tr("stopped; {how}").format(how=difference) if entry.state == "stopped" else difference


def _difference_text(index: int | None, run: Run, reference: Run) -> str:
    """How a text compares with the reference, the first token that differs being at that place."""
    if index is None:
        count = len(token_ids(run))
        return trn("the same {count:,} token", "the same {count:,} tokens", count).format(count=count)
    return tr("differs at {place:,}: {own}, not {other}").format(
        place=index + 1, own=_quoted_token(run, index), other=_quoted_token(reference, index)
    )


def _quoted_token(run: Run, index: int) -> str:
    tokens = run.sequences[0].tokens
    return f"“{token_text(tokens[index].piece, tokens[index].is_special)}”" if index < len(tokens) else tr("the end")


def state_text(entry: ComparisonEntry) -> str:
    """What is said of an entry without a result."""
    texts = {"waiting": tr("waits"), "running": tr("runs…"), "stopped": tr("stopped"), "failed": entry.cause}
    return texts.get(entry.state, "")


def progress_text(progress: MeasurementProgress) -> str:
    """`3 of 12 · about 20 s left`; without the time before it is known."""
    done = tr("{done:,} of {total:,}").format(done=progress.done, total=progress.total)
    if progress.seconds_left is None:
        return done
    return tr("{done} · about {time} left").format(done=done, time=approximate_time(progress.seconds_left))


def approximate_time(seconds: float) -> str:
    """A time that is only guessed: whole seconds, minutes from two of them on."""
    if seconds < 1.5:
        return f"1{_NBSP}s"
    return f"{seconds:.0f}{_NBSP}s" if seconds < 120 else f"{seconds / 60:.0f}{_NBSP}min"


def plan_text(runs: int, seconds_per_run: float | None) -> str:
    """`15 runs, about 40 s`, by what the shown run took; the time only where that is known."""
    count = trn("{count:,} run", "{count:,} runs", runs).format(count=runs).replace(" ", _NBSP)
    if seconds_per_run is None or not runs:
        return count
    return tr("{runs}, about {time}").format(runs=count, time=approximate_time(seconds_per_run * runs))


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


class ComparisonStore:
    """`active` is the kind that runs now; `is_measuring`: runs beside the shown one are under way, whosever."""

    def __init__(self) -> None:
        self.comparisons = {kind: Comparison() for kind, _ in KINDS}
        self.active: str | None = None
        self.is_measuring = False

    def begin(self, kind: str, comparison: Comparison, measure: Callable[[Sequence[RunRequest]], None]) -> None:
        """Compare these from now on; `measure` has what is to be run begun, which `set_measuring` then hears of."""
        self.active = kind
        self.comparisons[kind] = comparison
        measure(comparison.start())
        if not self.is_measuring:  # nothing was to be run, or another run is under way
            comparison.stop_remaining()
            self.active = None

    def set_measuring(self, on: bool) -> None:
        """Measuring begins or ends, for a comparison or for another view."""
        self.is_measuring = on
        if not on and self.active is not None:
            self.comparisons[self.active].stop_remaining()
            self.active = None

    def add_result(self, run: Run) -> bool:
        """Sort in a run that has ended; False when it is none of these."""
        return self.active is not None and self.comparisons[self.active].assign_result(run)

    def contains(self, run: Run | None) -> bool:
        """Whether that run is one of the results."""
        return any(comparison.entry_of(run) is not None for comparison in self.comparisons.values())
