"""The settings whose values can all be followed at once, with their ranges. Imports no torch."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

from decodescope.core import processors
from decodescope.core.checks.arguments import argument_error, check_number
from decodescope.core.common.setting_values import to_plain_value
from decodescope.core.errors import ParameterError
from decodescope.core.parameter import short_repr
from decodescope.core.processors.base import Processor, ScoreRule
from decodescope.core.request import Request
from decodescope.resources.language import join_names, mark, tr

BIAS = "bias"
"""Name of the setting that raises one word's score; the word is given with it."""
_TITLE_OF_BIAS = mark("Bias of a word")
PROBES: Mapping[ScoreRule, float] = {
    "division": 0.5, "count": 1, "mass": 0.5, "ratio": 0.5, "probability": 1e-3, "entropy": 1e-3, "typical": 0.5,
    "deviation": 1.0,
}  # fmt: skip
"""A value of the varied setting that turns its stage on."""
_BIAS_RANGE, _MAX_NUMBER = 10.0, 1e6


class VariedSetting(NamedTuple):
    """A setting that `map_setting` and `map_flips` can follow over all its values."""

    name: str
    title: str
    """Its title in English, marked for translation."""
    low: float
    """Lower end of the usual range, not included."""
    high: float
    minimum: float
    maximum: float
    is_whole: bool
    """Whether only whole numbers count."""
    has_word: bool
    """Whether it is about one word, which is given with it."""


def varied_settings(vocabulary: int = 0) -> list[VariedSetting]:
    """Return all settings that can be followed, temperature first; `vocabulary` is the number of the model's tokens, 0
    if it is unknown.
    """
    names = [name for name, one in processors.registry.items() if one.score_rule in PROBES or one.reads]
    names.sort(key=lambda name: processors.registry[name].score_rule != "division")
    return [_describe(name, vocabulary) for name in (*names, BIAS)]


def _describe(name: str, vocabulary: int) -> VariedSetting:
    one = varied_processor(name)
    assert one.parameter is not None
    least, most, low, high = _range(one, name, vocabulary or round(_MAX_NUMBER))
    title = _TITLE_OF_BIAS if name == BIAS else one.parameter.title
    return VariedSetting(
        name, title, low, high, max(least, -_MAX_NUMBER), min(most, _MAX_NUMBER), one.score_rule == "count",
        name == BIAS,
    )  # fmt: skip


def bias_processor() -> Processor:
    """Return the processor that adds to the scores of words."""
    return next(
        one for one in processors.registry.values() if one.parameter is not None and one.parameter.form == "biases"
    )


def varied_processor(setting: object) -> Processor:
    """Return the processor of the varied setting. Raises ParameterError."""
    known = {name: one for name, one in processors.registry.items() if one.score_rule in PROBES or one.reads}
    if setting == BIAS:
        return bias_processor()
    if not isinstance(setting, str) or setting not in known:
        raise ParameterError(
            tr("{value} cannot be followed over all its values.").format(value=short_repr(setting)),
            tr("Choose one of: {names}.").format(names=join_names([*known, BIAS])),
            "setting",
        )
    return known[setting]


def _range(varied: Processor, setting: str, vocabulary: int) -> tuple[float, float, float, float]:
    """Return the minimum, the maximum, and the usual range."""
    parameter = varied.parameter
    assert parameter is not None
    if setting == BIAS:
        return -math.inf, math.inf, -_BIAS_RANGE, _BIAS_RANGE
    if varied.score_rule == "count":
        return 0.0, float(vocabulary), 0.0, float(vocabulary)
    least, most = float(parameter.minimum or 0), float(parameter.maximum or 1)
    return least, most, least, float(parameter.soft_maximum or most)


def checked_limits(
    varied: Processor, setting: str, limits: tuple[float | None, float | None], vocabulary: int
) -> tuple[float, float]:
    """Return the interval, with the usual ends in the place of None. Raises ParameterError."""
    low, high = (to_plain_value(value) for value in limits)
    least, most, *usual = _range(varied, setting, vocabulary)
    found = (usual[0] if low is None else low, usual[1] if high is None else high)
    for name, value in zip(("low", "high"), found, strict=True):
        check_number(name, value, max(least, -_MAX_NUMBER), min(most, _MAX_NUMBER))
        if varied.score_rule == "count" and value != int(value):
            raise argument_error(name, value, tr("Pass a whole number."))
    if not found[0] < found[1]:
        raise argument_error("high", found[1], tr("It must be above low, {low:g}.").format(low=found[0]))
    return float(found[0]), float(found[1])


def with_value(request: Request, setting: str, word: tuple[int, ...], value: float) -> Request:
    """Return the request with a value of the varied setting; `word` are the tokens of the word for `bias`."""
    if setting != BIAS:
        whole = processors.registry[setting].score_rule == "count"
        return request.with_settings({setting: int(value) if whole else float(value)})
    name = bias_processor().name
    known = to_plain_value(request.settings.get(name)) or []
    pairs = known.items() if isinstance(known, Mapping) else known
    others = [[list(ids), amount] for ids, amount in pairs if tuple(ids) != word]
    return request.with_settings({name: [*others, [list(word), float(value)]]})
