"""Rotary positions, done and undone with the model's own functions."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from functools import partial as partial_of

import torch

from core.errors import CacheError
from core.models.loaded_model import LoadedModel
from resources.language import tr

RotaryTable = Callable[[torch.Tensor, torch.Tensor], tuple[torch.Tensor, torch.Tensor]]
"""(any tensor of the wanted type, positions [B, T]) → cosines and sines [B, T, R]."""
ApplyRotary = Callable[[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor], tuple[torch.Tensor, torch.Tensor]]
"""(queries, keys, cosines, sines) → queries and keys, turned."""


def rotary_functions(model: LoadedModel) -> tuple[RotaryTable, ApplyRotary] | None:
    """(module that makes cosines and sines from positions, function that applies them); None where a model has no
    rotary positions, or applies them in another way than to whole keys of every layer."""
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
    """The table of layers with full attention, where other kinds have tables of their own (Laguna, Mellum)."""
    by_kind = "layer_type" in inspect.signature(table.forward).parameters
    return partial_of(table, layer_type="full_attention") if by_kind else table


class KeyRotation:
    """Turns keys [B, H, T, D] to places in the text and back, in float32."""

    def __init__(self, model: LoadedModel) -> None:
        functions = rotary_functions(model)
        if functions is None:
            raise CacheError(
                tr("{model} has no rotary positions.").format(model=model.name), tr("Choose another cache.")
            )
        self._table, self._apply = functions
        self._cosines = self._sines = torch.empty(1, 0, 0, device=model.device)

    def rotate(self, keys: torch.Tensor, start: int) -> torch.Tensor:
        """Keys as the model sees them at places start, start + 1, …"""
        cosines, sines = self._angles(start, start + keys.shape[-2])
        return self._apply_angles(keys, cosines, sines)

    def unrotate(self, keys: torch.Tensor, start: int) -> torch.Tensor:
        """The inverse: keys without any place. Rotations that also scale are unscaled."""
        cosines, sines = self._angles(start, start + keys.shape[-2])
        square = cosines.square() + sines.square()
        return self._apply_angles(keys, cosines / square, -sines / square)

    def _apply_angles(self, keys: torch.Tensor, cosines: torch.Tensor, sines: torch.Tensor) -> torch.Tensor:
        width = cosines.shape[-1]
        part = keys[..., :width].float()
        turned = self._apply(part, part, cosines, sines)[1].to(keys.dtype)
        return turned if width == keys.shape[-1] else torch.cat([turned, keys[..., width:]], dim=-1)

    def _angles(self, start: int, stop: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Cosines and sines [1, stop − start, R], made once for all places up to the farthest seen."""
        if stop > self._cosines.shape[1]:
            device = self._cosines.device
            places = torch.arange(max(stop, 256), device=device)[None]
            self._cosines, self._sines = self._table(torch.empty(0, dtype=torch.float32, device=device), places)
        return self._cosines[:, start:stop], self._sines[:, start:stop]
