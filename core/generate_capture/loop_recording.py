"""Record a decoding loop that does not use `generate`: `record_loop`."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch
from transformers import GenerationConfig

from decodescope.core.checks.arguments import check_kind
from decodescope.core.common.text import cut_short
from decodescope.core.decoding.banned_tokens import removes_tokens, without_banned
from decodescope.core.decoding.processor_pipeline import StageHeading
from decodescope.core.decoding.prompt import encode
from decodescope.core.decoding.step_stats import compute_step_stats
from decodescope.core.decoding.stopping import StopReason
from decodescope.core.errors import ParameterError
from decodescope.core.generate_capture.capture import CapturedRun, CapturedRunList, live_address, load_for_capture
from decodescope.core.generate_recording.call_facts import peft_adapters, read_generator
from decodescope.core.generate_recording.run_writer import CapturedPrompt, RunOrigin, RunWriter
from decodescope.core.models.weight_samples import hash_weights
from decodescope.core.parameter import Settings, short_repr
from decodescope.core.request import Request
from decodescope.core.settings import check_top_n, settings_by_name
from decodescope.core.system.torch_state import library_settings
from decodescope.resources.language import join_names, mark, tr

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

    from decodescope.core.events import Ending, Method
    from decodescope.core.models.loaded_model import LoadedModel
    from decodescope.core.trace import LiveAddress

Stages = Mapping[str, torch.Tensor] | Sequence[tuple[str, torch.Tensor]]
"""The scores after each stage of a step, [V] or [rows, V], by the stage's name, in order."""
_MAX_NAME = 100
_ENDINGS = ("eos", "length", "stop_string", "time", "stopped")


class LoopRecording:
    """The run of a decoding loop, inside a `with` block."""

    def __init__(
        self, loaded: LoadedModel, prompt: list[int], *, name: str, rows: int, settings: Settings, top_n: int,
        window: LiveAddress | None,
    ) -> None:  # fmt: skip
        self._loaded, self._prompt, self._name, self._rows = loaded, prompt, name, rows
        self._settings, self._top_n, self._window = settings, top_n, window
        self._runs = CapturedRunList()
        self._writer: RunWriter | None = None
        self._lock = threading.Lock()
        self._banning: set[str] = set()

    def __enter__(self) -> Self:
        if self._writer is not None:
            raise ParameterError(tr("This loop has been recorded already."), tr("Call record_loop for each loop."))
        with library_settings():
            self._begin()
        return self

    def _begin(self) -> None:
        model, rows = self._loaded, self._rows
        generator = read_generator(model.device)
        facts = (("function", self._name), ("weights", found := hash_weights(model.model)))
        request = Request(
            list(self._prompt), dict(self._settings), top_n=self._top_n, seed=generator.seed,
            generator_state=generator.state, call_facts=facts,
        )  # fmt: skip
        self._open = self._runs.add(request, self._window, None)
        config = GenerationConfig()
        known = {name: value for name, value in self._settings.items() if name in vars(config)}
        vars(config).update(known)
        start = self._prompt if not model.is_encoder_decoder else _decoder_start(model)
        origin = RunOrigin(facts, generator, peft_adapters(model.model), found)
        self._writer = RunWriter(
            model, config, CapturedPrompt(self._prompt, start), self._name, rows, self._open.receive, origin
        )
        self._writer.start(time.perf_counter(), None)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if error is None:
            self._started.finish()
        self._open.close(error)

    def __repr__(self) -> str:
        count = sum(len(one.ids) for one in self._writer.sequences) if self._writer is not None else 0
        return f"<{type(self).__name__}: {cut_short(self._name, _MAX_NAME)}, {count:,} tokens>"

    @property
    def run(self) -> CapturedRun:
        """The run so far. Raises ParameterError before the block."""
        if (found := self._runs.latest()) is not None:
            return found
        raise ParameterError(tr("The loop has not begun."), tr("Use the recording in a with block."))

    @property
    def _started(self) -> RunWriter:
        if self._writer is None:
            raise ParameterError(tr("The loop has not begun."), tr("Use the recording in a with block."))
        return self._writer

    def step(
        self, scores: torch.Tensor, chosen: torch.Tensor | int | Sequence[int], *, stages: Stages = (),
        method: Method = "greedy",
    ) -> None:  # fmt: skip
        """Record the next token of every text that has not ended.

        `scores`: the model's logits, [V] or [rows, V]; `chosen`: the chosen ids, one per row; `stages`: the scores
        after each stage, in order, by name; `method`: how the token was chosen (`greedy`, `sampled` or a name of your
        own). Scores are copied, and never changed. Raises ParameterError for other shapes, ids outside the vocabulary,
        or after all texts have ended.
        """
        with library_settings():
            self._record(scores, chosen, stages, method)

    def _record(self, scores: object, chosen: object, stages: object, method: Method) -> None:
        writer = self._started
        raw = self._checked_scores("scores", scores)
        ids = self._checked_ids(chosen, raw.shape[-1])
        trace, headings = [without_banned(raw)], []
        for name, after in self._named(stages):
            found = self._checked_scores(name, after)
            if found.shape != raw.shape:
                raise _shape_error(name, found)
            if name not in self._banning and removes_tokens(trace[-1], found):
                self._banning.add(name)
            headings.append(StageHeading(name, name, None, "ban" if name in self._banning else "shift", name))
            trace.append(without_banned(found))
        open_rows = [number for number, one in enumerate(writer.sequences) if one.stop is None]
        if not open_rows:
            raise ParameterError(tr("All texts of this loop have ended."), tr("Leave the block, or do not call end."))
        with self._lock, torch.no_grad():
            if not writer.passes:
                writer.prefilled()
            writer.passes += 1
            picked = [one[open_rows] for one in trace]
            kept = torch.tensor([ids[number] for number in open_rows], device=raw.device)
            begun = time.perf_counter()
            stats = compute_step_stats(picked, kept, self._top_n, headings, self._loaded.pieces)
            seconds = max(writer.lap() - (time.perf_counter() - begun), 0.0)
            for number, one in zip(open_rows, stats, strict=True):
                writer.append(writer.sequences[number], one, method, seconds, None)

    def end(self, row: object = 0, reason: Ending = "stopped") -> None:
        """End a text before the block ends, with the reason: eos, length, stop_string, time or stopped. Raises
        ParameterError.
        """
        sequences = self._started.sequences
        if not isinstance(row, int) or not 0 <= row < len(sequences):
            raise ParameterError(
                tr("There is no text {row}.").format(row=short_repr(row)),
                tr("The texts of this loop are 0 to {last:,}.").format(last=len(sequences) - 1), "row",
            )  # fmt: skip
        if reason not in _ENDINGS:
            raise ParameterError(
                tr("“{reason}” is not a reason for an end.").format(reason=short_repr(reason)),
                tr("Choose one of: {names}.").format(names=join_names(_ENDINGS)), "reason",
            )  # fmt: skip
        self._started.end(sequences[row], StopReason(reason))

    @staticmethod
    def _named(stages: object) -> Iterator[tuple[str, object]]:
        pairs = list(stages.items()) if isinstance(stages, Mapping) else stages
        if not isinstance(pairs, Sequence) or isinstance(pairs, str):
            raise ParameterError(tr("The stages are {value}.").format(value=short_repr(stages)), tr(_STAGES), "stages")
        for pair in pairs:
            if not isinstance(pair, tuple) or len(pair) != 2 or not isinstance(pair[0], str) or not pair[0]:
                raise ParameterError(
                    tr("The stages contain {value}.").format(value=short_repr(pair)), tr(_STAGES), "stages"
                )
            yield cut_short(pair[0], _MAX_NAME), pair[1]

    def _checked_scores(self, name: str, value: object) -> torch.Tensor:
        if not isinstance(value, torch.Tensor) or not value.is_floating_point():
            raise ParameterError(
                tr("{name} is {value}, not a tensor of numbers.").format(name=name, value=short_repr(value)),
                tr("Pass the logits [V], or [rows, V]."), name,
            )  # fmt: skip
        found = value.detach()
        found = found[None] if found.dim() == 1 else found
        if found.dim() != 2 or len(found) != self._rows or found.shape[1] < 1:
            raise _shape_error(name, value)
        return found.clone()

    def _checked_ids(self, chosen: object, vocabulary: int) -> list[int]:
        values = chosen.reshape(-1).tolist() if isinstance(chosen, torch.Tensor) else chosen
        ids = [values] if isinstance(values, int) else list(values) if isinstance(values, Sequence) else []
        if len(ids) != self._rows or not all(type(one) is int and 0 <= one < vocabulary for one in ids):
            raise ParameterError(
                tr("The chosen tokens are {value}.").format(value=short_repr(chosen)),
                tr("Pass one id per row, each from 0 to {last:,}.").format(last=vocabulary - 1), "chosen",
            )  # fmt: skip
        return ids


