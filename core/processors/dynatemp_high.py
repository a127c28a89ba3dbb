"""Dynamic temperature: hot where the model is unsure, cool where it is sure."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING

from core.parameter import Parameter
from core.processors.base import Context, Processor, is_given
from core.processors.score_stats import entropies
from resources.language import mark, tr

if TYPE_CHECKING:
    import torch

    from core.events import StageDetail
    from core.processors.base import StageObserver

LOW = Parameter(
    "dynatemp_low", mark("Dynamic T from"), "float", 0.5,
    mark("The temperature of a step at which one token is certain."),
    minimum=0.0, maximum=100.0, soft_maximum=2.0, step=0.05, exclusive=True, option=True, advanced=True,
)  # fmt: skip
EXPONENT = Parameter(
    "dynatemp_exponent", mark("Dynamic T exponent"), "float", 1.0,
    mark("Above 1 only very unsure steps become hot, below 1 all but the surest do."),
    minimum=0.0, maximum=10.0, soft_maximum=3.0, step=0.1, exclusive=True, option=True, advanced=True,
)  # fmt: skip


MIN_TEMPERATURE = 1e-30
"""Below this the likeliest token is as certain, and a division by it is no number any more."""


def temperatures(scores: torch.Tensor, low: float, high: float, exponent: float) -> list[float]:
    """The temperature of each row of scores [B, V]: low + (high − low) · (H / ln n)^exponent, H the entropy in
    nats, n how many tokens are left (KoboldCpp, text-generation-webui)."""
    shares = [min(entropy / math.log(max(left, 2)), 1.0) for entropy, left in entropies(scores)]
    return [max(low + (high - low) * share**exponent, MIN_TEMPERATURE) for share in shares]


class DynamicTemperature:
    """Scores divided by the step's own temperature."""

    def __init__(self, low: float, high: float, exponent: float) -> None:
        self._low, self._high, self._exponent = low, high, exponent
        self._temperatures: list[float] = []

    def __call__(self, ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """Scores [B, V], each row at its temperature."""
        heat = self._temperatures = temperatures(scores, self._low, self._high, self._exponent)
        return scores / (heat[0] if len(heat) == 1 else scores.new_tensor(heat)[:, None])

    def make_observer(self) -> StageObserver:
        """Of the temperatures of this step."""
        heat, low, high = self._temperatures, self._low, self._high
        return lambda row, before, after, chosen: partial(_temperature_detail, heat[row], low, high)


def _temperature_detail(heat: float, low: float, high: float) -> StageDetail:
    from core.events import StageDetail, StepTemperature  # made when something runs

    return StageDetail(heat=StepTemperature(heat, low, high))


def make(value: float, context: Context) -> DynamicTemperature:
    """The temperatures of one run. Raises ValueError where they would fall instead of rise."""
    low = float(context.options.get(LOW.name, LOW.default))
    exponent = float(context.options.get(EXPONENT.name, EXPONENT.default))
    if value < low:
        raise ValueError(tr("it ends at {high:g}, below where it begins, {low:g}").format(high=value, low=low))
    return DynamicTemperature(low, float(value), exponent)


PROCESSOR = Processor(
    name="dynatemp_high",
    make=make,
    order=162,
    label=mark("dynamic T ≤ {v}"),
    phrase=mark("the dynamic temperature up to {v}"),
    parameter=Parameter(
        "dynatemp_high", mark("Dynamic T up to"), "float", None,
        mark("The temperature of a step at which all tokens are equally likely; between, it follows the entropy. Leave "
             "the plain temperature at 1 beside it."),
        minimum=0.0, maximum=100.0, soft_maximum=3.0, step=0.05, exclusive=True, option=True, advanced=True,
    ),
    beside=(LOW, EXPONENT),
    panel="sampling_advanced",
    shown=60,
    is_on=is_given,
    samples=True,
    blind=True,
    observe=DynamicTemperature.make_observer,
)  # fmt: skip
