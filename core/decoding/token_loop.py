"""The token-by-token loops of greedy decoding, sampling and DoLa, with and without stepping back."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, Protocol

import torch

from decodescope.core.caches.tensors.cache_operations import crop, tokens_read
from decodescope.core.decoding.forward.forward_pass import ForwardOutput
from decodescope.core.decoding.keyed_noise import KeyedNoise, TextNoise, context_spellings, token_keys
from decodescope.core.decoding.processor_pipeline import ProcessorPipeline, StageHeading
from decodescope.core.decoding.run import DecodingRun
from decodescope.core.decoding.score_cache import StepLogits
from decodescope.core.decoding.sequences import AppendedToken, SequenceState, is_cache_measured
from decodescope.core.decoding.step_replayer import RngReplay, StepReplayer, StepRng, is_stateful
from decodescope.core.decoding.step_stats import (
    GreedyEpilogue,
    PendingStats,
    TokenChoice,
    add_stage_details,
    compute_steps_stats,
)
from decodescope.core.decoding.stopping import StopTail
from decodescope.core.decoding.tensor_utils import GrowableTensor, argmax, draw_one, growable_ids
from decodescope.core.errors import ParameterError
from decodescope.core.events import Event, LayerChoice, Method, WithdrawnPhrase, WithdrawnToken
from decodescope.core.native.tensor_address import unreadable_reason
from decodescope.core.processors.word_search import STEP_BACK, PhraseBan
from decodescope.resources.language import tr

if TYPE_CHECKING:
    import torch

    from decodescope.core.processors.base import StageObserver

_BATCH_STEPS = 2
"""Number of steps per batch; with more, text would continue noticeably after a stop."""
_MAX_WAIT_SECONDS = 0.008
"""Maximum seconds of a step that may wait for the next one."""


class _PendingStep(NamedTuple):
    """A step whose tokens are appended and whose events are pending."""

    number: int
    scores: list[torch.Tensor]
    """Raw and after every stage, each [B, V]."""
    choice: TokenChoice
    layer: LayerChoice | None
    appended: list[tuple[int, SequenceState, AppendedToken]]
    """Row, sequence and appended token of the sequences that were still running."""
    observers: list[StageObserver | None]
    """Observers of its last stages."""


class StepEventWriter:
    """Appends tokens to their sequences and emits their events."""

    def __init__(
        self, run: DecodingRun, sequences: Sequence[SequenceState], headings: Sequence[StageHeading], method: Method,
        observers: Callable[[], list[StageObserver | None]] | None = None,
    ) -> None:  # fmt: skip
        """Initialize the writer.

        `headings`: headings of the stages whose scores follow; `observers`: returns the observers of the step before
        each `write`, by default those of the run's pipeline.
        """
        self._run, self._sequences, self._headings, self._method = run, sequences, headings, method
        self._observers = observers or run.pipeline.observers
        self._pending: list[_PendingStep] = []
        self._batch_started = time.perf_counter()

    def write(
        self, number: int, scores: list[torch.Tensor], choice: TokenChoice, layer: LayerChoice | None = None,
        withdrawn: tuple[WithdrawnPhrase, ...] = (),
    ) -> Iterator[Event]:  # fmt: skip
        """Append the tokens of one step; `scores` decided them. Stop reasons are set when this returns."""
        tokens = choice.ids
        if unknown := [token for token in tokens if not 0 <= token < self._run.model.vocabulary]:
            problem = tr("the chosen token id {id} is not one of the model's ids, 0 to {last:,}")
            raise ValueError(problem.format(id=unknown[0], last=self._run.model.vocabulary - 1))
        notes = [
            (row, track, self._run.writer.append_token(track, token, withdrawn))
            for row, (track, token) in enumerate(zip(self._sequences, tokens, strict=True))
            if track.stop is None
        ]
        witnesses = self._observers() if self._run.request.top_n else []
        if self._run.score_cache is not None:
            contrasted = scores[1] if layer is not None else None
            self._run.score_cache.add(number, StepLogits(scores[0], contrasted, layer), tokens)
        self._pending.append(_PendingStep(number, scores, choice, layer, notes, witnesses))
        if self._is_due(number):
            yield from self.flush()
            self._batch_started = time.perf_counter()

    def _is_due(self, number: int) -> bool:
        """Return whether events are due: first step, second of a pair, slow step, end of a text, or before a
        measurement.
        """
        step, run = self._pending[-1], self._run
        return (
            step.choice.stats is not None  # nothing is left to compute in a batch
            or len(self._pending) == _BATCH_STEPS
            or is_cache_measured(number)
            or run.counters.is_measure_overdue
            or time.perf_counter() - self._batch_started > _MAX_WAIT_SECONDS
            or any(track.stop for _, track, _ in step.appended)
            or run.is_cancelled()
        )

    def flush(self) -> Iterator[Event]:
        """Emit the events of all pending steps."""
        waiting, self._pending = self._pending, []
        if not waiting:
            return
        run, begun = self._run, time.perf_counter()
        if len(waiting) == 1:
            readings = run.step_stats(waiting[0].scores, waiting[0].choice, self._headings)
        else:
            scores, chosen = [step.scores for step in waiting], [step.choice.tokens for step in waiting]
            readings = compute_steps_stats(scores, chosen, run.request.top_n, self._headings, run.model.pieces)
        share = (time.perf_counter() - begun) / len(waiting)
        for place, step in enumerate(waiting):
            for row, track, note in step.appended:
                reading = add_stage_details(
                    readings[place * len(self._sequences) + row], step.scores, row, step.observers
                )
                yield from run.writer.emit_token(track, note, reading, self._method, step.layer, seconds=share)
            yield from run.finish_step(step.number, is_latest=step is waiting[-1])

    def write_all(self, steps: Iterable[Event]) -> Iterator[Event]:
        """Emit the events of `steps`, then those of the pending steps: after an error too, the text so far is shown."""
        try:
            yield from steps
        except GeneratorExit:
            raise
        except BaseException:  # a plug-in may also raise SystemExit, or be interrupted
            yield from self.flush()
            raise
        yield from self.flush()


class TokenPicker(Protocol):
    """Selects the next token from processed scores."""

    method: Method

    def pick(self, scores: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
        """Return token ids [B] from scores [B, V]."""


class GreedyPicker:
    """Selects the best score."""

    method: Method = "greedy"

    def pick(self, scores: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
        """Return the argmax; the lowest id among equal scores."""
        return argmax(scores)


class MultinomialPicker:
    """Samples from the distribution."""

    method: Method = "sampled"

    def pick(self, scores: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
        """Sample once from softmax(scores) for each row."""
        return draw_one(torch.softmax(scores, -1), generator)


class SeededMultinomialPicker:
    """Samples each text with its own generator: text n equals a separate run with `seed + n`.

    The random numbers are exactly those of that run; the last bits of the distribution may differ, because a batch may
    be computed differently than one row.
    """

    method: Method = "sampled"

    def __init__(self, seed: int, rows: int, device: torch.device) -> None:
        self._generators = [torch.Generator(device).manual_seed(seed + row) for row in range(rows)]

    def pick(self, scores: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
        """Sample once from softmax(scores) for each row, with the row's own generator."""
        shares = torch.softmax(scores, -1)
        drawn = [draw_one(row[None], own) for row, own in zip(shares, self._generators, strict=True)]
        return drawn[0] if len(drawn) == 1 else torch.cat(drawn)

    def uniform(self, rows: int) -> torch.Tensor:
        """Return a number in [0, 1) for each row, from the row's own generator."""
        numbers = [torch.rand(1, generator=own, device=own.device) for own in self._generators[:rows]]
        return numbers[0] if rows == 1 else torch.cat(numbers)


