"""Top-p (nucleus): keeps the likeliest tokens up to a total probability."""

from __future__ import annotations

from decodescope.core.common.claim import SAMPLING_CELL, Claim, sampling_cell
from decodescope.core.parameter import Parameter
from decodescope.core.processors.base import Processor, is_below_one, transformers_processors
from decodescope.resources.language import mark

CLAIMS = (
    Claim(
        name="nucleus-cuts-the-tail",
        title=mark("Top-p cuts off the unreliable tail"),
        plain=mark("Leaving out the many unlikely words keeps a text closer to what the model considers sensible."),
        exact=mark("The mean log-probability per token is higher with top-p 0.9 than with "
            "sampling from the whole distribution."),
        source="Holtzman, Buys, Du, Forbes, Choi 2020, The Curious Case of Neural Text Degeneration",
        address="https://arxiv.org/abs/1904.09751",
        baseline=SAMPLING_CELL,
        tested=sampling_cell(mark("Top-p 0.9"), top_p=0.9),
        measure="log_probability", expects="higher", margin=0.1, seeds=2,
    ),
)  # fmt: skip

PROCESSOR = Processor(
    name="top_p",
    transformers_classes=("TopPLogitsWarper",),
    transformers_value="top_p",
    make=lambda value, context: transformers_processors().TopPLogitsWarper(
        top_p=float(value), min_tokens_to_keep=context.min_tokens_to_keep
    ),
    order=190,
    label=mark("top-p {v}"),
    plain_phrase=mark("the rule “only the best, until their chances suffice”"),
    claims=CLAIMS,
    kind="cut",
    parameter=Parameter(
        "top_p", mark("Top-p"), "float", 1.0,
        mark("Keep the smallest set of likeliest tokens whose total probability reaches this value. 1: off."),
        minimum=0.0, maximum=1.0, step=0.01,
    ),
    panel="sampling",
    shown=20,
    is_on=is_below_one,
    samples=True,
    uses_scores_only=True,
    score_rule="mass",
)  # fmt: skip
