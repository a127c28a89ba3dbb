"""Which runs to set side by side, and what came of them. No Qt."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from app.state.requests import ModelInfo, RunRequest
from app.state.run import Run
from app.views.text.wording import token_text
from core import caches, strategies, words
from core.strategies import Strategy

CACHES, STRATEGIES = "caches", "strategies"
_BITS = (8, 4, 2)
_FIRST_STRATEGIES = ("greedy", "sampling", "beam_search", "contrastive")
"""Chosen at first, besides the strategy of the shown run."""
_SHORT = {"quantized-8": "8 bits", "quantized-4": "4 bits", "quantized-2": "2 bits", "offloaded_static": "Off. static",
          "sliding_window": "Window", "encoder_decoder": "Enc.–dec."}  # fmt: skip
HEAD = ("", "cache now", "peak", "speed", "first token", "text")


@dataclass(frozen=True, slots=True)
class Candidate:
    """One thing to compare: a request, or the reason why it cannot be run."""

    key: str
    title: str
    summary: str
    request: RunRequest
    reason: str = ""
    chosen: bool = True
    """Whether it is compared unless the reader says otherwise."""

    @property
    def short(self) -> str:
        """A name that fits beside a bar."""
        return _SHORT.get(self.key, self.title)


def candidates(kind: str, base: RunRequest, info: ModelInfo | None) -> list[Candidate]:
    """Everything that `base` could be run with instead; the first one is what the others are compared with."""
    return cache_candidates(base, info) if kind == CACHES else strategy_candidates(base, info)


def cache_candidates(base: RunRequest, info: ModelInfo | None) -> list[Candidate]:
    """Every back end, dynamic first; the quantized one in several widths."""
    found = []
    for name, backend in caches.registry.items():
        reason = cache_refusal(name, base.strategy, info)
        own = dict(base.cache_options) if base.cache == name else {}
        for title, key, params in _variants(name, backend.title, own):
            request = replace(base, cache=name, cache_options=params)
            found.append(Candidate(key, title, backend.summary, request, reason))
    return sorted(found, key=lambda candidate: candidate.key != "dynamic")


def _variants(name: str, title: str, own: dict[str, Any]) -> list[tuple[str, str, dict[str, Any]]]:
    if name != "quantized":
        return [(title, name, own)]
    return [(f"{title}, {bits} bits", f"{name}-{bits}", {**own, "nbits": bits}) for bits in _BITS]


def cache_refusal(name: str, strategy: str, info: ModelInfo | None) -> str:
    """Why a back end cannot serve; empty when it can, as far as is known before it is tried."""
    if info is not None and name in info.refused_caches:
        return info.refused_caches[name]
    return caches.registry[name].lacks(strategies.registry[strategy].needs) or ""


def strategy_candidates(base: RunRequest, info: ModelInfo | None) -> list[Candidate]:
    """Every strategy with its own defaults and the common settings of `base`; the run's own first, as it was."""
    found = []
    for name, strategy in strategies.registry.items():
        own = name == base.strategy
        request = base if own else base.with_strategy(strategy, _params(strategy, base.settings))
        chosen = own or name in _FIRST_STRATEGIES
        found.append(
            Candidate(name, strategy.title, strategy.summary, request, _strategy_refusal(strategy, base, info), chosen)
        )
    return sorted(found, key=lambda candidate: candidate.key != base.strategy)


def _params(strategy: Strategy, given: Mapping[str, Any]) -> dict[str, Any]:
    """Its defaults, and what it shares with the shown run."""
    params = {p.name: strategy.defaults.get(p.name, p.default) for p in strategy.parameters}
    shared = {name: value for name, value in given.items() if name in params and name not in strategy.defaults}
    return {name: value for name, value in {**params, **shared}.items() if value is not None}


def _strategy_refusal(strategy: Strategy, base: RunRequest, info: ModelInfo | None) -> str:
    if info is not None and strategy.name in info.refused_strategies:
        return info.refused_strategies[strategy.name]
    if strategy.takes_drafters and not base.draft_names:
        return "needs a draft model; choose one with Assisted decoding first."
    if strategy.name == "constrained_beam_search" and base.strategy != strategy.name:
        return "needs words to force; run it once with some."
    return cache_refusal(base.cache, strategy.name, info)


@dataclass(slots=True)
class Entry:
    """A candidate in a comparison that was begun."""

    candidate: Candidate
    state: str = "waiting"
    """waiting, running, done, failed or stopped."""
    run: Run | None = None

    @property
    def cause(self) -> str:
        """Why it has no result; empty when it has."""
        error = self.run.outcome.error if self.run is not None and self.run.outcome is not None else None
        return error.cause if error is not None else ""


