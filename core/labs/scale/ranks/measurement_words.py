"""Explain a measurement at three levels of detail."""

from __future__ import annotations

from decodescope.core.checks.arguments import MAX_FLOAT, check_integer, check_one_of
from decodescope.core.explain import words
from decodescope.core.explain.sentence import Sentence, SentenceNumber, SentenceTemplate, together
from decodescope.core.labs.arguments import check_lab_object
from decodescope.core.labs.formatting import decimal_bytes, duration, percent
from decodescope.core.labs.scale.pipeline_schedule import Box, idle_share
from decodescope.core.labs.scale.ranks.run_measurement import RankMeasurement, RankProgress
from decodescope.resources.language import mark, tr

GRADIENT_TOLERANCE = 1e-5
"""Gradients that differ by at most this fraction of the largest count as equal."""
_PIPELINE_TRAFFIC = SentenceTemplate(
    mark("To pass the work along, the busiest process sent {sent} in one step."),
    mark("The busiest process sent {sent} per step; {predicted} was predicted."),
    mark(
        "Traffic of the busiest rank per step, activations forward, gradients back: {exactly} bytes; "
        "predicted {predicted_bytes}."
    ),
)
_SAME_GRADIENTS = SentenceTemplate(
    mark("Their corrections are the same as those of a single process."),
    mark("The gradients match those of a single process, to within {difference} of the largest."),
    mark("max|g − g₁| ÷ max|g₁| = {difference} in the first step, with g₁ from a single process."),
)
DIFFERENT_GRADIENTS = SentenceTemplate(
    mark("Their corrections differ slightly from those of a single process."),
    mark("The gradients differ from those of a single process by {difference} of the largest."),
    mark("max|g − g₁| ÷ max|g₁| = {difference} in the first step, more than rounding."),
)
_DEFINED_GRADIENTS = SentenceTemplate(
    mark("Each correction matches PipeDream's definition."),
    mark("After each update the gradients match PipeDream's definition, to within {difference} of the largest."),
    mark(
        "max|g − g₁| ÷ max|g₁| = {difference} over all updates of the first batch, with g₁ from a "
        "single process by w⁽ᵗ⁺¹⁾ = w⁽ᵗ⁾ − ν ∇f and the same versions."
    ),
)
_WEIGHT_POLICY = {
    "stashed": SentenceTemplate(
        mark("Each text is corrected with the same weights that read it, which are kept until then."),
        mark("Weights are stashed: on each stage, a micro-batch uses the same version backward as forward."),
        mark("Stashing: ∇f(w₁⁽ᵗ⁻ⁿ⁺¹⁾, …, w_n⁽ᵗ⁾), up to K − stage versions held; the buffers hold the older ones."),
    ),
    "synced": SentenceTemplate(
        mark("Each text is read and corrected with weights of the same age everywhere."),
        mark("Vertical sync: every stage uses the version that the first stage used, and holds as many versions."),
        mark("Vertical sync: ∇f(w₁⁽ᵗ⁻ⁿ⁺¹⁾, …, w_n⁽ᵗ⁻ⁿ⁺¹⁾), K versions held on every stage."),
    ),
    "latest": SentenceTemplate(
        mark("Texts are corrected with other weights than those that read them: the corrections are off by {stray}."),
        mark(
            "Nothing is stashed: the gradients differ from those of the forward pass's weights by "
            "{stray} of the largest."
        ),
        mark(
            "Unstashed: max|g − ∇f(w of the forward)| ÷ max|∇f| = {stray}; one version held, not the gradient of any f."
        ),
    ),
}
_UNTIED = SentenceTemplate(
    mark("The first and the last stage learn separate word tables."),
    mark("The embedding and the output matrix become untied: without a flush their gradients cannot be summed."),
    mark("Tied embeddings become untied: there is no moment at which both gradients belong to one version."),
)
_STEP_TIME = SentenceTemplate(
    mark("The last step took {seconds}; with a processor for each process it would take about {expected_time}."),
    mark(
        "The last step took {seconds}, {idle} idle; with one core per process, the schedule predicts "
        "{expected_time}, {share} idle."
    ),
    mark(
        "Step: {seconds}, idle {idle}. Schedule: {expected_time}, idle {share}, if a stage takes 1/K of one process's "
        "time."
    ),
)


