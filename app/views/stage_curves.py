"""Curves over the timeline, from stages that tell more of each step: mirostat's aim, a temperature that moves."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from app.widgets.sparkline import Curve, height_of
from core import explain_watermark, watermark_found, words
from resources.language import tr

if TYPE_CHECKING:
    from core.events import StageDetail, TokenChosen, WatermarkSign

THRESHOLD, _HIGHEST_Z = 3.0, 9.0
"""Standard deviations from which on a text is said to carry a watermark, and those that fill the height."""


def _height_of_z(z: float) -> float:
    return max(z, 0.0) / _HIGHEST_Z


class StageCurves:
    """What the steps told, token by token; asked for anew with every token, so it reads each once."""

    def __init__(self) -> None:
        self._details: list[tuple[StageDetail, ...]] = []
        self._signs: list[WatermarkSign] = []
        self._any = False

    def clear(self) -> None:
        """Begin another text."""
        self._details, self._signs, self._any = [], [], False

    def add(self, tokens: Iterable[TokenChosen]) -> None:
        """Read what was written next."""
        for token in tokens:
            found = token.details
            self._details.append(found)
            if found:
                self._any = True
                self._signs += [detail.sign for detail in found if detail.sign is not None][:1]

    def curves(self, count: int) -> list[Curve]:
        """Those of the first `count` tokens; none where no stage tells of one."""
        if not self._any:
            return []
        surprise, target, heat = [], [], []
        for details in self._details[:count]:
            aim = next((detail.aim for detail in details if detail.aim is not None), None)
            surprise.append(height_of(aim.surprise) if aim else None)
            target.append(height_of(aim.target) if aim else None)
            warm = next((detail.heat for detail in details if detail.heat is not None), None)
            heat.append(warm.temperature / warm.high if warm else None)
        found = watermark_found(self._signs[:count])
        made = (
            Curve(tr("watermark"), "finished", tuple(_height_of_z(one.z) for one in found)),
            Curve(tr("threshold"), "muted", (_height_of_z(THRESHOLD),) * len(found), dashed=True),
            Curve(tr("surprise"), "best", tuple(surprise)),
            Curve(tr("target"), "best", tuple(target), dashed=True),
            Curve(tr("temperature"), "refused", tuple(heat)),
        )
        return [curve for curve in made if any(value is not None for value in curve.values)]

    def told(self, index: int) -> list[str]:
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
