"""Makes tokens of the source likelier."""

from __future__ import annotations

from decodescope.core.parameter import REPETITION, Parameter
from decodescope.core.processors.base import Processor, is_not_one, transformers_processors
from decodescope.resources.language import mark

PROCESSOR = Processor(
    name="encoder_repetition_penalty",
    transformers_classes=("EncoderRepetitionPenaltyLogitsProcessor",),
    make=lambda value, context: transformers_processors().EncoderRepetitionPenaltyLogitsProcessor(
        penalty=float(value), encoder_input_ids=context.encoder_ids
    ),
    order=30,
    label=mark("faithfulness {v}"),
    phrase=mark("the faithfulness of {v}"),
    plain_phrase=mark("the preference for words of the source"),
    parameter=Parameter(
        "encoder_repetition_penalty", mark("Prompt faithfulness"), "float", 1.0,
        mark("Above 1, tokens of the source text become likelier (for encoder–decoder models and prompts "
            "alike)."),
        minimum=0.0, maximum=100.0, soft_maximum=2.0, step=0.01, exclusive=True, advanced=True, group=REPETITION,
    ),
    shown=60,
    is_on=is_not_one,
    applies=lambda context: context.encoder_ids is not None,
    score_rule="token",
)  # fmt: skip
