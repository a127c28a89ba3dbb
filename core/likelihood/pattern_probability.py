"""The probability that an answer matches a pattern, between sure bounds.

Beginnings of answers form a tree whose branches carry their probability under the model and all settings. The likeliest
undecided beginning is always read next (best-first search). What is decided counts for the lower bound, or against the
upper one; the rest is the gap between them. So the bounds are true whenever the search ends.
"""

from __future__ import annotations

import heapq
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from typing import NamedTuple

import numpy as np
import torch

from decodescope.core import strategies
from decodescope.core.checks.arguments import argument_error, cancel_event_or_new, check_integer, check_number
from decodescope.core.decoding.keyed_noise import FloatArray
from decodescope.core.decoding.run import DecodingRun
from decodescope.core.errors import StrategyError
from decodescope.core.likelihood.answer_reader import NO, OPEN, YES, AnswerReader, IntArray
from decodescope.core.likelihood.prefix_reader import PrefixReader
from decodescope.core.likelihood.text_pattern import Place, TextPattern, as_patterns
from decodescope.core.models.error_translation import translate_iterator_errors
from decodescope.core.models.loaded_model import LoadedModel, check_model
from decodescope.core.notebook.result_rows import ResultRows, table_html
from decodescope.core.plugins.guarded_thread import iterate_guarded
from decodescope.core.plugins.installation import used_plugins
from decodescope.core.request import Request, check_request
from decodescope.core.settings import resolve_settings
from decodescope.core.strategies.base import flags_of
from decodescope.core.strategies.parameters import KEYED_NOISE, MAX_TIME
from decodescope.resources.language import tr

TOLERANCE = 0.01
"""Gap between the bounds at which the search ends."""
MAX_PREFIXES = 4_000
_SHOWN_MASS = 1e-4
"""Smallest probability of a beginning that is listed."""
_MAX_ROWS = 400
_FULL_VOCABULARY = 16_384
"""Vocabularies up to this size are judged as a whole after each beginning."""
_JUDGED_MASS = 0.9995
"""Probability of the tokens that are judged first in larger ones; the others wait until they matter."""
_BATCH_RATIO = 0.2
"""Beginnings at least this likely, compared with the likeliest one, are read with it."""


class ProbabilityBounds(NamedTuple):
    """Sure bounds of a probability."""

    lower: float
    upper: float

    @property
    def gap(self) -> float:
        """Difference of the bounds."""
        return self.upper - self.lower


class AnswerPrefix(NamedTuple):
    """A beginning of answers; spellings of a text in different tokens count together."""

    text: str
    probability: float
    """Probability that the answer begins with the text, as far as it has been read: a lower bound."""
    matching: float
    """Part of it that is known to match."""
    differing: float
    """Part of it that is known not to match."""
    spellings: int
    """Number of token sequences of exactly this text that have been met."""
    is_answer: bool
    """Whether one of them ends there."""

    @property
    def undecided(self) -> float:
        """Part that is not decided."""
        return max(0.0, self.probability - self.matching - self.differing)


class PatternProbability(ResultRows[AnswerPrefix]):
    """Bounds on the probability that an answer matches, and the likeliest beginnings, sorted by their text. A beginning
    comes directly before those that continue it.
    """

    patterns: tuple[TextPattern, ...]
    bounds: tuple[ProbabilityBounds, ...]
    """Bounds for each pattern."""
    any_bounds: ProbabilityBounds
    """Bounds for at least one of the patterns."""
    prefixes: int
    """Number of beginnings that the model has read."""
    is_converged: bool
    """Whether all gaps are smaller than the tolerance."""

    @property
    def lower(self) -> float:
        """Lower bound for at least one of the patterns."""
        return self.any_bounds.lower

    @property
    def upper(self) -> float:
        """Upper bound for at least one of the patterns."""
        return self.any_bounds.upper

    def columns(self) -> dict[str, list[object]]:
        """Return the table's columns by name."""
        return {name: [getattr(row, name) for row in self] for name in AnswerPrefix._fields}

    def _repr_html_(self) -> str:
        """Return a table for notebooks."""
        return table_html(self.columns())

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.lower:.4f} to {self.upper:.4f}, {self.prefixes:,} prefixes read>"


