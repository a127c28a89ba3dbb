"""Check the names of settings: reject unknown ones and suggest what was meant. Knows no torch."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Collection, Iterable, Mapping

from core import strategies
from core.errors import ParameterError
from core.generation_fields import KNOWN_FIELDS, METADATA_FIELDS
from core.parameter import quote_text
from core.request import Request
from core.suggestions import closest_name, unknown_name_error
from resources.language import tr

_TYPO_SIMILARITY = 0.8
"""How alike an attribute and a field have to be, from 0 to 1, for the attribute to be taken for a typing error."""


def generation_fields() -> frozenset[str]:
    """Names of the fields of a GenerationConfig, those of the installed transformers included where it is loaded."""
    module = sys.modules.get("transformers.generation.configuration_utils")
    config = getattr(module, "GenerationConfig", None)  # another thread may be importing the module
    return KNOWN_FIELDS if config is None else _fields_of(config, config.__init__)


@functools.cache
def _fields_of(config: Callable[[], object], _initializer: object) -> frozenset[str]:
    return KNOWN_FIELDS | vars(config()).keys()


def check_setting_names(request: Request, own: Iterable[str] = ()) -> None:
    """Raise ParameterError for the first name in `config` that is no generation setting.

    `own`: names that the model's generation_config.json holds, which any configuration may repeat. A GenerationConfig
    that was read from a file may hold other programs' settings; they are rejected only where they look like a typing
    error (`foreign_settings` gives the others).
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
                tr("“{name}” is an option of a strategy and no generation setting.").format(name=name),
                tr("Give it in options instead of config."),
                name,
            )
        raise unknown_name_error(
            tr("There is no generation setting {name}.").format(name=quote_text(name)), name, known - METADATA_FIELDS
        )


def foreign_settings(request: Request, own: Collection[str]) -> list[str]:
    """Names in a GenerationConfig read from a file that transformers does not define and `own` does not contain."""
    if request.config is None or isinstance(request.config, Mapping):
        return []
    known = generation_fields()
    return sorted(name for name in request.given if name not in known and name not in own)


def unknown_option_error(cause: str, name: str, known: Iterable[str]) -> ParameterError:
    """The error for an unknown option; `cause` is a whole sentence."""
    if name in generation_fields():
        return ParameterError(cause, tr("“{name}” is a generation setting: give it in config.").format(name=name), name)
    return unknown_name_error(cause, name, known)


def _is_option(name: str) -> bool:
    return any(
        parameter.option and parameter.name == name
        for strategy in strategies.registry.values()
        for parameter in strategy.parameters
    )


def _is_from_file(config: object) -> bool:
    """Whether transformers has read it: only then it has a version or the hash of what was read."""
    return hasattr(config, "_original_object_hash") or getattr(config, "transformers_version", None) is not None
