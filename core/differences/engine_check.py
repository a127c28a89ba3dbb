"""Whether the answers of an engine follow the distribution of its model, tested while they are drawn."""

from __future__ import annotations

import codecs
import itertools
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
from decodescope.core.events import Alternative, Finished, SequenceFinished, TokenChosen
from decodescope.core.models.loaded_model import LoadedModel, check_model
from decodescope.core.models.token_bytes import is_text
from decodescope.core.remote.remote_model import RemoteModel
from decodescope.core.remote.remote_run import stream
from decodescope.core.request import Request, check_request
from decodescope.resources.language import tr, trn

MAX_ANSWERS, MAX_ANSWER_TOKENS = 100_000, 1_000
_MIN_ALTERNATIVES = 1
"""Alternatives requested per token with a reference: some engines report the ids of tokens only with them."""
_MAX_ALTERNATIVES = 100
"""Alternatives requested per token at most; the rest of the probability is one more outcome."""
_MIN_REST = 1e-9
"""Least probability of the rest, so that a rounded sum of 1 makes no token impossible."""
_MAX_SUM = 1.01
"""Largest sum of reported probabilities that rounding explains."""
_RANKS = (1, 2, 5, 20)
"""Upper ends of the groups of ranks in `EngineCheck.ranks`; the last group has no end."""
_CONTROL_NAME = re.compile(r"[<\[⟨].*[>\]⟩]", re.DOTALL)
_SHOWN_BYTE = re.compile(r"⟨[0-9A-F]{2}⟩")


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
    the same text. Tokens that an engine leaves out, such as end tokens and parts of characters, are no sign of a
    difference. At most `answers` are drawn, of at most `tokens` tokens each; with `stops_early`, drawing ends with
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
    alternatives = min(engine.kind.alternatives, _MAX_ALTERNATIVES) if reference is None else _MIN_ALTERNATIVES
    plain = Request(request.prompt, settings, seed=request.seed, top_n=alternatives)
    test, found = SequentialTest(level), EngineCheck(level)
    bounds = list(zip([1, *(one + 1 for one in _RANKS)], [*_RANKS, None], strict=True))
    found.ranks = [RankGroup(*one) for one in bounds]
    hidden = [] if reference is None else _hidden_tokens(reference)
    for number in range(answers):
        answer = _draw(engine, replace(plain, seed=plain.seed + number), cancel)
        if not answer.is_whole:
            break
        steps: Sequence[_Step | None]
        if reference is None:
            steps = _reported_steps(engine, answer)
        else:
            steps = _computed_steps(engine, reference, plain, answer.tokens, hidden, cancel)
        if cancel.is_set():
            break
        for step in steps:
            if step is None:
                test.add_unreported()
                continue
            context = tuple(token.id for token in answer.tokens[: step.place])
            test.add(
                step.index, step.shares, context=context, unseen=step.unseen, doubtful=step.doubtful, sizes=step.sizes
            )
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


@dataclass(frozen=True)
class _DrawnAnswer:
    """A drawn answer."""

    tokens: Sequence[TokenChosen]
    is_whole: bool
    """Whether it was not stopped."""
    drawn: int
    """Number of drawn tokens; greater than that of `tokens` if the engine does not report all."""
    is_ended: bool = False
    """Whether an end token was drawn."""


def _draw(engine: RemoteModel, request: Request, cancel: threading.Event) -> _DrawnAnswer:
    tokens, is_ended = list[TokenChosen](), False
    for event in stream(engine, request, cancel):
        if isinstance(event, TokenChosen):
            tokens.append(event)
        elif isinstance(event, SequenceFinished):
            is_ended = event.reason == "eos"
        elif isinstance(event, Finished):
            is_whole = event.reason == "completed"
            return _DrawnAnswer(tokens, is_whole, max(len(tokens), event.metrics.new_tokens), is_ended)
    raise AssertionError


@dataclass(frozen=True)
class _Step:
    """A drawn token and its distribution."""

    place: int
    """Of the token among those of its answer."""
    index: int
    """Of the outcome that was drawn."""
    shares: FloatArray
    """Probabilities [n]."""
    ranks: FloatArray
    """Rank of each outcome, from 1 on."""
    sizes: FloatArray
    """Approximate number of tokens that each outcome represents, [n]."""
    unseen: Sequence[int]
    """Outcomes that an engine may not report: end tokens, and tokens that end inside a character."""
    doubtful: Sequence[int] = ()
    """Outcomes that may include such tokens."""


