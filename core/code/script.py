"""Export a run as a script that generates the same text, with only the settings that differ from the defaults."""

from __future__ import annotations

import textwrap
import unicodedata
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from decodescope.core import caches, processors
from decodescope.core.checks.arguments import check_drafters, check_kind
from decodescope.core.code import decodescope_script, transformers_script
from decodescope.core.code.script_model import (
    EffectiveSettings,
    ScriptModel,
    effective_settings,
    has_different_tokenizer,
    script_adapters,
    script_model,
    why_not_peft,
)
from decodescope.core.common.hf_generation import GenerateEquivalent
from decodescope.core.errors import ParameterError
from decodescope.core.explain.call_facts import explain_call_facts
from decodescope.core.models import catalog
from decodescope.core.models.config_validation import QUANTIZED_FORMATS
from decodescope.core.parameter import display_name
from decodescope.core.processors.pipeline_stages import OPTION, is_default_order
from decodescope.core.request import Request, captured_facts, check_request
from decodescope.resources.language import join_names, join_sentences, mark, tr

if TYPE_CHECKING:
    from decodescope.core.models.loaded_model import LoadedModel

_CONVERTED = mark(
    "transformers converts the blocks of the GGUF file to floats, so tokens of almost equal probability may change."
)
Flavour = Literal["transformers", "core"]
Model = "LoadedModel | str | Path"


def as_code(
    request: Request,
    flavour: Flavour = "transformers",
    *,
    model: LoadedModel | str | Path = "",
    drafters: Sequence[LoadedModel | str | Path] = (),
    device: str = "auto",
    dtype: str = "auto",
    memory_limit: int | str | None = None,
) -> str:
    """Return a Python script of the run, ending with a line break; it always compiles.

    `transformers` needs only that library, and PEFT for adapters; where its `generate` cannot do the same, the script
    is in the `core` form and a comment at the top says why. `model` and `drafters` are loaded models or what
    `core.load` accepts (default: the first bundled model, and the request's drafters). `dtype` is `core.load`'s
    argument, or int8, int4 or fp8 for quantized weights, and `memory_limit` is the model's. Raises ParameterError,
    StrategyError, CacheError for an invalid request.
    """
    if flavour not in ("transformers", "core"):
        raise ParameterError(
            tr("“{flavour}” is not a kind of script.").format(flavour=display_name(flavour)),
            tr("Use transformers or core."),
            "flavour",
        )
    source, drafts = _sources(request, model, drafters, device, dtype)
    source = replace(source, memory_limit=memory_limit)
    plain = effective_settings(request, source, bool(drafts))
    head = [] if model else [tr("The request does not name a model. Insert yours here.")]
    head += _captured_comments(request)
    counterpart = _generate_equivalent(request, plain, source, drafts)
    if flavour == "transformers" and not counterpart.missing:
        return _join_script(
            [*head, counterpart.note],
            transformers_script.script_lines(request, plain, source, drafts, counterpart.settings),
        )
    reason = (
        [tr("transformers' generate cannot do this: {reason}").format(reason=counterpart.missing)]
        if flavour == "transformers"
        else []
    )
    return _join_script([*reason, *head], decodescope_script.script_lines(request, plain, source, drafts))


def _captured_comments(request: Request) -> list[str]:
    """Return why the script may write another text than the captured call that the request describes."""
    facts = explain_call_facts(captured_facts(request))
    if not facts:
        return []
    return [tr("This script does not contain all that the captured call used. {facts}").format(facts=" ".join(facts))]


def why_not_generate(
    request: Request, *, model: LoadedModel | str | Path = "", drafters: Sequence[LoadedModel | str | Path] = (),
    device: str = "auto", dtype: str = "auto", memory_limit: int | str | None = None,
) -> str:  # fmt: skip
    """Return why transformers' `generate` cannot do this run, as a sentence; "" if it can. Raises the errors of
    `as_code`.
    """
    source, drafts = _sources(request, model, drafters, device, dtype)
    source = replace(source, memory_limit=memory_limit)
    return _generate_equivalent(request, effective_settings(request, source, bool(drafts)), source, drafts).missing


