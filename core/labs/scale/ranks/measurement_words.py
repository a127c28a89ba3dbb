"""Explain a measurement at three levels of detail."""

from __future__ import annotations

from core.checks.arguments import MAX_FLOAT, check_integer, check_one_of
from core.explain.sentence import Saying, Sentence, SentenceNumber, together
from core.labs.arguments import check_lab_object
from core.labs.formatting import decimal, duration, percent
from core.labs.scale.pipeline_schedule import Box, idle_share
from core.labs.scale.ranks.run_measurement import Measured, Progress
from resources.language import mark, tr

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


_TENSOR_TRAFFIC = Saying(
    mark("In one step of learning each sent {sent}, while they wrote {written}."),
    mark("Each sent {sent} a step ({predicted} predicted), and {written} while {tokens} tokens were written."),
    mark("Traffic a rank: {exactly} bytes a step (predicted {reckoned}), {wrote} for {tokens} tokens ({expected})."),
)
_MEGATRON_TRAFFIC = Saying(
    mark("A cleverer program would send less: corrections are added up for each part alone."),
    mark(
        "Megatron's paper needs {paper} for the layers: two sums forward and two back; transformers makes two and "
        "five, one for each matrix that is cut by its outputs."
    ),
    mark("Megatron-LM: 4·L all-reduces of B·T·D = {paper}. transformers: 7·L, and those of tokens and logits."),
)
_SAME_TEXT = Saying(
    mark("Together they write what one process writes: “{text}”"),
    mark("The {tokens} tokens they write are those of one process: “{text}”"),
    mark("Greedy continuation of {tokens} tokens: equal to one process's, id by id. “{text}”"),
)
_DIFFERENT_TEXT = Saying(
    mark("Together they do not write what one process writes: “{text}”"),
    mark("The {tokens} tokens they write are not those of one process: “{text}”"),
    mark("Greedy continuation of {tokens} tokens: differs from one process's. “{text}”"),
)
_SAME_GATHERED_GRADIENTS = Saying(
    mark("Their corrections are those of one process alone."),
    mark("The gradients, put together, are those of one process, to {difference} of the greatest."),
    mark("max|g − g₁| ÷ max|g₁| = {difference} in the first step, shards gathered, g₁ of one process."),
)


def explain_tensor(measured: Measured) -> Sentence:
    """What was sent, whether the text is the same, and the gradients."""
    return together(_explain_tensor_traffic(measured), _explain_text(measured), _explain_tensor_gradients(measured))


def _explain_tensor_traffic(measured: Measured) -> Sentence:
    assert measured.written is not None
    sent, written = max(measured.traffic), measured.written
    if not sent:
        return Sentence()
    told = _TENSOR_TRAFFIC.say(
        sent=decimal(sent),
        predicted=decimal(measured.predicted_traffic),
        written=decimal(written.sent),
        tokens=str(len(written.ids)),
        exactly=SentenceNumber(f"{sent:,}"),
        reckoned=SentenceNumber(f"{measured.predicted_traffic:,}"),
        wrote=SentenceNumber(f"{written.sent:,}"),
        expected=SentenceNumber(f"{measured.expected_written:,}"),
    )
    return together(told, _MEGATRON_TRAFFIC.say(paper=decimal(measured.paper_traffic)))


def _explain_text(measured: Measured) -> Sentence:
    assert measured.written is not None
    written = measured.written
    saying = _SAME_TEXT if written.ids == written.alone else _DIFFERENT_TEXT
    return saying.say(tokens=str(len(written.ids)), text=SentenceNumber(written.text))


def _explain_tensor_gradients(measured: Measured) -> Sentence:
    saying = _SAME_GATHERED_GRADIENTS if measured.difference <= GRADIENT_TOLERANCE else DIFFERENT_GRADIENTS
    return saying.say(difference=SentenceNumber(f"{measured.difference:.1e}"))


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
