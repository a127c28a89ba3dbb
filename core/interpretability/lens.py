"""The logit lens: the prediction of each layer, as if the network ended there (nostalgebraist 2020)."""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from transformers import DynamicCache
from transformers.modeling_outputs import MoEModelOutput

from decodescope.core.caches.tensors.continuation_probe import are_close
from decodescope.core.checks.arguments import check_cancel
from decodescope.core.common.setting_values import to_plain_value
from decodescope.core.decoding.forward.fused_decoder import get_fused_decoder
from decodescope.core.errors import InsideError
from decodescope.core.interpretability.native_text_pass import TextRemainder, native_text_pass
from decodescope.core.interpretability.step_query import StepQuery, new_forward, stack_ids, step_query
from decodescope.core.models.decoder_layers import get_layers, layer_path, replace_layers
from decodescope.core.models.error_translation import translate_iterator_errors
from decodescope.core.models.loaded_model import LoadedModel
from decodescope.core.native.native_library import library
from decodescope.core.native.tensor_address import tensor_address
from decodescope.core.notebook.result_rows import ResultRows
from decodescope.core.settings import check_paths
from decodescope.core.system.device_memory import is_out_of_memory
from decodescope.core.system.torch_state import isolated
from decodescope.resources.language import tr

if TYPE_CHECKING:
    from decodescope.core.models.text import Network

LayerHook = Callable[[int, tuple[object, ...], object], None]
"""Called with a layer's number, its inputs and its output."""


