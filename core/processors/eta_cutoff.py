"""Eta cut-off: removes unlikely tokens, more of them if the model is certain."""

from __future__ import annotations

from decodescope.core.common.claim import Claim, sampling_cell
from decodescope.core.parameter import Parameter
from decodescope.core.processors.base import Processor, is_inside_unit, transformers_processors
from decodescope.resources.language import mark

CLAIMS = (
    Claim(
        name="eta-repeats-less",
        title=mark("Eta sampling repeats less than top-p"),
        plain=mark("A cut that is gentler where the model is unsure makes a text repeat "
            "itself less than top-p does."),
        exact=mark("The share of repeated 4-grams is lower with eta sampling (0.0009) than with top-p 0.9."),
        source="Hewitt, Manning, Liang 2022, Truncation Sampling as Language Model Desmoothing",
        address="https://arxiv.org/abs/2210.15191",
        baseline=sampling_cell(mark("Top-p 0.9"), top_p=0.9),
        tested=sampling_cell(mark("Eta 0.0009"), eta_cutoff=0.0009),
        measure="repetition", expects="lower", margin=0.02, max_new_tokens=160, seeds=2,
    ),
)  # fmt: skip

PROCESSOR = Processor(
    name="eta_cutoff",
    transformers_classes=("EtaLogitsWarper",),
    make=lambda value, context: transformers_processors().EtaLogitsWarper(
        epsilon=value, min_tokens_to_keep=context.min_tokens_to_keep, device=context.model.device
    ),
    order=230,
    label=mark("eta {v}"),
    plain_phrase=mark("the rule “nothing with almost no chance here”"),
    claims=CLAIMS,
    kind="cut",
    parameter=Parameter(
        "eta_cutoff", mark("Eta cut-off"), "float", 0.0,
        mark("Remove unlikely tokens, more of them if the model is certain. 0: off; 0.0003 to 0.002 is "
            "usual."),
        minimum=0.0, maximum=1.0, soft_maximum=0.01, step=0.0001, advanced=True,
    ),
    panel="sampling_advanced",
    shown=40,
    is_on=is_inside_unit,
    samples=True,
    uses_scores_only=True,
    score_rule="entropy",
)  # fmt: skip
