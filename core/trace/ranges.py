"""The range of every number in a recorded event. A value outside it comes from a damaged or forged file."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeAlias

from core.trace.schema import TypeSpec, record_schemas
from resources.language import tr


@dataclass(frozen=True, slots=True)
class NumberRange:
    """Smallest and largest value of a number, both included."""

    minimum: float
    maximum: float
    allows_nan: bool = False

    def check(self, values: Sequence[Any]) -> None:
        """Raise ValueError if one of the numbers lies outside."""
        if values and not self._contains_all(values):
            outside = next((value for value in values if not self._contains(value)), math.nan)
            raise ValueError(tr("{number} is out of range").format(number=_short_number(outside)))

    def _contains_all(self, values: Sequence[Any]) -> bool:
        if self.minimum <= min(values) and max(values) <= self.maximum:
            return self.allows_nan or not any(value != value for value in values)
        return self.allows_nan and all(map(self._contains, values))

    def _contains(self, value: float) -> bool:
        return self.minimum <= value <= self.maximum or (self.allows_nan and value != value)


Ranges: TypeAlias = "NumberRange | tuple[Ranges | None, ...]"
"""One range, or for a tuple of values one of each; None for texts."""

COUNT = NumberRange(0, 2**53)
"""Tokens, steps, nodes. Beyond it a float, as a chart or JSON has it, is no longer exact."""
BYTES = NumberRange(0, 2**62)
INTEGER = NumberRange(-(2**63), 2**64 - 1)
RANK = NumberRange(0, 2**53)
SHARE = NumberRange(0.0, 1.001, allows_nan=True)
"""Rounding may lift a share a little above 1; an engine that does not report it leaves NaN."""
REAL = NumberRange(-math.inf, math.inf, allows_nan=True)
ENTROPY = NumberRange(-1.0, 1e6, allows_nan=True)
SECONDS = NumberRange(0.0, 1e9)
RATE = NumberRange(0.0, 1e30)
EXPONENT = NumberRange(-1e6, 1e6)

ANY_LENGTH = NumberRange(0, math.inf)
"""Marks a text that is as long as the run; any other one is a token, a name or a sentence."""
MAX_TEXT_LENGTH = 2**16

_BY_NAME: Mapping[str, Ranges] = {
    # positions and counts
    **dict.fromkeys(
        ("tokens", "reused", "step", "sequence", "best", "required", "round", "length", "node", "parent", "depth",
         "progress", "accepted", "times", "silent", "asked", "order", "prompt_tokens", "new_tokens", "target_passes",
         "survivors", "count", "removed", "back", "size", "counts", "rows",
         "columns", "width", "height", "vocabulary", "layer"), COUNT),
    **dict.fromkeys(("rank", "raw_rank", "final_rank"), RANK),
    **dict.fromkeys(
        ("bytes", "peak", "layers", "predicted", "dynamic", "cache_bytes", "cache_peak_bytes", "peak_memory_bytes"),
        BYTES),
    **dict.fromkeys(("id", "ids", "extra_id", "seed"), INTEGER),
    "sequences": NumberRange(0, 1_000_000),
    "context": NumberRange(0, 10**31),  # transformers writes 10**30 for "no limit"
    "capacity": NumberRange(1, 2**24),
    "window": NumberRange(1, 2**53),
    "block": NumberRange(1, 2**31),
    **dict.fromkeys(("start", "lengths", "sinks"), NumberRange(0, 2**24)),  # a text of 16 million tokens
    "bits": NumberRange(0, 64),
    "group": NumberRange(0, 100_000),
    "drafter": NumberRange(0, 1000),
    "proposers": NumberRange(0, 1000),
    "first": NumberRange(-1, 2**31),
    "last": NumberRange(-1, 2**31),
    # shares and logarithms
    **dict.fromkeys(
        ("raw_probability", "probability", "mass", "raw_mass", "draft_probability", "target_probability",
         "acceptance_rate"), SHARE),
    **dict.fromkeys(
        ("raw_log_probability", "log_probability", "score", "scores", "normalized", "value", "divergence", "error",
         "degeneration_penalty", "worths", "ratio", "die", "chance", "threshold", "deviation", "floor", "lowest",
         "target", "limit", "surprise", "temperature", "low", "high", "share", "weighted", "expected", "penalty"),
        REAL),
    **dict.fromkeys(("entropy", "varentropy"), ENTROPY),
    **dict.fromkeys(("length_penalty", "diversity_penalty"), EXPONENT),
    # times
    **dict.fromkeys(
        ("seconds", "heard", "draft_seconds", "verify_seconds", "overhead_seconds", "time_to_first_token"), SECONDS),
    **dict.fromkeys(
        ("prefill_tokens_per_second", "decode_tokens_per_second", "tokens_per_target_pass", "predicted_speedup"), RATE),
    # tuples
    "forbidden": (COUNT, SHARE),
    "curve": (COUNT, RATE),
    "parts": (None, None, BYTES),
    "held": (COUNT, COUNT),
    "top": (INTEGER, SHARE),
    "divergences": (COUNT, REAL),
}  # fmt: skip
_BY_FIELD: Mapping[tuple[str, str], Ranges] = {
    ("ScoreSpread", "best"): REAL,
    ("Figure", "value"): INTEGER,
    ("Finished", "sequences"): INTEGER,
    ("Finished", "texts"): ANY_LENGTH,
    ("Hypothesis", "text"): ANY_LENGTH,
}


@cache
def range_of(record: str, field: str) -> Ranges | None:
    """The range of a field; None for one that holds neither numbers nor a text of any length."""
    special = _BY_FIELD.get((record, field))
    if special is not None:
        return special
    kind = next(item.kind for item in record_schemas()[record].fields if item.name == field)
    return _BY_NAME[field] if holds_numbers(kind) else None


def holds_numbers(kind: TypeSpec) -> bool:
    """Whether values of that kind hold numbers that are not fields of a record of their own."""
    if isinstance(kind, str):
        return kind in ("int", "float")
    return kind[0] in ("optional", "many", "tuple") and any(map(holds_numbers, kind[1:]))


def check_value(value: object, allowed: Ranges) -> None:
    """Check one value of a field, however many numbers it holds. Raises ValueError."""
    if value is None or allowed is ANY_LENGTH:
        return
    if isinstance(allowed, NumberRange):
        if isinstance(value, tuple):
            for item in value:
                check_value(item, allowed)
        else:
            allowed.check([value])
        return
    assert isinstance(value, tuple)
    for item in value:
        for part, its_range in zip(item, allowed, strict=True):
            if its_range is not None:
                check_value(part, its_range)


def _short_number(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) or abs(value) < 10**15 else f"{'-' if value < 0 else ''}10^15…"
