"""Detect whether a model scores drafts correctly, chains and trees, by a test on the model itself, once.

The test does what speculation does: read several tokens after a text in one pass, remove some of them, and read the
next one. All scores must equal those of single steps. The text is longer than any window, as far as that is cheap.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
import torch

from decodescope.core.caches.tensors import cache_operations
from decodescope.core.caches.tensors.continuation_probe import PROVEN_ARCHITECTURES, are_close, draft_cache, probe_text
from decodescope.core.decoding.forward.forward_pass import Forward, Mask, TokenPositions
from decodescope.core.decoding.speculation.tree import build_ancestor_mask
from decodescope.core.models.loaded_model import LoadedModel
from decodescope.core.models.text_decoder import dummy_encoder_outputs
from decodescope.core.system.device_memory import is_out_of_memory
from decodescope.core.system.gpu import upload, upload_array


class TreePositions:
    """Builds a model's position_ids and its 4-D additive float mask; windowed layers get the window in their mask
    too.
    """

    def __init__(self, model: LoadedModel) -> None:
        config = model.config
        self.window: int | None = sliding_window(config)
        self._layer_types: tuple[str, ...] = tuple(dict.fromkeys(getattr(config, "layer_types", None) or ()))
        self._device, self._dtype = model.device, model.dtype
        self._lowest = torch.finfo(self._dtype).min

    def build(
        self, length: int, depths: Sequence[int], visibility: npt.NDArray[np.bool_], offset: int = 0
    ) -> TokenPositions:
        """Return position_ids and attention_mask [1, 1, n, offset + length + rows] for nodes.

        The nodes are at `depths` after `length` tokens and see [n, rows]; `offset` cache positions come before the
        text.
        """
        position = upload([[length + depth for depth in depths]], self._device)
        return {"position_ids": position, "attention_mask": self._mask(offset + length, depths, visibility)}

    def _mask(self, length: int, depths: Sequence[int], visibility: npt.NDArray[np.bool_]) -> Mask:
        blocked = np.zeros((visibility.shape[0], length + visibility.shape[1]), dtype=np.bool_)
        np.logical_not(visibility, out=blocked[:, length:])
        if self.window is None:
            return self._additive(blocked)
        near = blocked | self._window_mask(length, depths, visibility)
        if not self._layer_types:
            return self._additive(near)
        return {kind: self._additive(near if kind == "sliding_attention" else blocked) for kind in self._layer_types}

    def _window_mask(
        self, length: int, depths: Sequence[int], visibility: npt.NDArray[np.bool_]
    ) -> npt.NDArray[np.bool_]:
        """Return the rows that are a window or more away.

        A node's own row and those it sees are ordered by depth, so the depth of a seen row is its rank among them.
        """
        assert self.window is not None
        own = np.asarray(depths)[:, None]
        seen_depth = visibility.cumsum(1) - 1
        first = own - (visibility.sum(1, keepdims=True) - 1)  # depth of the first row after the text that a node sees
        is_outside_window = own - (first + seen_depth) >= self.window
        text = np.arange(length)[None] <= length + own - self.window
        return np.concatenate([text, is_outside_window & visibility], axis=1)

    def _additive(self, blocked: npt.NDArray[np.bool_]) -> torch.Tensor:
        mask = np.where(blocked, np.float32(self._lowest), np.float32(0.0))[None, None]
        return upload_array(mask, self._device, self._dtype)


def causal_visibility(count: int) -> npt.NDArray[np.bool_]:
    """Return a causal mask [n, n]: each row sees itself and those before it."""
    return np.tri(count, dtype=np.bool_)


def sliding_window(config: object) -> int | None:
    """Return the window size in tokens, including the current one; None when every layer sees everything."""
    window = getattr(config, "sliding_window", None)
    if not window or getattr(config, "use_sliding_window", True) is False:
        return None
    kinds = getattr(config, "layer_types", None)
    return None if kinds and "sliding_attention" not in kinds else int(window)


_TESTED_ARCHITECTURES = frozenset({"gemma2", "gemma3_text", "gpt2", "llama", "mistral", "qwen3"})
"""Architectures for which the test suite compares trees with plain passes."""
_NODES, _PARENTS, _DEPTHS = (4, 5, 6, 4), (-1, 0, 0, 2), (0, 1, 1, 2)


def supports_trees(model: LoadedModel) -> bool:
    """Return whether siblings can share a position under an explicit mask; if not, only chains are exact.

    Encoder–decoders derive positions from token order. Architectures outside the test suite are tested with a small
    tree, whose scores must equal those of its paths.
    """
    if model.is_encoder_decoder:
        return False
    return model.model.config.model_type in _TESTED_ARCHITECTURES or _tested_once(model, "places_nodes", _test_trees)


def supports_drafts(model: LoadedModel) -> bool:
    """Return whether several tokens after a text can be read at once and removed again, with the scores of single
    steps.
    """
    return model.model.config.model_type in PROVEN_ARCHITECTURES or _tested_once(model, "reads_drafts", _test_chains)


def _tested_once(model: LoadedModel, name: str, agrees: Callable[[LoadedModel], bool]) -> bool:
    """Return the result of the test: True for a model without weights (meta device), False if the test raises."""
    if next(model.model.parameters()).is_meta:
        return True
    if name not in model.strategy_data:
        try:
            model.strategy_data[name] = agrees(model)
        except Exception as error:
            if is_out_of_memory(error):
                raise
            model.strategy_data[name] = False
    return bool(model.strategy_data[name])


@torch.inference_mode()
def _test_trees(model: LoadedModel) -> bool:
    """Compare a pass over a tree with its paths."""
    text = _forward_after_text(model)
    expected = torch.cat([_step_logits(text.fork(), _path(node))[:, -1:] for node in range(len(_NODES))], dim=1)
    more = TreePositions(model).build(len(probe_text(model)), _DEPTHS, build_ancestor_mask(_PARENTS))
    return are_close(model, text(_row(model, _NODES), keep=0, **more).logits, expected)


@torch.inference_mode()
def _test_chains(model: LoadedModel) -> bool:
    """Compare a pass over a chain with single steps; then remove all but its first token and read them again."""
    text = _forward_after_text(model)
    expected = _step_logits(text.fork(), _NODES)
    if not are_close(model, text(_row(model, _NODES), keep=0).logits, expected):
        return False
    cache_operations.crop(text.cache, len(probe_text(model)) + 1)
    cache_operations.compact(text.cache)
    return are_close(model, _step_logits(text, _NODES[1:]), expected[:, 1:])


def _forward_after_text(model: LoadedModel) -> Forward:
    """Return a pass after the test text, with a cache from which everything can be removed."""
    forward, ids = Forward(model, draft_cache(model)), _row(model, probe_text(model))
    if model.is_encoder_decoder:
        forward.set_encoder_states(dummy_encoder_outputs(model.model, ids))
    forward(ids)
    return forward


def _step_logits(forward: Forward, ids: Sequence[int]) -> torch.Tensor:
    """Return the logits after each token, [1, n, V]."""
    return torch.cat([forward(_row(forward.model, [token])).logits for token in ids], dim=1)


def _path(node: int) -> list[int]:
    """Return the tokens from the root to a node."""
    return [*(_path(_PARENTS[node]) if _PARENTS[node] >= 0 else ()), _NODES[node]]


def _row(model: LoadedModel, ids: Sequence[int]) -> torch.Tensor:
    return torch.tensor([list(ids)], device=model.device)