def explain_pipeline(measured: RankMeasurement) -> Sentence:
    """Explain the traffic, whether the gradients are right, and how long the step took."""
    return together(
        _explain_pipeline_traffic(measured), _explain_pipeline_gradients(measured), _explain_step_time(measured)
    )


def _explain_pipeline_traffic(measured: RankMeasurement) -> Sentence:
    if not max(measured.traffic):
        return Sentence()
    return _PIPELINE_TRAFFIC.say(**_traffic_figures(measured))


def _traffic_figures(measured: RankMeasurement) -> dict[str, SentenceNumber]:
    """Return the traffic of the busiest rank and the predicted one, rounded and in bytes."""
    sent, predicted = max(measured.traffic), measured.predicted_traffic
    return {
        "sent": decimal_bytes(sent), "predicted": decimal_bytes(predicted),
        "exactly": SentenceNumber(f"{sent:,}"), "predicted_bytes": SentenceNumber(f"{predicted:,}"),
    }  # fmt: skip


def _explain_pipeline_gradients(measured: RankMeasurement) -> Sentence:
    right = _DEFINED_GRADIENTS if measured.weights else _SAME_GRADIENTS
    saying = right if measured.difference <= GRADIENT_TOLERANCE else DIFFERENT_GRADIENTS
    explanation = saying.say(difference=SentenceNumber(f"{measured.difference:.1e}"))
    if not measured.weights or len(measured.ranks) == 1:
        return explanation
    return together(
        explanation,
        _WEIGHT_POLICY[measured.weights].say(stray=percent(measured.stray)),
        _UNTIED.say() if measured.parted else "",
    )


def _explain_step_time(measured: RankMeasurement) -> Sentence:
    return _STEP_TIME.say(
        seconds=_duration_of(measured.boxes),
        expected_time=_duration_of(measured.expected_boxes),
        idle=percent(idle_share(measured.boxes)),
        share=percent(idle_share(measured.expected_boxes)),
    )


def _duration_of(boxes: tuple[Box, ...]) -> SentenceNumber:
    """Return the time until the last box ends."""
    return duration(max(box.stop for box in boxes) / 1000)


_TENSOR_TRAFFIC = SentenceTemplate(
    mark("In one training step each process sent {sent}; while writing text, {written}."),
    mark("Each process sent {sent} per step ({predicted} predicted), and {written} while generating the text."),
    mark(
        "Traffic per rank: {exactly} bytes per step (predicted {predicted_bytes}), {wrote} for the text ({expected})."
    ),
)
_MEGATRON_TRAFFIC = SentenceTemplate(
    mark("A better implementation would send less: here the corrections of each matrix are summed separately."),
    mark(
        "Megatron's paper needs {paper} for the layers: two sums forward and two back; transformers "
        "needs two and five, one for each matrix split by outputs."
    ),
    mark("Megatron-LM: 4·L all-reduces of B·T·D = {paper}. transformers: 7·L, plus those of embedding and logits."),
)
_SAME_TEXT = SentenceTemplate(
    mark("Together they write the same text as a single process: “{text}”"),
    mark("All generated tokens match those of a single process: “{text}”"),
    mark("Greedy continuation ({tokens}): identical ids to a single process. “{text}”"),
)
_DIFFERENT_TEXT = SentenceTemplate(
    mark("Together they write a different text than a single process: “{text}”"),
    mark("The generated tokens differ from those of a single process: “{text}”"),
    mark("Greedy continuation ({tokens}): different from a single process. “{text}”"),
)
_SAME_GATHERED_GRADIENTS = SentenceTemplate(
    mark("Their corrections are the same as those of a single process."),
    mark("The gathered gradients match those of a single process, to within {difference} of the largest."),
    mark("max|g − g₁| ÷ max|g₁| = {difference} in the first step, shards gathered, g₁ from a single process."),
)