_STAGES = mark('Pass the scores after each stage by name, in order: {"my penalty": scores}.')


def _shape_error(name: str, value: torch.Tensor) -> ParameterError:
    return ParameterError(
        tr("{name} has the shape {shape}.").format(name=name, shape=list(value.shape)),
        tr("Pass the logits [V], or [rows, V] with the number of rows that record_loop was given."), name,
    )  # fmt: skip


def _decoder_start(model: LoadedModel) -> list[int]:
    start: Any = model.generation_config.decoder_start_token_id
    return [int(start)] if isinstance(start, int) else []


def record_loop(
    model: LoadedModel | torch.nn.Module,
    tokenizer: object = None,
    prompt: object = (),
    *,
    rows: int = 1,
    name: str = "own_loop",
    settings: Settings | None = None,
    top_n: int = 10,
    live: bool = False,
) -> LoopRecording:
    """Record a decoding loop of your own that does not use `generate`.

    `model` and `tokenizer` as for `capture`; `prompt`: a text, a chat, token ids or a tensor of ids [T] or [1, T];
    `rows`: number of texts that are written side by side; `name` and `settings` are shown with the run. `live` sends
    the run to an open window while it happens.

        with decodescope.record_loop(model, tokenizer, prompt) as loop:
            for _ in range(20):
                scores = model(ids).logits[0, -1]
                processed = my_penalty(ids, scores)
                chosen = int(processed.argmax())
                loop.step(scores, chosen, stages={"my penalty": processed})
                ids = torch.cat([ids, torch.tensor([[chosen]])], 1)
        loop.run.texts

    Raises ParameterError for invalid arguments, and what `encode` raises for the prompt.
    """
    check_top_n(top_n)
    check_kind("name", name, str, tr("Pass the name of the loop."))
    if type(rows) is not int or not 1 <= rows <= 100_000:
        raise ParameterError(
            tr("The number of rows is {value}.").format(value=short_repr(rows)), tr("Pass a number from 1."), "rows"
        )
    loaded = load_for_capture(model, tokenizer)
    given = {} if settings is None else settings_by_name("settings", settings)
    if isinstance(prompt, torch.Tensor):
        prompt = prompt.reshape(-1).tolist() if prompt.dim() == 1 or prompt.shape[:1] == (1,) else prompt.tolist()
    ids = encode(loaded, prompt)
    return LoopRecording(
        loaded, ids, name=cut_short(name.strip() or "own_loop", _MAX_NAME), rows=rows, settings=given, top_n=top_n,
        window=live_address(live),
    )  # fmt: skip
