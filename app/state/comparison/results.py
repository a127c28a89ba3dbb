"""Results of a comparison's runs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import astuple, dataclass, field, fields
from typing import Literal

from decodescope.app.state.comparison.candidates import ComparisonCandidate, Sweep
from decodescope.app.state.comparison.run_metrics import RunMetrics, compute_run_metrics
from decodescope.app.state.run import Run
from decodescope.app.state.worker_messages import OutcomeKind, RunRequest

SpanKind = Literal["same", "own", "missing"]
_WORD_PATTERN = re.compile(r"\s*\S+|\s+$")
"""A word with its leading white space; all words joined give the text."""


@dataclass(frozen=True, slots=True)
class DiffSpan:
    """A span of a diff with the reference: in both texts (`same`), only in this one (`own`), or only in the reference
    (`missing`).
    """

    kind: SpanKind
    text: str


def split_words(text: str) -> list[str]:
    """Return the text's words, each with its leading white space."""
    return _WORD_PATTERN.findall(text)


def word_diff(reference: str, text: str) -> list[DiffSpan]:
    """Return the word diff of `text` with `reference`.

    The spans that are not `missing`, joined, are `text`; those that are not `own` are `reference`. Words are compared
    without their leading white space; where runs of words differ, the missing ones come first.
    """
    from difflib import SequenceMatcher

    ours, theirs = split_words(text), split_words(reference)
    matcher = SequenceMatcher(None, [w.strip() for w in theirs], [w.strip() for w in ours], autojunk=False)
    spans: list[DiffSpan] = []
    for tag, a, b, c, d in matcher.get_opcodes():
        if tag == "equal":
            spans.append(DiffSpan("same", "".join(ours[c:d])))
            continue
        spans += [DiffSpan("missing", "".join(theirs[a:b]))] if b > a else []
        spans += [DiffSpan("own", "".join(ours[c:d]))] if d > c else []
    return spans


def first_difference(one: Sequence[int], other: Sequence[int]) -> int | None:
    """Return the index at which two token sequences differ, which may be the end of the shorter one; None if they are
    equal.
    """
    place = next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    return None if place == len(one) == len(other) else place


EntryState = Literal["waiting", "running", "done", "failed", "stopped"]
_ENDED: dict[OutcomeKind, EntryState] = {"completed": "done", "stopped": "stopped", "failed": "failed"}


@dataclass
class ComparisonEntry:
    """A candidate in a comparison that was started."""

    candidate: ComparisonCandidate
    state: EntryState = "waiting"
    run: Run | None = None
    _metrics: RunMetrics | None = None

    @property
    def cause(self) -> str:
        """The reason why it has no result; empty if it has one."""
        error = self.run.outcome.error if self.run is not None and self.run.outcome is not None else None
        return error.cause if error is not None else ""

    @property
    def result(self) -> Run | None:
        """Its run, if that has text to compare, complete or stopped."""
        has_text = self.run is not None and self.run.finished is not None and bool(self.run.sequences[0].tokens)
        return self.run if has_text and self.state in ("done", "stopped") else None

    @property
    def metrics(self) -> RunMetrics | None:
        """The result's metrics, computed once; None without a result."""
        if self._metrics is None and self.result is not None:
            self._metrics = compute_run_metrics(self.result)
        return self._metrics


