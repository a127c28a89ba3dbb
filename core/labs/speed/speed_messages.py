"""The measurement as lines of JSON, between the process that measures and the one that looks on."""

from __future__ import annotations

import msgspec

from core.labs.processes.json_lines import JsonLines
from core.labs.speed.events import EVENTS, Asked, Event


class SpeedJob(msgspec.Struct, frozen=True):
    """What the process is asked, and the language it gives reasons in."""

    settings: Asked
    language: str


class MeasurementFailed(msgspec.Struct, frozen=True):
    """It could not go on: a DecodescopeError's words."""

    cause: str
    remedy: str
    details: str


LINES = JsonLines[Event | MeasurementFailed](*EVENTS, MeasurementFailed)