class LayerReader:
    """Reads the hidden states of a model's layers. Raises InsideError if no list of layers is found."""

    def __init__(self, model: LoadedModel) -> None:
        path = layer_path(model)
        if path is None:
            raise _unsupported_error(model, tr("its layers are not in a single list."))
        self._model, self._path = model, path
        self._states: list[torch.Tensor] = []
        self._last_output: object = None
        """Output of the last layer, in its original form."""
        self._constant_output: object = None
        """Output of the layers that compute nothing."""
        self._fused = get_fused_decoder(model)
        """Fused forward pass through the same layers, if supported."""
        self._native = None if self._fused is None else native_text_pass(model, self._fused)
        """Native pass, faster still, if built."""

    def read(self, question: StepQuery, count: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Return states [L + 1, n, D] of the last `count` tokens before a step (the embedding first), and the logits
        [V] after the last one, float32. Raises InsideError.
        """
        encoded, before = question.encoded, question.before
        if self._fused is not None and question.media_inputs is None:
            if self._native is not None:
                passed = self._native.states([TextRemainder(0, before)])[:, -count:]
            else:
                passed = self._fused.layer_states(stack_ids(self._model, [before]), DynamicCache())[:, 0, -count:]
            return passed, (self._native or self._fused).logits(passed[-1, -1:])[0]
        perceived = question.media_inputs
        room = len(before) + (perceived.leading_positions if perceived is not None else 0)
        forward = new_forward(self._observed_model, room, [encoded] if encoded else (), perceived)
        self._states.clear()
        logits = forward(stack_ids(self._model, [before])).last[0]
        states, self._states = self._states, []
        whole = [state for state in states if state.dim() == 3 and state.shape[:2] == (1, room)]
        if len(whole) != self._model.layers + 1 or len({state.shape[-1] for state in whole}) != 1:
            raise _unsupported_error(self._model, tr("its layers do not return one state of constant width per token."))
        return torch.stack([state[0, -count:] for state in whole]), logits

    def apply_head(self, states: torch.Tensor) -> torch.Tensor:
        """Return the float32 logits [n, V] of the network's head for states [n, D] of any layer."""
        if self._fused is not None:
            return (self._native or self._fused).logits(states)
        self._constant_output = _like_output(self._last_output, states[:, None])
        ids = torch.zeros(len(states), 1, dtype=torch.long, device=self._model.device)
        given: dict[str, object] = {"input_ids": ids}
        if self._model.is_encoder_decoder:
            source = MoEModelOutput(last_hidden_state=states[:, None])  # unused: the layers compute nothing
            given = {"decoder_input_ids": ids, "encoder_outputs": source}
        logits: torch.Tensor = self._identity_network(**given, use_cache=False, return_dict=True).logits
        return logits[:, -1].float()

    def check_head(self, states: torch.Tensor, logits: torch.Tensor) -> None:
        """Raise InsideError unless the last layer's states [L + 1, n, D] at the last position reproduce `logits`
        [V].
        """
        try:
            found = self.apply_head(states[-1, -1:])[0]
        except Exception as error:
            if is_out_of_memory(error):
                raise
            raise _unsupported_error(self._model, tr("its head cannot be run separately.")) from error
        if found.shape != logits.shape or not are_close(self._model, found, logits):
            raise _unsupported_error(self._model, tr("its logits do not depend on the last layer's state alone."))

    def _record(self, number: int, inputs: tuple[object, ...], output: object) -> None:
        if number == 0:
            self._states += [first for first in inputs if isinstance(first, torch.Tensor)][:1]
        self._last_output = output
        self._states.append(_output_state(output))

    @cached_property
    def _observed_model(self) -> LoadedModel:
        """The model with layers that report each pass."""
        layers = get_layers(self._model, self._path)
        return self._with_layers([_observed_layer(number, layer, self._record) for number, layer in enumerate(layers)])

    @cached_property
    def _identity_network(self) -> Network:
        """The network with the same number of layers, each returning a set output; outer modules may depend on each
        layer (Gemma 4's per-layer inputs).
        """
        return self._with_layers([self._constant_layer(layer) for layer in get_layers(self._model, self._path)]).model

    def _constant_layer(self, layer: torch.nn.Module) -> torch.nn.Module:
        twin = copy.copy(layer)
        vars(twin)["forward"] = lambda *given, **more: self._constant_output
        return twin

    def _with_layers(self, layers: list[torch.nn.Module]) -> LoadedModel:
        twin = replace_layers(self._model, self._path, layers)
        found = {name: known for name, known in self._model.strategy_data.items() if isinstance(known, (bool, str))}
        twin.strategy_data.update(found)  # reuse the results of earlier checks
        return twin


def _observed_layer(number: int, layer: torch.nn.Module, hook: LayerHook) -> torch.nn.Module:
    """Return a copy of the layer that reports each pass; the layer itself is unchanged."""
    twin, forward = copy.copy(layer), layer.forward

    def watched(*given: object, **more: object) -> object:
        gave = forward(*given, **more)
        hook(number, (*given, *more.values()), gave)
        return gave

    vars(twin)["forward"] = watched
    return twin


def _output_state(output: Any) -> torch.Tensor:
    """Return a layer's state, which is its output or the first item of its output."""
    state: torch.Tensor = output if isinstance(output, torch.Tensor) else output[0]
    return state


def _like_output(output: Any, state: torch.Tensor) -> object:
    return state if isinstance(output, torch.Tensor) else (state, *output[1:])


def _unsupported_error(model: LoadedModel, reason: str) -> InsideError:
    return InsideError(
        tr("The layers of {model} cannot be read as predictions: {reason}").format(model=model.name, reason=reason),
        tr("Use occlusion instead, which works with every model."),
    )


MAX_LOGITS = 2**18
"""Maximum number of logits per block; larger blocks leave the cache of one core."""
_MIN_BLOCK = 16
"""Minimum number of states per block for very large vocabularies, since each block reads the whole head."""
_STATISTICS_LOGITS = 2**17
"""Number of logits whose statistics are computed at a time, since several operations read the same numbers."""
_TOKENS_PER_BLOCK = 64
"""Tokens per block, so that a long text can be cancelled."""


class LensRow(NamedTuple):
    """One layer's prediction at one step."""

    layer: int
    """Number of layers passed: 0 is the embedding's output, the last row is the model itself."""
    first: int
    """Token id of the layer's top prediction."""
    first_probability: float
    probability: float
    """Probability of the chosen token."""
    rank: int
    """Rank of the chosen token; 1 is the layer's top prediction."""


class LensRows(ResultRows[LensRow]):
    """The rows of all layers; `texts` are the spellings of the first tokens."""

    bar = "probability"

    def columns(self) -> dict[str, list[object]]:
        """Return the table's columns by name."""
        found: dict[str, list[object]] = {name: [getattr(row, name) for row in self] for name in LensRow._fields}
        return {"layer": found.pop("layer"), "first_text": list(self.texts), **found}


@isolated
def lens(
    model: LoadedModel, ids: Sequence[int], step: int, *, source: int | None = None, media: Sequence[str | Path] = ()
) -> LensRows:
    """Return each layer's prediction at the step that chose `ids[step]` after `ids[:step]`, one row per layer, lowest
    first.

    The state of every layer at the last position before the step is put through the network's own final norm, head and
    whatever else follows. These are raw values: no layer was trained for this, and low ones are least reliable. The
    last row is the model's own distribution, without any settings of a run. `source`: how many of the first ids an
    encoder reads; default all before the step. `media`: audio and images of the run; the ids then begin with what the
    decoder reads first (`RunStarted.prompt`). Raises InsideError if the layers cannot be read this way, ParameterError,
    EmptyPromptError, PromptError, TextTooLongError, MediaError.
    """
    question = step_query(model, ids, step, source, media)
    rows = next(
        translate_iterator_errors(model, partial(_lens_rows, model, question, question.step, threading.Event()))
    )
    return LensRows(rows, [model.pieces[row.first] for row in rows])


@isolated
def lens_text(
    model: LoadedModel,
    ids: Sequence[int],
    first: int,
    *,
    source: int | None = None,
    media: Sequence[str | Path] = (),
    cancel: threading.Event | None = None,
) -> Iterator[tuple[LensRow, ...]]:
    """Return the lens rows of every token from index `first` on, from a single pass over the text.

    `source`: default all ids before `first`. `cancel` ends the iteration. Raises the errors of `lens`.
    """
    check_cancel(cancel)
    check_paths(media)
    first = to_plain_value(first)
    if not media:
        step_query(model, ids, first, source)
    question = step_query(
        model, ids, len(ids) - 1, first if source is None and model.is_encoder_decoder else source, media
    )
    return translate_iterator_errors(model, partial(_lens_rows, model, question, first, cancel or threading.Event()))


def _lens_rows(
    model: LoadedModel, question: StepQuery, first: int, cancel: threading.Event
) -> Iterator[tuple[LensRow, ...]]:
    """Yield the rows of the steps from `first` to the query's own."""
    layers = LayerReader(model)
    states, logits = layers.read(question, question.step - first + 1)
    layers.check_head(states, logits)
    for begin in range(0, states.shape[1], _TOKENS_PER_BLOCK):
        if cancel.is_set():
            return
        part = states[:, begin : begin + _TOKENS_PER_BLOCK]
        chosen = question.ids[first + begin : first + begin + part.shape[1]]
        yield from _block_rows(layers, part, chosen, model.vocabulary)


def _block_rows(
    layers: LayerReader, states: torch.Tensor, chosen: Sequence[int], width: int
) -> Iterator[tuple[LensRow, ...]]:
    """Yield the layer rows of each of n tokens `chosen`; states [L + 1, n, D]."""
    count, places, _ = states.shape
    chosen_ids = torch.tensor(chosen, device=states.device).repeat(count)
    found = _block_statistics(layers, states.flatten(0, 1), chosen_ids, width)
    firsts, tops, shares, ranks = (
        torch.cat(column).view(count, places).T.tolist() for column in zip(*found, strict=True)
    )
    for row in zip(firsts, tops, shares, ranks, strict=True):
        yield tuple(map(LensRow, range(count), *row))


def _block_statistics(
    layers: LayerReader, states: torch.Tensor, chosen: torch.Tensor, width: int
) -> Iterator[tuple[torch.Tensor, ...]]:
    """Yield top prediction, its probability, the chosen token's probability and rank, for blocks of states [n, D] and
    tokens [n].
    """
    scored = max(_MIN_BLOCK, MAX_LOGITS // width)
    for some, tokens in zip(torch.split(states, scored), torch.split(chosen, scored), strict=True):
        yield from _logit_statistics(layers.apply_head(some), tokens)


def _logit_statistics(logits: torch.Tensor, chosen: torch.Tensor) -> Iterator[tuple[torch.Tensor, ...]]:
    """Yield the same statistics, each [n], from logits [n, V]."""
    found = library() if logits.device.type == "cpu" and logits.is_contiguous() else None
    if found is None:
        read = max(1, _STATISTICS_LOGITS // logits.shape[1])
        yield from map(_logit_statistics_torch, torch.split(logits, read), torch.split(chosen, read))
        return
    statistics = logits.new_empty(len(logits), 4)
    chosen = chosen.contiguous()
    found.top_choices(
        tensor_address(logits, torch.float32), logits.shape, tensor_address(chosen, torch.int64, len(logits)),
        tensor_address(statistics, torch.float32),
    )  # fmt: skip
    first, top, share, rank = statistics.unbind(1)
    yield first.long(), top, share, rank.long()


def _logit_statistics_torch(logits: torch.Tensor, chosen: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Compute the statistics without the native library.

    Uses one buffer of the logits' size and operations that are fast on whole rows: for a small model, the plain ones
    (`max`, `logsumexp`, a sum of booleans) take as long as the head itself.
    """
    room, first = torch.empty_like(logits), _argmax_rows(logits)
    picked, top = logits.gather(1, chosen[:, None]), logits.gather(1, first[:, None])
    ranks = torch.gt(logits, picked, out=room).sum(-1).long() + 1
    whole = torch.sub(logits, top, out=room).exp_().sum(-1)
    return first, 1 / whole, (picked - top)[:, 0].exp() / whole, ranks


def _argmax_rows(logits: torch.Tensor) -> torch.Tensor:
    """Return the index of the largest value in each row; NumPy is ten times as fast on the CPU."""
    on_host = logits.device.type == "cpu"
    return torch.from_numpy(logits.numpy().argmax(-1)) if on_host else logits.argmax(-1)
