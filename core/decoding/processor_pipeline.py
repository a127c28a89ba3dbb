"""The processor pipeline of a run: the enabled processors, in order, and the scores after each.

Each processor is one file of `core/processors/`; most are transformers' own classes, in transformers' order unless the
request sets another: penalties and bans first, then, when sampling, the filters, last watermark and renormalization.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import torch

from decodescope.core.decoding.banned_tokens import BanObserver
from decodescope.core.errors import ParameterError
from decodescope.core.events import StageKind
from decodescope.core.processors.base import Context, Processor
from decodescope.core.processors.pipeline_stages import OPTION, ordered_processors
from decodescope.core.system.device_memory import is_out_of_memory
from decodescope.resources.language import tr

if TYPE_CHECKING:
    from decodescope.core.processors.base import StageObserver, Transform


class StageHeading(NamedTuple):
    """A stage's description in events, besides its statistics; fields as in `core.events.Stage`."""

    name: str
    label: str
    value: float | None = None
    kind: StageKind = "shift"
    phrase: str = ""


class _ObservedHeading(StageHeading):
    """The heading of a processor that is called a ban from the first time on that it bans a token."""

    observer: BanObserver

    @property
    def kind(self) -> StageKind:
        """The stage's kind."""
        return "ban" if self.observer.bans else "shift"


def _observed_heading(heading: StageHeading, observer: BanObserver) -> StageHeading:
    """Return the heading of a stage whose kind depends on its scores."""
    found = _ObservedHeading(*heading)
    found.observer = observer
    return found


RAW_HEADING = StageHeading("raw", "raw", None, "model", "the model")
"""Heading of the model's own distribution, before all stages."""


@dataclass(frozen=True, slots=True)
class ActiveStage:
    """An enabled processor: its heading, and its function on scores."""

    processor: Processor
    heading: StageHeading
    process: Transform

    @property
    def name(self) -> str:
        """The setting's name."""
        return self.heading.name

    def observer(self) -> StageObserver | None:
        """Return the observer of its last call; None if the surviving tokens describe it completely."""
        return self.processor.observe(self.process) if self.processor.observe else None


@dataclass(slots=True)
class ProcessorPipeline:
    """All enabled stages, in order."""

    stages: list[ActiveStage] = field(default_factory=list)

    @property
    def headings(self) -> list[StageHeading]:
        """The stages' headings for events."""
        return [stage.heading for stage in self.stages]

    def __call__(self, ids: torch.Tensor, logits: torch.Tensor) -> torch.Tensor:
        """Return processed scores [B, V] for sequences `ids` [B, T]; `logits` is not modified."""
        return self.trace(ids, logits)[-1]

    def trace(self, ids: torch.Tensor, logits: torch.Tensor) -> list[torch.Tensor]:
        """Return the scores before the first stage and after each, all [B, V]."""
        scores = [logits]
        for stage in self.stages:
            scores.append(stage.process(ids, scores[-1]))
        return scores

    def observers(self) -> list[StageObserver | None]:
        """Return one observer per stage for the last `trace`."""
        return [stage.observer() for stage in self.stages]


def build_pipeline(context: Context) -> ProcessorPipeline:
    """Build the stages enabled by a run's settings, in the order they set (`core.processors.pipeline_stages`).

    Raises ParameterError for an invalid setting or order.
    """
    found = (
        (processor, context.settings.get(processor.name))
        for processor in ordered_processors(context.settings.get(OPTION))
    )
    active = [(processor, value) for processor, value in found if _is_active(processor, value, context)]
    return ProcessorPipeline([_build_stage(processor, value, context) for processor, value in active])


def _build_stage(processor: Processor, value: object, context: Context) -> ActiveStage:
    heading, transform = build_heading(processor, value), _build_transform(processor, value, context)
    if not processor.has_observed_kind:
        return ActiveStage(processor, heading, transform)
    observer = BanObserver(transform)
    return ActiveStage(processor, _observed_heading(heading, observer), observer)


def _is_active(processor: Processor, value: object, context: Context) -> bool:
    if value is None or (processor.samples and not context.settings.get("do_sample")):
        return False
    return processor.is_on(value) and processor.applies(context)


def build_heading(processor: Processor, value: object) -> StageHeading:
    """Return the heading of a processor with this setting."""
    words = processor.label, processor.phrase or processor.label
    label, phrase = (text.format(v=_format_value(value)) for text in words)
    return StageHeading(processor.name, label, _label_number(value), processor.kind, phrase)


def _build_transform(processor: Processor, value: object, context: Context) -> Transform:
    with errors_of_setting(processor.name):
        return processor.make(value, context)


@contextmanager
def errors_of_setting(setting: str) -> Iterator[None]:
    """Translate exceptions raised in the block to errors that name the setting. Raises ParameterError."""
    try:
        yield
    except (ValueError, LookupError, ArithmeticError, RuntimeError) as error:
        if is_out_of_memory(error):
            raise
        raise ParameterError(
            tr("The setting {setting} cannot be used: {error}.").format(setting=setting, error=str(error).rstrip(".")),
            tr("Correct it or turn it off."),
            setting,
        ) from error


def _format_value(value: object) -> str:
    if isinstance(value, float):
        return f"{value:g}"
    return str(value) if isinstance(value, (int, str)) else f"{len(value)}" if isinstance(value, Sequence) else ""


def _label_number(value: object) -> float | None:
    """Return the number shown in the label: the value, or a list's length; None for other values."""
    if isinstance(value, (list, tuple)):
        return len(value)
    return value if isinstance(value, (int, float)) and not isinstance(value, bool) else None
