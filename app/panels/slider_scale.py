"""Where a value stands on its slider, and which value a place on the slider means."""

from __future__ import annotations

import math
from typing import NamedTuple

from core.strategies import Parameter

MAX_SLIDER_END = 10_000
"""Ends beyond this have no slider."""


class SliderScale(NamedTuple):
    """The useful range of a setting, evenly or by its logarithm; typing may go beyond both ends."""

    start: float
    end: float
    logarithmic: bool = False

    def position(self, value: float) -> float:
        """Place of `value` on the slider, 0 to 1; a value beyond an end stands at that end."""
        inside = min(self.end, max(self.start, value))
        if self.logarithmic:
            return math.log(inside / self.start) / math.log(self.end / self.start)
        return (inside - self.start) / (self.end - self.start)

    def value(self, position: float, step: float) -> float:
        """The value at a place, on a whole number of steps unless it is one of the ends."""
        if position <= 0 or position >= 1:
            return self.end if position >= 1 else self.start
        if self.logarithmic:
            exact = self.start * float((self.end / self.start) ** position)
        else:
            exact = self.start + (self.end - self.start) * position
        return min(self.end, max(self.start, round(exact / step) * step))


def scale_of(parameter: Parameter, lowest: float) -> SliderScale | None:
    """The slider of a number whose editor begins at `lowest`; None for a range too wide for one."""
    end = parameter.soft_maximum if parameter.soft_maximum is not None else parameter.maximum
    start = lowest if parameter.soft_minimum is None else parameter.soft_minimum
    if end is None or end > MAX_SLIDER_END:
        return None
    return SliderScale(start, end, parameter.logarithmic)
