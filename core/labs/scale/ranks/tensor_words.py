"""What came of tensor parallelism, in words of three depths."""

from __future__ import annotations

from core.explain.sentence import Saying, Sentence, SentenceNumber, together
from core.labs.figures import decimal
from core.labs.scale.ranks.pipeline_words import DIFFERENT_GRADIENTS, GRADIENT_TOLERANCE
from core.labs.scale.ranks.scale_measurement import Measured
from resources.language import mark

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
