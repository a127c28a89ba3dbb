"""What came of the runs of a comparison."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from app.state.comparison.candidates import ComparisonCandidate
from app.state.comparison.run_figures import RunMetrics, compute_run_metrics
from app.state.comparison.sweep import Sweep
from app.state.comparison.text_diff import DiffSpan, first_difference, word_diff
from app.state.run import Run
from app.state.worker_messages import OutcomeKind, RunRequest

EntryState = Literal["waiting", "running", "done", "failed", "stopped"]
_ENDED: dict[OutcomeKind, EntryState] = {"completed": "done", "stopped": "stopped", "failed": "failed"}


@dataclass
class ComparisonEntry:
    """A candidate in a comparison that was begun."""

    candidate: ComparisonCandidate
    state: EntryState = "waiting"
    run: Run | None = None
    _metrics: RunMetrics | None = None

    @property
    def cause(self) -> str:
        """Why it has no result; empty when it has."""
        error = self.run.outcome.error if self.run is not None and self.run.outcome is not None else None
        return error.cause if error is not None else ""

    @property
    def result(self) -> Run | None:
        """Its run, when that has written something to compare: whole, or up to where it was stopped."""
        has_text = self.run is not None and self.run.finished is not None and bool(self.run.sequences[0].tokens)
        return self.run if has_text and self.state in ("done", "stopped") else None

    @property
    def metrics(self) -> RunMetrics | None:
        """The result's figures, reckoned once; None where there is no result."""
        if self._metrics is None and self.result is not None:
            self._metrics = compute_run_metrics(self.result)
        return self._metrics


@dataclass
class Comparison:
    """Runs side by side, compared with one of them: the first that has a result, or the one that was chosen."""

    entries: list[ComparisonEntry] = field(default_factory=list)
    sweep: Sweep | None = None
    """What was swept; None where the runs differ otherwise."""
    reference_key: str | None = None
    """Key of the reference somebody chose."""
    _diffs: dict[tuple[str, str], list[DiffSpan]] = field(default_factory=dict)

    @property
    def results(self) -> list[tuple[ComparisonEntry, Run]]:
        """Those with a result."""
        return [(entry, entry.result) for entry in self.entries if entry.result is not None]

    @property
    def reference(self) -> ComparisonEntry | None:
        """What the others are compared with; None before anything is there."""
        found = [entry for entry, _ in self.results]
        return next(
            (entry for entry in found if entry.candidate.key == self.reference_key), found[0] if found else None
        )

    @property
    def is_over(self) -> bool:
        """Whether no more of them will come."""
        return all(entry.state not in ("waiting", "running") for entry in self.entries)

    def entry_of(self, run: Run | None) -> ComparisonEntry | None:
        """Whose result that run is."""
        if run is None:
            return None
        return next((entry for entry, result in self.results if result.id == run.id), None)

    def start(self) -> list[RunRequest]:
        """What is to be run, in order: all but the runs that are there already. The first one is under way."""
        for entry in self.entries:
            if entry.candidate.run is not None:
                entry.run, entry.state = entry.candidate.run, "done"
        self._start_next()
        return [entry.candidate.request for entry in self.entries if entry.state in ("waiting", "running")]

    def assign_result(self, run: Run) -> bool:
        """Sort in a run that has ended; False when it is none of these."""
        entry = next((entry for entry in self.entries if entry.state == "running"), None)
        if entry is None or not _is_same_request(entry.candidate.request, run.request):
            return False
        kind = run.outcome.kind if run.outcome is not None else "failed"
        entry.run, entry.state = run, _ENDED[kind]
        self._start_next()
        return True

    def stop_remaining(self) -> None:
        """No more of them will come."""
        for entry in self.entries:
            if entry.state in ("waiting", "running"):
                entry.state = "stopped"

    def _start_next(self) -> None:
        waiting = next((entry for entry in self.entries if entry.state == "waiting"), None)
        if waiting is not None:
            waiting.state = "running"

    def first_difference(self, entry: ComparisonEntry) -> int | None:
        """Place of the first token that differs from the reference's; None when none does."""
        reference = self.reference
        if entry.result is None or reference is None or reference.result is None:
            return None
        return first_difference(token_ids(reference.result), token_ids(entry.result))

    def word_diff(self, entry: ComparisonEntry) -> list[DiffSpan]:
        """Its text word by word beside the reference's; empty where one of them is missing."""
        reference = self.reference
        if entry.result is None or reference is None or reference.result is None:
            return []
        key = reference.candidate.key, entry.candidate.key
        if key not in self._diffs:
            self._diffs[key] = word_diff(reference.result.sequences[0].text, entry.result.sequences[0].text)
        return self._diffs[key]


def start_comparison(candidates: Sequence[ComparisonCandidate], sweep: Sweep | None = None) -> Comparison:
    """A comparison of these; runs that are there already have their results at once."""
    return Comparison([ComparisonEntry(candidate) for candidate in candidates], sweep)


def _is_same_request(requested: RunRequest, ran: RunRequest) -> bool:
    """What a session runs may be a copy of what it was asked for: without prefixes, a chat cut to its place."""
    one, other = (
        (r.strategy, r.cache, dict(r.cache_options), r.settings, r.seed, r.load, r.draft_names)
        for r in (requested, ran)
    )
    return one == other


def token_ids(run: Run) -> list[int]:
    """The first text's tokens."""
    return [token.id for token in run.sequences[0].tokens]
