"""Min-p: keeps tokens whose probability is at least a fraction of the likeliest token's."""

from __future__ import annotations

from decodescope.core.common.claim import Claim, sampling_cell
from decodescope.core.parameter import Parameter
from decodescope.core.processors.base import Processor, transformers_processors
from decodescope.resources.language import mark

CLAIMS = (
    Claim(
        name="min-p-survives-heat",
        title=mark("Min-p stays coherent at high temperature"),
        plain=mark("At a high temperature, cutting off everything far behind the best word "
            "keeps a text more sensible than top-p."),
        exact=mark("At temperature 1.5, the mean log-probability per token is higher "
            "with min-p 0.1 than with top-p 0.9."),
        source="Nguyen, Baker, Neo et al. 2024, Turning Up the Heat: Min-p Sampling "
            "for Creative and Coherent LLM Outputs",
        address="https://arxiv.org/abs/2407.01082",
        baseline=sampling_cell(mark("Top-p 0.9"), temperature=1.5, top_p=0.9),
        tested=sampling_cell(mark("Min-p 0.1"), temperature=1.5, min_p=0.1),
        measure="log_probability", expects="higher", margin=0.1, seeds=2,
    ),
)  # fmt: skip

PROCESSOR = Processor(
    name="min_p",
    transformers_classes=("MinPLogitsWarper",),
    transformers_value="min_p",
    make=lambda value, context: transformers_processors().MinPLogitsWarper(
        min_p=float(value), min_tokens_to_keep=context.min_tokens_to_keep
    ),
    order=200,
    label=mark("min-p {v}"),
    plain_phrase=mark("the rule “nothing far behind the best”"),
    claims=CLAIMS,
    kind="cut",
    parameter=Parameter(
        "min_p", mark("Min-p"), "float", None,
        mark("Keep tokens whose probability is at least this fraction of the likeliest token's."),
        minimum=0.0, maximum=1.0, step=0.01, unset=0.0,
    ),
    panel="sampling",
    shown=40,
    samples=True,
    uses_scores_only=True,
    score_rule="ratio",
)  # fmt: skip
