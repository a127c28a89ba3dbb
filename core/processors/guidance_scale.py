"""Classifier-free guidance: steers away from what the model would generate without the prompt."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from decodescope.core.parameter import Parameter
from decodescope.core.processors.base import Context, Processor, is_not_one, transformers_processors
from decodescope.resources.language import mark, tr

if TYPE_CHECKING:
    from decodescope.core.processors.base import Transform


def _make(value: float, context: Context) -> Transform:
    if context.model.is_encoder_decoder or context.model.is_recurrent:
        raise ValueError(tr("guidance requires a decoder-only transformer"))
    processor: Transform = transformers_processors().UnbatchedClassifierFreeGuidanceLogitsProcessor(
        value, context.model.model, unconditional_ids=context.negative_ids, use_cache=True
    )
    return processor


def _reorder_context(processor: Any, rows: Any) -> None:
    """Reorder the unconditional context too; `generate` does not, which mixes up the beams."""
    from transformers import Cache

    context = processor.unconditional_context
    for name in ("input_ids", "attention_mask"):
        context[name] = context[name].index_select(0, rows)
    for value in context.values():  # its name depends on the transformers release
        if isinstance(value, Cache):
            value.reorder_cache(rows)


PROCESSOR = Processor(
    name="guidance_scale",
    transformers_classes=("UnbatchedClassifierFreeGuidanceLogitsProcessor",),
    transformers_value="guidance_scale",
    make=_make,
    order=10,
    label=mark("guidance {v}"),
    plain_phrase=mark("the pull towards the prompt"),
    parameter=Parameter(
        "guidance_scale", mark("Guidance"), "float", None,
        mark("Above 1, steer away from what the model would generate without the prompt. Doubles the "
            "computation."),
        minimum=0.0, maximum=100.0, soft_maximum=5.0, step=0.1, advanced=True, unset=1.0,
    ),
    shown=10,
    is_on=is_not_one,
    reads=True,
    end="first",
    drafts=False,
    before_diversity=True,
    reorder_rows=_reorder_context,
)  # fmt: skip