class KeyedPicker:
    """Samples by noise that depends on (seed, position, token) alone: argmax(scores + noise); text n uses `seed + n`.

    The random numbers of stages are keyed by the position too. A run that continues another one, or has other settings,
    meets the same noise at the same position of the answer.
    """

    method: Method = "sampled"

    def __init__(self, run: DecodingRun, seeds: Sequence[int]) -> None:
        self._noise = [KeyedNoise(seed, token_keys(run.model)) for seed in seeds]
        self.first_position = self._position = len(run.inputs.beginning)
        self._draws, self._device = 0, run.device

    def pick(self, scores: torch.Tensor, generator: torch.Generator | None = None) -> torch.Tensor:
        """Return the token of each row of scores [B, V]; every call is one position."""
        rows = scores.double().cpu().numpy()
        found = [int((row + own.gumbel(self._position)).argmax()) for row, own in zip(rows, self._noise, strict=True)]
        self.move_to(self._position + 1)
        return torch.tensor(found, device=scores.device)

    def uniform(self, rows: int) -> torch.Tensor:
        """Return a number in (0, 1) for each row; different for each call at one position."""
        self._draws += 1
        numbers = [own.uniform(self._position, self._draws) for own in self._noise[:rows]]
        return torch.tensor(numbers, device=self._device)

    def move_to(self, position: int) -> None:
        """Go to a position of the answer, its required beginning included."""
        self._position, self._draws = position, 0


