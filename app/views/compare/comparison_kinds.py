"""The kinds of comparison: their descriptions, and what each one runs. No Qt."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from decodescope import core
from decodescope.app.session.side_runs import MeasurementProgress
from decodescope.app.state.comparison import candidates as choose
from decodescope.app.state.comparison.candidates import ComparisonCandidate
from decodescope.app.state.comparison.results import Comparison, ComparisonEntry, token_ids
from decodescope.app.state.run import Run
from decodescope.app.state.worker_messages import ModelInfo, RunRequest
from decodescope.app.views.text.token_wording import token_text
from decodescope.core import ModelEntry, strategies, words
from decodescope.resources.language import join_sentences, mark, tr, trn

_NBSP = "\N{NO-BREAK SPACE}"
REFERENCE_MARK = "◆"
"""Marks the reference, in addition to its font weight."""


def entry_summary(comparison: Comparison, entry: ComparisonEntry) -> str:
    """Return how the entry's text differs from the reference's, or its state while it has no result."""
    run, reference = entry.result, comparison.reference
    if run is None:
        return state_text(entry)
    if reference is None or reference.result is None:
        return ""
    if entry is reference:
        difference = tr("the reference")
    else:
        stopped = [one for one in (entry, reference) if one.state == "stopped"]
        cut = {len(token_ids(one.result)) for one in stopped if one.result is not None}
        difference = _difference_text(comparison.first_difference(entry), run, reference.result, cut)
    return tr("stopped; {how}").format(how=difference) if entry.state == "stopped" else difference


def _difference_text(index: int | None, run: Run, reference: Run, cut: Collection[int]) -> str:
    """Describe the difference from the reference; `index` is the index of the first different token, `cut` contains the
    lengths of stopped texts, whose ends are no difference.
    """
    if index is None:
        count = len(token_ids(run))
        return trn("same {count:,} token", "same {count:,} tokens", count).format(count=count)
    if index in cut and index == min(len(token_ids(run)), len(token_ids(reference))):
        return trn("same first token", "same first {count:,} tokens", index).format(count=index)
    own, other = _quoted_token(run, index), _quoted_token(reference, index)
    if own == other:  # several tokens may be written alike
        own, other = _identified_token(run, index), _identified_token(reference, index)
    return tr("differs at {place:,}: {own}, not {other}").format(place=index + 1, own=own, other=other)


def _quoted_token(run: Run, index: int) -> str:
    tokens = run.sequences[0].tokens
    return f"“{token_text(tokens[index].piece, tokens[index].is_special)}”" if index < len(tokens) else tr("the end")


def _identified_token(run: Run, index: int) -> str:
    return tr("{token} (token {id})").format(token=_quoted_token(run, index), id=token_ids(run)[index])


def state_text(entry: ComparisonEntry) -> str:
    """Return the text for an entry without a result."""
    texts = {"waiting": tr("waiting"), "running": tr("running…"), "stopped": tr("stopped"), "failed": entry.cause}
    return texts.get(entry.state, "")


def progress_text(progress: MeasurementProgress) -> str:
    """Return `3 of 12 · about 20 s left`; without the time until it is known."""
    done = tr("{done:,} of {total:,}").format(done=progress.done, total=progress.total)
    if progress.seconds_left is None:
        return done
    return tr("{done} · about {time} left").format(done=done, time=words.rounded_duration(progress.seconds_left))


def plan_text(runs: int, seconds_per_run: float | None) -> str:
    """Return `15 runs, about 40 s`, based on the duration of the shown run; without the time if that is unknown."""
    count = trn("{count:,} run", "{count:,} runs", runs).format(count=runs).replace(" ", _NBSP)
    if seconds_per_run is None or not runs:
        return count
    return tr("{runs}, about {time}").format(runs=count, time=words.rounded_duration(seconds_per_run * runs))


CACHES, STRATEGIES, SEEDS, MODELS, SWEEP, RUNS = "caches", "strategies", "seeds", "models", "sweep", "runs"
GRAMMAR, TEMPERATURES = "grammar", "temperatures"
KINDS = (
    (TEMPERATURES, mark("Two temperatures")),
    (CACHES, mark("Caches")),
    (STRATEGIES, mark("Strategies")),
    (SEEDS, mark("Seeds")),
    (MODELS, mark("Models")),
    (SWEEP, mark("Sweep")),
    (GRAMMAR, mark("Grammar")),
    (RUNS, mark("Runs")),
)
DESCRIPTIONS = {
    TEMPERATURES: mark(
        "Repeats the shown run with the same seed: once so cool that the likeliest words nearly always win, once so "
        "warm that unlikely ones get their turn."
    ),
    CACHES: mark("Runs the prompt, seed and settings of the shown run on each cache. Dynamic is the baseline."),
    STRATEGIES: mark("Runs the prompt and seed of the shown run with each strategy at its default settings."),
    SEEDS: mark("Repeats the shown run, each time with the next seed."),
    MODELS: mark(
        "Repeats the shown run with other models. Each is loaded when needed; then the current model is loaded again."
    ),
    SWEEP: mark("Repeats the shown run with several values of one setting, each with the same seeds."),
    GRAMMAR: mark("Compares the shown run with a run without its grammar, all other settings unchanged."),
    RUNS: mark("Compares existing runs as they are: runs of this window and runs opened from files."),
}
KINDS_WITH_REFERENCE = frozenset({CACHES, STRATEGIES, GRAMMAR})
"""Kinds whose first candidate is always compared, as the reference."""


def comparison_unsupported_reason(kind: str, request: RunRequest) -> str:
    """Return why a run cannot be compared this way, or an empty string. Existing runs can always be compared."""
    if kind == RUNS:
        return ""
    if request.strategy not in strategies.registry:
        return tr(
            "The strategy “{strategy}” is not available in this program. This run can only be compared "
            "with existing runs."
        ).format(strategy=request.strategy)
    if request.scored and kind != MODELS:
        return tr("The shown run only scores a given text; no token is chosen in it.")
    if kind == GRAMMAR and not request.grammar:
        return tr("The shown run has no grammar.")
    return choose.seeds_unsupported_reason(request) if kind == SEEDS else ""


def kind_description(kind: str, run: Run | None) -> str:
    """Return the description of a kind and, for grammars, how the grammar affected the shown run."""
    grammar_effect = core.explain_grammar(_grammar_figures(run)) if run is not None and kind == GRAMMAR else ""
    return join_sentences(tr(DESCRIPTIONS[kind]), grammar_effect)


def _grammar_figures(run: Run) -> core.GrammarFigures | None:
    """Return how the grammar affected the shown text."""
    if run.beams is None:
        return core.grammar_figures(run.tokens)
    node = run.beams.node_of(run.tokens[-1]) if run.tokens else 0
    return core.beam_grammar_figures(run.beams.steps, node)


def candidates_of(
    kind: str, base: RunRequest, info: ModelInfo | None, entries: Sequence[ModelEntry], runs: Sequence[Run]
) -> list[ComparisonCandidate]:
    """Return the candidates offered as chips; empty for kinds that use other controls."""
    match kind:
        case "temperatures":
            return choose.temperature_candidates(base, info)
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
    """`active` is the kind that is running; `is_measuring` is set while any measurement is running, including those of
    other views.
    """

    def __init__(self) -> None:
        self.comparisons = {kind: Comparison() for kind, _ in KINDS}
        self.active: str | None = None
        self.is_measuring = False

    def begin(self, kind: str, comparison: Comparison, measure: Callable[[Sequence[RunRequest]], None]) -> None:
        """Start a comparison; `measure` starts the runs, and `set_measuring` is then called when measuring starts and
        ends.
        """
        self.active = kind
        self.comparisons[kind] = comparison
        measure(comparison.start())
        if not self.is_measuring:  # there was nothing to run, or another run is active
            comparison.stop_remaining()
            self.active = None

    def set_measuring(self, on: bool) -> None:
        """Note that measuring has started or ended, for a comparison or for another view."""
        self.is_measuring = on
        if not on and self.active is not None:
            self.comparisons[self.active].stop_remaining()
            self.active = None

    def add_result(self, run: Run) -> bool:
        """Add a finished run to the active comparison; return False if it does not belong to it."""
        return self.active is not None and self.comparisons[self.active].assign_result(run)

    def contains(self, run: Run | None) -> bool:
        """Return whether the run is one of the results."""
        return any(comparison.entry_of(run) is not None for comparison in self.comparisons.values())