def _reported_steps(engine: RemoteModel, answer: _DrawnAnswer) -> list[_Step | None]:
    """Return the distributions that the engine reports: its likeliest tokens, and the rest as one outcome. None stands
    for drawn tokens that are not reported.

    Which outcomes there are must not depend on the token that was drawn, so a token outside the list counts as the rest
    even though its own probability is known. An engine that sends only whole characters reports nothing about the
    tokens before a character's last one; the last one is left out too, because it is reported only in some cases.
    """
    found, is_inside = list[_Step | None](), False
    for place, token in enumerate(answer.tokens):
        listed = sorted((one for one in token.alternatives if one.rank > 0), key=lambda one: one.rank)
        known = [one.raw_probability for one in listed]
        if _is_merged(engine, token) or (not listed and _is_partial(engine, token)):
            found.append(None)
            is_inside = not _is_merged(engine, token)
            continue
        if not listed or not np.isfinite(known).all() or sum(known) > _MAX_SUM:
            raise EngineError(
                tr("{engine} does not report the probabilities of its tokens before the settings.").format(
                    engine=engine.kind.title
                ),
                tr("Use an engine that does, such as the server of llama.cpp or vLLM, or compare with a model on this "
                   "computer."),
            )  # fmt: skip
        if is_inside:
            is_inside = False
            continue
        rest = max(1.0 - sum(known), _MIN_REST)
        shares = np.array([*known, rest])
        index = token.rank - 1 if 0 < token.rank <= len(listed) else len(listed)
        unseen = [number for number, one in enumerate(listed) if _is_end(one) or _is_partial(engine, one)]
        ranks = np.arange(1, len(shares) + 1, dtype=np.float64)
        ranks[-1] = max(ranks[-1], _RANKS[-1] + 1)
        sizes = np.ones_like(shares)
        sizes[-1] = max(rest / max(known[-1], _MIN_REST), 1.0)  # none of the rest is likelier than the last one
        found.append(_Step(place, index, shares / shares.sum(), ranks, sizes, unseen, [len(listed)]))
    last = answer.tokens[-1] if answer.tokens else None
    if answer.drawn > len(answer.tokens) or (answer.is_ended and not (last and _is_end(last))):
        found.append(None)
    return found


def _is_end(token: TokenChosen | Alternative) -> bool:
    """Return whether a token looks like an end token: engines leave out its text or write its name."""
    return not token.text or _CONTROL_NAME.fullmatch(token.text) is not None


def _is_partial(engine: RemoteModel, token: TokenChosen | Alternative) -> bool:
    """Return whether the bytes of a token are not whole characters, or unknown."""
    data = engine.words.bytes_of(token.id)
    return data is None or not is_text(data) or _SHOWN_BYTE.search(token.text) is not None


def _is_merged(engine: RemoteModel, token: TokenChosen) -> bool:
    """Return whether a token stands for all tokens of a character: an engine reported only the last one."""
    return token.id < 0 and engine.kind.recover_tokens is not None


def _hidden_tokens(reference: LoadedModel) -> list[int]:
    """Return the ids that an engine may not report: control tokens, and tokens whose bytes are not whole characters."""
    end = reference.generation_config.eos_token_id
    ends = {one for one in (end if isinstance(end, list) else [end]) if isinstance(one, int)}
    pieces = reference.pieces
    partial = (one for one in range(reference.vocabulary) if not is_text(pieces.data(one) or b""))
    return sorted(ends | set(pieces.special) | set(partial))


def _computed_steps(
    engine: RemoteModel, reference: LoadedModel, request: Request, tokens: Sequence[TokenChosen],
    hidden: Sequence[int], cancel: threading.Event,
) -> list[_Step]:  # fmt: skip
    """Return the distributions that a model on this computer computes for the same text. `hidden`: ids that the engine
    may not report. Tokens inside a character are left out: whether they are reported depends on what they are.
    """
    ids = list(itertools.takewhile(lambda number: number >= 0, (token.id for token in tokens)))
    is_cut = len(ids) < len(tokens) and _is_merged(engine, tokens[len(ids)])
    tokens = tokens[: len(ids)] if is_cut else tokens
    if not tokens:
        return []
    ids = [token.id for token in tokens]
    if min(ids) < 0 or max(ids) >= reference.vocabulary or not _is_same_text(reference, tokens):
        raise ComparisonError(
            tr("The tokens that the engine reports are not those of {model}.").format(model=reference.name),
            tr("Compare with the same model, and with an engine that reports the ids of tokens; or with the "
               "probabilities that it reports."),
        )  # fmt: skip
    given = replace(request, prompt=encode(reference, request.prompt))
    found, characters = [], codecs.getincrementaldecoder("utf-8")("surrogateescape")
    for place, scores in enumerate(final_scores(reference, given, ids, cancel)):
        is_inside = bool(characters.getstate()[0])
        characters.decode(reference.pieces.data(ids[place]) or b"")
        if is_inside:
            continue
        shares = np.exp(scores - scores.max())
        order = np.empty(len(shares))
        order[np.argsort(-shares, kind="stable")] = np.arange(1, len(shares) + 1)
        found.append(_Step(place, ids[place], shares / shares.sum(), order, np.ones_like(shares), hidden))
    return found


def _is_same_text(reference: LoadedModel, tokens: Sequence[TokenChosen]) -> bool:
    """Return whether a model on this computer writes the tokens as the engine does. Engines leave out the text of an
    end token or write its name, and write parts of characters in different ways.
    """
    pieces = reference.pieces
    known = [token for token in tokens if token.id not in pieces.special and is_text(pieces.data(token.id) or b"")]
    return "".join(pieces[token.id] for token in known).strip() == "".join(token.text for token in known).strip()


def _count(groups: Sequence[RankGroup], step: _Step) -> None:
    for group in groups:
        last = math.inf if group.last is None else group.last
        is_inside = (step.ranks >= group.first) & (step.ranks <= last)
        group.expected += float(step.shares[is_inside].sum())
        group.drawn += bool(is_inside[step.index])


def _probability(value: float) -> str:
    return f"{value:.2g}" if value >= 1e-4 else f"10^{math.floor(math.log10(value)) + 1}" if value > 0 else "0"
