"""Curves over the timeline, from stages that tell more of each step: mirostat's aim, a temperature that moves."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from app.widgets.sparkline import SparklineCurve, height_fraction
from core import explain_watermark, watermark_found, words
from resources.language import tr

if TYPE_CHECKING:
    from core.events import StageDetail, TokenChosen, WatermarkSign

WATERMARK_THRESHOLD, _MAX_Z = 3.0, 9.0
"""Standard deviations from which on a text is said to carry a watermark, and those that fill the height."""


def _z_height(z: float) -> float:
    return max(z, 0.0) / _MAX_Z


class StageCurves:
    """What the steps told, token by token; asked for anew with every token, so it reads each once."""

    def __init__(self) -> None:
        self._details: list[tuple[StageDetail, ...]] = []
        self._signs: list[WatermarkSign] = []
        self._has_details = False

    def clear(self) -> None:
        """Begin another text."""
        self._details, self._signs, self._has_details = [], [], False

    def add(self, tokens: Iterable[TokenChosen]) -> None:
        """Read what was written next."""
        for token in tokens:
            details = token.details
            self._details.append(details)
            if details:
                self._has_details = True
                self._signs += [detail.sign for detail in details if detail.sign is not None][:1]

    def curves(self, count: int) -> list[SparklineCurve]:
        """Those of the first `count` tokens; none where no stage tells of one."""
        if not self._has_details:
            return []
        surprise, target, heat = [], [], []
        for details in self._details[:count]:
            aim = next((detail.aim for detail in details if detail.aim is not None), None)
            surprise.append(height_fraction(aim.surprise) if aim else None)
            target.append(height_fraction(aim.target) if aim else None)
            warm = next((detail.heat for detail in details if detail.heat is not None), None)
            heat.append(warm.temperature / warm.high if warm else None)
        watermark = watermark_found(self._signs[:count])
        curves = (
            SparklineCurve(tr("watermark"), "finished", tuple(_z_height(one.z) for one in watermark)),
            SparklineCurve(tr("threshold"), "muted", (_z_height(WATERMARK_THRESHOLD),) * len(watermark), dashed=True),
            SparklineCurve(tr("surprise"), "best", tuple(surprise)),
            SparklineCurve(tr("target"), "best", tuple(target), dashed=True),
            SparklineCurve(tr("temperature"), "refused", tuple(heat)),
        )
        return [curve for curve in curves if any(value is not None for value in curve.values)]

    def describe_token(self, index: int) -> list[str]:
        """What the curves have at one token, in words."""
        lines = []
        for detail in self._details[index] if index < len(self._details) else ():
            if detail.aim is not None:
                line = tr("mirostat: {surprise} bits, {target:g} asked for, up to {limit} let through")
                surprise, limit = words.decimal(detail.aim.surprise, 1), words.decimal(detail.aim.limit, 1)
                lines.append(line.format(surprise=surprise, target=detail.aim.target, limit=limit))
            if detail.heat is not None:
                lines.append(tr("temperature {heat}").format(heat=words.decimal(detail.heat.temperature)))
            if detail.sign is not None and index < len(self._signs):
                lines.append(explain_watermark(watermark_found(self._signs[: index + 1])[-1]))
        return lines
