"""Merge the settings of the request, its strategy, the model and the library, in this order, and check them. Imports no
torch.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from decodescope.core import processors, strategies
from decodescope.core.checks.name_suggestions import closest_name, did_you_mean, known_names_sentence
from decodescope.core.common.hf_generation import (
    DEFAULTS,
    KNOWN_FIELDS,
    METADATA_FIELDS,
    WITHOUT_EFFECT,
    generation_fields,
    to_generation_config,
)
from decodescope.core.common.run_settings import RunSettings
from decodescope.core.errors import CacheError, ParameterError, StrategyError
from decodescope.core.parameter import (
    Parameter,
    Settings,
    check,
    check_values,
    check_vocabulary,
    quote_text,
    short_repr,
)
from decodescope.core.request import Request, captured_facts, check_request
from decodescope.core.strategies.base import Strategy
from decodescope.resources.language import mark, tr

if TYPE_CHECKING:
    from transformers import GenerationConfig

    from decodescope.core.models.loaded_model import LoadedModel

_FIELDS = (
    Parameter("top_n", mark("Alternatives"), "int", 10, "", minimum=0, maximum=1_000_000),
    Parameter("seed", mark("Seed"), "int", 0, "", minimum=-(2**63), maximum=2**63 - 1),
    Parameter("memory_fallback", mark("Memory fallback"), "bool", True, ""),
    Parameter("steady", mark("Reproducible drafts"), "bool", False, ""),
)
"""Fields of a request that are checked like settings."""
_COMMON_PARAMETERS = (
    Parameter("num_return_sequences", mark("Number of sequences"), "int", 1, "", minimum=1, maximum=1_000_000),
    Parameter("max_length", mark("Maximum length"), "int", 20, "", minimum=0, maximum=10_000_000),
    Parameter("prefill_chunk_size", mark("Prefill chunk size"), "int", None, "", minimum=1, maximum=10_000_000),
    Parameter("token_healing", mark("Token healing"), "bool", False, ""),
    Parameter(
        "num_assistant_tokens_schedule", mark("Draft length"), "choice", "constant", "",
        choices=("auto", "constant", "heuristic", "heuristic_transient"),
    ),
)  # fmt: skip
"""Settings used by every run, whichever its strategy shows."""
_TYPO_SIMILARITY = 0.8
"""Minimum similarity, from 0 to 1, for an unknown name in a file to be considered a typo of a field."""


def resolve_settings(model: LoadedModel, request: Request) -> tuple[Strategy, RunSettings]:
    """Return the strategy and the settings of a run, checked. Values of the model's own generation_config that no run
    can have are left out, and listed in `RunSettings.ignored`. Raises StrategyError, CacheError, ParameterError.
    """
    check_request_fields(request)
    own, ignored = model.generation_config.to_dict(), dict[str, str]()
    while True:
        settings = merge_settings(request, own)
        try:
            strategy = strategies.select(request.strategy, settings, bool(request.drafters))
            _check_drafters(request, strategy)
            _check_names(request, strategy, model)
            _check_values(settings, strategy, model)
            break
        except ParameterError as error:
            if error.parameter not in settings.from_sources("model"):
                raise
            ignored[error.parameter] = error.cause
            own[error.parameter] = _valid_ids(own[error.parameter], model.vocabulary)
    settings.ignored = ignored
    if reason := strategy.unsupported_reason(model, request):
        raise StrategyError(
            tr("{strategy} cannot run: {reason}").format(strategy=tr(strategy.title), reason=reason),
            tr("Choose another strategy or another model."),
        )
    return strategy, settings


def _valid_ids(value: object, vocabulary: int) -> list[int] | None:
    """Return the token ids of an invalid list that has some; None for any other value."""
    if not isinstance(value, list):
        return None
    found = [one for one in value if isinstance(one, int) and not isinstance(one, bool) and 0 <= one < vocabulary]
    return found if 0 < len(found) < len(value) else None


def merge_settings(request: Request, model_config: Settings) -> RunSettings:
    """Merge the settings of a request with the defaults of a strategy that it names, those in the model's
    generation_config, and those of the library. Raises StrategyError for an unknown strategy.
    """
    fields = generation_fields() - METADATA_FIELDS
    given = request.settings
    requested = {name: value for name, value in given.items() if name in fields or name in request.options}
    named = strategies.named(request.strategy) if request.strategy else None
    defaults = named.defaults if named else {}
    inherited = {name: value for name, value in model_config.items() if name in fields}
    inherited.pop("use_mtp", None)  # the model's own preference for drafts, which never affects the text
    lengths = (requested.get("max_length"), *(each.get("max_new_tokens") for each in (requested, defaults, inherited)))
    if any(length is not None for length in lengths):
        inherited.pop("max_length", None)
    extras = {name: value for name, value in {**model_config, **given}.items() if name not in generation_fields()}
    return RunSettings(
        {
            "flags": named.flags if named else {},
            "request": copy.deepcopy(requested),
            "strategy": defaults,
            "model": inherited,
            "library": {name: value for name, value in DEFAULTS.items() if name != "max_length"},
        },
        {name: value for name, value in extras.items() if name not in request.options},
    )


def unshown_settings(strategy: Strategy, settings: Settings, names: Sequence[str]) -> tuple[list[str], list[str]]:
    """Divide settings of a request that a strategy has no parameter for: return the names of unknown ones, and of those
    that change the text in transformers.

    Settings without effect, flags that select the strategy, and values that are defaults are in neither list.
    """
    fields = generation_fields()
    unknown = [name for name in names if name not in fields]
    idle = METADATA_FIELDS | WITHOUT_EFFECT.keys()
    usual = {**DEFAULTS, **strategy.flags}
    unshown = [
        name
        for name in names
        if name in fields and name not in idle and settings[name] is not None and settings[name] != usual.get(name)
    ]
    return unknown, unshown


def make_config(settings: Settings) -> GenerationConfig:
    """Create a GenerationConfig from plain values without checks: a run checks them, with readable errors. Raises
    ParameterError unless `settings` is a mapping by name.
    """
    return to_generation_config(settings_by_name("settings", settings))


def foreign_settings(request: Request, model: LoadedModel) -> set[str]:
    """Return the names in a request that neither transformers nor the model's generation_config contains, nor its
    options.
    """
    return request.settings.keys() - generation_fields() - vars(model.generation_config).keys() - request.options.keys()


def check_request_fields(request: Request) -> None:
    """Check the types of all fields. Raises ParameterError, StrategyError, CacheError naming the field."""
    check_request(request)
    for parameter in _FIELDS:
        check(parameter, getattr(request, parameter.name))
    if not (request.strategy is None or isinstance(request.strategy, str)):
        raise StrategyError(
            tr("The strategy is {strategy}.").format(strategy=short_repr(request.strategy)), tr("Pass its name.")
        )
    if not isinstance(request.cache, str):
        raise CacheError(tr("The cache is {cache}.").format(cache=short_repr(request.cache)), tr("Pass its name."))
    if not (request.config is None or any(kind.__name__ == "GenerationConfig" for kind in type(request.config).mro())):
        settings_by_name("config", request.config)
    for name in ("options", "cache_options"):
        settings_by_name(name, getattr(request, name))
    if not isinstance(request.generator_state, str):
        raise ParameterError(
            tr("The state of the random generator is {value}.").format(value=short_repr(request.generator_state)),
            tr("Pass the text that a captured request contains, or an empty one."),
            "generator_state",
        )
    captured_facts(request)
    check_paths(request.media)


def check_paths(media: object) -> None:
    """Raise ParameterError unless `media` is a list of paths."""
    several: Sequence[object] = media if isinstance(media, Sequence) and not isinstance(media, str | bytes) else ("",)
    if not all(isinstance(path, str | Path) and str(path) for path in several):
        raise ParameterError(
            tr("The media of the request are {value}.").format(value=short_repr(media)),
            tr("Pass a list of paths to sounds or pictures."),
            "media",
        )


def check_top_n(value: object) -> None:
    """Raise ParameterError unless `value` is valid for `top_n`."""
    check(_FIELDS[0], value)


def settings_by_name(field: str, value: object) -> Settings:
    """Return `value` if it is a mapping of settings by name. Raises ParameterError naming the request's field."""
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise ParameterError(
            tr("{field} is {value}.").format(field=field, value=short_repr(value)), tr("Pass settings by name."), field
        )
    return value


