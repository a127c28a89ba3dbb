"""Measure how well a draft model fits its target: acceptance by position, the effect of every rule, and findings."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from decodescope.core import strategies
from decodescope.core.checks.arguments import cancel_event_or_new
from decodescope.core.decoding.keyed_noise import FloatArray
from decodescope.core.decoding.prompt import encode
from decodescope.core.decoding.text_scoring import comparison_unsupported_reason
from decodescope.core.differences.text_reading import final_scores, head_scores
from decodescope.core.differences.verification_effect import RuleEffects, rule_effects
from decodescope.core.errors import ComparisonError, DecodescopeError, StrategyError
from decodescope.core.generation.running import run
from decodescope.core.models.head_detection import head_folder, heads_unsupported_reason
from decodescope.core.models.loaded_model import LoadedModel, check_model
from decodescope.core.models.prediction_heads import PredictionHeads, load_eagle_head, load_mtp_heads
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


class LayerAcceptance(NamedTuple):
    """Acceptance of the drafts of a head that reads this layer."""

    layer: int
    """0: the embeddings; n: the output of layer n."""
    accepted: float


class DraftCheck(ResultRows[DraftStep]):
    """The positions of a text that the model wrote, read by both."""

    bar = "accepted"
    effects: RuleEffects
    """The effect of every verification rule on this text."""
    findings: tuple[str, ...]
    """Why few drafts are accepted, in sentences; () if many are, or no reason was found."""
    layers: tuple[LayerAcceptance, ...] = ()
    """For a draft head: the acceptance with each layer of the model; the last one is what it reads."""

    @property
    def accepted(self) -> float:
        """Average acceptance."""
        return float(np.mean([row.accepted for row in self])) if len(self) else 0.0

    def columns(self) -> dict[str, list[object]]:
        """Return the table's columns by name."""
        return {name: [getattr(row, name) for row in self] for name in DraftStep._fields}


def check_draft(
    model: LoadedModel, draft: LoadedModel | str | Path, request: Request, *, cancel: threading.Event | None = None,
    progress: Callable[[str], None] | None = None,
) -> DraftCheck:  # fmt: skip
    """Write the text of a request with `model`, read it with both models, and compare their distributions.

    `draft` is a model, or the name or folder of an EAGLE head for `model`; empty: the heads in its own checkpoint
    (MTP), of which the first one is checked. A head reads the states of the model's last layer. It is also tried with
    every other layer, and a finding says if one of them would be accepted much more often: then it was made for that
    layer.

    The request is greedy or samples. If few drafts would be accepted, reasons are searched for: another begin token or
    chat template, quantized weights, a loss towards the end. Raises ComparisonError if the tokenizers differ,
    StrategyError for other strategies, and the errors of `stream`.
    """
    check_model(model)
    heads = None
    if isinstance(draft, str | Path):
        heads = _load_heads(model, str(draft))
    else:
        check_model(draft)
        if reason := comparison_unsupported_reason(model, draft):
            raise ComparisonError(reason, tr("Choose a draft model with the tokenizer of the model."))
    check_request(request)
    cancel, report = cancel_event_or_new(cancel), progress or (lambda _sentence: None)
    if not strategies.is_plain(resolve_settings(model, request)[0].name):
        raise StrategyError(tr("Drafts are checked for greedy decoding and sampling."), tr("Pass no strategy."))
    report(tr("Writing the text"))
    prompt = encode(model, request.prompt)
    given = replace(request, prompt=prompt)
    ids = run(model, given, cancel).sequences[0]
    report(tr("Reading the text with both models"))
    target = _distributions(model, given, ids, cancel)
    layers: tuple[LayerAcceptance, ...] = ()
    if heads is None:
        assert isinstance(draft, LoadedModel)
        drafted = _distributions(draft, given, ids, cancel)
    else:
        target, drafted, layers = _read_layers(model, given, ids, heads, target, cancel)
    ids = ids[len(ids) - len(target) :] if heads is not None else ids
    pairs = list(zip(target, drafted, strict=False))
    texts = model.pieces.texts(ids)
    found = DraftCheck(
        DraftStep(place, ids[place], texts[place], float(np.minimum(p, q).sum()), int(p.argmax()) == int(q.argmax()))
        for place, (p, q) in enumerate(pairs)
    )
    found.effects = rule_effects(pairs)
    found.layers, found.findings = layers, _layer_findings(layers)
    if isinstance(draft, LoadedModel) and found.accepted < LOW_ACCEPTANCE:
        report(tr("Searching for reasons"))
        found.findings = tuple(_findings(model, draft, request, given, ids, target, found, cancel))
    return found


def _load_heads(model: LoadedModel, name: str) -> PredictionHeads:
    """Return the EAGLE head of that name, or the model's own heads. Raises StrategyError if there is none for it."""
    if reason := heads_unsupported_reason(model, name or None):
        raise StrategyError(reason, tr("Choose a head that was made for this model, or a draft model."))
    return load_eagle_head(model, head_folder(name)) if name else load_mtp_heads(model)


def _read_layers(
    model: LoadedModel, request: Request, ids: Sequence[int], heads: PredictionHeads, target: Sequence[FloatArray],
    cancel: threading.Event,
) -> tuple[list[FloatArray], list[FloatArray], tuple[LayerAcceptance, ...]]:  # fmt: skip
    """Return the target's and the head's distributions of the tokens that the head can draft, which needs two before,
    and the acceptance with every layer.
    """
    drafted, layers = list[FloatArray](), list[LayerAcceptance]()
    for reading in head_scores(model, request, ids, heads, cancel):
        drafted = [_shares(scores) for scores in reading.scores]
        layers.append(LayerAcceptance(reading.layer, _acceptance(target[-len(drafted) :], drafted) if drafted else 0.0))
    return list(target[len(target) - len(drafted) :]), drafted, tuple(layers)


def _layer_findings(layers: Sequence[LayerAcceptance]) -> tuple[str, ...]:
    """Return whether another layer than the last one, which the head reads, would be accepted much more often."""
    if not layers:
        return ()
    own, best = layers[-1], max(layers, key=lambda row: row.accepted)
    if best.accepted - own.accepted < _MIN_GAIN:
        return ()
    sentence = tr(
        "Layer {own} is read. Layer {other} would be accepted {factor} as often: {accepted:.0%} of the drafts instead "
        "of {now:.0%}. The head was probably made for that layer."
    )
    factor = tr("{n:.1f} times").format(n=best.accepted / own.accepted) if own.accepted > 0.005 else tr("many times")
    return (sentence.format(
        own=own.layer, other=best.layer, factor=factor, accepted=best.accepted, now=own.accepted
    ),)  # fmt: skip


def _shares(scores: FloatArray) -> FloatArray:
    shares: FloatArray = np.exp(scores - scores.max())
    shares /= shares.sum()
    return shares


def _distributions(
    model: LoadedModel, request: Request, ids: Sequence[int], cancel: threading.Event
) -> list[FloatArray]:
    """Return the final distributions before each of `ids`. For greedy decoding these are the model's own."""
    return [_shares(scores) for scores in final_scores(model, request, ids, cancel)]


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
