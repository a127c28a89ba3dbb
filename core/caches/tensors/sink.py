"""StreamingLLM's cache: the first tokens and the latest, with positions counted within the cache (Xiao et al. 2024)."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial as partial_of

import torch
from transformers.cache_utils import DynamicCache, DynamicLayer

from decodescope.core.caches.tensors.adapted_layer import (
    AdaptedLayer,
    RowMove,
    Spans,
    StoredTensor,
    clone_layer,
    stored_tensor,
)
from decodescope.core.errors import CacheError
from decodescope.core.models.loaded_model import LoadedModel
from decodescope.resources.language import tr

RotaryTable = Callable[[torch.Tensor, torch.Tensor], tuple[torch.Tensor, torch.Tensor]]
"""(any tensor of the required dtype, positions [B, T]) → cosines and sines [B, T, R]."""
ApplyRotary = Callable[[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor], tuple[torch.Tensor, torch.Tensor]]
"""(queries, keys, cosines, sines) → rotated queries and keys."""


def rotary_functions(model: LoadedModel) -> tuple[RotaryTable, ApplyRotary] | None:
    """Return (module that computes cosines and sines, function that applies them), or None.

    None means that the model has no rotary positions, or does not apply them to the whole keys of every layer.
    """
    network = model.model
    table = getattr(network.get_decoder(), "rotary_emb", None)
    apply = getattr(sys.modules[type(network).__module__], "apply_rotary_pos_emb", None)
    if table is None or apply is None:
        return None
    if list(inspect.signature(apply).parameters)[:4] != ["q", "k", "cos", "sin"]:
        return None
    if list(inspect.signature(table.forward).parameters)[:2] != ["x", "position_ids"]:
        return None
    partial = any(getattr(model.config, name, None) for name in ("no_rope_layers", "kv_lora_rank", "nope_layers"))
    return None if partial else (_full_attention_table(table), apply)


def _full_attention_table(table: torch.nn.Module) -> RotaryTable:
    """Return the table of full-attention layers, for models with one table per layer type (Laguna, Mellum)."""
    by_kind = "layer_type" in inspect.signature(table.forward).parameters
    return partial_of(table, layer_type="full_attention") if by_kind else table


class KeyRotation:
    """Rotates keys [B, H, T, D] to text positions and back, in float32."""

    def __init__(self, model: LoadedModel) -> None:
        functions = rotary_functions(model)
        if functions is None:
            raise CacheError(
                tr("{model} has no rotary positions.").format(model=model.name), tr("Choose another cache.")
            )
        self._table, self._apply = functions
        self._cosines = self._sines = torch.empty(1, 0, 0, device=model.device)

    def rotate(self, keys: torch.Tensor, start: int) -> torch.Tensor:
        """Rotate keys to positions start, start + 1, …"""
        cosines, sines = self._angles(start, start + keys.shape[-2])
        return self._apply_angles(keys, cosines, sines)

    def unrotate(self, keys: torch.Tensor, start: int) -> torch.Tensor:
        """Rotate keys back to position 0. Rotations that also scale are unscaled."""
        cosines, sines = self._angles(start, start + keys.shape[-2])
        square = cosines.square() + sines.square()
        return self._apply_angles(keys, cosines / square, -sines / square)

    def _apply_angles(self, keys: torch.Tensor, cosines: torch.Tensor, sines: torch.Tensor) -> torch.Tensor:
        width = cosines.shape[-1]
        part = keys[..., :width].float()
        turned = self._apply(part, part, cosines, sines)[1].to(keys.dtype)
        return turned if width == keys.shape[-1] else torch.cat([turned, keys[..., width:]], dim=-1)

    def _angles(self, start: int, stop: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Return cosines and sines [1, stop − start, R], cached up to the largest position used."""
        if stop > self._cosines.shape[1]:
            device = self._cosines.device
            places = torch.arange(max(stop, 256), device=device)[None]
            self._cosines, self._sines = self._table(torch.empty(0, dtype=torch.float32, device=device), places)
        return self._cosines[:, start:stop], self._sines[:, start:stop]


