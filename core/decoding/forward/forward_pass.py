"""Forward passes of one model over a growing text, with its cache or recurrent state."""

from __future__ import annotations

import copy as copying
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypedDict, Unpack

import torch
from transformers.cache_utils import Cache
from transformers.utils.generic import ModelOutput

from decodescope.core.caches.tensors.adapted_layer import RowMove
from decodescope.core.caches.tensors.cache_operations import copy, crop, reorder, self_attention_half, tokens_read
from decodescope.core.caches.tensors.continuation_probe import memory_kind, needs_explicit_positions
from decodescope.core.caches.tensors.dynamic_layers import PreallocatedLayer
from decodescope.core.caches.tensors.host_offload import wait_for_transfers
from decodescope.core.caches.tensors.sink import SinkCache
from decodescope.core.caches.tensors.static_layers import FixedSizeLayer, is_compiled, note_compiled_step
from decodescope.core.decoding.forward.fused_decoder import select_fused_pass
from decodescope.core.decoding.forward.graphed_pass import Epilogue, select_graphed_pass
from decodescope.core.decoding.forward.native_step import get_native_step
from decodescope.core.decoding.media_inputs.image_inputs import first_pass_inputs
from decodescope.core.decoding.media_inputs.media_inputs import MediaInputs
from decodescope.core.errors import StrategyError
from decodescope.core.models.loaded_model import LoadedModel, has_state_only
from decodescope.core.models.text_decoder import position_function
from decodescope.core.system.gpu import upload
from decodescope.resources.language import tr

Mask = torch.Tensor | dict[str, torch.Tensor]
"""Additive mask [.., n, P + n], or one per layer type."""


class TokenPositions(TypedDict, total=False):
    """Positions [1, n] and mask of the tokens in a pass. Defaults to following the text."""

    position_ids: torch.Tensor
    attention_mask: Mask


class _Outputs(Protocol):
    """A module's output; decoders return hidden states under `hidden_states` if requested."""

    logits: torch.Tensor
    decoder_hidden_states: tuple[torch.Tensor, ...] | None

    def get(self, name: str) -> tuple[torch.Tensor, ...] | None: ...


class _Module(Protocol):
    """The used interface of a transformers module that generates."""

    def __call__(self, **inputs: object) -> _Outputs: ...

    def prepare_inputs_for_generation(self, ids: torch.Tensor, /, **more: object) -> dict[str, object]: ...

    def _update_model_kwargs_for_generation(
        self, outputs: object, kwargs: dict[str, object], is_encoder_decoder: bool
    ) -> dict[str, object]: ...


_EXTRA_CAPACITY = 64
"""Tokens; a growing cache with room is not copied for each token: 1.12 to 1.20 times as fast, drafts aside."""


@dataclass(frozen=True, slots=True)
class ForwardOutput:
    """Result of one pass: float32 logits [B, n, V] of the last n positions, and hidden states if requested."""

    logits: torch.Tensor
    hidden: tuple[torch.Tensor, ...] | None
    """Embedding output and every layer's output, each [B, T, D]; the last one is the head's input."""
    choice: tuple[torch.Tensor, torch.Tensor] | None = None
    """What `Forward.epilogue` returned, if the pass was a CUDA graph; the next pass overwrites it."""

    @property
    def last(self) -> torch.Tensor:
        """Logits of the last position, [B, V]."""
        return self.logits[:, -1]


