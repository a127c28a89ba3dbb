"""Whether the answers of an engine follow the distribution of its model, tested while they are drawn."""

from __future__ import annotations

import math
import re
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from decodescope.core.checks.arguments import cancel_event_or_new, check_integer, check_kind
from decodescope.core.decoding.keyed_noise import FloatArray
from decodescope.core.decoding.prompt import encode
from decodescope.core.differences.text_reading import final_scores
from decodescope.core.differences.verification_effect import SequentialTest
from decodescope.core.errors import ComparisonError, EngineError
from decodescope.core.events import Finished, TokenChosen
from decodescope.core.models.loaded_model import LoadedModel, check_model
from decodescope.core.remote.remote_model import RemoteModel
from decodescope.core.remote.remote_run import stream
from decodescope.core.request import Request, check_request
from decodescope.resources.language import tr, trn

MAX_ANSWERS, MAX_ANSWER_TOKENS = 100_000, 1_000
_ALTERNATIVES = 20
"""Alternatives requested per token; engines send fewer, and the rest of the probability is one more outcome."""
_MIN_REST = 1e-9
"""Least probability of the rest, so that a rounded sum of 1 makes no token impossible."""
_RANKS = (1, 2, 5, 20)
"""Upper ends of the groups of ranks in `EngineCheck.ranks`; the last group has no end."""
_CONTROL_NAME = re.compile(r"[<\[⟨].*[>\]⟩]", re.DOTALL)


@dataclass
class RankGroup:
    """Tokens of some ranks: how many the distributions let expect, and how many were drawn."""

    first: int
    last: int | None
    """None: all others."""
    expected: float = 0.0
    drawn: int = 0


@dataclass
class EngineCheck:
    """The state of the test after some answers. The test may be stopped at any time."""

    level: float
    """Largest probability of a false alarm."""
    answers: int = 0
    tokens: int = 0
    p_value: float = 1.0
    """An upper bound on the probability of such answers without a difference."""
    is_rejected: bool = False
    temperature: float | None = None
    """The temperature that explains the tokens best, if the distribution is sharper or flatter as a whole."""
    evidence: list[float] = field(default_factory=list)
    """log10 of the wealth after each token."""
    ranks: list[RankGroup] = field(default_factory=list)

    @property
    def sentence(self) -> str:
        """The state in a sentence or two."""
        answers = trn("{n:,} answer", "{n:,} answers", self.answers).format(n=self.answers)
        tokens = trn("{n:,} token", "{n:,} tokens", self.tokens).format(n=self.tokens)
        if not self.is_rejected:
            return tr("No sign of a difference after {answers} with {tokens}.").format(answers=answers, tokens=tokens)
        found = tr("The answers differ from the distribution of the model: p ≤ {p}, after {answers} with {tokens}.")
        text = found.format(p=_probability(self.p_value), answers=answers, tokens=tokens)
        if self.temperature is None:
            return text
        more = tr("They look like temperature {value:g} in place of 1.").format(value=self.temperature)
        return f"{text} {more}"


def check_engine(
    engine: RemoteModel, request: Request, reference: LoadedModel | None = None, *, answers: int = 200,
    tokens: int = 8, level: float = 0.05, stops_early: bool = True, cancel: threading.Event | None = None,
    progress: Callable[[EngineCheck], object] | None = None,
) -> EngineCheck:  # fmt: skip
    """Draw answers to the prompt of a request from an engine, and test whether they follow the model's distribution.

    The engine is requested to sample at temperature 1 without filters. Each token is compared with the probabilities
    that the engine reports for it; with `reference`, the same model on this computer, with those that it computes after
    the same text. At most `answers` are drawn, of at most `tokens` tokens each; with `stops_early`, drawing ends with
    the first sign of a difference, which is a false alarm in at most `level` of all cases, whenever it is looked at.
    `progress` is called with the state after each answer, and `cancel` ends the test. Raises EngineError for engines
    that report no probabilities, ComparisonError for a reference with other tokens, ParameterError, and the errors of
    `stream`.
    """
    check_kind("engine", engine, RemoteModel, tr("Pass what load returns for the address of an engine."))
    check_request(request)
    check_integer("answers", answers, 1, MAX_ANSWERS)
    check_integer("tokens", tokens, 1, MAX_ANSWER_TOKENS)
    if reference is not None:
        check_model(reference)
    cancel = cancel_event_or_new(cancel)
    settings = {"do_sample": True, "temperature": 1.0, "top_k": 0, "top_p": 1.0, "max_new_tokens": tokens}
    plain = Request(request.prompt, settings, seed=request.seed, top_n=_ALTERNATIVES)
    test, found = SequentialTest(level), EngineCheck(level)
    bounds = list(zip([1, *(one + 1 for one in _RANKS)], [*_RANKS, None], strict=True))
    found.ranks = [RankGroup(*one) for one in bounds]
    for number in range(answers):
        chosen, is_whole = _draw(engine, replace(plain, seed=plain.seed + number), cancel)
        if not is_whole:
            break
        if reference is None:
            steps = _reported_steps(engine, chosen)
        else:
            steps = _computed_steps(reference, plain, chosen, cancel)
        if cancel.is_set():
            break
        for place, step in enumerate(steps):
            context = tuple(token.id for token in chosen[:place])
            test.add(step.index, step.shares, context=context, unseen=step.unseen, sizes=step.sizes)
            found.evidence.append(test.log_wealth / math.log(10))
            _count(found.ranks, step)
        found.answers, found.tokens = number + 1, test.count
        found.p_value, found.is_rejected = test.p_value, test.is_rejected
        found.temperature = test.likeliest_temperature if test.is_rejected else None
        if progress is not None:
            progress(replace(found, evidence=list(found.evidence), ranks=[replace(one) for one in found.ranks]))
        if found.is_rejected and stops_early:
            break
    return found