class TextKeyedPicker(KeyedPicker):
    """Samples one text by noise that is keyed by the text before each token (`TextNoise`)."""

    def __init__(self, run: DecodingRun, seed: int) -> None:
        super().__init__(run, [seed])
        self._context = TextNoise(self._noise[0], context_spellings(run.model))
        for token in run.inputs.beginning:
            self._context.add(token)

    @property
    def step_noise(self) -> KeyedNoise:
        """The noise of the next token, at position 0."""
        return self._context.step

    def pick(self, scores: torch.Tensor, generator: torch.Generator | None = None) -> torch.Tensor:
        """Return the token of scores [1, V]."""
        token = int((scores[0].double().cpu().numpy() + self.step_noise.gumbel(0)).argmax())
        self.add(token)
        return torch.tensor([token], device=scores.device)

    def uniform(self, rows: int) -> torch.Tensor:
        """Return a number in (0, 1) for the text; different for each call at one token."""
        self._draws += 1
        return torch.tensor([self.step_noise.uniform(0, self._draws)] * rows, device=self._device)

    def add(self, token: int) -> None:
        """Go on to the noise after a token."""
        self._context.add(token)
        self._draws = 0


class KeyedReplay(StepReplayer):
    """Replays a step of a run whose noise is keyed by position."""

    def replay_rng(self, rows: int, sequence: int) -> RngReplay:
        """Return the noise of one text, position by position."""
        return KeyedRngReplay(self.run, self.run.request.seed + sequence)


class KeyedRngReplay(RngReplay):
    """Replays the noise of one text step by step."""

    def __init__(self, run: DecodingRun, seed: int) -> None:
        self._run, self._seed, self._step = run, seed, -1

    def next_step(self) -> StepRng:
        """Return the noise of the next step."""
        self._step += 1
        return self.same_step()

    def same_step(self) -> StepRng:
        """Return the noise of the last step again."""
        picker = KeyedPicker(self._run, [self._seed])
        picker.move_to(picker.first_position + self._step)
        return KeyedStepRng(picker)


class KeyedStepRng(StepRng):
    """The noise of one step."""

    def __init__(self, picker: KeyedPicker) -> None:
        self._picker = picker

    def uniform(self, rows: int) -> torch.Tensor:
        """Return the next random number of the step, [1]."""
        return self._picker.uniform(1)

    def sample(self, scores: torch.Tensor) -> int:
        """Return the token that the noise chooses from scores [1, V]."""
        return int(self._picker.pick(scores))


class SeededReplay(StepReplayer):
    """Replays a step of a text with its own seed."""

    def replay_rng(self, rows: int, sequence: int) -> RngReplay:
        """Return the random numbers of a separate run."""
        return RngReplay(self.run, 1, 0, torch.Generator(self.run.device).manual_seed(self.run.request.seed + sequence))


class PickerReplayer(StepReplayer):
    """Replays steps of a picker that draws no random numbers."""

    def __init__(self, run: DecodingRun, picker: TokenPicker) -> None:
        super().__init__(run)
        self._picker = picker

    @property
    def method(self) -> Method:
        """The method of the picker."""
        return self._picker.method

    def pick(self, scores: torch.Tensor, step_logits: StepLogits, rng: StepRng | None) -> int:
        """Return the token that the picker chooses from processed scores [1, V]."""
        return int(self._picker.pick(scores, torch.Generator(scores.device)))