class Forward:
    """Feed tokens to a model; every call continues where the last one ended.

    Supports decoder-only models with a key–value cache, encoder–decoder models, Mamba-like models and, through
    transformers' own input preparation, models with another kind of cache.
    """

    def __init__(self, model: LoadedModel, cache: Cache | None) -> None:
        self.model = model
        self.cache: Any = cache
        self._module: _Module = model.model
        self.passes = 0
        self._has_read = False
        self._encoder: ModelOutput | None = None
        self._media: MediaInputs | None = None
        """Media inputs of the first pass, besides tokens."""
        self.offset = 0
        """Cache positions before the text's first token."""
        self._position_shift = 0
        """Offset between a token's position id and its index in the text."""
        self.extra_capacity = _EXTRA_CAPACITY
        """Minimum extra cache capacity reserved by native steps, in tokens, until the cache is compacted."""
        self.epilogue: Epilogue | None = None
        """Chooses the next token within a CUDA graph, where one repeats the pass."""
        self._extra: dict[str, object] = {}
        self._has_logits_to_keep = "logits_to_keep" in model.forward_parameters
        self._has_state_only = has_state_only(model)
        self._ids: torch.Tensor | None = None
        self._needs_positions = position_function(model.model) is not None or needs_explicit_positions(model)
        self._has_no_cache = cache is None and memory_kind(model) == "none"
        self._fused = select_fused_pass(model, cache)
        self._native = get_native_step(model, cache, self._fused)
        self._graphed = select_graphed_pass(model, cache, self._fused)

    @property
    def can_reorder(self) -> bool:
        """Whether rows can be reordered and repeated."""
        return self.cache is not None or self._has_no_cache

    def encode(self, source: torch.Tensor) -> None:
        """Run the encoder over source ids [B, S]; the decoder attends to its output from then on."""
        self.model.check_files()
        self.set_encoder_states(self.model.model.get_encoder()(input_ids=source, return_dict=True))

    def set_encoder_states(self, states: ModelOutput) -> None:
        """Set the encoder states that the decoder attends to."""
        self._encoder = states

    def set_media(self, media: MediaInputs) -> None:
        """Set image and audio inputs: encoder states, or extra inputs of the first pass."""
        if media.is_encoded:
            self.set_encoder_states(media.states)
            return
        self._media, self.offset, self._position_shift = media, media.leading_positions, media.position_shift
        self._fused = self._native = self._graphed = None

    def fork(self) -> Forward:
        """Return an independent copy at the same position of the text. Raises CacheError like `copy`."""
        twin = copying.copy(self)  # keeps what was detected about the model
        twin.cache, twin.passes, twin._has_read = copy(self.cache), 0, True
        if self._graphed is not None:
            twin._graphed = select_graphed_pass(self.model, twin.cache, self._fused)
        return twin

    def expand(self, copies: int) -> None:
        """Repeat every row of the cache `copies` times; a no-op for 1."""
        if copies == 1:
            return
        rows = torch.zeros(copies, dtype=torch.long, device=self.model.device)
        if self._encoder is not None:
            self._encoder = _select_encoder_rows(self._encoder, rows)
        self.reorder(rows)

    def reorder(self, rows: torch.Tensor) -> None:
        """Set row i of the cache to the former row `rows[i]`; rows may repeat or be left out."""
        if self.cache is not None:
            wait_for_transfers(self.cache)
            self.cache.reorder_cache(rows)
        if self._ids is not None:
            self._ids = self._ids.index_select(0, rows)

    def keep_row(self, row: torch.Tensor, rows: int) -> None:
        """Continue all `rows` rows, which differ in their last token only, from row `row` [1]."""
        arena = self._graphed.arena if self._graphed is not None else None
        if arena is not None:
            arena.keep_row(row, self.cache.get_seq_length())
            return
        own = None if self.cache is None else self_attention_half(self.cache)
        layers = [] if own is None else [layer for layer in own.layers if type(layer) is PreallocatedLayer]
        if own is None or own.offloading or len(layers) < len(own.layers):
            self.reorder(row.repeat(rows))
            return
        for layer in layers:
            layer.copy_last_token(row)

    def select_rows(self, rows: Sequence[int], before: int) -> None:
        """Continue row i from row `rows[i]` of `before` rows; moves only what changes (beams of one prompt)."""
        arena = self._graphed.arena if self._graphed is not None else None
        is_moved = (
            arena is not None
            and len(rows) == before
            and arena.reorder(RowMove(rows, before), self.cache.get_seq_length())
        )
        if is_moved:
            pass
        elif self.cache is not None:
            reorder(self.cache, rows, before)
        else:
            self.reorder(upload(rows, self.model.device))
        if self._encoder is not None and len(rows) != before:
            self._encoder = _select_encoder_rows(self._encoder, torch.zeros(len(rows), dtype=torch.long))

    def __call__(
        self, ids: torch.Tensor, *, keep: int = 1, hidden: bool = False, **extra: Unpack[TokenPositions]
    ) -> ForwardOutput:
        """Feed ids [B, n]; return logits of the last `keep` positions (all with 0). Raises CorruptWeightsError."""
        self.model.check_files()
        limit = self._max_pass_tokens(ids)
        if limit and ids.shape[1] > limit:
            return self._run_in_chunks(ids, keep, hidden, extra)
        if isinstance(self.cache, SinkCache) and ids.shape[1] > 1:
            self.cache.prepare_pass(ids.shape[1])
        mask, positions = extra.get("attention_mask"), extra.get("position_ids")
        # On the CPU, hidden states come from the module, whose native step and attention differ in the last digits.
        if not isinstance(mask, dict) and not (hidden and ids.device.type == "cpu"):
            if not hidden and self._native is not None and self._native.supports(ids, self.cache, bool(extra)):
                self.passes += 1
                return ForwardOutput(self._native(ids, self.cache, keep, mask, positions, self.extra_capacity), None)
            if self._graphed is not None:
                found = self._graphed(ids, keep, mask, positions, self.epilogue, hidden)
                if found is not None:
                    self.passes += 1
                    return ForwardOutput(found.logits, found.hidden, found.choice)
            if self._fused is not None and self._fuses(ids):
                self.passes += 1
                if hidden:
                    return ForwardOutput(*self._fused.with_states(ids, self.cache, keep, mask, positions))
                return ForwardOutput(self._fused(ids, self.cache, keep, mask, positions), None)
        outputs = self._run(ids, keep, hidden, extra)
        if self._is_compiled_step(ids.shape[1]):
            note_compiled_step(self.cache)
        self.passes += 1
        self._has_read = True
        logits = outputs.logits[:, -(keep or ids.shape[1]) :]
        if ids.device.type == "cuda" and self._is_compiled_step(ids.shape[1]):
            logits = logits.clone()  # the next launch of the CUDA graph overwrites its outputs
        states = outputs.decoder_hidden_states if self._encoder is not None else outputs.get("hidden_states")
        if hidden:
            _check_states(self.model, states)
        return ForwardOutput(logits.float(), states if hidden else None)

    def _fuses(self, ids: torch.Tensor) -> bool:
        """Return whether a fused pass reads these tokens."""
        return self._fused is not None and not self._is_compiled_step(ids.shape[1])

    def forward_with_states(self, ids: torch.Tensor, keep: int = 1, **extra: Unpack[TokenPositions]) -> ForwardOutput:
        """Feed ids like `__call__` and return the head's input [B, n, D] as the last (or only) element of `hidden`."""
        self.model.check_files()
        step, mask = self._native, extra.get("attention_mask")
        if (
            step is not None and self.model.dtype == torch.float32 and not isinstance(mask, dict)
            and step.supports(ids, self.cache, bool(extra))
        ):  # fmt: skip
            self.passes += 1
            logits, states = step.with_states(
                ids, self.cache, keep, mask, extra.get("position_ids"), self.extra_capacity
            )
            return ForwardOutput(logits, (states,))
        return self(ids, keep=keep, hidden=True, **extra)

    def continue_from(self, cache: Cache) -> None:
        """Take over a filled cache: the next call continues the text in it, including images and audio."""
        self.cache = cache
        if self._media is None:
            self._fused = select_fused_pass(self.model, cache)
            self._native = get_native_step(self.model, cache, self._fused)
            self._graphed = select_graphed_pass(self.model, cache, self._fused)
        self._has_read = True

    def release_storages(self) -> None:
        """Let other runs use the storages of CUDA graphs; the cache must not be read any more."""
        if self._graphed is not None:
            self._graphed.release()

    @property
    def can_retract(self) -> bool:
        """Whether `retract` is possible whatever the length of the text."""
        layers = () if self.cache is None else self_attention_half(self.cache).layers
        return bool(layers) and all(type(layer) in (PreallocatedLayer, FixedSizeLayer) for layer in layers)

    @torch.inference_mode()
    def retract(self) -> None:
        """Undo the last pass, of one token."""
        crop(self.cache, tokens_read(self.cache) - 1)
        self.passes -= 1

    def _max_pass_tokens(self, ids: torch.Tensor) -> int | None:
        """Return the maximum number of tokens of `ids` in one pass; None without a limit.

        A recurrent state continues token by token, and a pass with images ends before a placeholder token that was
        typed and represents no image.
        """
        if self._media is not None and not self._has_read:
            return self._media.index_of_unused_image_token(ids)
        if self.model.is_recurrent and self._has_read and self._encoder is None:
            return 1
        return self.cache.max_pass_length() if isinstance(self.cache, SinkCache) else None

    def _run_in_chunks(self, ids: torch.Tensor, keep: int, hidden: bool, extra: TokenPositions) -> ForwardOutput:
        """Feed `ids` in several passes, for caches that limit the tokens of one pass."""
        read: list[ForwardOutput] = []
        while ids.shape[1]:
            count = self._max_pass_tokens(ids) or ids.shape[1]
            read.append(self(ids[:, :count], keep=keep, hidden=hidden, **extra))
            ids = ids[:, count:]
        logits = torch.cat([output.logits for output in read], dim=1)
        states = [output.hidden for output in read if output.hidden is not None]
        joined = tuple(torch.cat(layer, dim=1) for layer in zip(*states, strict=True)) if states else None
        return ForwardOutput(logits[:, -keep:] if keep else logits, joined)

    def _run(self, ids: torch.Tensor, keep: int, hidden: bool, extra: TokenPositions) -> _Outputs:
        kwargs: dict[str, object] = {"use_cache": not self._has_no_cache, "return_dict": True, **extra}
        if hidden:
            kwargs["output_hidden_states"] = True
        if keep and self._has_logits_to_keep:
            kwargs["logits_to_keep"] = keep
        if self._has_no_cache:
            return self._run_full_text(ids, kwargs)
        cache_inputs: dict[str, object] = {self.model.cache_name: self.cache}
        if self._encoder is not None:
            return self._module_for(ids.shape[1])(
                decoder_input_ids=ids, encoder_outputs=self._encoder, **cache_inputs, **kwargs
            )
        if self._has_state_only:
            return self._run_state(ids, kwargs | cache_inputs)
        if self.cache is not None:
            kwargs.update(self._position_inputs(ids, kwargs.get("position_ids")))
            return self._module_for(ids.shape[1])(input_ids=ids, **cache_inputs, **kwargs)
        return self._run_prepared(ids, kwargs)

    def _position_inputs(self, ids: torch.Tensor, position_ids: object) -> dict[str, object]:
        """Return explicit positions for modules that number them differently, and the media inputs of the first
        pass.
        """
        if self._media is None and not self._needs_positions:
            return {}
        read = tokens_read(self.cache)
        if self._media is not None and not read:
            if self._media.is_inserted:
                return {**first_pass_inputs(self._media, ids)}
            return {"position_ids": torch.arange(ids.shape[1], device=ids.device)[None], **self._media.inputs}
        if isinstance(position_ids, torch.Tensor):
            return {"position_ids": position_ids + self._position_shift}
        begun = read - self.offset + self._position_shift
        return {"position_ids": torch.arange(begun, begun + ids.shape[1], device=ids.device)[None]}

    def _is_compiled_step(self, tokens: int) -> bool:
        return tokens == 1 and is_compiled(self.cache)

    def _module_for(self, tokens: int) -> _Module:
        """Return the module; for single steps on a compilable cache the compiled one (kept with the model)."""
        if not self._is_compiled_step(tokens):
            return self._module
        if "compiled" not in self.model.strategy_data:
            mode = "reduce-overhead" if self.model.device.type == "cuda" else "default"
            self.model.strategy_data["compiled"] = torch.compile(self.model.model, mode=mode, dynamic=False)
        compiled: _Module = self.model.strategy_data["compiled"]
        return compiled

    def _run_full_text(self, ids: torch.Tensor, kwargs: dict[str, object]) -> _Outputs:
        """Feed the full text to models without a cache, prepared as `generate` does (XLM requires a trailing mask
        token).
        """
        network = self._module
        self._ids = ids if self._ids is None else torch.cat([self._ids, ids], dim=1)
        more = {} if self._encoder is None else {"encoder_outputs": self._encoder}
        inputs = network.prepare_inputs_for_generation(
            self._ids, attention_mask=torch.ones_like(self._ids), use_cache=False, **more
        )
        return network(**{**inputs, **kwargs})

    def _run_state(self, ids: torch.Tensor, kwargs: dict[str, object]) -> _Outputs:
        """Run a model that creates its state on the first pass."""
        outputs = self._module(input_ids=ids, **kwargs)
        self.cache = getattr(outputs, self.model.cache_name)
        return outputs

    def _run_prepared(self, ids: torch.Tensor, kwargs: dict[str, object]) -> _Outputs:
        """Run a model with its own cache class, and let transformers manage it as `generate` does."""
        network, first = self._module, self._ids is None
        self._ids = ids if self._ids is None else torch.cat([self._ids, ids], dim=1)
        if first:
            self._extra = {"use_cache": True, "attention_mask": torch.ones_like(ids)}
        inputs = network.prepare_inputs_for_generation(
            self._ids, next_sequence_length=None if first else ids.shape[1], is_first_iteration=first, **self._extra
        )
        outputs = network(**{**inputs, **kwargs})
        self._extra = network._update_model_kwargs_for_generation(outputs, self._extra, is_encoder_decoder=False)
        return outputs


def _check_states(model: LoadedModel, states: Sequence[torch.Tensor] | None) -> None:
    """Raise StrategyError unless there is one hidden state [D] per token."""
    if not states or any(state.dim() != 3 for state in states):
        raise StrategyError(
            tr("{model} does not return one hidden state per token, which this strategy needs.").format(
                model=model.name
            ),
            tr("Choose another strategy or another model."),
        )


def _select_encoder_rows(encoder_output: ModelOutput, rows: torch.Tensor) -> ModelOutput:
    """Return encoder output with row `rows[i]` at row i; other fields are unchanged."""
    hidden = encoder_output["last_hidden_state"].index_select(0, rows.to(encoder_output["last_hidden_state"].device))
    return type(encoder_output)(**{**encoder_output, "last_hidden_state": hidden})
