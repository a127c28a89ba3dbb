"""Watermarks searched for in a text that is scored: which ones, by the settings that would have made them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from core.decoding.processor_pipeline import refusing
from core.events import Stage, StageDetail
from core.parameter import Settings, check
from core.processors.watermarks import marking, settings_of
from core.watermarks import WatermarkReader, WatermarkSigns

if TYPE_CHECKING:
    from core.models.loaded_model import LoadedModel
    from core.processors.base import Processor


class WatermarkSearch:
    """A text read for all watermarks whose settings are on."""

    def __init__(self, model: LoadedModel, options: Settings) -> None:
        """Raises ParameterError for settings that no watermark can have."""
        self._kinds: list[tuple[Stage, WatermarkReader]] = []
        for processor in marking():
            _check(processor, options)
            value = options.get(processor.name)
            if value and processor.signs is not None:
                with refusing(processor.name):
                    signs = processor.signs(value, options, model)
                self._add(processor, float(value), signs)

    def _add(self, processor: Processor, value: float, signs: WatermarkSigns) -> None:
        label, phrase = (words.format(v=f"{value:g}") for words in (processor.label, processor.phrase))
        stage = Stage(processor.name, label, 0, 1.0, 1.0, value=value, kind=processor.kind, phrase=phrase)
        self._kinds.append((stage, WatermarkReader(signs)))

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


def _check(processor: Processor, options: Settings) -> None:
    """Raises ParameterError naming the setting."""
    for parameter in settings_of(processor):
        if options.get(parameter.name) is not None:
            check(parameter, options[parameter.name])
