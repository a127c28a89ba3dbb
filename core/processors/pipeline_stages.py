"""Order of the pipeline's stages: transformers' order, or that of a request."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING

from decodescope.core import processors
from decodescope.core.checks.arguments import check_iterable, check_kind
from decodescope.core.errors import ParameterError
from decodescope.core.parameter import Parameter, Settings
from decodescope.core.processors import registry
from decodescope.core.processors.base import Processor
from decodescope.resources.language import ENGLISH, current_language, join_names, tr

if TYPE_CHECKING:
    from decodescope.core.events import Stage

OPTION = "stages"
"""Key in `Request.options`."""


def ordered_processors(names: Sequence[str] | None = None) -> list[Processor]:
    """Return all processors, on or off, in the order in which they act.

    The named stages share their default positions in the given order; all others keep their position. So the order of
    two named stages does not depend on whether a third one is on. Raises ParameterError for unknown or duplicate names,
    and for impossible orders.
    """
    usual = list(processors.registry.values())
    if names is not None:
        check_iterable(OPTION, names, tr("Pass a list of stage names."))
    requested = [_find_processor(name) for name in names] if names is not None else []
    if twice := next((one for place, one in enumerate(requested) if one in requested[:place]), None):
        raise _order_error(
            tr("The order contains the stage “{name}” twice.").format(name=twice.name), tr("List it once.")
        )
    remaining = iter(requested)
    order = [next(remaining) if one in requested else one for one in usual]
    _check_ends(order)
    return order


def stage_order(names: Sequence[str] | None = None) -> tuple[str, ...]:
    """Return the names of all stages in the order of a request with `names`, or in default order. Raises like
    `ordered_processors`.
    """
    return tuple(stage.name for stage in ordered_processors(names))


def is_default_order(names: Sequence[str] | None, active: Iterable[str]) -> bool:
    """Return whether the active stages act in transformers' order anyway. Raises like `ordered_processors`."""
    on = set(active)
    return [one.name for one in ordered_processors(names) if one.name in on] == [
        name for name in processors.registry if name in on
    ]


def _find_processor(name: str) -> Processor:
    known = processors.registry.get(name)
    if known is None:
        raise _order_error(
            tr("The order contains “{name}”, which is not a stage.").format(name=name),
            tr("The stages are: {names}.").format(names=join_names(processors.registry)),
        )
    return known


def _check_ends(order: Sequence[Processor]) -> None:
    """Raise ParameterError unless stages that must act first or last do so."""
    for end, stages in (("first", order), ("last", order[::-1])):
        there = stages[: sum(stage.end == end for stage in stages)]
        if other := next((stage for stage in there if stage.end != end), None):
            raise _misplaced_error(next(stage for stage in stages if stage.end == end and stage not in there), other)


def _misplaced_error(stage: Processor, other: Processor) -> ParameterError:
    cause, remedy = {
        "first": (
            tr("The order puts {stage} after {other}, but it must act first."),
            tr("Remove {stage} from the order, or put it first."),
        ),
        "last": (
            tr("The order puts {stage} before {other}, but it must act last."),
            tr("Remove {stage} from the order, or put it last."),
        ),
    }[stage.end]
    return _order_error(cause.format(stage=stage.name, other=other.name), remedy.format(stage=stage.name))


def _order_error(cause: str, remedy: str) -> ParameterError:
    return ParameterError(cause, remedy, OPTION)


def stage_label(stage: Stage) -> str:
    """Return the short name with its value: `T 0.8`, `top-p 0.92`; `model` for the model's own distribution."""
    if stage.name == "raw":
        return tr("model")
    known = processors.registry.get(stage.name)  # a recorded run may have a stage that does not exist here
    return _fill_template(known.label if known is not None else "", stage.value) or stage.label


def stage_phrase(stage: Stage) -> str:
    """Return the name within a sentence: `the model`, `top-p 0.92`, `the repetition penalty of 1.3`."""
    if stage.name == "raw":
        return tr("the model")
    known = processors.registry.get(stage.name)
    return _fill_template(known.phrase or known.label if known is not None else "", stage.value) or stage.phrase


def _fill_template(template: str, value: float | None) -> str:
    """Fill in the translated template; empty if the event's own text is used: in English, or without a required
    value.
    """
    if current_language() == ENGLISH or not template or ("{v}" in template and value is None):
        return ""
    return tr(template).format(v="" if value is None else f"{value:g}")


@cache
def watermark_processors() -> tuple[Processor, ...]:
    """Return the processors with a detectable watermark, in stage order."""
    return tuple(processor for processor in registry.values() if processor.make_detector is not None)


def processor_settings(processor: Processor) -> tuple[Parameter, ...]:
    """Return the setting that enables the processor, and its further settings."""
    own = (processor.parameter,) if processor.parameter is not None else ()
    return (*own, *processor.extra_parameters)


def watermark_settings(options: Settings) -> dict[str, object]:
    """Return the watermark settings in `Request.options` if a watermark is on, otherwise {}. Raises ParameterError
    unless `options` is a mapping.
    """
    example = f'{{"{watermark_processors()[0].name}": 2}}'
    check_kind("options", options, Mapping, tr("Pass them as in {example}.").format(example=example))
    if not any(options.get(processor.name) for processor in watermark_processors()):
        return {}
    names = {parameter.name for processor in watermark_processors() for parameter in processor_settings(processor)}
    return {name: value for name, value in options.items() if name in names}
