"""What came of a pipeline that was run, in words of three depths."""

from __future__ import annotations

from core.explain.sentence import Saying, Sentence, SentenceNumber, together
from core.labs.figures import decimal, duration, percent
from core.labs.scale.pipeline_schedule import Box, idle_share
from core.labs.scale.ranks.scale_measurement import Measured
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
OTHER = Saying(
    mark("Their corrections are not quite those of one process alone."),
    mark("The gradients are not those of one process: they differ by {difference} of the greatest."),
    mark("max|g − g₁| ÷ max|g₁| = {difference} in the first step: no rounding."),
)
_DEFINED = Saying(
    mark("Their corrections are those that PipeDream is defined by, each of them."),
    mark("After each update the gradients are PipeDream's by definition, to {difference} of the greatest."),
    mark(
        "max|g − g₁| ÷ max|g₁| = {difference} over all updates of the first batch, g₁ of one process by "
        "w⁽ᵗ⁺¹⁾ = w⁽ᵗ⁾ − ν ∇f, the same versions."
    ),
)
_KEPT = {
    "stashed": Saying(
        mark("Each text is corrected by the weights that read it, which are kept so long."),
        mark("Weights are stashed: each micro-batch goes back by the version that it went forward by, stage by stage."),
        mark("Stashing: ∇f(w₁⁽ᵗ⁻ⁿ⁺¹⁾, …, w_n⁽ᵗ⁾), up to K − stage versions held; the buffers are the older ones."),
    ),
    "synced": Saying(
        mark("Each text is read and corrected by weights of the same age everywhere."),
        mark("Vertical sync: every stage uses the version that the first one used, and holds as many of them."),
        mark("Vertical sync: ∇f(w₁⁽ᵗ⁻ⁿ⁺¹⁾, …, w_n⁽ᵗ⁻ⁿ⁺¹⁾), K versions held on every stage."),
    ),
    "latest": Saying(
        mark("Texts are corrected by other weights than those that read them: the corrections are off by {stray}."),
        mark(
            "Nothing is stashed: the gradients are off by {stray} of the greatest from those of the forward's weights."
        ),
        mark("Unstashed: max|g − ∇f(w of the forward)| ÷ max|∇f| = {stray}; one version held, no gradient of any f."),
    ),
}
_PARTED = Saying(
    mark("The first and the last learn their tables of words apart."),
    mark("The table of tokens and the words' matrix part ways: without a flush nothing can add up their gradients."),
    mark("Tied tables are untied: no moment at which both gradients belong to one version."),
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
        exactly=SentenceNumber(f"{sent:,}"),
        reckoned=SentenceNumber(f"{found.predicted_traffic:,}"),
    )


def _gradients(found: Measured) -> Sentence:
    right = _DEFINED if found.weights else _SAME
    saying = right if found.difference <= CLOSE else OTHER
    told = saying.say(difference=SentenceNumber(f"{found.difference:.1e}"))
    if not found.weights or len(found.ranks) == 1:
        return told
    return together(told, _KEPT[found.weights].say(stray=percent(found.stray)), _PARTED.say() if found.parted else "")


def _time(found: Measured) -> Sentence:
    return _TIME.say(
        seconds=_lasts(found.boxes),
        reckoned=_lasts(found.expected_boxes),
        idle=percent(idle_share(found.boxes)),
        share=percent(idle_share(found.expected_boxes)),
    )


def _lasts(boxes: tuple[Box, ...]) -> SentenceNumber:
    """Until the last box ends."""
    return duration(max(box.stop for box in boxes) / 1000)
