"""Record one `generate` call: each decoding loop of transformers has its own recorder, fed by the hooks."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import torch

from decodescope.core.decoding.sequences import stop_sequence
from decodescope.core.decoding.step_stats import compute_step_stats
from decodescope.core.decoding.stopping import StopReason
from decodescope.core.generate_recording.run_writer import CapturedPrompt, RunOrigin, RunWriter, end_tokens

if TYPE_CHECKING:
    from transformers import GenerationConfig
    from transformers.cache_utils import Cache

    from decodescope.core.decoding.processor_pipeline import StageHeading
    from decodescope.core.decoding.sequences import SequenceState
    from decodescope.core.decoding.step_stats import StepStats
    from decodescope.core.events import Event, Method
    from decodescope.core.models.loaded_model import LoadedModel

NewRun = Callable[["RunDescription"], Callable[["Event"], None]]
"""Returns the function that receives the events of a new run."""


def unknown_origin(prompts: int) -> RunOrigin:
    """Return that nothing is known about a call."""
    return RunOrigin()


@dataclass(slots=True)
class CallInputs:
    """Properties of a `generate` call that are known before its first pass."""

    config: GenerationConfig
    strategy: str
    started: float
    """`time.perf_counter` at the start of the call."""
    top_n: int
    source: torch.Tensor | None = None
    """Encoder ids [B, S]; None for decoder-only models and encoders of media."""
    mask: torch.Tensor | None = None
    """[B, T] of the prompts or sources; 0 where padded. None without padding."""
    chooses_tokens: bool = False
    """Whether a function of the caller chooses the tokens: it decides itself which texts go on after an end token."""
    find_origin: Callable[[int], RunOrigin] = unknown_origin
    """Returns what is known about a call with this number of prompts; called once, before the first event."""
    parent: CallRecorder | None = None
    """The loop inside whose `generate` call this one runs."""


@dataclass(frozen=True, slots=True)
class RunDescription:
    """Describes one run of a decoding loop, before its first event."""

    loop: CallRecorder
    prompt: CapturedPrompt
    origin: RunOrigin

    @property
    def inputs(self) -> CallInputs:
        """Properties of its `generate` call."""
        return self.loop.inputs


@dataclass(frozen=True, slots=True)
class ProcessedStep:
    """Scores of a step: before the first processor and after each, all [rows, V]."""

    length: int
    """Number of tokens before the step, padding included."""
    scores: list[torch.Tensor]
    headings: Sequence[StageHeading]


FiredCriterion = tuple[object, list[bool]]
"""A stopping criterion, and for each row whether it is met."""


class CallRecorder:
    """Base of the recorders: the runs of a call, and callbacks that a decoding loop triggers in this order: `forward`,
    `processed`, `stopped`.
    """

    def __init__(self, model: LoadedModel, inputs: CallInputs, new_run: NewRun) -> None:
        self.model, self.inputs, self._new_run = model, inputs, new_run
        self.runs: list[RunWriter] = []
        self.cache: Cache | None = None
        self.decoding_pass_count = 0
        self.start_length = 0
        """Tokens per row before the first new one, padding included."""
        self._is_prefilled = False

    @property
    def rows_per_run(self) -> int:
        """Number of rows of the batch that belong to the same prompt."""
        return max(int(self.inputs.config.num_beams or 1), int(self.inputs.config.num_return_sequences or 1))

    @property
    def sequences_per_run(self) -> int:
        """Number of texts that each prompt returns."""
        return int(self.inputs.config.num_return_sequences or 1)

    def begin(self, ids: torch.Tensor) -> None:
        """Start the runs of decoder ids [rows, T], once; called before the first processed step."""
        if self.runs:
            return
        self.start_length = ids.shape[1]
        firsts = range(0, len(ids), self.rows_per_run)
        origin = self.inputs.find_origin(len(firsts))
        for first in firsts:
            prompt = self._prompt_of(ids, first)
            emit = self._new_run(RunDescription(self, prompt, origin))
            config, strategy = self.inputs.config, self.inputs.strategy
            self.runs.append(RunWriter(self.model, config, prompt, strategy, self.sequences_per_run, emit, origin))
        for run in self.runs:
            run.start(self.inputs.started, self.cache)
        if self.decoding_pass_count:
            self._emit_prefilled()

    def _prompt_of(self, ids: torch.Tensor, row: int) -> CapturedPrompt:
        own, mask, source = ids[row].tolist(), self.inputs.mask, self.inputs.source
        if self.model.is_encoder_decoder:
            index = row // self.rows_per_run
            words = source[index].tolist() if source is not None else []
            return CapturedPrompt(_without_padding(words, mask, index), own, own[1:])
        own = _without_padding(own, mask, row // self.rows_per_run)
        return CapturedPrompt(own, own)

    def forward(self, cache: Cache | None) -> None:
        """Note a pass of the model; `cache` is the cache after it."""
        self.cache = cache
        self.decoding_pass_count += 1
        for run in self.runs:
            run.passes += 1
        if not self._is_prefilled and self.runs:
            self._emit_prefilled()

    def _emit_prefilled(self) -> None:
        self._is_prefilled = True
        for run in self.runs:
            run.passes = max(run.passes, self.decoding_pass_count)
            run.prefilled()

    def processed(self, ids: torch.Tensor, step: ProcessedStep) -> None:
        """Receive the scores of a step after the tokens `ids` [rows, T]."""
        raise NotImplementedError

    def stopped(self, ids: torch.Tensor, done: list[bool], fired: list[FiredCriterion]) -> None:
        """Receive the result of the stopping criteria for the extended tokens `ids` [rows, T + n]."""
        raise NotImplementedError

    def finish(self, result: torch.Tensor | None) -> None:
        """End the call; `result` are the returned ids [rows, T]."""
        self._measure(max((len(one.ids) for run in self.runs for one in run.sequences), default=0), is_due=True)
        for run in self.runs:
            run.finish()

    @property
    def padding(self) -> frozenset[int]:
        """Ids with which `generate` fills rows that have ended."""
        config = self.inputs.config
        pad = getattr(config, "_pad_token_tensor", None)
        pad = config.pad_token_id if pad is None else int(pad.reshape(-1)[0])
        return frozenset({pad} if isinstance(pad, int) else ()) | end_tokens(config)

    def recorded_rows(self) -> list[list[int]]:
        """Return the recorded new tokens of each text, in the order in which `generate` returns them."""
        return [sequence.ids for run in self.runs for sequence in run.sequences]

    def start_ids(self, number: int) -> list[int]:
        """Return the decoder's ids before the text of this number."""
        run = self.runs[min(number // max(self.sequences_per_run, 1), len(self.runs) - 1)]
        return run.prompt.start

    def explains(self, result: list[list[int]]) -> bool:
        """Return whether the returned rows are the recorded ones, with or without the prompt, and with padding."""
        recorded, padding = self.recorded_rows(), self.padding
        if len(recorded) != len(result):
            return False
        return all(
            any(
                row[start : start + len(ids)] == ids and padding.issuperset(row[start + len(ids) :])
                for start in (self.start_length, 0)
            )
            for row, ids in zip(result, recorded, strict=True)
        )

    def _measure(self, step: int, is_due: bool = False) -> None:
        for run in self.runs:
            run.measure_cache(step, self.cache, len(self.runs), is_due)

    def stop_reason(
        self, run: RunWriter, token: int, count: int, row: int, fired: Sequence[FiredCriterion], tail: Sequence[int]
    ) -> StopReason:
        """Return why a row ends with `token`, its `count`-th, by the criteria that were met. `tail`: its last ids."""
        names = [type(criterion).__name__ for criterion, met in fired if met[row]]
        if token in run.eos and ("EosTokenCriteria" in names or not names):
            return StopReason("eos")
        if "StopStringCriteria" in names:
            return StopReason("stop_string", self._stop_string(tail))
        if "MaxLengthCriteria" in names:
            return StopReason("length", limit=run.max_new_tokens or count)
        if "MaxTimeCriteria" in names:
            return StopReason("time", limit=self.inputs.config.max_time)
        return StopReason("stopped")

    def _stop_string(self, tail: Sequence[int]) -> str:
        """Return the stop string that ends inside the last of these tokens; the first one if that is unclear."""
        given = self.inputs.config.stop_strings or ()
        strings = [given] if isinstance(given, str) else list(given)
        text = "".join(self.model.pieces.texts(tail))
        before = "".join(self.model.pieces.texts(tail[:-1]))
        found = (string for string in strings if text.find(string, max(0, len(before) - len(string) + 1)) >= 0)
        return next(found, strings[0] if strings else "")


def _without_padding(ids: list[int], mask: torch.Tensor | None, index: int) -> list[int]:
    if mask is None or index >= len(mask) or mask.dim() != 2 or mask.shape[1] != len(ids):
        return ids
    return [token for token, is_seen in zip(ids, mask[index].tolist(), strict=True) if is_seen]


@dataclass(slots=True)
class _PossibleEnd:
    """A text that has ended, unless a later token goes on."""

    stop: StopReason
    held: list[tuple[StepStats, float]] = field(default_factory=list)
    """Padding since then, with the seconds of each."""


class SampleRecorder(CallRecorder):
    """Records greedy decoding, sampling, and the caller's own decoding functions with one token per row and step."""

    def __init__(self, model: LoadedModel, inputs: CallInputs, new_run: NewRun) -> None:
        super().__init__(model, inputs, new_run)
        self._pending: ProcessedStep | None = None
        self._method: Method = "sampled" if inputs.config.do_sample else "greedy"
        self._has_passed = False
        """Whether `forward` was called since the last step."""
        self._possible_ends: dict[int, _PossibleEnd] = {}
        """By row. `generate` pads a row that has ended if there is an end token. Without one, or in a function of the
        caller, the row may go on."""
        self._pads_rows = not inputs.chooses_tokens

    def forward(self, cache: Cache | None) -> None:
        """Note a pass of the model."""
        self._has_passed = True
        super().forward(cache)

    def processed(self, ids: torch.Tensor, step: ProcessedStep) -> None:
        """Keep the scores until the chosen tokens are known; write those of the step before, if nothing reported it."""
        self.begin(ids)
        if not self._has_passed:  # the caller's function calls the model by itself
            self.forward(self.cache)
        self._has_passed = False
        if self._pending is not None and ids.shape[1] == self._pending.length + 1:
            self.write(ids[:, -1], [False] * len(ids), [], ids)
        self._pending = step

    def stopped(self, ids: torch.Tensor, done: list[bool], fired: list[FiredCriterion]) -> None:
        """Write the step whose tokens are now the last column of `ids`."""
        if self._pending is not None and ids.shape[1] == self._pending.length + 1:
            if not self.inputs.chooses_tokens:
                self._pads_rows = any(hasattr(criterion, "eos_token_id") for criterion, _ in fired)
            self.write(ids[:, -1], done, fired, ids)

    def finish(self, result: torch.Tensor | None) -> None:
        """Write a last step that no criterion has seen, and end the texts."""
        pending = self._pending
        if pending is not None and result is not None and result.dim() == 2 and result.shape[1] > pending.length:
            self.write(result[:, pending.length], [False] * len(result), [], result)
        for index, run, sequence in self._rows(self.rows_per_run * len(self.runs)):
            ended = self._possible_ends.pop(index, None)
            if ended is None:
                continue
            if not self.inputs.chooses_tokens:
                self._release(ended, run, sequence)
            run.emit(stop_sequence(sequence, ended.stop))
        super().finish(result)

    def write(self, chosen: torch.Tensor, done: list[bool], fired: list[FiredCriterion], ids: torch.Tensor) -> None:
        """Write the pending step: the tokens that were chosen [rows], and which rows `ids` [rows, T] end."""
        assert self._pending is not None
        scores, headings, self._pending = self._pending.scores, self._pending.headings, None
        rows = [found for found in self._rows(len(ids)) if found[2].stop is None]
        if not rows or len(scores[0]) != len(ids):
            return
        if len(rows) < len(ids):
            picked = [index for index, _, _ in rows]
            scores, chosen = [one[picked] for one in scores], chosen[picked]
        begun = time.perf_counter()
        stats = compute_step_stats(scores, chosen.to(scores[0].device), self.inputs.top_n, headings, self.model.pieces)
        spent, laps = time.perf_counter() - begun, {id(run): run.lap() for run in self.runs}
        for (index, run, sequence), one in zip(rows, stats, strict=True):
            stop = None
            if done[index] or one.token in run.eos:
                tail = ids[index, -32:].tolist() if done[index] else []
                stop = self.stop_reason(run, one.token, len(sequence.ids) + 1, index, fired, tail)
            self._append(index, run, sequence, one, max(laps[id(run)] - spent, 0.0), stop)
        self._measure(max(len(sequence.ids) for _, _, sequence in rows) - 1)

    def _append(
        self, index: int, run: RunWriter, sequence: SequenceState, one: StepStats, seconds: float,
        stop: StopReason | None,
    ) -> None:  # fmt: skip
        if self._pads_rows:
            run.append(sequence, one, self._method, seconds, stop)
            return
        ended = self._possible_ends.get(index)
        if ended is not None and one.token in self.padding:
            ended.held.append((one, seconds))
            return
        if ended is not None:
            self._release(ended, run, sequence)
            if self.inputs.chooses_tokens:  # it ignores the end token
                del self._possible_ends[index]
        run.append(sequence, one, self._method, seconds, None)
        if stop is not None:
            self._possible_ends.setdefault(index, _PossibleEnd(stop))

    def _release(self, ended: _PossibleEnd, run: RunWriter, sequence: SequenceState) -> None:
        """Write the tokens that were no padding."""
        for one, seconds in ended.held:
            run.append(sequence, one, self._method, seconds, None)
        ended.held.clear()

    def _rows(self, count: int) -> Iterator[tuple[int, RunWriter, SequenceState]]:
        """Yield (row, run, sequence) of the rows that are returned."""
        for index in range(count):
            run_index, number = divmod(index, self.rows_per_run)
            if run_index < len(self.runs) and number < len(self.runs[run_index].sequences):
                yield index, self.runs[run_index], self.runs[run_index].sequences[number]