def explain_tensor(measured: RankMeasurement) -> Sentence:
    """Explain the traffic, whether the text is the same, and the gradients."""
    return together(_explain_tensor_traffic(measured), _explain_text(measured), _explain_tensor_gradients(measured))


def _explain_tensor_traffic(measured: RankMeasurement) -> Sentence:
    assert measured.written is not None
    written = measured.written
    if not max(measured.traffic):
        return Sentence()
    explanation = _TENSOR_TRAFFIC.say(
        **_traffic_figures(measured),
        written=decimal_bytes(written.sent),
        wrote=SentenceNumber(f"{written.sent:,}"),
        expected=SentenceNumber(f"{measured.expected_written:,}"),
    )
    return together(explanation, _MEGATRON_TRAFFIC.say(paper=decimal_bytes(measured.paper_traffic)))


def _explain_text(measured: RankMeasurement) -> Sentence:
    assert measured.written is not None
    written = measured.written
    saying = _SAME_TEXT if written.ids == written.alone else _DIFFERENT_TEXT
    return saying.say(tokens=words.count(len(written.ids), "token"), text=SentenceNumber(written.text))


def _explain_tensor_gradients(measured: RankMeasurement) -> Sentence:
    saying = _SAME_GATHERED_GRADIENTS if measured.difference <= GRADIENT_TOLERANCE else DIFFERENT_GRADIENTS
    return saying.say(difference=SentenceNumber(f"{measured.difference:.1e}"))


_BYTES_EQUAL = SentenceTemplate(
    mark("Each process used exactly the predicted memory, {bytes} at most."),
    mark("Every process held exactly the predicted bytes: {bytes} on the fullest."),
    mark(
        "Measured = predicted to the byte on all {count} ranks; the fullest: {parameters} + {gradients} + {optimizer} "
        "+ {buffers} = {whole} bytes."
    ),
)
_EQUAL_ACTIVE = SentenceTemplate(
    *_BYTES_EQUAL[:2],
    mark(
        "Measured = predicted to the byte on all {count} ranks; the fullest: {parameters} + "
        "{gradients} + {optimizer} + {activations} (saved for backward) = {whole} bytes."
    ),
)
_EQUAL_VERSIONS = SentenceTemplate(
    *_BYTES_EQUAL[:2],
    mark(
        "Measured = predicted to the byte on all {count} ranks; the fullest: {parameters} + "
        "{gradients} + {activations} (saved for backward) + {buffers} (older versions) = {whole} bytes."
    ),
)
_BYTES_DIFFERENT = SentenceTemplate(
    mark("The fullest process used {bytes}; {predicted} was predicted."),
    mark("The fullest process held {bytes}; {predicted} was predicted."),
    mark("Measured ÷ predicted on the fullest of {count} ranks: {whole} ÷ {predicted_bytes} bytes."),
)
_COLLECTIVE_TRAFFIC = SentenceTemplate(
    mark("To stay in sync, each process sent {sent} in one step."),
    mark("Each process sent {sent} per step; {predicted} was predicted."),
    mark("Traffic per rank and step, an all-reduce sends 2·(N − 1)/N·Φ: {exactly} bytes; predicted {predicted_bytes}."),
)
_EXTRA_TRAFFIC = SentenceTemplate(
    mark("That is more than necessary: every process receives all corrections, and then the new values as well."),
    mark("ZeRO's paper needs {paper}: torch reduces all gradients everywhere, then broadcasts the new parameters."),
    mark(
        "Needed: 2·(N − 1)/N·Φ = {paper}. ZeroRedundancyOptimizer: an all-reduce (as much), then a broadcast of the "
        "parameters."
    ),
)
_FSDP_BUFFERS = SentenceTemplate(
    mark("The buffers are each process's own part of the model, kept in addition to the whole."),
    mark("The buffers are each rank's own shard of the parameters, which FSDP keeps in addition to the gathered ones."),
    mark("Buffers: the sharded parameters, 4·Φ/N bytes, which FSDP2 updates while the gathered ones remain."),
)
_SAME_LOSS = SentenceTemplate(
    mark("They learned the same as a single process that reads all texts."),
    mark("Loss {loss} after {steps}; a single process reaches {alone}."),
    mark("Loss after {steps}: {loss}; of one process with the whole batch: {alone} (difference {difference})."),
)
_DIFFERENT_LOSS = SentenceTemplate(
    mark("They did not learn quite the same as a single process that reads all texts."),
    mark("Loss {loss} after {steps}; a single process differs: {alone}."),
    mark("Loss after {steps}: {loss}; of one process: {alone}. The difference, {difference}, exceeds rounding."),
)
LOSS_TOLERANCE = 1e-4
"""Losses that differ by at most this fraction count as equal, because sums are computed in another order."""


