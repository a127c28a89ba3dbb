"""Watermark: a signature in the choice of words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from core.processors.base import Context, Processor, given, library
from resources.language import mark

if TYPE_CHECKING:
    import torch
    from transformers import SynthIDTextWatermarkingConfig, WatermarkingConfig

    from core.processors.base import Transform


def _make(value: WatermarkingConfig | SynthIDTextWatermarkingConfig, context: Context) -> Transform:
    processor: Transform = value.construct_processor(context.model.vocabulary, context.model.device)
    return processor


def _follow(processor: Transform, rows: torch.Tensor) -> None:
    """SynthID remembers each row's text."""
    if isinstance(processor, library().SynthIDTextWatermarkLogitsProcessor) and (processor.state is not None):
        processor.state.context = processor.state.context.index_select(0, rows)
        processor.state.context_history = processor.state.context_history.index_select(0, rows)


PROCESSOR = Processor(
    name="watermarking_config",
    make=_make,
    order=240,
    label=mark("watermark"),
    phrase=mark("the watermark"),
    is_on=given,
    drafts=False,
    follow=_follow,
)  # fmt: skip
