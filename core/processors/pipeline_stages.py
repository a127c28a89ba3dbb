"""The order in which the funnel's stages act: transformers', or one that a request names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING

from core import processors
from core.checks.arguments import check_iterable, check_kind
from core.errors import ParameterError
from core.parameter import Parameter, Settings
from core.processors import registry
from core.processors.base import Processor
from resources.language import ENGLISH, current_language, tr

if TYPE_CHECKING:
    from core.events import Stage

OPTION = "stages"
"""Its key in `Request.options`."""


def ordered_processors(names: Sequence[str] | None = None) -> list[Processor]:
    """All processors, on or off, in the order in which they act.

    The stages that are named share out among themselves the places they have by default, in the order given; every
    other one keeps its place. So two stages named stand in the order they are named in, and to switch a third on or
    off changes nothing of it. Raises ParameterError for names that are no stage's, doubled ones, and orders that
    cannot be.
    """
    usual = list(processors.registry.values())
    if names is not None:
        check_iterable(OPTION, names, tr("Give a list of the names of stages."))
    asked = [_find_processor(name) for name in names] if names is not None else []
    if twice := next((one for place, one in enumerate(asked) if one in asked[:place]), None):
        raise _order_error(tr("The order names the stage “{name}” twice.").format(name=twice.name), tr("Name it once."))
    wanted = iter(asked)
    order = [next(wanted) if one in asked else one for one in usual]
    _check_ends(order)
    return order


def stage_order(names: Sequence[str] | None = None) -> tuple[str, ...]:
    """The names of all stages in the order in which they act where a request names `names`, or by default. Raises as
    `ordered_processors` does."""
    return tuple(stage.name for stage in ordered_processors(names))


def is_default_order(names: Sequence[str] | None, active: Iterable[str]) -> bool:
    """Whether the stages that are on act in transformers' order all the same. Raises as `ordered_processors` does."""
    on = set(active)
    return [one.name for one in ordered_processors(names) if one.name in on] == [
        name for name in processors.registry if name in on
    ]


def _find_processor(name: str) -> Processor:
    known = processors.registry.get(name)
    if known is None:
        raise _order_error(
            tr("The order names “{name}”, which is no stage.").format(name=name),
            tr("The stages are: {names}.").format(names=", ".join(processors.registry)),
        )
    return known


def _check_ends(order: Sequence[Processor]) -> None:
    """What has to act first or last does so."""
    for end, stages in (("first", order), ("last", order[::-1])):
        there = stages[: sum(stage.end == end for stage in stages)]
        if other := next((stage for stage in there if stage.end != end), None):
            raise _misplaced_error(next(stage for stage in stages if stage.end == end and stage not in there), other)


def _misplaced_error(stage: Processor, other: Processor) -> ParameterError:
    told, remedy = {
        "first": (
            tr("The order puts {stage} behind {other}, and it has to act first."),
            tr("Leave {stage} out of the order, or name it first."),
        ),
        "last": (
            tr("The order puts {stage} before {other}, and it has to act last."),
            tr("Leave {stage} out of the order, or name it last."),
        ),
    }[stage.end]
    return _order_error(told.format(stage=stage.name, other=other.name), remedy.format(stage=stage.name))


def _order_error(cause: str, remedy: str) -> ParameterError:
    return ParameterError(cause, remedy, OPTION)


def stage_label(stage: Stage) -> str:
    """Short, with its value: `T 0.8`, `top-p 0.92`; `model` for the model's own distribution."""
    if stage.name == "raw":
        return tr("model")
    known = processors.registry.get(stage.name)  # a recorded run may have one that is not here
    return _fill_template(known.label if known is not None else "", stage.value) or stage.label


def stage_phrase(stage: Stage) -> str:
    """What a sentence calls it: `the model`, `top-p 0.92`, `the repetition penalty of 1.3`."""
    if stage.name == "raw":
        return tr("the model")
    known = processors.registry.get(stage.name)
    return _fill_template(known.phrase or known.label if known is not None else "", stage.value) or stage.phrase


def _fill_template(template: str, value: float | None) -> str:
    """Empty where the event's own words serve: in English, or without the value that the template wants."""
    if current_language() == ENGLISH or not template or ("{v}" in template and value is None):
        return ""
    return tr(template).format(v="" if value is None else f"{value:g}")


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