def unknown_setting_error(strategy: Strategy, name: str) -> ParameterError:
    """Return the error for a name that is no setting of a run with this strategy."""
    cause = tr("{strategy} has no setting {name}.").format(strategy=tr(strategy.title), name=quote_text(name))
    known_names = (*strategy.parameter_names, *(generation_fields() - METADATA_FIELDS))
    return ParameterError(
        f"{cause}{did_you_mean(name, known_names)}", known_names_sentence(name, sorted(strategy.parameter_names)), name
    )


def _check_names(request: Request, strategy: Strategy, model: LoadedModel) -> None:
    """Raise ParameterError for the first name that is not a setting.

    Any request may repeat names of the model's generation_config.json. A configuration read from a file may contain
    other programs' settings; they are only rejected if they look like a typo (`foreign_settings` returns the others).
    """
    options = {parameter.name for parameter in strategy.parameters if parameter.option}
    for name in sorted(request.options.keys() - options):
        if name in KNOWN_FIELDS:
            raise ParameterError(
                tr("{strategy} has no option “{name}”.").format(strategy=tr(strategy.title), name=name),
                tr("“{name}” is a generation setting: pass it in config.").format(name=name),
                name,
            )
        if name not in generation_fields() | vars(model.generation_config).keys():
            raise unknown_setting_error(strategy, name)
    given = request.settings
    is_from_file = "_original_object_hash" in given or given.get("transformers_version") is not None
    for name in sorted(foreign_settings(request, model)):
        if is_from_file and closest_name(name, generation_fields(), _TYPO_SIMILARITY) is None:
            continue
        if name in options:
            raise ParameterError(
                tr("“{name}” is an option of a strategy, not a generation setting.").format(name=name),
                tr("Pass it in options instead of config."),
                name,
            )
        raise unknown_setting_error(strategy, name)


