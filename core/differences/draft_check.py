"""Measure how well a draft model fits its target: acceptance by position, the effect of every rule, and findings."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from decodescope.core import strategies
from decodescope.core.checks.arguments import cancel_event_or_new
from decodescope.core.decoding.keyed_noise import FloatArray
from decodescope.core.decoding.prompt import encode
from decodescope.core.decoding.text_scoring import comparison_unsupported_reason
from decodescope.core.differences.text_reading import final_scores
from decodescope.core.differences.verification_effect import RuleEffects, rule_effects
from decodescope.core.errors import ComparisonError, DecodescopeError, StrategyError
from decodescope.core.generation.running import run
from decodescope.core.models.loaded_model import LoadedModel, check_model
from decodescope.core.notebook.result_rows import ResultRows
from decodescope.core.request import Request, check_request
from decodescope.core.settings import resolve_settings
from decodescope.resources.language import tr

LOW_ACCEPTANCE = 0.6
"""Average acceptance below which reasons are searched for."""
_MIN_GAIN = 0.1
"""Gain of the average acceptance that makes another prompt of the draft a finding."""
_MIN_HALF = 8
"""Tokens in each half of a text for which their acceptance is compared."""


class DraftStep(NamedTuple):
    """One position of the text."""

    position: int
    id: int
    text: str
    accepted: float
    """Probability Σ min(p, q) that a draft is accepted here."""
    likeliest_agrees: bool
    """Whether draft and model have the same likeliest token."""


class DraftCheck(ResultRows[DraftStep]):
    """The positions of a text that the model wrote, read by both."""

    bar = "accepted"
    effects: RuleEffects
    """The effect of every verification rule on this text."""
    findings: tuple[str, ...]
    """Why few drafts are accepted, in sentences; () if many are, or no reason was found."""

    @property
    def accepted(self) -> float:
        """Average acceptance."""
        return float(np.mean([row.accepted for row in self])) if len(self) else 0.0

    def columns(self) -> dict[str, list[object]]:
        """Return the table's columns by name."""
        return {name: [getattr(row, name) for row in self] for name in DraftStep._fields}


def check_draft(
    model: LoadedModel, draft: LoadedModel, request: Request, *, cancel: threading.Event | None = None,
    progress: Callable[[str], None] | None = None,
) -> DraftCheck:  # fmt: skip
    """Write the text of a request with `model`, read it with both models, and compare their distributions.

    The request is greedy or samples. If few drafts would be accepted, reasons are searched for: another begin token or
    chat template, quantized weights, a loss towards the end. Raises ComparisonError if the tokenizers differ,
    StrategyError for other strategies, and the errors of `stream`.
    """
    check_model(model)
    check_model(draft)
    check_request(request)
    cancel, report = cancel_event_or_new(cancel), progress or (lambda _sentence: None)
    if reason := comparison_unsupported_reason(model, draft):
        raise ComparisonError(reason, tr("Choose a draft model with the tokenizer of the model."))
    if not strategies.is_plain(resolve_settings(model, request)[0].name):
        raise StrategyError(tr("Drafts are checked for greedy decoding and sampling."), tr("Pass no strategy."))
    report(tr("Writing the text"))
    prompt = encode(model, request.prompt)
    given = replace(request, prompt=prompt)
    ids = run(model, given, cancel).sequences[0]
    report(tr("Reading the text with both models"))
    target, drafted = _distributions(model, given, ids, cancel), _distributions(draft, given, ids, cancel)
    pairs = list(zip(target, drafted, strict=False))
    texts = model.pieces.texts(ids)
    found = DraftCheck(
        DraftStep(place, ids[place], texts[place], float(np.minimum(p, q).sum()), int(p.argmax()) == int(q.argmax()))
        for place, (p, q) in enumerate(pairs)
    )
    found.effects = rule_effects(pairs)
    found.findings = ()
    if found.accepted < LOW_ACCEPTANCE:
        report(tr("Searching for reasons"))
        found.findings = tuple(_findings(model, draft, request, given, ids, target, found, cancel))
    return found


def _distributions(
    model: LoadedModel, request: Request, ids: Sequence[int], cancel: threading.Event
) -> list[FloatArray]:
    """Return the final distributions before each of `ids`. For greedy decoding these are the model's own."""
    found = []
    for scores in final_scores(model, request, ids, cancel):
        shares = np.exp(scores - scores.max())
        found.append(shares / shares.sum())
    return found


def _findings(
    model: LoadedModel, draft: LoadedModel, request: Request, given: Request, ids: Sequence[int],
    target: Sequence[FloatArray], check: DraftCheck, cancel: threading.Event,
) -> list[str]:  # fmt: skip
    found = []
    for title, prompt in _other_prompts(draft, request, given):
        if cancel.is_set():
            break
        accepted = _acceptance(target, _distributions(draft, replace(given, prompt=prompt), ids, cancel))
        if accepted - check.accepted >= _MIN_GAIN:
            sentence = tr("{title}: {accepted:.0%} of the drafts would be accepted instead of {now:.0%}.")
            found.append(sentence.format(title=title, accepted=accepted, now=check.accepted))
    if model.weights != draft.weights and model.identity.kept_in:
        found.append(
            tr("The weights of the model are quantized to {weights}. Compare with its unquantized weights.").format(
                weights=model.identity.kept_in
            )
        )
    half = len(check) // 2
    if half >= _MIN_HALF:
        first, second = (float(np.mean([row.accepted for row in part])) for part in (check[:half], check[half:]))
        if first - second >= _MIN_GAIN:
            found.append(
                tr("Acceptance falls from {first:.0%} in the first half of the text to {second:.0%}.").format(
                    first=first, second=second
                )
            )
    return found


def _other_prompts(draft: LoadedModel, request: Request, given: Request) -> list[tuple[str, list[int]]]:
    """Return further prompts for the draft: its own template or begin tokens, and none."""
    ids = [int(one) for one in given.prompt if isinstance(one, int)]
    found: list[tuple[str, list[int]]] = []
    try:
        own = encode(draft, request.prompt)
    except DecodescopeError:
        own = ids
    if own != ids:
        found.append((tr("With the draft's own template"), own))
    begin = draft.generation_config.bos_token_id
    if isinstance(begin, int):
        if ids[:1] == [begin] and len(ids) > 1:
            found.append((tr("Without the begin token"), ids[1:]))
        elif 0 <= begin < draft.vocabulary:
            found.append((tr("With a begin token"), [begin, *ids]))
    return found


def _acceptance(target: Sequence[FloatArray], drafted: Sequence[FloatArray]) -> float:
    return float(np.mean([np.minimum(p, q).sum() for p, q in zip(target, drafted, strict=False)]))
