"""Check the fields of a request like settings, before a run starts. Imports no torch."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path

from core import strategies
from core.checks.name_suggestions import closest_name, unknown_name_error
from core.common.hf_generation import KNOWN_FIELDS, METADATA_FIELDS
from core.errors import CacheError, ParameterError, StrategyError
from core.parameter import Parameter, Settings, check, quote_text, short_repr
from core.request import Request, check_request
from resources.language import mark, tr

_FIELDS = (
    Parameter("top_n", mark("Alternatives"), "int", 10, "", minimum=0, maximum=1_000_000),
    Parameter("seed", mark("Seed"), "int", 0, "", minimum=-(2**63), maximum=2**63 - 1),
    Parameter("memory_fallback", mark("Memory fallback"), "bool", True, ""),
    Parameter("steady", mark("Reproducible drafts"), "bool", False, ""),
)


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
    for name in ("options", "cache_options"):
        settings_by_name(name, getattr(request, name))
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


_TYPO_SIMILARITY = 0.8
"""Minimum similarity, from 0 to 1, for an unknown attribute to be considered a typo of a field."""


def generation_fields() -> frozenset[str]:
    """Return the field names of a GenerationConfig, including those of the installed transformers if it is imported."""
    module = sys.modules.get("transformers.generation.configuration_utils")
    config = getattr(module, "GenerationConfig", None)  # another thread may be importing the module
    return KNOWN_FIELDS if config is None else _fields_of(config, config.__init__)


@functools.cache
def _fields_of(config: Callable[[], object], _initializer: object) -> frozenset[str]:
    return KNOWN_FIELDS | vars(config()).keys()


def check_setting_names(request: Request, own: Iterable[str] = ()) -> None:
    """Raise ParameterError for the first name in `config` that is not a generation setting.

    `own`: names in the model's generation_config.json, which any configuration may repeat. A GenerationConfig read from
    a file may contain other programs' settings; they are only rejected if they look like a typo (`foreign_settings`
    returns the others).
    """
    known = generation_fields()
    unknown = sorted(name for name in request.given if name not in known)
    unknown = [name for name in unknown if name not in set(own)]
    if not unknown:
        return
    if not isinstance(request.config, Mapping) and _is_from_file(request.config):
        unknown = [name for name in unknown if closest_name(name, known, _TYPO_SIMILARITY) is not None]
    for name in unknown:
        if _is_option(name):
            raise ParameterError(
                tr("“{name}” is an option of a strategy, not a generation setting.").format(name=name),
                tr("Pass it in options instead of config."),
                name,
            )
        raise unknown_name_error(
            tr("The generation setting {name} does not exist.").format(name=quote_text(name)),
            name,
            known - METADATA_FIELDS,
        )


def foreign_settings(request: Request, own: Collection[str]) -> list[str]:
    """Return names in a GenerationConfig read from a file that neither transformers nor `own` contains."""
    if request.config is None or isinstance(request.config, Mapping):
        return []
    known = generation_fields()
    return sorted(name for name in request.given if name not in known and name not in own)


def unknown_option_error(cause: str, name: str, known_names: Iterable[str]) -> ParameterError:
    """Return the error for an unknown option; `cause` is a whole sentence."""
    if name in generation_fields():
        return ParameterError(cause, tr("“{name}” is a generation setting: pass it in config.").format(name=name), name)
    return unknown_name_error(cause, name, known_names)


def _is_option(name: str) -> bool:
    return any(
        parameter.option and parameter.name == name
        for strategy in strategies.registry.values()
        for parameter in strategy.parameters
    )


def _is_from_file(config: object) -> bool:
    """Return whether the config was read from a file: only then it has a version or the hash of the original."""
    return hasattr(config, "_original_object_hash") or getattr(config, "transformers_version", None) is not None
