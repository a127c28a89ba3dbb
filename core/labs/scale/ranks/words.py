"""What came of a measurement, in words of three depths."""

from __future__ import annotations

from core.arguments import MAX_FLOAT, check_integer, check_one_of
from core.explain.sentence import Saying, Sentence, SentenceNumber, together
from core.labs.arguments import check_lab_object
from core.labs.figures import decimal
from core.labs.scale.ranks.pipeline_words import explain_pipeline
from core.labs.scale.ranks.rank_watcher import Progress
from core.labs.scale.ranks.scale_measurement import Measured
from core.labs.scale.ranks.tensor_words import explain_tensor
from resources.language import mark, tr

_BYTES_EQUAL = Saying(
    mark("Each process kept exactly what was reckoned beforehand, {bytes} at most."),
    mark("Every process held the predicted bytes exactly: {bytes} on the fullest."),
    mark(
        "Measured = predicted to the byte on all {count} ranks; the fullest: {parameters} + {gradients} + {optimizer} "
        "+ {buffers} = {whole} bytes."
    ),
)
_EQUAL_ACTIVE = Saying(
    *_BYTES_EQUAL[:2],
    mark(
        "Measured = predicted to the byte on all {count} ranks; the fullest: {parameters} + {gradients} + {optimizer} "
        "+ {activations} (kept for the way back) = {whole} bytes."
    ),
)
_EQUAL_VERSIONS = Saying(
    *_BYTES_EQUAL[:2],
    mark(
        "Measured = predicted to the byte on all {count} ranks; the fullest: {parameters} + {gradients} + "
        "{activations} (kept for the way back) + {buffers} (older versions) = {whole} bytes."
    ),
)
_BYTES_DIFFERENT = Saying(
    mark("The fullest process kept {bytes}; {predicted} were reckoned."),
    mark("The fullest process held {bytes}; {predicted} were predicted."),
    mark("Measured ÷ predicted on the fullest of {count} ranks: {whole} ÷ {reckoned} bytes."),
)
_COLLECTIVE_TRAFFIC = Saying(
    mark("To stay alike, each sent {sent} in one step."),
    mark("Each sent {sent} a step; {predicted} were predicted."),
    mark("Traffic a rank and step, all-reduce counted as 2·Φ: {exactly} bytes; predicted {reckoned}."),
)
_EXTRA_TRAFFIC = Saying(
    mark("That is more than it need be: every process gets all corrections, and the new values once more."),
    mark("ZeRO's paper needs {paper}: torch reduces all gradients everywhere, then hands out the new parameters."),
    mark("Paper: 2·Φ = {paper}. ZeroRedundancyOptimizer: an all-reduce (2·Φ), then a broadcast of parameters (Φ)."),
)
_FSDP_BUFFERS = Saying(
    mark("The buffers are each process's own share of the model, kept beside the whole."),
    mark("The buffers are each rank's own share of the parameters, which FSDP keeps beside the gathered whole."),
    mark("Buffers: the sharded parameters, 4·Φ/N bytes, which FSDP2 updates while the gathered ones stay."),
)
_SAME_LOSS = Saying(
    mark("They learned the same as one process alone that reads all texts."),
    mark("Loss {loss} after {steps} steps; one process alone comes to {alone}."),
    mark("Loss after {steps} steps: {loss}; of one process with the whole batch: {alone} (difference {difference})."),
)
_DIFFERENT_LOSS = Saying(
    mark("They did not learn quite the same as one process alone that reads all texts."),
    mark("Loss {loss} after {steps} steps; one process alone comes to another: {alone}."),
    mark("Loss after {steps} steps: {loss}; of one process: {alone}. The difference, {difference}, is no rounding."),
)
LOSS_TOLERANCE = 1e-4
"""Losses that differ by no more than this share are the same: sums are taken in another order."""


def explain_measured(found: Measured) -> Sentence:
    """Bytes, traffic and loss, each beside what it is held against. Raises ParameterError."""
    check_lab_object("found", found, Measured)
    if found.boxes:
        return together(_explain_bytes(found), explain_pipeline(found), _explain_loss(found))
    if found.written is not None:
        return together(_explain_bytes(found), explain_tensor(found), _explain_loss(found))
    return together(
        _explain_bytes(found),
        _FSDP_BUFFERS.say() if found.scheme == "zero2" else "",
        _explain_traffic(found),
        _explain_loss(found),
    )


def _explain_bytes(measured: Measured) -> Sentence:
    number = max(range(len(measured.ranks)), key=lambda rank: measured.ranks[rank].total)
    fullest, reckoned = measured.ranks[number], measured.predicted[number]
    equal = _EQUAL_VERSIONS if measured.weights else _EQUAL_ACTIVE if fullest.activations else _BYTES_EQUAL
    return (equal if measured.ranks == measured.predicted else _BYTES_DIFFERENT).say(
        bytes=decimal(fullest.total),
        predicted=decimal(reckoned.total),
        count=str(len(measured.ranks)),
        whole=SentenceNumber(f"{fullest.total:,}"),
        reckoned=SentenceNumber(f"{reckoned.total:,}"),
        **{name: f"{count:,}" for name, count in fullest.items()},
    )


def _explain_traffic(measured: Measured) -> Sentence:
    sent = max(measured.traffic)
    if not sent:
        return Sentence()
    told = _COLLECTIVE_TRAFFIC.say(
        sent=decimal(sent),
        predicted=decimal(measured.predicted_traffic),
        exactly=SentenceNumber(f"{sent:,}"),
        reckoned=SentenceNumber(f"{measured.predicted_traffic:,}"),
    )
    more = (
        _EXTRA_TRAFFIC.say(paper=decimal(measured.paper_traffic))
        if measured.predicted_traffic > measured.paper_traffic
        else ""
    )
    return together(told, more)


def _explain_loss(measured: Measured) -> Sentence:
    alone = measured.alone[-1]
    is_same = abs(measured.loss - alone) <= LOSS_TOLERANCE * abs(alone)
    return (_SAME_LOSS if is_same else _DIFFERENT_LOSS).say(
        loss=SentenceNumber(f"{measured.loss:.6f}"),
        alone=SentenceNumber(f"{alone:.6f}"),
        steps=str(len(measured.losses)),
        difference=SentenceNumber(f"{abs(measured.loss - alone):.1e}"),
    )


_PROGRESS = {
    "starts": mark("Process {rank} starts ({process})."),
    "alone": mark("Process {rank} trains alone first, for comparison."),
    "joins": mark("Process {rank} waits for the others."),
    "step": mark("Process {rank} trains: step {step} of {steps}."),
}


def explain_progress(progress: Progress) -> str:
    """How far a process has come; counted from 1. Raises ParameterError."""
    check_lab_object("progress", progress, Progress)
    check_one_of("stage", progress.stage, _PROGRESS)
    for name in ("rank", "process", "step", "steps"):
        check_integer(name, vars(progress)[name], 0, MAX_FLOAT)
    return tr(_PROGRESS[progress.stage]).format(
        rank=progress.rank + 1, process=progress.process, step=progress.step, steps=progress.steps
    )
