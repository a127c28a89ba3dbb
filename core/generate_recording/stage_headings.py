"""Headings of the logits processors that a `generate` call applies: transformers' own ones and those of its caller."""

from __future__ import annotations

from typing import TYPE_CHECKING

from decodescope.core.decoding.processor_pipeline import StageHeading, build_heading
from decodescope.core.processors import registry

if TYPE_CHECKING:
    from transformers import GenerationConfig

    from decodescope.core.events import StageKind
    from decodescope.core.processors.base import Processor


def is_transformers_own(processor: object) -> bool:
    """Return whether the processor is one of transformers' classes, which never modify their input."""
    return type(processor).__module__.startswith("transformers.")


def heading_of(processor: object, config: GenerationConfig) -> StageHeading:
    """Return the heading of a processor: that of its setting, or its class name if no setting enables it."""
    stage = _find_stage(type(processor).__name__) if is_transformers_own(processor) else None
    if stage is None:
        name = getattr(processor, "__name__", "") or type(processor).__name__
        return StageHeading(name, name, None, "shift", name)
    attribute = stage.transformers_value
    value = getattr(processor, attribute, None) if attribute else getattr(config, stage.name, None)
    return build_heading(stage, _plain(value))


def _find_stage(class_name: str) -> Processor | None:
    """Return the registered processor that does the same as this class of transformers."""
    return next((stage for stage in registry.values() if class_name in stage.transformers_classes), None)


def with_kind(heading: StageHeading, kind: StageKind) -> StageHeading:
    """Return the heading with another kind."""
    return heading._replace(kind=kind)


def _plain(value: object) -> object:
    """Return the value of a tensor with one element or of a NumPy number; other values unchanged."""
    item = getattr(value, "item", None)
    return item() if callable(item) and getattr(value, "numel", lambda: 1)() == 1 else value
