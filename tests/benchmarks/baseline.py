"""Ratios saved in a file, and changes of more than their noise."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

LEAST_NOISE = 0.03
"""Share of a figure that is taken for noise however alike its runs were."""


@dataclass(frozen=True, slots=True)
class BaselineValue:
    """One figure of the baseline: the median of its runs, and how far any of them was from it."""

    value: float
    noise: float


def summary(runs: Sequence[Mapping[str, float]]) -> dict[str, BaselineValue]:
    """The figures of several runs as one baseline; a figure that some run lacks is left out."""
    names = [name for name in runs[0] if all(name in run for run in runs)]
    found = {}
    for name in names:
        values = [run[name] for run in runs]
        middle = median(values)
        found[name] = BaselineValue(middle, max(abs(value - middle) for value in values))
    return found


def save(path: Path, baseline: Mapping[str, BaselineValue]) -> None:
    """Write it as JSON, a figure a line, rounded to what can be measured."""
    rows = {
        name: {"value": round(stored.value, 4), "noise": round(stored.noise, 4)} for name, stored in baseline.items()
    }
    path.write_text(json.dumps(rows, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


def load(path: Path) -> dict[str, BaselineValue]:
    """Read a file written by `save`."""
    rows = json.loads(path.read_text(encoding="utf-8"))
    return {name: BaselineValue(row["value"], row["noise"]) for name, row in rows.items()}


def changed(name: str, value: float, baseline: Mapping[str, BaselineValue]) -> str:
    """Describe a change from the baseline that exceeds the noise; empty without one."""
    stored = baseline.get(name)
    if stored is None:
        return "new"
    noise = max(stored.noise, abs(stored.value) * LEAST_NOISE)
    difference = value - stored.value
    if abs(difference) <= noise:
        return ""
    return f"{difference:+.2f} from {stored.value:.2f} ± {noise:.2f}"
