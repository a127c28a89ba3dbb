"""Resolve the effective settings of a run: those of the request, its strategy, the model and the library, in this
order.
"""

from __future__ import annotations

import copy

from transformers import GenerationConfig

from core import strategies
from core.common.hf_generation import DEFAULTS
from core.common.setting_values import to_plain_value
from core.errors import StrategyError
from core.models.loaded_model import LoadedModel, check_model
from core.parameter import Parameter, Settings, check, short_repr
from core.request import Request
from core.strategies.base import Strategy
from core.strategies.request_checks import (
    check_request_fields,
    check_setting_names,
    settings_by_name,
    unknown_option_error,
)
from resources.language import mark, tr

_COMMON_PARAMETERS = (
    Parameter("num_beams", mark("Beams"), "int", 1, "", minimum=1, maximum=100_000),
    Parameter("num_beam_groups", mark("Groups"), "int", 1, "", minimum=1, maximum=100_000),
    Parameter("num_return_sequences", mark("Number of sequences"), "int", 1, "", minimum=1, maximum=1_000_000),
    Parameter("max_length", mark("Maximum length"), "int", 20, "", minimum=0, maximum=10_000_000),
    Parameter("do_sample", mark("Sample"), "bool", False, ""),
    Parameter("prefill_chunk_size", mark("Prefill chunk size"), "int", None, "", minimum=1, maximum=10_000_000),
    Parameter(
        "num_assistant_tokens_schedule", mark("Draft length"), "choice", "constant", "",
        choices=("auto", "constant", "heuristic", "heuristic_transient"),
    ),
)  # fmt: skip
"""Settings used by every run, whichever its strategy shows."""


def resolve_settings(model: LoadedModel, request: Request) -> tuple[Strategy, GenerationConfig]:
    """Return the strategy and a complete configuration. Raises StrategyError, ParameterError."""
    check_model(model)
    check_request_fields(request)
    _check_drafters(request)
    requested = _config_of(request)
    check_setting_names(request, vars(model.generation_config))
    named = strategies.named(request.strategy) if request.strategy else None
    config = _fill_defaults(copy.deepcopy(requested), model, named)
    config.use_mtp = vars(requested).get(
        "use_mtp"
    )  # ignore the model's own preference for drafts, which never affects the text
    for parameter in _COMMON_PARAMETERS:
        if (value := getattr(config, parameter.name, None)) is not None:
            check(parameter, value)
    strategy = named or _strategy_from_flags(config, request)
    for name, value in (named.flags if named else {}).items():
        setattr(config, name, value)
    _check_ranges(strategy, config, request)
    if reason := strategy.unsupported_reason(model, request):
        raise StrategyError(
            tr("{strategy} cannot run: {reason}").format(strategy=tr(strategy.title), reason=reason),
            tr("Choose another strategy or another model."),
        )
    return strategy, config


def _check_drafters(request: Request) -> None:
    given: object = request.drafters
    if not isinstance(given, (list, tuple)) or not all(isinstance(draft, LoadedModel) for draft in given):
        raise StrategyError(
            tr("The draft models are {given}.").format(given=short_repr(given)),
            tr("Pass a list of models created by decodescope.load or decodescope.wrap."),
        )


def _config_of(request: Request) -> GenerationConfig:
    given = request.config if request.config is not None else {}
    if not isinstance(given, GenerationConfig):
        return make_config(settings_by_name("config", given))
    config = copy.copy(given)
    vars(config).update(to_plain_value(vars(given)))
    return config


def make_config(settings: Settings) -> GenerationConfig:
    """Create a GenerationConfig from plain values without checks: `resolve_settings` checks them, with readable errors.
    Raises ParameterError unless `settings` is a mapping by name.
    """
    config = _new_config()
    settings = settings_by_name("settings", settings)
    for name, value in settings.items():
        setattr(config, name, value)
    return config


def _new_config() -> GenerationConfig:
    config: GenerationConfig = GenerationConfig()
    return config


def _fill_defaults(config: GenerationConfig, model: LoadedModel, named: Strategy | None) -> GenerationConfig:
    """Fill every attribute that is None from the defaults of the strategy, the model and the library, in this order."""
    own_length = config.max_new_tokens is None and config.max_length is None
    inherited = model.generation_config.to_dict()
    for source in (named.defaults if named else {}, inherited, DEFAULTS):
        for name, value in source.items():
            if name != "max_length" and value is not None and getattr(config, name, None) is None:
                setattr(config, name, value)
    if own_length and config.max_new_tokens is None:
        config.max_length = inherited.get("max_length")
    return config


def _strategy_from_flags(config: GenerationConfig, request: Request) -> Strategy:
    """Return the strategy that a configuration's flags select, by transformers' rule. Raises StrategyError,
    ParameterError.
    """
    strategy = strategies.selected_by(strategies.flags_of(vars(config), bool(request.drafters)))
    if request.drafters and not strategy.takes_drafters:
        raise StrategyError(
            tr(
                "The request has a draft model, but its settings select {strategy}: drafts are only "
                "verified for greedy decoding and sampling, not for beams or contrastive search."
            ).format(strategy=tr(strategy.title)),
            tr("Remove the draft model, or set num_beams to 1 and penalty_alpha to None."),
        )
    return strategy


def _check_ranges(strategy: Strategy, config: GenerationConfig, request: Request) -> None:
    for parameter in strategy.parameters:
        value = request.options.get(parameter.name) if parameter.option else getattr(config, parameter.name, None)
        if value is not None:
            check(parameter, value)
    known = {parameter.name for parameter in strategy.parameters if parameter.option}
    if unknown := sorted(set(request.options) - known):
        raise unknown_option_error(
            tr("{strategy} has no option “{name}”.").format(strategy=tr(strategy.title), name=unknown[0]),
            unknown[0],
            known,
        )
