"""What a stage of the funnel is called in the language of now: its event carries English, its name and its value."""

from __future__ import annotations

from typing import TYPE_CHECKING

from core import processors
from resources.language import ENGLISH, current_language, tr

if TYPE_CHECKING:
    from core.events import Stage


def stage_label(stage: Stage) -> str:
    """Short, with its value: `T 0.8`, `top-p 0.92`; `model` for the model's own distribution."""
    if stage.name == "raw":
        return tr("model")
    known = processors.registry.get(stage.name)  # a recorded run may have one that is not here
    return _fill_template(known.label if known is not None else "", stage.value) or stage.label


def stage_phrase(stage: Stage) -> str:
    """What a sentence calls it: `the model`, `top-p 0.92`, `the repetition penalty of 1.3`."""
    if stage.name == "raw":
        return tr("the model")
    known = processors.registry.get(stage.name)
    return _fill_template(known.phrase or known.label if known is not None else "", stage.value) or stage.phrase


def _fill_template(template: str, value: float | None) -> str:
    """Empty where the event's own words serve: in English, or without the value that the template wants."""
    if current_language() == ENGLISH or not template or ("{v}" in template and value is None):
        return ""
    return tr(template).format(v="" if value is None else f"{value:g}")
