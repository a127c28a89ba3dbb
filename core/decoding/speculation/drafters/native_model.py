"""A small draft model's passes in machine code, where the quick step is built: a pass is one call, for one token or for
a level of a tree."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import torch
from transformers import DynamicCache

from core.decoding.forward.native_step import MAX_TOKENS, NativeDecodeStep, get_native_step
from core.decoding.speculation.drafters.numpy_model import Array, NumpyDraftModel, NumpyWeights, build_numpy_draft_model
from core.models.loaded_model import LoadedModel
from core.native import structs

_MAX_NATIVE_TOKENS = 2 * MAX_TOKENS
"""More text tokens than these are read by the tensors' pass at once."""


class NativeDraftModel(NumpyDraftModel):
    """The same memory, read and written where it lies."""

    def __init__(self, weights: NumpyWeights, step: NativeDecodeStep) -> None:
        super().__init__(weights)
        self._step_kernel = step
        pointers = ctypes.c_void_p * len(weights.layers)
        self._key_addresses, self._value_addresses = pointers(), pointers()
        self._capacities = (ctypes.c_int64 * len(weights.layers))()
        keys, values = ctypes.addressof(self._key_addresses), ctypes.addressof(self._value_addresses)
        places = ctypes.addressof(self._capacities)
        self._pass = structs.PassStruct(
            texts=1, old_keys=keys, new_keys=keys, old_values=values, new_values=values, old_places=places,
            new_places=places,
        )  # fmt: skip
        self._ignored_index, self._argmax_result = ctypes.c_int64(0), (ctypes.c_float * 4)()
        self._record_addresses()

    def read_text(self, ids: torch.Tensor) -> torch.Tensor:
        """Read text tokens [1, n] for good; logits [1, V] behind the last one."""
        if ids.shape[1] > _MAX_NATIVE_TOKENS:
            return self._read_with_fused_pass(ids)
        tokens: list[int] = ids[0].tolist()
        for begin in range(0, len(tokens), MAX_TOKENS):
            some = tokens[begin : begin + MAX_TOKENS]
            logits = self._run(some, 1, None, None)
            self.length += len(some)
        return logits

    def read_nodes(self, ids: torch.Tensor, depths: Sequence[int], sees: npt.NDArray[np.bool_]) -> torch.Tensor:
        """Read nodes [1, n] behind the text; logits [n, V]. `depths` and `sees` [n, extra + n] as in `Passes`."""
        found, tokens = list[torch.Tensor](), ids[0].tolist()
        for begin in range(0, len(tokens), MAX_TOKENS):
            some = tokens[begin : begin + MAX_TOKENS]
            own = sees[begin : begin + MAX_TOKENS, : self.extra + len(some)]
            places = np.asarray(depths[begin : begin + MAX_TOKENS], np.int64) + self.length
            plain = len(some) == 1 and bool(own.all())
            found.append(self._run(some, len(some), None if plain else self._mask(own), places))
            self.extra += len(some)
        return found[0] if len(found) == 1 else torch.cat(found)

    def read_next(self, token: int) -> torch.Tensor:
        """Read one node behind all that was read so far; logits [1, V]."""
        logits = self._run((token,), 1, None, None)
        self.extra += 1
        return logits

    def argmax(self, logits: torch.Tensor) -> tuple[int, float]:
        """The first choice of logits [1, V] and its probability."""
        self._step_kernel.argmax(
            logits.data_ptr(), 1, ctypes.addressof(self._ignored_index), ctypes.addressof(self._argmax_result)
        )
        token, share, *_ = self._argmax_result
        return int(token), share

    def _run(
        self, tokens: Sequence[int], keep: int, mask: Array | None, places: npt.NDArray[np.int64] | None
    ) -> torch.Tensor:
        """Logits [keep, V] of the last of these tokens; their keys and values go behind those that are held."""
        past, one = self.length + self.extra, self._pass
        self._ensure_capacity(past + len(tokens))
        hidden = self.weights.embed[list(tokens)]
        logits = torch.empty(keep, self._step_kernel.vocabulary)
        one.count, one.past, one.keep, one.threads = len(tokens), past, keep, torch.get_num_threads()
        one.hidden, one.logits = hidden.ctypes.data, logits.data_ptr()
        one.mask = None if mask is None else mask.ctypes.data
        one.positions = None if places is None else places.ctypes.data
        self._step_kernel.run_pass(one, past + len(tokens))
        return logits

    def _mask(self, seen: npt.NDArray[np.bool_]) -> Array:
        """Additive [n, length + rows]: all of the text is seen."""
        mask = np.zeros((len(seen), self.length + seen.shape[1]), np.float32)
        mask[:, self.length :][~seen] = -np.inf
        return mask

    def _ensure_capacity(self, needed: int) -> None:
        room = self._keys.shape[2]
        super()._ensure_capacity(needed)
        if self._keys.shape[2] != room:
            self._record_addresses()

    def _record_addresses(self) -> None:
        """Where keys and values lie now."""
        for index, (keys, values) in enumerate(zip(self._keys, self._values, strict=True)):
            self._key_addresses[index], self._value_addresses[index] = keys.ctypes.data, values.ctypes.data
            self._capacities[index] = keys.shape[1]


def build_small_draft_model(model: LoadedModel) -> NumpyDraftModel | None:
    """Passes of a small Llama-like model: in machine code where that is built, else on arrays; None for any other."""
    arrays = build_numpy_draft_model(model)
    step = None if arrays is None else get_native_step(model, DynamicCache(), arrays.weights.fused)
    return arrays if arrays is None or step is None else NativeDraftModel(arrays.weights, step)
