"""Watermarks searched for in a text that is scored: which ones, by the settings that would have made them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from core.decoding.funnel import refusing
from core.events import Stage, StageDetail
from core.parameter import Settings, check
from core.processors import synthid_length, watermark_bias
from core.watermarks import Reading, Signs

if TYPE_CHECKING:
    from core.models.model import LoadedModel
    from core.processors.base import Processor


class Search:
    """A text read for all watermarks whose settings are on."""

    def __init__(self, model: LoadedModel, options: Settings) -> None:
        """Raises ParameterError for settings that no watermark can have."""
        _check(options)
        self._kinds: list[tuple[Stage, Reading]] = []
        if bias := options.get(watermark_bias.PROCESSOR.name):
            found = watermark_bias.signs(options, model.vocabulary, model.device)
            self._add(watermark_bias.PROCESSOR, float(bias), found)
        if length := options.get(synthid_length.PROCESSOR.name):
            with refusing(synthid_length.PROCESSOR.name):
                signs = synthid_length.signs(int(length), options, model.device)
            self._add(synthid_length.PROCESSOR, int(length), signs)

    def _add(self, processor: Processor, value: float, signs: Signs) -> None:
        label, phrase = (words.format(v=f"{value:g}") for words in (processor.label, processor.phrase))
        stage = Stage(processor.name, label, 0, 1.0, 1.0, value=value, kind=processor.kind, phrase=phrase)
        self._kinds.append((stage, Reading(signs)))

    @property
    def looks(self) -> bool:
        """Whether any is."""
        return bool(self._kinds)

    def behind(self, funnel: Sequence[Stage], token: int) -> tuple[Stage, ...]:
        """The stages of a scored token, those that tell what it shows of each watermark behind them."""
        left = funnel[-1].survivors if funnel else 0
        told = (
            replace(stage, survivors=left, detail=StageDetail(sign=reading.next(token)))
            for stage, reading in self._kinds
        )
        return (*funnel, *told)


def _check(options: Settings) -> None:
    """Raises ParameterError naming the setting."""
    for processor in (watermark_bias.PROCESSOR, synthid_length.PROCESSOR):
        for parameter in (processor.parameter, *processor.beside):
            if parameter is not None and options.get(parameter.name) is not None:
                check(parameter, options[parameter.name])
