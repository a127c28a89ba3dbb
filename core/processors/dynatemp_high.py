"""Dynamic temperature: high if the model is uncertain, low if it is certain."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING

from decodescope.core.parameter import RANDOMNESS, Parameter
from decodescope.core.processors.base import Context, Processor, is_given
from decodescope.core.processors.score_stats import entropies
from decodescope.resources.language import mark, tr

if TYPE_CHECKING:
    import torch

    from decodescope.core.events import StageDetail
    from decodescope.core.processors.base import StageObserver

LOW = Parameter(
    "dynatemp_low", mark("Dynamic T from"), "float", 0.5,
    mark("Temperature of a step in which one token is certain."),
    minimum=0.0, maximum=100.0, soft_maximum=2.0, step=0.05, exclusive=True, option=True, advanced=True,
    group=RANDOMNESS,
)  # fmt: skip
EXPONENT = Parameter(
    "dynatemp_exponent", mark("Dynamic T exponent"), "float", 1.0,
    mark("Above 1, only very uncertain steps get a high temperature; below 1, all but the most certain do."),
    minimum=0.0, maximum=10.0, soft_maximum=3.0, step=0.1, exclusive=True, option=True, advanced=True, group=RANDOMNESS,
)  # fmt: skip


MIN_TEMPERATURE = 1e-30
"""Below this the likeliest token is just as certain, and dividing by it gives no valid number."""


def temperatures(scores: torch.Tensor, low: float, high: float, exponent: float) -> list[float]:
    """Return the temperature of each row of scores [B, V]: low + (high − low) · (H / ln n)^exponent, with H the entropy
    in nats and n the number of remaining tokens (KoboldCpp, text-generation-webui).
    """
    shares = [min(entropy / math.log(max(left, 2)), 1.0) for entropy, left in entropies(scores)]
    return [max(low + (high - low) * share**exponent, MIN_TEMPERATURE) for share in shares]


class DynamicTemperature:
    """Divides scores by the step's own temperature."""

    def __init__(self, low: float, high: float, exponent: float) -> None:
        self._low, self._high, self._exponent = low, high, exponent
        self._temperatures: list[float] = []

    def __call__(self, ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """Return scores [B, V] with each row at its temperature."""
        heat = self._temperatures = temperatures(scores, self._low, self._high, self._exponent)
        return scores / (heat[0] if len(heat) == 1 else scores.new_tensor(heat)[:, None])

    def make_observer(self) -> StageObserver:
        """Return an observer of the temperatures of this step."""
        heat, low, high = self._temperatures, self._low, self._high
        return lambda row, before, after, chosen: partial(_temperature_detail, heat[row], low, high)


def _temperature_detail(temperature: float, low: float, high: float) -> StageDetail:
    from decodescope.core.events import StageDetail, StepTemperature  # created on demand

    return StageDetail(heat=StepTemperature(temperature, low, high))


def make(value: float, context: Context) -> DynamicTemperature:
    """Create the temperatures of one run. Raises ValueError if the upper limit is below the lower one."""
    low = float(context.settings.get(LOW.name, LOW.default))
    exponent = float(context.settings.get(EXPONENT.name, EXPONENT.default))
    if value < low:
        raise ValueError(tr("its upper limit {high:g} is below its lower limit {low:g}").format(high=value, low=low))
    return DynamicTemperature(low, float(value), exponent)


PROCESSOR = Processor(
    name="dynatemp_high",
    make=make,
    order=162,
    label=mark("dynamic T ≤ {v}"),
    phrase=mark("the dynamic temperature up to {v}"),
    plain_phrase=mark("the temperature that follows the uncertainty"),
    parameter=Parameter(
        "dynatemp_high", mark("Dynamic T up to"), "float", None,
        mark("Temperature of a step in which all tokens are equally likely; in between, it follows the "
            "entropy. Keep the normal temperature at 1."),
        minimum=0.0, maximum=100.0, soft_maximum=3.0, step=0.05, exclusive=True, option=True, advanced=True,
        group=RANDOMNESS,
    ),
    extra_parameters=(LOW, EXPONENT),
    panel="sampling_advanced",
    shown=60,
    is_on=is_given,
    samples=True,
    uses_scores_only=True,
    observe=DynamicTemperature.make_observer,
)  # fmt: skip
