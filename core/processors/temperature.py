"""Temperature: divides the scores."""

from __future__ import annotations

from decodescope.core.parameter import RANDOMNESS, Parameter
from decodescope.core.processors.base import Processor, is_not_one, transformers_processors
from decodescope.resources.language import mark

PROCESSOR = Processor(
    name="temperature",
    transformers_classes=("TemperatureLogitsWarper",),
    transformers_value="temperature",
    make=lambda value, context: transformers_processors().TemperatureLogitsWarper(float(value)),
    order=160,
    label=mark("T {v}"),
    phrase=mark("temperature {v}"),
    plain_phrase=mark("the temperature of {v}"),
    parameter=Parameter(
        "temperature", mark("Temperature"), "float", 1.0,
        mark("Below 1 likely tokens gain, above 1 unlikely ones do. Near 0 it equals greedy decoding."),
        minimum=0.0, maximum=100.0, soft_maximum=2.0, step=0.05, exclusive=True, group=RANDOMNESS,
    ),
    panel="sampling",
    shown=10,
    is_on=is_not_one,
    samples=True,
    uses_scores_only=True,
    score_rule="division",
)  # fmt: skip