class ContrastMethod(Protocol):
    """A method that contrasts hidden layers before the rest of the pipeline (DoLa)."""

    heading: StageHeading

    def apply(
        self, logits: torch.Tensor, hidden: tuple[torch.Tensor, ...], allowed: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return contrasted scores [B, V], and the values [m] that `layer_choice` takes; `allowed` are the logits with
        forbidden tokens at −∞.
        """

    def layer_choice(self, values: Sequence[float]) -> LayerChoice:
        """Return the chosen layer from values on the host."""


class ContrastPipeline:
    """A processor pipeline with layer contrast, applied after the stages that restrict the choice of tokens."""

    def __init__(self, funnel: ProcessorPipeline, contrast: ContrastMethod) -> None:
        self._contrast = contrast
        self._stages_before = ProcessorPipeline([stage for stage in funnel.stages if stage.processor.before_contrast])
        self._stages_after = ProcessorPipeline(
            [stage for stage in funnel.stages if not stage.processor.before_contrast]
        )
        self.headings = [*self._stages_before.headings, contrast.heading, *self._stages_after.headings]

    def trace(
        self, ids: torch.Tensor, raw: torch.Tensor, hidden: tuple[torch.Tensor, ...]
    ) -> tuple[list[torch.Tensor], torch.Tensor]:
        """Return the scores before the first stage and after each, all [B, V], and the values of the layer choice."""
        first = self._stages_before.trace(ids, raw)
        contrasted, values = self._contrast.apply(raw, hidden, first[-1])
        return [*first, *self._stages_after.trace(ids, contrasted)], values

    def layer_choice(self, values: Sequence[float]) -> LayerChoice:
        """Return the chosen layer from the values of `trace` on the host."""
        return self._contrast.layer_choice(values)


def decode_single(run: DecodingRun, picker: TokenPicker, contrast: ContrastMethod | None = None) -> Iterator[Event]:
    """Choose a token for every sequence, step by step, until all have ended."""
    rows = run.sequences
    tracks = [run.writer.new_sequence(number) for number in range(rows)]
    ids = growable_ids(run.start_ids, rows, run.device)
    funnel = ContrastPipeline(run.pipeline, contrast) if contrast else run.pipeline
    writer = StepEventWriter(run, tracks, funnel.headings, picker.method)
    steps = _decode_steps(run, tracks, ids, picker, funnel, writer)
    if run.phrase_ban is not None:
        steps = _decode_with_step_back(run, tracks[0], ids, picker, funnel, writer, run.phrase_ban)
    yield from writer.write_all(steps)
    yield from run.finish(tracks)


_PICKERS = (GreedyPicker, MultinomialPicker, SeededMultinomialPicker)
"""Pickers whose tokens can be fed before the host has read them: they are always ids of the vocabulary."""


class _PendingChoice(NamedTuple):
    """Tokens [B] that a step chose from its scores; on a GPU, the host has not read them yet."""

    tokens: torch.Tensor
    scores: list[torch.Tensor]
    """Raw and after every stage, each [B, V]."""
    pending: PendingStats | TokenChoice


def _choose_tokens(
    run: DecodingRun,
    ids: torch.Tensor,
    picker: TokenPicker,
    funnel: ProcessorPipeline | ContrastPipeline,
    output: ForwardOutput,
    step: int,
) -> _PendingChoice:
    """Choose the tokens after ids [B, T] from the output of their pass."""
    raw = run.replace_invalid(output.last)
    values: torch.Tensor | None = None
    if isinstance(funnel, ContrastPipeline):
        assert output.hidden is not None
        scores, values = funnel.trace(ids, raw, output.hidden)
    else:
        scores = funnel.trace(ids, raw)
    if output.choice is not None:
        chosen, packed = output.choice
        return _PendingChoice(chosen, scores, PendingStats(packed, 0, 0))
    run.check_before_choice(scores, step)
    chosen = picker.pick(scores[-1], run.generator)
    if type(picker) not in _PICKERS:
        chosen = _checked_tokens(chosen, scores[-1])
    return _PendingChoice(chosen, scores, run.start_choice(scores, chosen, values))


def _checked_tokens(chosen: object, scores: torch.Tensor) -> torch.Tensor:
    """Return a copy of the token ids [B] that a picker chose from scores [B, V]. Raises ValueError if they are none,
    which is attributed to the plug-in.
    """
    if not isinstance(chosen, torch.Tensor):
        raise ValueError(
            tr("the picker returned {kind} instead of a tensor of token ids").format(kind=type(chosen).__name__)
        )
    if reason := unreadable_reason(chosen):
        raise ValueError(tr("the picker returned a tensor that cannot be read: {reason}").format(reason=reason))
    if chosen.shape != scores.shape[:1] or chosen.device != scores.device:
        raise ValueError(
            tr("the picker returned token ids of shape {got} on {device} instead of {wanted} on {own}").format(
                got=list(chosen.shape), device=chosen.device, wanted=list(scores.shape[:1]), own=scores.device
            )
        )
    if chosen.is_floating_point() or chosen.is_complex() or chosen.dtype is torch.bool:
        raise ValueError(tr("the picker returned token ids of type {kind}").format(kind=chosen.dtype))
    for token in chosen.tolist():
        if not 0 <= token < scores.shape[-1]:
            raise ValueError(tr("the picker chose the unknown token id {id}").format(id=str(token)[:20]))
    return chosen.to(torch.int64, copy=True)


def _decode_steps(
    run: DecodingRun,
    states: list[SequenceState],
    ids: GrowableTensor,
    picker: TokenPicker,
    funnel: ProcessorPipeline | ContrastPipeline,
    writer: StepEventWriter,
) -> Iterator[Event]:
    """Run the prefill and all steps. A GPU computes the next pass while the host reads a step, where that is possible.

    A pass that turns out to come after the end of the text is undone, and its error, if it has one, is dropped.
    """
    contrasts, forward, step = isinstance(funnel, ContrastPipeline), run.forward, 0
    output, prefilled = run.prefill(len(states), hidden=contrasts)
    yield prefilled
    feeds_unread = run.device.type == "cuda" and type(picker) in _PICKERS and not contrasts
    if feeds_unread and isinstance(picker, GreedyPicker) and not run.pipeline.stages:
        forward.epilogue = None if run.settings.get("remove_invalid_values") else GreedyEpilogue(run.request.top_n)
    runs_ahead = feeds_unread and forward.can_retract
    while True:
        is_measured = run.counters.check_overdue() or is_cache_measured(step)
        chosen, scores, pending = _choose_tokens(run, ids.tensor, picker, funnel, output, step)
        following: ForwardOutput | Exception | None = None
        if feeds_unread:  # before the next pass, which may overwrite them
            ids.append(chosen[:, None])
            is_last = run.stopping.reached_limit(step + 1) is not None or run.is_cancelled()
            if runs_ahead and not is_last and not is_measured:
                try:
                    following = forward(chosen[:, None])
                except Exception as error:  # raised below, unless the text has ended
                    following = error
        is_read = False
        try:
            choice = run.finish_choice(pending, scores, chosen, step)
            layer = funnel.layer_choice(choice.extra) if isinstance(funnel, ContrastPipeline) else None
            yield from writer.write(step, scores, choice, layer)
            if not feeds_unread:
                ids.append(chosen[:, None])
            step += 1
            if all(track.stop for track in states) or run.is_cancelled():
                break
            is_read = True
        finally:
            if isinstance(following, ForwardOutput) and not is_read:
                forward.retract()
        if isinstance(following, Exception):
            raise following
        output = forward(chosen[:, None], hidden=contrasts) if following is None else following


@dataclass(slots=True)
class _HeldStep:
    """A token that was chosen and may be withdrawn."""

    output: ForwardOutput
    """The pass after which it was chosen."""
    choice: _PendingChoice
    token: int
    stop_tail: StopTail
    """Bytes before it, in which a stop string may begin."""
    withdrawn: list[WithdrawnPhrase] = field(default_factory=list)


def _decode_with_step_back(
    run: DecodingRun, state: SequenceState, ids: GrowableTensor, picker: TokenPicker,
    funnel: ProcessorPipeline | ContrastPipeline, writer: StepEventWriter, ban: PhraseBan,
) -> Iterator[Event]:  # fmt: skip
    """Choose tokens one by one for one text, and step back where a word to avoid was completed.

    The tokens from the word's first one on are withdrawn, that first token is forbidden after the text before it, and
    another one is chosen. A token is written once no word can begin in it any more, so that what was written stays.
    The text has not the distribution of texts without the words: that would need the probability of all continuations
    (Park et al.: Grammar-Aligned Decoding, 2024). Raises ParameterError where the setting cannot be used or no token
    is left.
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
            choice = _choose_tokens(run, place, picker, funnel, output, step)
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
