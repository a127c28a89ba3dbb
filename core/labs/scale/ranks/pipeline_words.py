"""What came of a pipeline that was run, in words of three depths."""

from __future__ import annotations

from core.explain.sentence import Figure, Saying, Sentence, together
from core.labs.scale.ranks.result import Measured
from core.labs.scale.timetable import Box, idle_share
from core.labs.scale.words import decimal, duration, percent
from resources.language import mark

CLOSE = 1e-5
"""Gradients that differ by no more than this share of the greatest are the same."""
_SENT = Saying(
    mark("To hand the work along, the busiest sent {sent} in one step."),
    mark("The busiest sent {sent} a step; {predicted} were predicted."),
    mark(
        "Traffic of the busiest rank and step, activations on, gradients back: {exactly} bytes; predicted {reckoned}."
    ),
)
_SAME = Saying(
    mark("Their corrections are those of one process alone."),
    mark("The gradients are those of one process, to {difference} of the greatest."),
    mark("max|g − g₁| ÷ max|g₁| = {difference} in the first step, g₁ of one process."),
)
_OTHER = Saying(
    mark("Their corrections are not quite those of one process alone."),
    mark("The gradients are not those of one process: they differ by {difference} of the greatest."),
    mark("max|g − g₁| ÷ max|g₁| = {difference} in the first step: no rounding."),
)
_TIME = Saying(
    mark("The last step took {seconds}; with a free processor for each it would be about {reckoned}."),
    mark("The last step took {seconds}, {idle} idle; the schedule says {reckoned} and {share}, a core for each."),
    mark("Step: {seconds}, idle {idle}. Schedule: {reckoned}, idle {share}, a stage taking 1/K of one process's time."),
)


def explain_pipeline(found: Measured) -> Sentence:
    """What was sent, whether the gradients are right, and how long it took."""
    return together(_sent(found), _gradients(found), _time(found))


def _sent(found: Measured) -> Sentence:
    sent = max(found.traffic)
    if not sent:
        return Sentence()
    return _SENT.say(
        sent=decimal(sent),
        predicted=decimal(found.predicted_traffic),
        exactly=Figure(f"{sent:,}"),
        reckoned=Figure(f"{found.predicted_traffic:,}"),
    )


def _gradients(found: Measured) -> Sentence:
    saying = _SAME if found.difference <= CLOSE else _OTHER
    return saying.say(difference=Figure(f"{found.difference:.1e}"))


def _time(found: Measured) -> Sentence:
    return _TIME.say(
        seconds=_lasts(found.boxes),
        reckoned=_lasts(found.expected_boxes),
        idle=percent(idle_share(found.boxes)),
        share=percent(idle_share(found.expected_boxes)),
    )


def _lasts(boxes: tuple[Box, ...]) -> Figure:
    """Until the last box ends."""
    return duration(max(box.stop for box in boxes) / 1000)
