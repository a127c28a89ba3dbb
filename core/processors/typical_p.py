"""Typical sampling: keeps the tokens whose surprise is closest to the average."""

from __future__ import annotations

from decodescope.core.common.claim import Claim, sampling_cell
from decodescope.core.parameter import Parameter
from decodescope.core.processors.base import Processor, is_below_one, transformers_processors
from decodescope.resources.language import mark

CLAIMS = (
    Claim(
        name="typical-repeats-less",
        title=mark("Typical sampling repeats less"),
        plain=mark("Leaving out words that are too obvious as well makes a text repeat itself less than top-p does."),
        exact=mark("The share of repeated 4-grams is lower with typical sampling (0.9) than with top-p 0.9."),
        source="Meister, Pimentel, Wiher, Cotterell 2022, Locally Typical Sampling",
        address="https://arxiv.org/abs/2202.00666",
        baseline=sampling_cell(mark("Top-p 0.9"), top_p=0.9),
        tested=sampling_cell(mark("Typical 0.9"), typical_p=0.9),
        measure="repetition", expects="lower", margin=0.02, max_new_tokens=160, seeds=2,
    ),
)  # fmt: skip

PROCESSOR = Processor(
    name="typical_p",
    transformers_classes=("TypicalLogitsWarper",),
    transformers_value="mass",
    make=lambda value, context: transformers_processors().TypicalLogitsWarper(
        mass=value, min_tokens_to_keep=context.min_tokens_to_keep
    ),
    order=210,
    label=mark("typical {v}"),
    phrase=mark("typical sampling {v}"),
    plain_phrase=mark("the rule “nothing too obvious or too odd”"),
    claims=CLAIMS,
    kind="cut",
    parameter=Parameter(
        "typical_p", mark("Typical"), "float", 1.0,
        mark("Keep the tokens whose surprise is closest to the average, up to this total probability. 1: "
            "off."),
        minimum=0.0, maximum=1.0, step=0.01, exclusive=True, advanced=True,
    ),
    panel="sampling_advanced",
    shown=10,
    is_on=is_below_one,
    samples=True,
    uses_scores_only=True,
    score_rule="typical",
)  # fmt: skip