def _check_values(settings: RunSettings, strategy: Strategy, model: LoadedModel) -> None:
    """Raise ParameterError for the first value of a wrong type, outside its range or, for token ids that a stage uses,
    outside the model's vocabulary.
    """
    stages = [
        stage.parameter
        for stage in processors.registry.values()
        if stage.parameter is not None and (settings.get("do_sample") or not stage.samples)
    ]
    own = {parameter.name: parameter for parameter in (*_COMMON_PARAMETERS, *stages, *strategy.parameters)}
    check_values(own.values(), settings)
    for parameter in stages:
        if parameter.kind == "tokens" or parameter.form is not None:
            if (value := settings.get(parameter.name)) is not None:
                check_vocabulary(parameter, value, model.vocabulary)


def _check_drafters(request: Request, strategy: Strategy) -> None:
    given: object = request.drafters
    if given == () or given == []:
        return
    from decodescope.core.models.loaded_model import LoadedModel  # loads torch, as any draft model has done already

    if not isinstance(given, (list, tuple)) or not all(isinstance(draft, LoadedModel) for draft in given):
        raise StrategyError(
            tr("The draft models are {given}.").format(given=short_repr(given)),
            tr("Pass a list of models created by decodescope.load or decodescope.wrap."),
        )
    if request.strategy is None and not strategy.takes_drafters:
        raise StrategyError(
            tr(
                "The request has a draft model, but its settings select {strategy}: drafts are only "
                "verified for greedy decoding and sampling, not for beams or contrastive search."
            ).format(strategy=tr(strategy.title)),
            tr("Remove the draft model, or set num_beams to 1 and penalty_alpha to None."),
        )