class PatternProgress(NamedTuple):
    """The state of a search."""

    prefixes: int
    bounds: tuple[ProbabilityBounds, ...]
    any_bounds: ProbabilityBounds
    snapshot: Callable[[], PatternProbability]
    """Returns the result so far; to be called before the search goes on."""


def pattern_probability(
    model: LoadedModel,
    request: Request,
    pattern: object,
    place: Place = "begins",
    *,
    ignore_case: bool = False,
    tolerance: float = TOLERANCE,
    max_prefixes: int = MAX_PREFIXES,
    progress: Callable[[PatternProgress], object] | None = None,
    cancel: threading.Event | None = None,
) -> PatternProbability:
    """Return sure bounds on the probability that the answer to a request matches `pattern`.

    `pattern`: a text, a compiled regular expression, a `TextPattern`, or a list of them (a choice of texts).
    `place`: whether the answer `begins` with it, `contains` it, or is it in `full`. The answer is the text up to its
    end token, stop string or length limit, as a run of the request writes it, with all its settings; without sampling
    it is certain. The search ends when no gap is `tolerance` or larger, after `max_prefixes` beginnings, or when
    `cancel` is set: the bounds are true in each case, up to the rounding of the model's numbers. `progress` is called
    after each pass.

    Raises ParameterError for patterns, StrategyError for strategies other than greedy decoding and sampling and for
    stages that depend on further random numbers or on the order of passes, CacheError for caches that cannot be
    copied, and the errors of `stream`.
    """
    check_model(model)
    check_request(request)
    patterns = as_patterns(pattern, place, ignore_case)
    check_number("tolerance", tolerance, 0.0, 1.0)
    check_integer("max_prefixes", max_prefixes, 1, 10**9)
    cancel = cancel_event_or_new(cancel)
    if progress is not None and not callable(progress):
        raise argument_error("progress", progress, tr("Pass a function, or None."))
    limits = (tolerance, max_prefixes)
    search = partial(_search_adapted, model, request, patterns, limits, progress, cancel)
    make_iterator = partial(translate_iterator_errors, model, search)
    (found,) = iterate_guarded(make_iterator, cancel) if used_plugins(request) else make_iterator()
    return found


def _search_adapted(
    model: LoadedModel, request: Request, patterns: tuple[TextPattern, ...], limits: tuple[float, int],
    progress: Callable[[PatternProgress], object] | None, cancel: threading.Event,
) -> Iterator[PatternProbability]:  # fmt: skip
    with model.adapters.using(request.adapters):
        search = _PatternSearch(model, request, patterns, limits, cancel)
        try:
            yield search.run(progress)
        finally:
            search.close()


def prepare_run(model: LoadedModel, request: Request, cancel: threading.Event) -> DecodingRun:
    """Return the prepared run of a request for one text whose tokens are chosen one by one. Raises StrategyError."""
    request = request.with_settings({"num_return_sequences": 1})
    strategy, settings = resolve_settings(model, request)
    samples = KEYED_NOISE.name in strategy.parameter_names
    if not samples and not _is_greedy(strategy, settings, request):
        raise StrategyError(
            tr("{strategy} does not choose each token from one distribution, so its answers have no simple "
               "probability.").format(strategy=tr(strategy.title)),
            tr("Use plain sampling or greedy decoding: one beam, no drafts, no contrast."),
        )  # fmt: skip
    if settings.get(MAX_TIME.name):
        raise StrategyError(
            tr("A time limit ends texts at different tokens each time."), tr("Limit the number of new tokens instead.")
        )
    run = DecodingRun(model, request, strategy, settings, cancel)
    for stage in run.pipeline.stages:
        one = stage.processor
        if one.reads or one.uses_rng or one.needs_every_token or (one.reorder_rows and one.progress is None):
            raise StrategyError(
                tr("With {stage}, a token depends on more than the text before it.").format(stage=stage.name),
                tr("Turn off {stage}.").format(stage=stage.name),
            )
    if run.steps_back:
        raise StrategyError(
            tr("A run that withdraws words to avoid has no simple distribution."),
            tr("Turn off “Step back to the beginning”."),
        )
    return run


