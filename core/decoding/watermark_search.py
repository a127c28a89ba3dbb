"""Watermarks searched for in a text that is scored: which ones, by the settings that would have made them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from core.decoding.processor_pipeline import errors_of_setting
from core.events import Stage, StageDetail
from core.parameter import Settings, check
from core.processors.watermarks import processor_settings, watermark_processors
from core.watermarks import WatermarkScorer, WatermarkTextScorer

if TYPE_CHECKING:
    from core.models.loaded_model import LoadedModel
    from core.processors.base import Processor


class WatermarkSearch:
    """A text read for all watermarks whose settings are on."""

    def __init__(self, model: LoadedModel, options: Settings) -> None:
        """Raises ParameterError for settings that no watermark can have."""
        self._readers: list[tuple[Stage, WatermarkTextScorer]] = []
        for processor in watermark_processors():
            _check(processor, options)
            value = options.get(processor.name)
            if value and processor.signs is not None:
                with errors_of_setting(processor.name):
                    signs = processor.signs(value, options, model)
                self._add(processor, float(value), signs)

    def _add(self, processor: Processor, value: float, signs: WatermarkScorer) -> None:
        label, phrase = (words.format(v=f"{value:g}") for words in (processor.label, processor.phrase))
        stage = Stage(processor.name, label, 0, 1.0, 1.0, value=value, kind=processor.kind, phrase=phrase)
        self._readers.append((stage, WatermarkTextScorer(signs)))

    @property
    def is_active(self) -> bool:
        """Whether any is."""
        return bool(self._readers)

    def append_stages(self, funnel: Sequence[Stage], token: int) -> tuple[Stage, ...]:
        """The stages of a scored token, those that tell what it shows of each watermark behind them."""
        left = funnel[-1].survivors if funnel else 0
        told = (
            replace(stage, survivors=left, detail=StageDetail(sign=reading.score_next(token)))
            for stage, reading in self._readers
        )
        return (*funnel, *told)


def _check(processor: Processor, options: Settings) -> None:
    """Raises ParameterError naming the setting."""
    for parameter in processor_settings(processor):
        if options.get(parameter.name) is not None:
            check(parameter, options[parameter.name])