def _sources(
    request: Request,
    model: LoadedModel | str | Path,
    drafters: Sequence[LoadedModel | str | Path],
    device: str,
    dtype: str,
) -> tuple[ScriptModel, list[ScriptModel]]:
    check_request(request)
    check_drafters(drafters)
    check_kind("dtype", dtype, str, tr("Use a dtype that decodescope.load accepts."))
    for place in (model, *drafters):
        _check_source(place)
    first = next((entry.name for entry in catalog.bundled()), "model")
    floats = "auto" if dtype in QUANTIZED_FORMATS else dtype
    drafts = [script_model(draft, device, floats) for draft in drafters or request.drafters]
    source = script_model(model or first, device, dtype)
    return replace(source, adapters=script_adapters(request, model)), drafts


def _check_source(model: object) -> None:
    """Raise ParameterError if the value neither is nor names a model."""
    if not isinstance(model, str | Path):
        from decodescope.core.models.loaded_model import (
            check_model,  # imports torch, which any loaded model has imported already
        )

        check_model(model)


def _generate_equivalent(
    request: Request, effective_settings: EffectiveSettings, source: ScriptModel, drafts: list[ScriptModel]
) -> GenerateEquivalent:
    """Return what the strategy and the cache need in transformers, combined."""
    in_files = [each for each in (source, *drafts) if each.gguf_file]
    if unread := next((each.gguf_problem for each in in_files if each.gguf_problem), ""):
        return GenerateEquivalent(missing=unread)
    if source.weights in QUANTIZED_FORMATS:
        return GenerateEquivalent(
            missing=tr("the {kind} weights are packed by this program.").format(kind=source.weights)
        )
    if source.memory_limit is not None:
        return GenerateEquivalent(missing=tr("layers offloaded to disk are read by this program."))
    if source.adapters and (reason := why_not_peft(source.adapters)):
        return GenerateEquivalent(missing=reason)
    backend = caches.named(request.cache)
    counterparts = (
        effective_settings.strategy.generate_equivalent(request),
        backend.generate_equivalent(request.cache_options, effective_settings.strategy.needs, source.device),
    )
    missing = next((each.missing for each in counterparts if each.missing), "")
    if not missing and len(drafts) > 1:
        missing = tr("it supports one draft model, and this run has several.")
    if not missing and any(
        has_different_tokenizer(source, draft) and source.vocab_size == draft.vocab_size for draft in drafts
    ):
        missing = tr("it treats two vocabularies of the same size as identical, and these differ.")
    if not missing and request.beginning:
        missing = tr("it treats a forced beginning of the answer as part of the prompt, which shifts the positions.")
    if not missing and request.media:
        missing = tr("audio and image files are read by this program.")
    if not missing and (own := _unsupported_stages(request, effective_settings)):
        missing = tr("it does not support {stages}.").format(stages=join_names(own))
    if not missing and not is_default_order(request.options.get(OPTION), _active_stages(effective_settings)):
        missing = tr("it has no setting for the order of the stages.")
    notes = join_sentences(*(each.note for each in counterparts), tr(_CONVERTED) if in_files else "")
    return GenerateEquivalent({**counterparts[0].settings, **counterparts[1].settings}, missing, notes)


def _unsupported_stages(request: Request, effective_settings: EffectiveSettings) -> list[str]:
    """Return the titles of active stages that GenerationConfig has no field for."""
    return [
        tr(stage.parameter.title)
        for stage in processors.registry.values()
        if stage.parameter is not None and stage.parameter.option and (effective_settings.samples or not stage.samples)
        if (value := request.options.get(stage.name)) is not None and stage.is_on(value)
    ]


def _active_stages(effective_settings: EffectiveSettings) -> list[str]:
    """Return the names of the active stages."""
    return [
        stage.name
        for stage in processors.registry.values()
        if effective_settings.samples or not stage.samples
        if (value := effective_settings.resolved.get(stage.name)) is not None and stage.is_on(value)
    ]


def _join_script(comments: Sequence[str], lines: Sequence[str]) -> str:
    comment_lines = (line for comment in comments for line in textwrap.wrap(comment, _wrap_width(comment)))
    return "\n".join((*(f"# {line}" for line in comment_lines), *lines, ""))


def _wrap_width(comment: str) -> int:
    """Return the number of characters in a line of 96 columns; most Chinese characters take two columns."""
    columns = sum(2 if unicodedata.east_asian_width(character) in "WF" else 1 for character in comment)
    return max(1, 96 * len(comment) // max(1, columns))