class SinkLayer(DynamicLayer, AdaptedLayer):
    """Layer that stores keys [B, H, T, D] without their position and rotates them to their cache position in every
    pass.

    At most `window` − 1 tokens remain after a pass, so that the next token fills the window. A pass of several tokens
    reads the held and the new tokens; `drop_oldest` makes room for them first.
    """

    keys: torch.Tensor
    values: torch.Tensor
    allows_fused_pass = True
    keeps_original_keys = False

    def __init__(self, rotary: KeyRotation, window: int, sinks: int) -> None:
        DynamicLayer.__init__(self)
        self.rotary, self.window, self.sinks = rotary, window, sinks
        self.seen = 0
        """Tokens read since the start of the text, dropped ones included."""

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *args: object, **kwargs: object
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Add tokens whose keys are rotated to the positions after those held; return everything they attend to."""
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        held = self.get_seq_length()
        keys = torch.cat([self.keys, self.rotary.unrotate(key_states, held)], dim=-2)
        values = torch.cat([self.values, value_states], dim=-2)
        self.seen += key_states.shape[-2]
        self.keys, self.values = self._within_window(keys), self._within_window(values)
        return self.rotary.rotate(keys, 0), values

    def drop_oldest(self, new: int) -> None:
        """Drop the oldest tokens except the sinks until `new` tokens fit into the window."""
        if self.is_initialized:
            self.keys, self.values = self._within_window(self.keys, new), self._within_window(self.values, new)

    def tokens_read(self) -> int:
        """Return the number of tokens read, dropped ones included."""
        return self.seen

    def held_spans(self) -> Spans:
        """Return the text positions, [start, stop), of the tokens held: the sinks and the latest."""
        count = self.get_seq_length()
        if count == self.seen:
            return ((0, count),)
        return ((0, self.sinks), (self.seen - count + self.sinks, self.seen))

    def min_length(self) -> int:
        """Return the shortest length it can be cropped to; once a token was dropped, it cannot be cropped."""
        return 0 if self.seen == self.get_seq_length() else self.seen

    def truncate(self, length: int, total: int) -> None:
        """Drop all but the first `length` tokens of the text. Raises CacheError once any token was dropped."""
        if length >= self.seen:
            return
        if self.min_length():
            raise CacheError(
                tr("A sink cache cannot restore tokens that it has dropped."), tr("Choose the dynamic cache.")
            )
        self.keys, self.values = self.keys[:, :, :length].clone(), self.values[:, :, :length].clone()
        self.seen = length

    def keep_rows(self, base: int, rows: Sequence[int]) -> None:
        """Raise CacheError: cache positions are not text positions."""
        raise CacheError(tr("A sink cache cannot keep only selected positions."), tr("Choose the dynamic cache."))

    def reorder(self, move: RowMove) -> None:
        """Reorder the rows, which all hold the same positions."""
        self.reorder_cache(move.index(self.keys.device if self.is_initialized else torch.device("cpu")))

    def states(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Return keys and values as stored."""
        return self.keys, self.values

    def clone(self) -> SinkLayer:
        """Return an independent layer with the same content."""
        return clone_layer(self)

    def stored_tensors(self) -> Iterator[StoredTensor]:
        """Yield keys and values."""
        if self.is_initialized:
            yield from (stored_tensor("keys", self.keys), stored_tensor("values", self.values))

    def _within_window(self, tensor: torch.Tensor, new: int = 1) -> torch.Tensor:
        over = tensor.shape[-2] - (self.window - new)
        if over <= 0 or not tensor.numel():
            return tensor
        return torch.cat([tensor[:, :, : self.sinks], tensor[:, :, self.sinks + over :]], dim=-2)


class SinkCache(DynamicCache):
    """A cache of sink layers."""

    def __init__(self, model: LoadedModel, window: int, sinks: int) -> None:
        super().__init__(config=model.config)
        rotary = KeyRotation(model)
        self.layers = [SinkLayer(rotary, window, sinks) for _ in self.layers]
        self._window, self._chunk = window, max(1, (window - sinks) // 2)

    def max_pass_length(self) -> int:
        """Return the maximum number of tokens in the next pass: the free positions of the window, or half of it without
        sinks.
        """
        return max(self._window - int(self.get_seq_length()), self._chunk)

    def prepare_pass(self, new: int) -> None:
        """Prepare for a pass of `new` tokens, so that neither memory nor positions exceed the window."""
        for layer in self.layers:
            if isinstance(layer, SinkLayer):
                layer.drop_oldest(new)


def build_sink(model: LoadedModel, window: int, sinks: int) -> SinkCache:
    """Build an empty sink cache. Raises CacheError if the settings contradict each other or the model's context."""
    if window < sinks + 2:
        raise CacheError(
            tr("A window of {window:,} tokens is too small for {sinks:,} sink tokens.").format(
                window=window, sinks=sinks
            ),
            tr("Use a window of {least:,} or more.").format(least=sinks + 2),
        )
    if model.context is not None and window > model.context:
        raise CacheError(
            tr("The window of {window:,} tokens is longer than the model's context of {context:,}.").format(
                window=window, context=model.context
            ),
            tr("Use a window of {context:,} or less.").format(context=model.context),
        )
    return SinkCache(model, window, sinks)
