"""What came of a measurement, in words of three depths."""

from __future__ import annotations

from core.arguments import LARGEST, check_one_of, check_whole
from core.explain.sentence import Saying, Sentence, SentenceNumber, together
from core.labs.arguments import check_made
from core.labs.figures import decimal
from core.labs.scale.ranks.pipeline_words import explain_pipeline
from core.labs.scale.ranks.rank_watcher import Progress
from core.labs.scale.ranks.scale_measurement import Measured
from core.labs.scale.ranks.tensor_words import explain_tensor
from resources.language import mark, tr

_EQUAL = Saying(
    mark("Each process kept exactly what was reckoned beforehand, {bytes} at most."),
    mark("Every process held the predicted bytes exactly: {bytes} on the fullest."),
    mark(
        "Measured = predicted to the byte on all {count} ranks; the fullest: {parameters} + {gradients} + {optimizer} "
        "+ {buffers} = {whole} bytes."
    ),
)
_EQUAL_ACTIVE = Saying(
    *_EQUAL[:2],
    mark(
        "Measured = predicted to the byte on all {count} ranks; the fullest: {parameters} + {gradients} + {optimizer} "
        "+ {activations} (kept for the way back) = {whole} bytes."
    ),
)
_EQUAL_VERSIONS = Saying(
    *_EQUAL[:2],
    mark(
        "Measured = predicted to the byte on all {count} ranks; the fullest: {parameters} + {gradients} + "
        "{activations} (kept for the way back) + {buffers} (older versions) = {whole} bytes."
    ),
)
_DIFFERENT = Saying(
    mark("The fullest process kept {bytes}; {predicted} were reckoned."),
    mark("The fullest process held {bytes}; {predicted} were predicted."),
    mark("Measured ÷ predicted on the fullest of {count} ranks: {whole} ÷ {reckoned} bytes."),
)
_SENT = Saying(
    mark("To stay alike, each sent {sent} in one step."),
    mark("Each sent {sent} a step; {predicted} were predicted."),
    mark("Traffic a rank and step, all-reduce counted as 2·Φ: {exactly} bytes; predicted {reckoned}."),
)
_MORE = Saying(
    mark("That is more than it need be: every process gets all corrections, and the new values once more."),
    mark("ZeRO's paper needs {paper}: torch reduces all gradients everywhere, then hands out the new parameters."),
    mark("Paper: 2·Φ = {paper}. ZeroRedundancyOptimizer: an all-reduce (2·Φ), then a broadcast of parameters (Φ)."),
)
_SHARE = Saying(
    mark("The buffers are each process's own share of the model, kept beside the whole."),
    mark("The buffers are each rank's own share of the parameters, which FSDP keeps beside the gathered whole."),
    mark("Buffers: the sharded parameters, 4·Φ/N bytes, which FSDP2 updates while the gathered ones stay."),
)
_SAME = Saying(
    mark("They learned the same as one process alone that reads all texts."),
    mark("Loss {loss} after {steps} steps; one process alone comes to {alone}."),
    mark("Loss after {steps} steps: {loss}; of one process with the whole batch: {alone} (difference {difference})."),
)
_OTHER = Saying(
    mark("They did not learn quite the same as one process alone that reads all texts."),
    mark("Loss {loss} after {steps} steps; one process alone comes to another: {alone}."),
    mark("Loss after {steps} steps: {loss}; of one process: {alone}. The difference, {difference}, is no rounding."),
)
ROUNDING = 1e-4
"""Losses that differ by no more than this share are the same: sums are taken in another order."""


def explain_measured(found: Measured) -> Sentence:
    """Bytes, traffic and loss, each beside what it is held against. Raises ParameterError."""
    check_made("found", found, Measured)
    if found.boxes:
        return together(_bytes(found), explain_pipeline(found), _loss(found))
    if found.written is not None:
        return together(_bytes(found), explain_tensor(found), _loss(found))
    return together(_bytes(found), _SHARE.say() if found.scheme == "zero2" else "", _traffic(found), _loss(found))


def _bytes(found: Measured) -> Sentence:
    number = max(range(len(found.ranks)), key=lambda rank: found.ranks[rank].total)
    fullest, reckoned = found.ranks[number], found.predicted[number]
    equal = _EQUAL_VERSIONS if found.weights else _EQUAL_ACTIVE if fullest.activations else _EQUAL
    return (equal if found.ranks == found.predicted else _DIFFERENT).say(
        bytes=decimal(fullest.total),
        predicted=decimal(reckoned.total),
        count=str(len(found.ranks)),
        whole=SentenceNumber(f"{fullest.total:,}"),
        reckoned=SentenceNumber(f"{reckoned.total:,}"),
        **{name: f"{count:,}" for name, count in fullest.items()},
    )


def _traffic(found: Measured) -> Sentence:
    sent = max(found.traffic)
    if not sent:
        return Sentence()
    told = _SENT.say(
        sent=decimal(sent),
        predicted=decimal(found.predicted_traffic),
        exactly=SentenceNumber(f"{sent:,}"),
        reckoned=SentenceNumber(f"{found.predicted_traffic:,}"),
    )
    more = _MORE.say(paper=decimal(found.paper_traffic)) if found.predicted_traffic > found.paper_traffic else ""
    return together(told, more)


def _loss(found: Measured) -> Sentence:
    alone = found.alone[-1]
    is_same = abs(found.loss - alone) <= ROUNDING * abs(alone)
    return (_SAME if is_same else _OTHER).say(
        loss=SentenceNumber(f"{found.loss:.6f}"),
        alone=SentenceNumber(f"{alone:.6f}"),
        steps=str(len(found.losses)),
        difference=SentenceNumber(f"{abs(found.loss - alone):.1e}"),
    )


_STAGES = {
    "starts": mark("Process {rank} starts ({process})."),
    "alone": mark("Process {rank} trains alone first, for comparison."),
    "joins": mark("Process {rank} waits for the others."),
    "step": mark("Process {rank} trains: step {step} of {steps}."),
}


def explain_progress(progress: Progress) -> str:
    """How far a process has come; counted from 1. Raises ParameterError."""
    check_made("progress", progress, Progress)
    check_one_of("stage", progress.stage, _STAGES)
    for name in ("rank", "process", "step", "steps"):
        check_whole(name, vars(progress)[name], 0, LARGEST)
    return tr(_STAGES[progress.stage]).format(
        rank=progress.rank + 1, process=progress.process, step=progress.step, steps=progress.steps
    )
