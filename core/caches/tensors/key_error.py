"""How much quantizing takes from a model's keys and values, by bits and by what shares a scale."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from core.caches.tensors.layouts import full_width
from core.caches.tensors.quantized import Recipe, Store
from core.caches.tensors.quantizers import is_installed
from core.errors import CacheError
from core.models.model import LoadedModel


@dataclass(frozen=True, slots=True)
class QuantizationError:
    """One row of the table: relative errors ‖x − kept x‖ / ‖x‖ over all layers."""

    engine: str
    bits: int
    axis: str
    keys: float
    values: float


@torch.inference_mode()
def key_errors(
    model: LoadedModel, ids: Sequence[int], engines: Sequence[str] = ("built-in", "quanto", "hqq", "fp8")
) -> list[QuantizationError]:
    """Errors on what a decoder keeps of the text `ids` (64 tokens or more), for every width and axis there is."""
    cache = full_width(model)
    model.model(torch.tensor([list(ids)], device=model.device), past_key_values=cache, use_cache=True)
    rows = []
    for engine in filter(is_installed, engines):
        for bits in (1, 2, 4, 8):
            for axis in ("channel", "token"):
                recipe = Recipe(engine, bits, axis, axis)
                if engine == "fp8" and bits != 8:
                    continue
                try:
                    recipe.check()
                except CacheError:
                    continue
                errors = (
                    _error(recipe, [getattr(layer, part) for layer in cache.layers]) for part in ("keys", "values")
                )
                rows.append(QuantizationError(engine, bits, axis, *errors))
    return rows


def _error(recipe: Recipe, states: Sequence[Any]) -> float:
    lost = whole = 0.0
    for tensor in states:
        exact = tensor[:, :, : tensor.shape[2] // recipe.residual * recipe.residual]
        kept = Store(recipe, recipe.axis_key, recipe.check()).append(exact)
        lost += float((kept.float() - exact.float()).square().sum())
        whole += float(exact.float().square().sum())
    return float((lost / whole) ** 0.5) if whole else 0.0