def _is_greedy(strategy: strategies.Strategy, settings: Mapping[str, object], request: Request) -> bool:
    """Return whether a strategy takes the best token of each step."""
    flags = flags_of({**settings, **strategy.flags}, bool(request.drafters))
    return flags.plain and not flags.samples and strategies.select(None, {}, False) is strategy


@dataclass(slots=True)
class _Node:
    """A beginning of the answer."""

    ids: tuple[int, ...]
    state: int
    mass: float
    parent: _Node | None
    matching: float = 0.0
    differing: float = 0.0
    spelled: str = ""
    """The text."""


@dataclass(slots=True)
class _Branches:
    """Continuations of a node that wait, from the likeliest on. `rest`: tokens that have not been judged."""

    node: _Node
    tokens: IntArray
    states: IntArray
    masses: FloatArray
    place: int = 0
    rest: tuple[IntArray, FloatArray] | None = None


@dataclass(slots=True)
class _Tally:
    """Decided probability, by pattern and for any of them."""

    yes: list[float]
    no: list[float]
    any_yes: float = 0.0
    any_no: float = 0.0

    def bounds(self) -> tuple[ProbabilityBounds, ...]:
        """Return the bounds of each pattern."""
        return tuple(_bounds(yes, no) for yes, no in zip(self.yes, self.no, strict=True))

    def any_bounds(self) -> ProbabilityBounds:
        """Return the bounds for any of them."""
        return _bounds(self.any_yes, self.any_no)


def _bounds(yes: float, no: float) -> ProbabilityBounds:
    lower = min(max(yes, 0.0), 1.0)
    return ProbabilityBounds(lower, max(lower, min(1.0, 1.0 - no)))


@dataclass(slots=True)
class _Leaves:
    """Continuations that are decided and likely enough to be listed."""

    rows: list[tuple[_Node, int, float, int, bool]] = field(default_factory=list)
    """Parent, token, mass, verdict, whether the text ends."""


