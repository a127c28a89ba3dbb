"""What came of a pipeline that was run, in words of three depths."""

from __future__ import annotations

from core.explain.sentence import Saying, Sentence, SentenceNumber, together
from core.labs.figures import decimal, duration, percent
from core.labs.scale.pipeline_schedule import Box, idle_share
from core.labs.scale.ranks.scale_measurement import Measured
from resources.language import mark

GRADIENT_TOLERANCE = 1e-5
"""Gradients that differ by no more than this share of the greatest are the same."""
_PIPELINE_TRAFFIC = Saying(
    mark("To hand the work along, the busiest sent {sent} in one step."),
    mark("The busiest sent {sent} a step; {predicted} were predicted."),
    mark(
        "Traffic of the busiest rank and step, activations on, gradients back: {exactly} bytes; predicted {reckoned}."
    ),
)
_SAME_GRADIENTS = Saying(
    mark("Their corrections are those of one process alone."),
    mark("The gradients are those of one process, to {difference} of the greatest."),
    mark("max|g − g₁| ÷ max|g₁| = {difference} in the first step, g₁ of one process."),
)
DIFFERENT_GRADIENTS = Saying(
    mark("Their corrections are not quite those of one process alone."),
    mark("The gradients are not those of one process: they differ by {difference} of the greatest."),
    mark("max|g − g₁| ÷ max|g₁| = {difference} in the first step: no rounding."),
)
_DEFINED_GRADIENTS = Saying(
    mark("Their corrections are those that PipeDream is defined by, each of them."),
    mark("After each update the gradients are PipeDream's by definition, to {difference} of the greatest."),
    mark(
        "max|g − g₁| ÷ max|g₁| = {difference} over all updates of the first batch, g₁ of one process by "
        "w⁽ᵗ⁺¹⁾ = w⁽ᵗ⁾ − ν ∇f, the same versions."
    ),
)
_WEIGHT_POLICY = {
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
_UNTIED = Saying(
    mark("The first and the last learn their tables of words apart."),
    mark("The table of tokens and the words' matrix part ways: without a flush nothing can add up their gradients."),
    mark("Tied tables are untied: no moment at which both gradients belong to one version."),
)
_STEP_TIME = Saying(
    mark("The last step took {seconds}; with a free processor for each it would be about {reckoned}."),
    mark("The last step took {seconds}, {idle} idle; the schedule says {reckoned} and {share}, a core for each."),
    mark("Step: {seconds}, idle {idle}. Schedule: {reckoned}, idle {share}, a stage taking 1/K of one process's time."),
)


def explain_pipeline(measured: Measured) -> Sentence:
    """What was sent, whether the gradients are right, and how long it took."""
    return together(
        _explain_pipeline_traffic(measured), _explain_pipeline_gradients(measured), _explain_step_time(measured)
    )


def _explain_pipeline_traffic(measured: Measured) -> Sentence:
    sent = max(measured.traffic)
    if not sent:
        return Sentence()
    return _PIPELINE_TRAFFIC.say(
        sent=decimal(sent),
        predicted=decimal(measured.predicted_traffic),
        exactly=SentenceNumber(f"{sent:,}"),
        reckoned=SentenceNumber(f"{measured.predicted_traffic:,}"),
    )


def _explain_pipeline_gradients(measured: Measured) -> Sentence:
    right = _DEFINED_GRADIENTS if measured.weights else _SAME_GRADIENTS
    saying = right if measured.difference <= GRADIENT_TOLERANCE else DIFFERENT_GRADIENTS
    told = saying.say(difference=SentenceNumber(f"{measured.difference:.1e}"))
    if not measured.weights or len(measured.ranks) == 1:
        return told
    return together(
        told,
        _WEIGHT_POLICY[measured.weights].say(stray=percent(measured.stray)),
        _UNTIED.say() if measured.parted else "",
    )


def _explain_step_time(measured: Measured) -> Sentence:
    return _STEP_TIME.say(
        seconds=_duration_of(measured.boxes),
        reckoned=_duration_of(measured.expected_boxes),
        idle=percent(idle_share(measured.boxes)),
        share=percent(idle_share(measured.expected_boxes)),
    )


def _duration_of(boxes: tuple[Box, ...]) -> SentenceNumber:
    """Until the last box ends."""
    return duration(max(box.stop for box in boxes) / 1000)
