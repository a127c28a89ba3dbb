"""Report the generation settings of a request that its run does not apply."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from core.code.effective_settings import settings_without_effect
from core.decoding.media_inputs import audio_inputs
from core.defaults import DEFAULTS
from core.events import Notice
from core.generation_fields import (
    COMMON_FIELDS,
    METADATA_FIELDS,
    PROCESSOR_FIELDS,
    SPEECH_FIELDS,
    STRATEGY_FIELDS,
    WITHOUT_EFFECT,
)
from core.setting_names import foreign_settings
from resources.language import tr

if TYPE_CHECKING:
    from transformers import GenerationConfig

    from core.models.loaded_model import LoadedModel
    from core.request import Request
    from core.strategies.base import Strategy


def unused_settings(
    model: LoadedModel, request: Request, strategy: Strategy, config: GenerationConfig
) -> Iterator[Notice]:
    """Yield a notice for every reason that settings of the request's configuration have no effect.

    `config` is what the run uses. Settings that equal the model's own or the library's defaults are left out: the
    run behaves as if they had not been given.
    """
    own = vars(model.generation_config)
    given = {
        name: value
        for name, value in request.given.items()
        if value is not None and (value is not False or name == "use_cache") and name not in METADATA_FIELDS
        if value != DEFAULTS.get(name) and value != own.get(name)
    }
    foreign = foreign_settings(request, own)
    by_reason: dict[str, list[str]] = {}
    for name in given:
        if name not in foreign and (reason := _unused_reason(name, given[name], model, request, strategy, config)):
            by_reason.setdefault(reason, []).append(name)
    for reason, names in by_reason.items():
        yield _notice(tr("Without effect here: {names}. {reason}"), names, reason)
    if names := [name for name in foreign if name in given]:
        yield _notice(tr("Unknown to transformers and without effect: {names}."), names)


def _notice(sentence: str, names: list[str], reason: str = "") -> Notice:
    return Notice("setting_ignored", sentence.format(names=", ".join(names), reason=reason))


def _unused_reason(
    name: str, value: object, model: LoadedModel, request: Request, strategy: Strategy, config: GenerationConfig
) -> str:
    """Why the run does not apply a setting, as a sentence; empty where it applies it."""
    title = tr(strategy.title)
    if name in WITHOUT_EFFECT:
        return tr("The reason: {reason}.").format(reason=tr(WITHOUT_EFFECT[name]))
    if name == "token_healing" and (model.is_encoder_decoder or request.media):
        return tr("Only a prompt of text that a decoder continues can be healed.")
    if request.strategy and name in strategy.flags and strategy.flags[name] != value:
        return tr("The strategy that the request names decides: {strategy}.").format(strategy=title)
    if (
        request.strategy
        and name in _SELECTING_FIELDS
        and name not in strategy.parameter_names
        and name not in strategy.flags
    ):
        return tr("The strategy that the request names decides: {strategy}.").format(strategy=title)
    if name in settings_without_effect(strategy, bool(config.do_sample), vars(config)):
        return tr("Nothing is sampled (do_sample is off).")
    if name == "num_assistant_tokens_schedule":
        return "" if strategy.speculates else _not_used_sentence(title)
    if name in strategy.parameter_names or name in COMMON_FIELDS or name in PROCESSOR_FIELDS:
        return ""
    if name in SPEECH_FIELDS and audio_inputs.has_start_tokens(model):
        return ""
    if name in STRATEGY_FIELDS or name in SPEECH_FIELDS:
        return _not_used_sentence(title)
    return tr("This version of the program does not know it.")


_SELECTING_FIELDS = ("use_mtp", "prompt_lookup_num_tokens", "assistant_early_exit", "force_words_ids", "constraints")
"""Fields that select a strategy where the request names none."""


def _not_used_sentence(title: str) -> str:
    return tr("{strategy} does not use it.").format(strategy=title)
