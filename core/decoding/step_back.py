"""Greedy decoding and sampling that step back where a word to avoid was completed.

The tokens from the word's first one on are withdrawn, that first token is forbidden after the text before it, and
another one is chosen. A token is written once no word can begin in it any more, so that what was written stays. The
text has not the distribution of texts without the words: that would need the probability of all continuations
(Park et al.: Grammar-Aligned Decoding, 2024).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import torch

from decodescope.core.caches.tensors.cache_operations import crop, tokens_read
from decodescope.core.decoding.forward.forward_pass import ForwardOutput
from decodescope.core.decoding.processor_pipeline import ProcessorPipeline
from decodescope.core.decoding.step_replayer import is_stateful
from decodescope.core.decoding.stopping import StopTail
from decodescope.core.decoding.token_loop import ContrastPipeline, PendingChoice, TokenPicker, choose_tokens
from decodescope.core.errors import ParameterError
from decodescope.core.events import Event, WithdrawnPhrase, WithdrawnToken
from decodescope.core.processors.banned_phrases import STEP_BACK, PhraseBan
from decodescope.resources.language import tr

if TYPE_CHECKING:
    from decodescope.core.decoding.run import DecodingRun
    from decodescope.core.decoding.sequences import SequenceState
    from decodescope.core.decoding.tensor_utils import GrowableTensor
    from decodescope.core.decoding.token_loop import StepEventWriter


@dataclass(slots=True)
class _HeldStep:
    """A token that was chosen and may be withdrawn."""

    output: ForwardOutput
    """The pass after which it was chosen."""
    choice: PendingChoice
    token: int
    stop_tail: StopTail
    """Bytes before it, in which a stop string may begin."""
    withdrawn: list[WithdrawnPhrase] = field(default_factory=list)


def decode_with_step_back(
    run: DecodingRun, state: SequenceState, ids: GrowableTensor, picker: TokenPicker,
    funnel: ProcessorPipeline | ContrastPipeline, writer: StepEventWriter, ban: PhraseBan,
) -> Iterator[Event]:  # fmt: skip
    """Choose tokens one by one for one text. Raises ParameterError where the setting cannot be used or no token is
    left.
    """
    if is_stateful(run.pipeline):
        raise ParameterError(
            tr("A run cannot step back with a setting that remembers every step (mirostat, SynthID, guidance …)."),
            tr("Turn that setting off, or “Step back to the beginning”."),
            STEP_BACK.name,
        )
    ban.steps_back = True
    contrasts, start, forward = isinstance(funnel, ContrastPipeline), list(run.start_ids), run.forward
    output, prefilled = run.prefill(1, hidden=contrasts)
    yield prefilled
    if forward.cache is None:
        raise ParameterError(
            tr("A run cannot step back without a cache."), tr("Turn off “Step back to the beginning”."), STEP_BACK.name
        )
    held: list[_HeldStep] = []
    withdrawn: list[WithdrawnPhrase] = []
    """What was withdrawn at the position of the next token."""
    stop_tail = run.stopping.tail
    while True:
        written = len(state.ids)
        text = [*start, *state.ids, *(step.token for step in held)]
        step = len(text) - len(start)
        place = torch.tensor([text], device=run.device)
        try:
            choice = choose_tokens(run, place, picker, funnel, output, step)
        except ParameterError:
            if not held:
                raise
            first = held[-1]  # nothing is left here: not even the token before may stand
            phrase = WithdrawnPhrase(withdrawn[-1].phrase if withdrawn else "", (_withdrawn(run, first),))
            output, withdrawn, stop_tail = _step_back(run, ban, held, text, len(text) - 1, phrase)
            continue
        token = int(choice.tokens[0])
        held.append(_HeldStep(output, choice, token, stop_tail, withdrawn))
        text.append(token)
        withdrawn = []
        if (found := ban.completed(text)) is not None:
            length, words = max(found[0], len(start) + written), found[1]  # it may begin in the prompt
            tokens = tuple(_withdrawn(run, one) for one in held[length - len(start) - written :])
            output, withdrawn, stop_tail = _step_back(run, ban, held, text, length, WithdrawnPhrase(words, tokens))
            continue
        ending, stop_tail = run.stopping.natural_end(token, stop_tail)
        is_last = ending is not None or run.stopping.reached_limit(step + 1) is not None or run.is_cancelled()
        safe = len(text) if is_last else ban.safe_length(text)
        for _ in range(max(0, min(len(held), safe - len(start) - written))):
            one = held.pop(0)
            number = len(state.ids)
            made = run.finish_choice(one.choice.pending, one.choice.scores, one.choice.tokens, number)
            layer = funnel.layer_choice(made.extra) if isinstance(funnel, ContrastPipeline) else None
            yield from writer.write(number, one.choice.scores, made, layer, tuple(one.withdrawn))
            ids.append(one.choice.tokens[:, None])
            if state.stop or run.is_cancelled():
                return
        output = forward(choice.tokens[:, None], hidden=contrasts)


def _step_back(
    run: DecodingRun, ban: PhraseBan, held: list[_HeldStep], text: list[int], length: int, phrase: WithdrawnPhrase
) -> tuple[ForwardOutput, list[WithdrawnPhrase], StopTail]:
    """Withdraw the held tokens after the first `length` tokens of `text`, and forbid the first of them there. Return
    the pass after which the next token is chosen, all that was withdrawn at its position, and the bytes before it.
    """
    count = len(text) - length
    first = held[-count]
    del held[-count:]
    ban.forbid(text[:length], text[length])
    cache = run.forward.cache
    assert cache is not None
    if tokens_read(cache) > run.inputs.offset + length:
        crop(cache, run.inputs.offset + length)
    return first.output, [*first.withdrawn, phrase], first.stop_tail


def _withdrawn(run: DecodingRun, step: _HeldStep) -> WithdrawnToken:
    """Return the record of a withdrawn token."""
    raw = torch.log_softmax(step.choice.scores[0][0].double(), -1)[step.token]
    pieces = run.model.pieces
    return WithdrawnToken(step.token, pieces[step.token], math.exp(float(raw)), step.token in pieces.special)
