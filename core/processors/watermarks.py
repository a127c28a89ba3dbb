"""Which stages leave a watermark, and which settings are theirs."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from core.arguments import check_kind
from core.parameter import Parameter, Settings
from core.processors import registry
from core.processors.base import Processor
from resources.language import tr


@cache
def watermark_processors() -> tuple[Processor, ...]:
    """Those whose mark can be searched for, in the order of their stages."""
    return tuple(processor for processor in registry.values() if processor.signs is not None)


def processor_settings(processor: Processor) -> tuple[Parameter, ...]:
    """The one that switches it on, and what else there is to set."""
    own = (processor.parameter,) if processor.parameter is not None else ()
    return (*own, *processor.beside)


def watermark_settings(options: Settings) -> dict[str, object]:
    """The settings of watermarks among `Request.options`, all that are given where one is on; else none. Raises
    ParameterError for what is no mapping."""
    example = f'{{"{watermark_processors()[0].name}": 2}}'
    check_kind("options", options, Mapping, tr("Give them as in {example}.").format(example=example))
    if not any(options.get(processor.name) for processor in watermark_processors()):
        return {}
    names = {parameter.name for processor in watermark_processors() for parameter in processor_settings(processor)}
    return {name: value for name, value in options.items() if name in names}
