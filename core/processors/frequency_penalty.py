"""Frequency penalty: makes tokens less likely the more often the answer contains them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from decodescope.core.parameter import Parameter
from decodescope.core.processors.base import Context, Processor
from decodescope.core.processors.score_stats import count_new_tokens
from decodescope.resources.language import mark

if TYPE_CHECKING:
    import torch


class FrequencyPenalty:
    """Logit − penalty · count, for the number of times that the answer contains the token so far.

    As in OpenAI's API and in vLLM, tokens of the prompt do not count; the given beginning of an answer does.
    Source: the formula in https://platform.openai.com/docs/advanced-usage.
    """

    def __init__(self, penalty: float, start: int) -> None:
        self._penalty, self._start = penalty, start

    def __call__(self, ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """Return scores [B, V] minus the penalties for the answers in `ids` [B, T]."""
        return scores - self._penalty * count_new_tokens(ids, self._start, scores)


def make(value: float, context: Context) -> FrequencyPenalty:
    """Create the penalty of one run."""
    return FrequencyPenalty(float(value), context.start)


PROCESSOR = Processor(
    name="frequency_penalty",
    make=make,
    order=42,
    label=mark("frequency {v}"),
    phrase=mark("the frequency penalty of {v}"),
    plain_phrase=mark("the penalty on often repeated words"),
    parameter=Parameter(
        "frequency_penalty", mark("Frequency penalty"), "float", 0.0,
        mark("Above 0, each token loses this much score for every time that the answer contains it. "
             "Below 0, it gains score. 0: off."),
        minimum=-2.0, maximum=2.0, step=0.05, option=True, advanced=True,
    ),
    panel="penalties",
    shown=12,
    score_rule="token",
)  # fmt: skip