def explain_measured(found: RankMeasurement) -> Sentence:
    """Explain bytes, traffic and loss, each with its expected value. Raises ParameterError."""
    check_lab_object("found", found, RankMeasurement)
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


def _explain_bytes(measured: RankMeasurement) -> Sentence:
    number = max(range(len(measured.ranks)), key=lambda rank: measured.ranks[rank].total)
    fullest, predicted = measured.ranks[number], measured.predicted[number]
    equal = _EQUAL_VERSIONS if measured.weights else _EQUAL_ACTIVE if fullest.activations else _BYTES_EQUAL
    return (equal if measured.ranks == measured.predicted else _BYTES_DIFFERENT).say(
        bytes=decimal_bytes(fullest.total),
        predicted=decimal_bytes(predicted.total),
        count=str(len(measured.ranks)),
        whole=SentenceNumber(f"{fullest.total:,}"),
        predicted_bytes=SentenceNumber(f"{predicted.total:,}"),
        **{name: f"{count:,}" for name, count in fullest.items()},
    )


def _explain_traffic(measured: RankMeasurement) -> Sentence:
    if not max(measured.traffic):
        return Sentence()
    explanation = _COLLECTIVE_TRAFFIC.say(**_traffic_figures(measured))
    more = (
        _EXTRA_TRAFFIC.say(paper=decimal_bytes(measured.paper_traffic))
        if measured.predicted_traffic > measured.paper_traffic
        else ""
    )
    return together(explanation, more)


def _explain_loss(measured: RankMeasurement) -> Sentence:
    alone = measured.alone[-1]
    is_same = abs(measured.loss - alone) <= LOSS_TOLERANCE * abs(alone)
    return (_SAME_LOSS if is_same else _DIFFERENT_LOSS).say(
        loss=SentenceNumber(f"{measured.loss:.6f}"),
        alone=SentenceNumber(f"{alone:.6f}"),
        steps=words.count(len(measured.losses), "step"),
        difference=SentenceNumber(f"{abs(measured.loss - alone):.1e}"),
    )


_PROGRESS = {
    "starts": mark("Process {rank} is starting ({process})."),
    "alone": mark("Process {rank} is training alone first, for comparison."),
    "joins": mark("Process {rank} is waiting for the others."),
    "step": mark("Process {rank} is training: step {step} of {steps}."),
}


def explain_progress(progress: RankProgress) -> str:
    """Describe a process's progress, counted from 1. Raises ParameterError."""
    check_lab_object("progress", progress, RankProgress)
    check_one_of("stage", progress.stage, _PROGRESS)
    for name in ("rank", "process", "step", "steps"):
        check_integer(name, vars(progress)[name], 0, MAX_FLOAT)
    return tr(_PROGRESS[progress.stage]).format(
        rank=progress.rank + 1, process=progress.process, step=progress.step, steps=progress.steps
    )