class _PatternSearch:
    """Searches the answers of one request."""

    def __init__(
        self, model: LoadedModel, request: Request, patterns: tuple[TextPattern, ...], limits: tuple[float, int],
        cancel: threading.Event,
    ) -> None:  # fmt: skip
        self._patterns, (self._tolerance, self._max_prefixes) = patterns, limits
        self._run = run = prepare_run(model, request, cancel)
        self._samples = bool(run.settings.get("do_sample"))
        self._reader = AnswerReader(run, patterns)
        self._prefixes: PrefixReader | None = None
        self._tally = _Tally([0.0] * len(patterns), [0.0] * len(patterns))
        self._leaves = _Leaves()
        self._nodes: list[_Node] = []
        self._heap: list[tuple[float, int, _Branches]] = []
        self._numbers = count()
        self._has_grammar = any(stage.processor.progress is not None for stage in run.pipeline.stages)

    def close(self) -> None:
        """Release what the passes used."""
        if self._prefixes is not None:
            self._prefixes.close()

    def run(self, progress: Callable[[PatternProgress], object] | None) -> PatternProbability:
        """Search until the bounds are close enough, or up to a limit."""
        run, root = self._run, _Node((), 0, 1.0, None)
        verdicts = self._reader.verdicts(0)
        self._count(verdicts, (OPEN,) * len(verdicts), 1.0)
        if run.stopping.reached_limit(0) is not None:
            self._count(self._reader.final_verdicts(0), verdicts, 1.0)
        elif OPEN in verdicts:
            self._prefixes = PrefixReader(run)
            self._expand([root])
            self._report(progress)
            while self._heap and self._gap >= self._tolerance and len(self._nodes) < self._max_prefixes:
                if run.is_cancelled():
                    break
                if nodes := self._next_nodes():
                    self._expand(nodes)
                    self._report(progress)
        return self._result()

    @property
    def _gap(self) -> float:
        return max(self._tally.any_bounds().gap, *(one.gap for one in self._tally.bounds()))

    def _report(self, progress: Callable[[PatternProgress], object] | None) -> None:
        if progress is not None:
            tally = self._tally
            progress(PatternProgress(len(self._nodes), tally.bounds(), tally.any_bounds(), self._result))

    def _next_nodes(self) -> list[_Node]:
        """Return the likeliest beginnings that have not been read: as many as a pass reads together."""
        assert self._prefixes is not None
        found: list[_Node] = []
        room = min(self._prefixes.batch, self._max_prefixes - len(self._nodes))
        while self._heap and len(found) < room:
            if found and -self._heap[0][0] < found[0].mass * _BATCH_RATIO:
                break
            _, _, branches = heapq.heappop(self._heap)
            if branches.place >= len(branches.tokens):
                self._judge_rest(branches)
                continue
            place = branches.place
            branches.place += 1
            node = self._child(branches, place)
            self._push(branches)
            if node is not None:
                found.append(node)
        return found

    def _child(self, branches: _Branches, place: int) -> _Node | None:
        """Return the node of a continuation; None if a grammar ends the text there."""
        ids = (*branches.node.ids, int(branches.tokens[place]))
        node = _Node(ids, int(branches.states[place]), float(branches.masses[place]), branches.node)
        if self._has_grammar and self._run.apply_grammar(None, ids) is not None:
            verdicts = self._reader.verdicts(node.state)
            self._decide(node.parent, ids[-1], node.mass, self._reader.final_verdicts(node.state), verdicts, True)
            return None
        return node

    def _push(self, branches: _Branches) -> None:
        """Put the remaining continuations back."""
        if branches.place < len(branches.tokens):
            mass = float(branches.masses[branches.place])
        elif branches.rest is not None:
            mass = float(branches.rest[1].sum())
        else:
            return
        if mass > 0:
            heapq.heappush(self._heap, (-mass, next(self._numbers), branches))

    def _judge_rest(self, branches: _Branches) -> None:
        """Judge the continuations that were too unlikely before."""
        assert branches.rest is not None
        tokens, masses = branches.rest
        branches.rest = None
        self._judge(branches.node, tokens, masses)

    def _expand(self, nodes: Sequence[_Node]) -> None:
        """Read beginnings and judge their continuations."""
        assert self._prefixes is not None
        logits = self._prefixes.logits([node.ids for node in nodes])
        for row, node in enumerate(nodes):
            probabilities = self._distribution(node.ids, logits[row : row + 1])
            self._nodes.append(node)
            order = np.argsort(-probabilities, kind="stable")
            order = order[: int((probabilities > 0).sum())].astype(np.int64)
            masses = node.mass * probabilities[order]
            end = len(order)
            if len(order) > _FULL_VOCABULARY:
                end = int(np.searchsorted(np.cumsum(probabilities[order]), _JUDGED_MASS)) + 1
            rest = (order[end:], masses[end:]) if end < len(order) else None
            self._judge(node, order[:end], masses[:end], rest)

    def _distribution(self, ids: tuple[int, ...], logits: torch.Tensor) -> FloatArray:
        """Return the probabilities [V] of the next token, with all settings."""
        run, step = self._run, len(ids)
        raw = run.replace_invalid(logits)
        text = torch.tensor([[*run.start_ids, *ids]], device=run.device)
        trace = run.pipeline.trace(text, raw)
        run.check_scores(trace[-1], raw, step, trace)
        scores = trace[-1][0]
        if not self._samples:
            found: FloatArray = np.zeros(scores.shape[-1])
            found[int(scores.argmax())] = 1.0
            return found
        shares: FloatArray = scores.double().softmax(-1).cpu().numpy()
        return shares

    def _judge(
        self, node: _Node, tokens: IntArray, masses: FloatArray, rest: tuple[IntArray, FloatArray] | None = None
    ) -> None:
        """Count the decided continuations of a node, and let the others wait."""
        run, before = self._run, self._reader.verdicts(node.state)
        states = self._reader.follow(node.state, tokens)
        is_last = run.stopping.reached_limit(len(node.ids) + 1) is not None
        waits = np.zeros(len(tokens), bool)
        for state in np.unique(states):
            ends = is_last or self._reader.has_ended(int(state))
            after = self._reader.final_verdicts(int(state)) if ends else self._reader.verdicts(int(state))
            own = states == state
            mass = float(masses[own].sum())
            if OPEN in after:
                self._count(after, before, mass, node)
                waits |= own
                continue
            self._count(after, before, mass, node)
            verdict = YES if YES in after else NO
            listed = own & (masses >= _SHOWN_MASS)
            self._leaves.rows += [
                (node, int(token), float(share), verdict, ends)
                for token, share in zip(tokens[listed], masses[listed], strict=True)
            ]
        self._push(_Branches(node, tokens[waits], states[waits], masses[waits], 0, rest))

    def _decide(
        self, node: _Node | None, token: int, mass: float, after: tuple[int, ...], before: tuple[int, ...], ends: bool
    ) -> None:
        assert node is not None
        self._count(after, before, mass, node)
        if mass >= _SHOWN_MASS:
            self._leaves.rows.append((node, token, mass, YES if YES in after else NO, ends))

    def _count(self, after: tuple[int, ...], before: tuple[int, ...], mass: float, node: _Node | None = None) -> None:
        """Add probability whose verdicts changed from `before` to `after`."""
        tally = self._tally
        for place, (new, old) in enumerate(zip(after, before, strict=True)):
            if old == OPEN and new != OPEN:
                side = tally.yes if new == YES else tally.no
                side[place] += mass
        was_open = YES not in before and OPEN in before
        if was_open and YES in after:
            tally.any_yes += mass
            while node is not None:
                node.matching += mass
                node = node.parent
        elif was_open and OPEN not in after:
            tally.any_no += mass
            while node is not None:
                node.differing += mass
                node = node.parent

    def _result(self) -> PatternProbability:
        found = PatternProbability(self._rows())
        found.patterns, found.bounds, found.any_bounds = self._patterns, self._tally.bounds(), self._tally.any_bounds()
        found.prefixes, found.is_converged = len(self._nodes), self._gap < self._tolerance
        return found

    def _rows(self) -> list[AnswerPrefix]:
        """Return the likeliest beginnings by text: each with the probability of all token sequences that reach it."""
        steps: list[tuple[str, str, float, float, float, bool]] = []
        for node in self._nodes:
            if node.parent is not None and node.mass >= _SHOWN_MASS:
                node.spelled = self._reader.text(node.ids)
                steps.append((node.parent.spelled, node.spelled, node.mass, node.matching, node.differing, False))
        for parent, token, mass, verdict, ends in self._leaves.rows:
            text = self._reader.text((*parent.ids, token))
            yes = mass if verdict == YES else 0.0
            steps.append((parent.spelled, text, mass, yes, mass - yes, ends))
        for _, _, branches in self._heap:
            for place in range(branches.place, len(branches.tokens)):
                mass = float(branches.masses[place])
                if mass < _SHOWN_MASS:
                    break
                text = self._reader.text((*branches.node.ids, int(branches.tokens[place])))
                steps.append((branches.node.spelled, text, mass, 0.0, 0.0, False))
        return _merge_texts(steps)


def _merge_texts(steps: Sequence[tuple[str, str, float, float, float, bool]]) -> list[AnswerPrefix]:
    """Return the rows of steps (text before, text after, probability, matching, differing, whether it ends): a text is
    reached by the first step that contains it.
    """
    sums: dict[str, tuple[float, float, float]] = {text: (0.0, 0.0, 0.0) for _, text, *_ in steps if text}
    spellings, answers = dict.fromkeys(sums, 0), set[str]()
    for before, text, mass, yes, no, ends in steps:
        if ends:
            answers.add(text)
        if text in spellings and text != before:
            spellings[text] += 1
        for length in range(len(before) + 1, len(text) + 1):
            own = sums.get(text[:length])
            if own is not None:
                sums[text[:length]] = (own[0] + mass, own[1] + yes, own[2] + no)
    kept = sorted(sums, key=lambda text: -sums[text][0])[:_MAX_ROWS]
    rows = ((text, *sums[text]) for text in sorted(kept))
    return [AnswerPrefix(text, mass, yes, no, spellings[text], text in answers) for text, mass, yes, no in rows]
