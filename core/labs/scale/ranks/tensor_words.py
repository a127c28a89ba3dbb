"""What came of tensor parallelism, in words of three depths."""

from __future__ import annotations

from core.explain.sentence import Saying, Sentence, SentenceNumber, together
from core.labs.figures import decimal
from core.labs.scale.ranks.pipeline_words import CLOSE, OTHER
from core.labs.scale.ranks.scale_measurement import Measured
from resources.language import mark

_SENT = Saying(
    mark("In one step of learning each sent {sent}, while they wrote {written}."),
    mark("Each sent {sent} a step ({predicted} predicted), and {written} while {tokens} tokens were written."),
    mark("Traffic a rank: {exactly} bytes a step (predicted {reckoned}), {wrote} for {tokens} tokens ({expected})."),
)
_MORE = Saying(
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
_OTHER_TEXT = Saying(
    mark("Together they do not write what one process writes: “{text}”"),
    mark("The {tokens} tokens they write are not those of one process: “{text}”"),
    mark("Greedy continuation of {tokens} tokens: differs from one process's. “{text}”"),
)
_SAME = Saying(
    mark("Their corrections are those of one process alone."),
    mark("The gradients, put together, are those of one process, to {difference} of the greatest."),
    mark("max|g − g₁| ÷ max|g₁| = {difference} in the first step, shards gathered, g₁ of one process."),
)


def explain_tensor(found: Measured) -> Sentence:
    """What was sent, whether the text is the same, and the gradients."""
    return together(_sent(found), _text(found), _gradients(found))


def _sent(found: Measured) -> Sentence:
    assert found.written is not None
    sent, written = max(found.traffic), found.written
    if not sent:
        return Sentence()
    told = _SENT.say(
        sent=decimal(sent),
        predicted=decimal(found.predicted_traffic),
        written=decimal(written.sent),
        tokens=str(len(written.ids)),
        exactly=SentenceNumber(f"{sent:,}"),
        reckoned=SentenceNumber(f"{found.predicted_traffic:,}"),
        wrote=SentenceNumber(f"{written.sent:,}"),
        expected=SentenceNumber(f"{found.expected_written:,}"),
    )
    return together(told, _MORE.say(paper=decimal(found.paper_traffic)))


def _text(found: Measured) -> Sentence:
    assert found.written is not None
    written = found.written
    saying = _SAME_TEXT if written.ids == written.alone else _OTHER_TEXT
    return saying.say(tokens=str(len(written.ids)), text=SentenceNumber(written.text))


def _gradients(found: Measured) -> Sentence:
    saying = _SAME if found.difference <= CLOSE else OTHER
    return saying.say(difference=SentenceNumber(f"{found.difference:.1e}"))
