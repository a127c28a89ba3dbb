"""What came of ZeRO-R, in words of three depths."""

from __future__ import annotations

from core.explain.sentence import Saying, Sentence, SentenceNumber, together
from core.labs.arguments import check_lab_object
from core.labs.figures import decimal
from core.labs.scale.ranks.residual_memory import Residual
from resources.language import mark

_CHECKPOINTS = Saying(
    mark("For the way back each process keeps {kept} instead of {whole}."),
    mark("Each of {count} processes keeps {kept} of checkpoints instead of {whole}, and sends {sent} for them."),
    mark("P_a: checkpoints {kept_exactly} bytes (reckoned {reckoned}) of {whole_exactly}, 1/N, N = {count}; +{sent}."),
)
_BUFFER = Saying(
    mark("All corrections go through a store of {kept} instead of {whole}."),
    mark("The buffer that all gradients are copied into is {kept}, however large the model; it would be {whole}."),
    mark("C_b: a fused buffer of {kept}, constant, instead of {whole} = 4 bytes a gradient."),
)
_GAPS = Saying(
    mark("Kept apart, what stays long leaves smaller holes: {kept} instead of {whole}."),
    mark(
        "With what stays long kept apart, gaps are {kept} at most instead of {whole}, memory {top} instead of {high}."
    ),
    mark("M_D: gaps {kept} instead of {whole}, highest byte {top} instead of {high}; first fit, in recorded order."),
)
_NO_GAPS = Saying(
    mark("Kept apart, what stays long leaves holes of {kept}; otherwise they are {whole}."),
    mark("In a step this small order wins nothing: gaps are {kept} at most, {whole} without; memory {top} and {high}."),
    mark("M_D: gaps {kept}, without {whole}; highest byte {top}, without {high}; first fit, in recorded order."),
)
_IDENTICAL_GRADIENTS = Saying(
    mark("The corrections are exactly the same."),
    mark("The gradients are the same, bit by bit."),
    mark("g = g₀, bit by bit."),
)
_SAME_GRADIENTS = Saying(
    mark("The corrections are the same."),
    mark("The gradients are the same, to {difference} of the greatest."),
    mark("max|g − g₀| ÷ max|g₀| = {difference}."),
)


def explain_residual(found: Residual) -> Sentence:
    """Checkpoints, the buffer, gaps, and that the result is the same. Raises ParameterError."""
    check_lab_object("found", found, Residual)
    without, kept = found.without[0], found.kept[0]
    return together(
        _CHECKPOINTS.say(
            kept=decimal(kept.checkpoints),
            whole=decimal(without.checkpoints),
            count=str(len(found.kept)),
            sent=decimal(found.sent),
            kept_exactly=SentenceNumber(f"{kept.checkpoints:,}"),
            whole_exactly=SentenceNumber(f"{without.checkpoints:,}"),
            reckoned=SentenceNumber(f"{found.expected.checkpoints:,}"),
        ),
        _BUFFER.say(kept=decimal(kept.buffer), whole=decimal(without.buffer)),
        _gaps(found),
        (_SAME_GRADIENTS if found.difference else _IDENTICAL_GRADIENTS).say(
            difference=SentenceNumber(f"{found.difference:.1e}")
        ),
    )


def _gaps(residual: Residual) -> Sentence:
    before, after = residual.arenas
    return (_GAPS if after.gaps < before.gaps else _NO_GAPS).say(
        kept=decimal(after.gaps), whole=decimal(before.gaps), top=decimal(after.top), high=decimal(before.top)
    )