def _draw(engine: RemoteModel, request: Request, cancel: threading.Event) -> tuple[list[TokenChosen], bool]:
    """Return the tokens of an answer, and whether it was not stopped."""
    tokens, is_whole = list[TokenChosen](), False
    for event in stream(engine, request, cancel):
        if isinstance(event, TokenChosen):
            tokens.append(event)
        elif isinstance(event, Finished):
            is_whole = event.reason == "completed"
    return tokens, is_whole


@dataclass(frozen=True)
class _Step:
    """A drawn token and its distribution."""

    index: int
    """Of the drawn token."""
    shares: FloatArray
    """Probabilities [n]."""
    ranks: FloatArray
    """Rank of each outcome, from 1 on."""
    sizes: FloatArray
    """Approximate number of tokens that each outcome represents, [n]."""
    unseen: Sequence[int]
    """Outcomes that end an answer without being reported."""


def _reported_steps(engine: RemoteModel, tokens: Sequence[TokenChosen]) -> list[_Step]:
    """Return the distributions that the engine reports: its likeliest tokens, and the rest as one outcome.

    Which outcomes there are must not depend on the token that was drawn, so a token outside the list counts as the rest
    even though its own probability is known.
    """
    found = []
    for token in tokens:
        listed = sorted((one for one in token.alternatives if one.rank > 0), key=lambda one: one.rank)
        known = [one.raw_probability for one in listed]
        if not listed or not np.isfinite(known).all():
            raise EngineError(
                tr("{engine} does not report the probabilities of its tokens before the settings.").format(
                    engine=engine.kind.title
                ),
                tr("Use an engine that does, such as the server of llama.cpp or vLLM, or compare with a model on this "
                   "computer."),
            )  # fmt: skip
        rest = max(1.0 - sum(known), _MIN_REST)
        shares = np.array([*known, rest])
        index = token.rank - 1 if 0 < token.rank <= len(listed) else len(listed)
        unseen = [place for place, one in enumerate(listed) if not one.text or _CONTROL_NAME.fullmatch(one.text)]
        ranks = np.arange(1, len(shares) + 1, dtype=np.float64)
        ranks[-1] = max(ranks[-1], _RANKS[-1] + 1)
        sizes = np.ones_like(shares)
        sizes[-1] = max(rest / max(known[-1], _MIN_REST), 1.0)  # none of the rest is likelier than the last one
        found.append(_Step(index, shares / shares.sum(), ranks, sizes, unseen))
    return found


def _computed_steps(
    reference: LoadedModel, request: Request, tokens: Sequence[TokenChosen], cancel: threading.Event
) -> list[_Step]:
    """Return the distributions that a model on this computer computes for the same text."""
    ids = [token.id for token in tokens]
    if not ids:
        return []
    if max(ids) >= reference.vocabulary or not _is_same_text(reference, tokens):
        raise ComparisonError(
            tr("The tokens that the engine reports are not those of {model}.").format(model=reference.name),
            tr("Compare with the same model, and with an engine that reports the ids of tokens; or with the "
               "probabilities that it reports."),
        )  # fmt: skip
    given = replace(request, prompt=encode(reference, request.prompt))
    end = reference.generation_config.eos_token_id
    unseen = [one for one in (end if isinstance(end, list) else [end]) if isinstance(one, int)]
    found = []
    for place, scores in enumerate(final_scores(reference, given, ids, cancel)):
        shares = np.exp(scores - scores.max())
        order = np.empty(len(shares))
        order[np.argsort(-shares, kind="stable")] = np.arange(1, len(shares) + 1)
        found.append(_Step(ids[place], shares / shares.sum(), order, np.ones_like(shares), unseen))
    return found


def _is_same_text(reference: LoadedModel, tokens: Sequence[TokenChosen]) -> bool:
    """Return whether a model on this computer writes the tokens as the engine does. Engines leave out the text of an
    end token or write its name.
    """
    special = reference.pieces.special
    own = reference.pieces.texts([token.id for token in tokens])
    pairs = [(text, token.text) for text, token in zip(own, tokens, strict=True) if token.id not in special]
    return "".join(text for text, _ in pairs).strip() == "".join(text for _, text in pairs).strip()


def _count(groups: Sequence[RankGroup], step: _Step) -> None:
    for group in groups:
        last = math.inf if group.last is None else group.last
        is_inside = (step.ranks >= group.first) & (step.ranks <= last)
        group.expected += float(step.shares[is_inside].sum())
        group.drawn += bool(is_inside[step.index])


def _probability(value: float) -> str:
    return f"{value:.2g}" if value >= 1e-4 else f"10^{math.floor(math.log10(value)) + 1}" if value > 0 else "0"
