"""Top-H: keeps the likeliest tokens up to a fraction of the entropy."""

from __future__ import annotations

from decodescope.core.common.claim import Claim, sampling_cell
from decodescope.core.parameter import Parameter
from decodescope.core.processors.base import Processor, is_given, transformers_processors
from decodescope.resources.language import mark

CLAIMS = (
    Claim(
        name="top-h-survives-heat",
        title=mark("Top-H is more coherent than min-p at high temperature"),
        plain=mark("Limiting how uncertain the choice may be keeps a very hot text more sensible than min-p does."),
        exact=mark("At temperature 2, the mean log-probability per token is higher "
            "with top-H 0.4 than with min-p 0.1."),
        source="Baghaei Potraghloo, Azizi, Kundu, Pedram 2025, Top-H Decoding: Adapting the "
            "Creativity and Coherence with Bounded Entropy",
        address="https://arxiv.org/abs/2509.02510",
        baseline=sampling_cell(mark("Min-p 0.1"), temperature=2.0, min_p=0.1),
        tested=sampling_cell(mark("Top-H 0.4"), temperature=2.0, top_h=0.4),
        measure="log_probability", expects="higher", margin=0.1, seeds=2,
    ),
)  # fmt: skip

PROCESSOR = Processor(
    name="top_h",
    transformers_classes=("TopHLogitsWarper",),
    transformers_value="top_h",
    make=lambda value, context: transformers_processors().TopHLogitsWarper(top_h=value),
    order=170,
    label=mark("top-H {v}"),
    plain_phrase=mark("the rule “only so much uncertainty”"),
    claims=CLAIMS,
    kind="cut",
    parameter=Parameter(
        "top_h", mark("Top-H"), "float", None,
        mark("Keep the likeliest tokens until their entropy reaches this fraction of the full "
            "distribution's entropy."),
        minimum=0.0, maximum=1.0, step=0.01, exclusive=True, advanced=True,
    ),
    panel="sampling_advanced",
    shown=20,
    is_on=is_given,
    samples=True,
    uses_scores_only=True,
)  # fmt: skip