@dataclass(slots=True)
class Comparison:
    """Runs side by side; the first one that did not fail is the reference."""

    entries: list[Entry] = field(default_factory=list)

    @property
    def reference(self) -> Run | None:
        """What the others are compared with."""
        return next((entry.run for entry in self.entries if entry.state == "done"), None)

    @property
    def runs(self) -> list[tuple[Entry, Run]]:
        """Those with a result."""
        return [(entry, entry.run) for entry in self.entries if entry.state == "done" and entry.run is not None]

    def take(self, run: Run) -> bool:
        """Sort in a run that has ended; False when it is none of these."""
        entry = next((entry for entry in self.entries if entry.state == "running"), None)
        if entry is None or not _is_same(entry.candidate.request, run.request):
            return False
        kind = run.outcome.kind if run.outcome is not None else "failed"
        entry.run, entry.state = run, {"completed": "done", "stopped": "stopped"}.get(kind, "failed")
        self._next()
        return True

    def begin(self) -> None:
        """The first one is under way."""
        self._next()

    def end(self) -> None:
        """No more of them will come."""
        for entry in self.entries:
            if entry.state in ("waiting", "running"):
                entry.state = "stopped"

    def _next(self) -> None:
        waiting = next((entry for entry in self.entries if entry.state == "waiting"), None)
        if waiting is not None:
            waiting.state = "running"

    def difference(self, entry: Entry) -> int | None:
        """Place of the first token that differs from the reference's; None when none does."""
        if entry.run is None or self.reference is None:
            return None
        return first_difference(ids(self.reference), ids(entry.run))


def _is_same(asked: RunRequest, ran: RunRequest) -> bool:
    """What a session runs may be a copy of what it was asked for."""
    one, other = ((r.strategy, r.cache, dict(r.cache_options)) for r in (asked, ran))
    return one == other


def ids(run: Run) -> list[int]:
    """The first text's tokens."""
    return [token.id for token in run.sequences[0].tokens]


def first_difference(one: Sequence[int], other: Sequence[int]) -> int | None:
    """Place where they part, the end of the shorter one included; None when they are equal."""
    place = next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    return None if place == len(one) == len(other) else place


def cells(comparison: Comparison, entry: Entry) -> tuple[str, ...]:
    """The row of an entry that has a result, as `HEAD` names the columns, the title aside."""
    run = entry.run
    if run is None or run.finished is None:
        return ()
    metrics = run.finished.metrics
    speed, first = metrics.decode_tokens_per_second, metrics.time_to_first_token
    return (
        words.size(metrics.cache_bytes), words.size(metrics.cache_peak_bytes),
        words.rate(speed) if speed is not None else "–", words.duration(first) if first is not None else "–",
        said(comparison, entry),
    )  # fmt: skip


def said(comparison: Comparison, entry: Entry) -> str:
    """How its text compares with the reference's."""
    run, reference = entry.run, comparison.reference
    if run is None or reference is None:
        return ""
    if run is reference:
        return "the reference"
    place = comparison.difference(entry)
    if place is None:
        return f"the same {len(ids(run)):,} tokens"
    return f"differs at {place + 1:,}: {_piece(run, place)}, not {_piece(reference, place)}"


def _piece(run: Run, place: int) -> str:
    tokens = run.sequences[0].tokens
    return f"“{token_text(tokens[place].piece)}”" if place < len(tokens) else "the end"


def state_words(entry: Entry) -> str:
    """What is said of an entry without a result."""
    return {"waiting": "waits", "running": "runs…", "stopped": "stopped", "failed": entry.cause}.get(entry.state, "")


def table(comparison: Comparison, refused: Sequence[Candidate]) -> list[list[object]]:
    """Exact figures for a file, a head first."""
    lines: list[list[object]] = [
        ["name", "strategy", "cache", "state", "cache_bytes", "cache_peak_bytes", "tokens_per_second",
         "seconds_to_first_token", "new_tokens", "first_different_token", "text"]
    ]  # fmt: skip
    for entry in comparison.entries:
        request = entry.candidate.request
        line: list[object] = [entry.candidate.title, request.strategy, request.cache, entry.cause or entry.state]
        if entry.run is not None and entry.run.finished is not None and entry.state == "done":
            metrics, place = entry.run.finished.metrics, comparison.difference(entry)
            line += [metrics.cache_bytes, metrics.cache_peak_bytes, metrics.decode_tokens_per_second,
                     metrics.time_to_first_token, len(ids(entry.run)), "" if place is None else place + 1,
                     entry.run.sequences[0].text]  # fmt: skip
        lines.append(line)
    for candidate in refused:
        request = candidate.request
        lines.append([candidate.title, request.strategy, request.cache, candidate.reason])
    return lines
