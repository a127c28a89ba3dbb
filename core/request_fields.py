"""The fields of a request, checked as settings are, before anything is looked up or built. Knows no torch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from core.errors import CacheError, ParameterError, StrategyError
from core.parameter import Parameter, Settings, check, short_repr
from core.request import Request, check_request
from resources.language import mark, tr

_FIELDS = (
    Parameter("top_n", mark("Alternatives"), "int", 10, "", minimum=0, maximum=1_000_000),
    Parameter("seed", mark("Seed"), "int", 0, "", minimum=-(2**63), maximum=2**63 - 1),
    Parameter("memory_fallback", mark("Fallback"), "bool", True, ""),
    Parameter("steady", mark("Steady"), "bool", False, ""),
)


def check_request_fields(request: Request) -> None:
    """Raises ParameterError, StrategyError, CacheError naming the field."""
    check_request(request)
    for parameter in _FIELDS:
        check(parameter, getattr(request, parameter.name))
    if not (request.strategy is None or isinstance(request.strategy, str)):
        raise StrategyError(
            tr("The strategy is {strategy}.").format(strategy=short_repr(request.strategy)), tr("Give its name.")
        )
    if not isinstance(request.cache, str):
        raise CacheError(tr("The cache is {cache}.").format(cache=short_repr(request.cache)), tr("Give its name."))
    for name in ("options", "cache_options"):
        settings_by_name(name, getattr(request, name))
    check_paths(request.media)


def check_paths(media: object) -> None:
    """Raises ParameterError."""
    several: Sequence[object] = media if isinstance(media, Sequence) and not isinstance(media, str | bytes) else ("",)
    if not all(isinstance(path, str | Path) and str(path) for path in several):
        raise ParameterError(
            tr("The request's media are {value}.").format(value=short_repr(media)),
            tr("Give a list of paths to sound or pictures."),
            "media",
        )


def check_top_n(value: object) -> None:
    """Raises ParameterError."""
    check(_FIELDS[0], value)


def settings_by_name(field: str, value: object) -> Settings:
    """`value`, which has to be that. Raises ParameterError naming the request's field."""
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise ParameterError(
            tr("{field} is {value}.").format(field=field, value=short_repr(value)), tr("Give settings by name."), field
        )
    return value
