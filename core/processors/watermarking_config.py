"""Watermark from a transformers configuration."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from decodescope.core.errors import ParameterError
from decodescope.core.parameter import short_repr
from decodescope.core.processors.base import Context, Processor, is_given, transformers_processors
from decodescope.resources.language import mark, tr

if TYPE_CHECKING:
    import torch
    from transformers import SynthIDTextWatermarkingConfig, WatermarkingConfig

    from decodescope.core.processors.base import Transform


def _make(value: object, context: Context) -> Transform:
    processor: Transform = _config(value).construct_processor(context.model.vocabulary, context.model.device)
    return processor


def _config(value: object) -> WatermarkingConfig | SynthIDTextWatermarkingConfig:
    """Return one of transformers' classes, or create the first from its fields as a file stores them. Raises
    ParameterError.
    """
    from transformers import SynthIDTextWatermarkingConfig, WatermarkingConfig

    try:
        made = WatermarkingConfig(**value) if isinstance(value, Mapping) else value
        if isinstance(made, WatermarkingConfig | SynthIDTextWatermarkingConfig):
            validate: Callable[[], None] = made.validate
            validate()
            return made
    except (TypeError, ValueError):  # unknown names, and values of a wrong type or out of range
        pass
    raise ParameterError(
        tr("Watermark (watermarking_config) is {value}.").format(value=short_repr(value)),
        tr("Pass a WatermarkingConfig or SynthIDTextWatermarkingConfig of transformers, or the fields of the former."),
        "watermarking_config",
    )


def _reorder_state(processor: Transform, rows: torch.Tensor) -> None:
    """Reorder SynthID's state, which is kept per row."""
    if isinstance(processor, transformers_processors().SynthIDTextWatermarkLogitsProcessor) and (
        processor.state is not None
    ):
        processor.state.context = processor.state.context.index_select(0, rows)
        processor.state.context_history = processor.state.context_history.index_select(0, rows)


PROCESSOR = Processor(
    name="watermarking_config",
    transformers_classes=("WatermarkLogitsProcessor", "SynthIDTextWatermarkLogitsProcessor"),
    make=_make,
    order=240,
    label=mark("watermark"),
    phrase=mark("the watermark"),
    plain_phrase=mark("the hidden watermark"),
    is_on=is_given,
    drafts=False,
    reorder_rows=_reorder_state,
)  # fmt: skip
