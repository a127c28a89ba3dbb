"""One setting over a range of values, each with several seeds."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from app.state import setting_values
from app.state.comparison.candidates import ComparisonCandidate
from app.state.number_checks import is_number
from app.state.setting_values import InvalidValueError
from app.state.worker_messages import RunRequest, split_settings
from core import strategies
from core.strategies import Parameter
from resources.language import tr

MAX_RUNS = 400
"""Of one sweep: each keeps its text with all that is known of every token."""
_DIGITS = 6
"""Significant ones of a value between two ends: 0.3, not 0.30000000000000004."""
_KINDS = ("float", "int", "bool", "choice")


@dataclass(frozen=True, slots=True)
class Sweep:
    """What is swept: the values in the order they are drawn, and the seeds that each is run with."""

    parameter: Parameter
    values: tuple[Any, ...]
    seeds: tuple[int, ...]

    @property
    def count(self) -> int:
        """How many runs it takes."""
        return len(self.values) * len(self.seeds)

    @property
    def labels(self) -> tuple[str, ...]:
        """The values as they are said."""
        return tuple(setting_values.short_text(value) for value in self.values)


def sweepable_parameters(request: RunRequest) -> list[Parameter]:
    """What of the run's strategy can be swept: numbers, switches and choices."""
    return [parameter for parameter in strategies.registry[request.strategy].parameters if parameter.kind in _KINDS]


def make_range(parameter: Parameter, low: float, high: float, count: int) -> tuple[Any, ...]:
    """`count` values from `low` to `high`, both included: equal steps, or equal factors where the parameter's slider
    has them; whole numbers once each. Raises ValueProblem where a bound refuses, or there is no way from one to the
    other."""
    for end in (low, high):
        setting_values.check_range(parameter, end)
    if count < 2 or low == high:
        raise InvalidValueError(tr("A range takes two different ends and at least two values."))
    if parameter.logarithmic and low > 0 and high > 0:
        found = [low * (high / low) ** (step / (count - 1)) for step in range(count)]
    else:
        found = [low + (high - low) * step / (count - 1) for step in range(count)]
    if parameter.kind == "int":
        return tuple(dict.fromkeys(round(value) for value in found))
    return tuple(dict.fromkeys(_rounded(value) for value in found))


def _rounded(value: float) -> float:
    return float(f"{value:.{_DIGITS}g}")


def parse_values(parameter: Parameter, text: str) -> tuple[Any, ...]:
    """The values written as `0.2, 0.5, 1` (commas, semicolons or spaces between them), each once, in their order.

    Raises ValueProblem for one that the parameter cannot take.
    """
    parts = [part for part in re.split(r"[,;\s]+", text) if part]
    if not parts:
        raise InvalidValueError(tr("No values are given: write some, 0.2 0.5 1."))
    return tuple(dict.fromkeys(setting_values.parse(parameter, part) for part in parts))


def default_range(parameter: Parameter, value: object) -> tuple[float, float]:
    """Where a sweep begins and ends unless somebody says otherwise: what the slider spans, else half and twice."""
    low = parameter.soft_minimum if parameter.soft_minimum is not None else parameter.minimum
    high = parameter.soft_maximum if parameter.soft_maximum is not None else parameter.maximum
    own = float(value) if is_number(value) else 1.0
    low = own / 2 if low is None else low
    high = own * 2 if high is None or not math.isfinite(high) else high
    if parameter.exclusive and low == parameter.minimum:
        low = min(_rounded(low + (high - low) / 10), high)
    return low, max(high, low)


def sweep_unsupported_reason(sweep: Sweep) -> str:
    """Why it cannot be run; empty when it can."""
    if sweep.count > MAX_RUNS:
        return tr("These are {count:,} runs; {most:,} are kept side by side at most.").format(
            count=sweep.count, most=MAX_RUNS
        )
    if len(sweep.values) < 2:
        return tr("There is one value only: a sweep compares at least two.")
    return ""


def sweep_candidates(base: RunRequest, sweep: Sweep) -> list[ComparisonCandidate]:
    """Every value with every seed, value by value."""
    title, several = tr(sweep.parameter.title), len(sweep.seeds) > 1
    return [
        ComparisonCandidate(
            f"{label}-{seed}",
            (tr("{title} {label}, seed {seed}") if several else "{title} {label}").format(
                title=title, label=label, seed=seed
            ),
            "",
            replace(with_setting(base, sweep.parameter, value), seed=seed), index=place,
        )
        for place, (value, label) in enumerate(zip(sweep.values, sweep.labels, strict=True))
        for seed in sweep.seeds
    ]  # fmt: skip


def with_setting(base: RunRequest, parameter: Parameter, value: object) -> RunRequest:
    """The same run with another value of one setting; None leaves it open."""
    strategy = strategies.registry[base.strategy]
    settings: Mapping[str, Any] = {**base.settings, parameter.name: value}
    config, options = split_settings(strategy, {name: given for name, given in settings.items() if given is not None})
    return replace(base, config=config, options=options)