@dataclass
class Comparison:
    """Runs side by side, compared with a reference: the first that has a result, or the one the user chose."""

    entries: list[ComparisonEntry] = field(default_factory=list)
    sweep: Sweep | None = None
    """The sweep; None if the runs differ otherwise."""
    reference_key: str | None = None
    """Key of the reference chosen by the user."""
    _diffs: dict[tuple[str, str], list[DiffSpan]] = field(default_factory=dict)

    @property
    def results(self) -> list[tuple[ComparisonEntry, Run]]:
        """Entries with a result, and the results."""
        return [(entry, entry.result) for entry in self.entries if entry.result is not None]

    @property
    def reference(self) -> ComparisonEntry | None:
        """The entry that the others are compared with; None while there are no results."""
        found = [entry for entry, _ in self.results]
        return next(
            (entry for entry in found if entry.candidate.key == self.reference_key), found[0] if found else None
        )

    @property
    def is_over(self) -> bool:
        """Whether no more results will come."""
        return all(entry.state not in ("waiting", "running") for entry in self.entries)

    def entry_of(self, run: Run | None) -> ComparisonEntry | None:
        """Return the entry whose result is this run."""
        if run is None:
            return None
        return next((entry for entry, result in self.results if result.id == run.id), None)

    def start(self) -> list[RunRequest]:
        """Return the requests to run, in order, without existing runs, and mark the first as running."""
        for entry in self.entries:
            if entry.candidate.run is not None:
                entry.run, entry.state = entry.candidate.run, "done"
        self._start_next()
        return [entry.candidate.request for entry in self.entries if entry.state in ("waiting", "running")]

    def assign_result(self, run: Run) -> bool:
        """Assign a finished run to its entry; False if it does not belong to this comparison."""
        entry = next((entry for entry in self.entries if entry.state == "running"), None)
        if entry is None or not _is_same_request(entry.candidate.request, run.request):
            return False
        kind = run.outcome.kind if run.outcome is not None else "failed"
        entry.run, entry.state = run, _ENDED[kind]
        self._start_next()
        return True

    def stop_remaining(self) -> None:
        """Mark all remaining entries as stopped."""
        for entry in self.entries:
            if entry.state in ("waiting", "running"):
                entry.state = "stopped"

    def _start_next(self) -> None:
        waiting = next((entry for entry in self.entries if entry.state == "waiting"), None)
        if waiting is not None:
            waiting.state = "running"

    def first_difference(self, entry: ComparisonEntry) -> int | None:
        """Return the index of the first token that differs from the reference; None if there is none."""
        reference = self.reference
        if entry.result is None or reference is None or reference.result is None:
            return None
        return first_difference(token_ids(reference.result), token_ids(entry.result))

    def word_diff(self, entry: ComparisonEntry) -> list[DiffSpan]:
        """Return the word diff with the reference's text; empty if one of them is missing."""
        reference = self.reference
        if entry.result is None or reference is None or reference.result is None:
            return []
        key = reference.candidate.key, entry.candidate.key
        if key not in self._diffs:
            self._diffs[key] = word_diff(reference.result.sequences[0].text, entry.result.sequences[0].text)
        return self._diffs[key]


def start_comparison(candidates: Sequence[ComparisonCandidate], sweep: Sweep | None = None) -> Comparison:
    """Create a comparison of these candidates; existing runs have their results at once."""
    return Comparison([ComparisonEntry(candidate) for candidate in candidates], sweep)


def _is_same_request(requested: RunRequest, previous: RunRequest) -> bool:
    """Return whether `previous` is the requested run: a session may run a modified copy, without prefixes or with a
    trimmed chat.
    """
    one, other = (
        (r.strategy, r.cache, dict(r.cache_options), r.settings, r.seed, r.load, r.draft_names)
        for r in (requested, previous)
    )
    return one == other


def token_ids(run: Run) -> list[int]:
    """Return the token ids of the first text."""
    return [token.id for token in run.sequences[0].tokens]


_METRICS = tuple(field.name for field in fields(RunMetrics))
HEADER = ("name", "strategy", "cache", "model", "seed", "state", *_METRICS, "first_different_token", "text")


def comparison_rows(comparison: Comparison, unavailable: Sequence[ComparisonCandidate] = ()) -> list[list[object]]:
    """Return a line for every entry, then one for every unavailable candidate with the reason as its state. In a sweep,
    the swept parameter is a column after the name.
    """
    sweep = comparison.sweep
    head: list[object] = list(HEADER)
    if sweep is not None:
        head.insert(1, sweep.parameter.name)
    return [head, *(_entry_row(comparison, entry) for entry in comparison.entries),
            *(_unavailable_row(candidate, sweep is not None) for candidate in unavailable)]  # fmt: skip


def _entry_row(comparison: Comparison, entry: ComparisonEntry) -> list[object]:
    line, sweep = _row_start(entry.candidate, entry.cause or entry.state), comparison.sweep
    if sweep is not None:
        line.insert(1, sweep.values[entry.candidate.index])
    figures, run = entry.metrics, entry.result
    if figures is None or run is None:
        return line
    place = comparison.first_difference(entry)
    return [*line, *("" if value is None else value for value in astuple(figures)), "" if place is None else place + 1,
            run.sequences[0].text]  # fmt: skip


def _unavailable_row(candidate: ComparisonCandidate, in_sweep: bool) -> list[object]:
    line = _row_start(candidate, candidate.reason)
    if in_sweep:
        line.insert(1, "")
    return line


def _row_start(candidate: ComparisonCandidate, state: str) -> list[object]:
    request = candidate.request
    return [candidate.title, request.strategy, request.cache, request.model, request.seed, state]
