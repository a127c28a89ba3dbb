"""Find out how a model continues after a text by trying it once, and cache the result.

A cache works only if the module uses it: some modules keep nothing between calls (GPT, XLM), some keep their state
inside the module (RecurrentGemma), some rely on windowed layers having dropped tokens (Moshi). Their attributes do not
reveal it, so the probe compares the scores of two tokens read one by one with those of the full text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Literal

import torch
from transformers.cache_utils import Cache, get_layer_types_and_kwargs

from decodescope.core.caches.tensors.dynamic_layers import config_cache, with_cross_attention, without_windows
from decodescope.core.models.loaded_model import LoadedModel
from decodescope.core.models.text_decoder import dummy_encoder_outputs, reset_image_offset
from decodescope.core.system.device_memory import is_out_of_memory

MemoryKind = Literal["kept", "windows", "inside", "none"]
"""kept: in the cache; windows: in a cache that drops what its windows have passed; inside: in the module itself, for
one text at a time; none: nowhere, so that every token requires the full text.
"""
PROVEN_ARCHITECTURES = frozenset({
    "bart", "gemma", "gemma2", "gemma3_text", "gpt2", "gpt_neox", "llama", "mamba", "mistral", "mixtral", "olmo2",
    "phi3", "qwen2", "qwen3", "smollm3", "t5",
})  # fmt: skip
"""Architectures whose texts the tests compare with `generate` on every cache, so they need no probe."""
KNOWN_RESULTS: dict[str, MemoryKind] = {
    "cpmant": "none", "xlstm": "none", "moshi": "windows", "openai-gpt": "none", "recurrent_gemma": "inside",
    "xlm": "none",
}  # fmt: skip
"""Probe results of other architectures, for models without weights, which cannot be probed."""
_KEY, _POSITIONS_KEY = "memory", "counts_otherwise"
_WORK_BUDGET = 4e10
"""Budget of a probe's text in tokens · parameters; the text has at least `_LEAST` tokens."""
_MIN_TOKENS = 16
_AFTER_WINDOW = 5
"""Tokens after the widest window."""
_WINDOWS = ("window_size", "attention_window", "attention_window_size", "local_attn_chunk_length")
"""Config names of windows that transformers' caches ignore."""


def memory_kind(model: LoadedModel) -> MemoryKind:
    """Return where `model` keeps what it has read. Proven architectures and models without weights are looked up,
    others are probed.
    """
    found: MemoryKind | None = model.strategy_data.get(_KEY)
    if found is None:
        known = KNOWN_RESULTS.get(model.model.config.model_type, "kept")
        found = model.strategy_data[_KEY] = known if _skips_probe(model) else _probe(model)
    return found


def needs_explicit_positions(model: LoadedModel) -> bool:
    """Return whether the model would not number positions 0, 1, 2 … by default, and `generate` passes them explicitly
    (RoBERTa).
    """
    if _POSITIONS_KEY not in model.strategy_data:
        named = "position_ids" in model.forward_parameters and not model.is_encoder_decoder
        model.strategy_data[_POSITIONS_KEY] = named and not _skips_probe(model) and _positions_change_scores(model)
    return bool(model.strategy_data[_POSITIONS_KEY])


def probe_text(model: LoadedModel) -> list[int]:
    """Return token ids for a probe: longer than any window if that is affordable."""
    length = max([_MIN_TOKENS, *(window + _AFTER_WINDOW for window in window_widths(model))])
    length = min(length, max(_MIN_TOKENS, int(_WORK_BUDGET / model.parameters)), (model.context or length) - 4)
    first = min(5, model.vocabulary - 1)
    common = range(first, max(first + 1, model.vocabulary - 1))
    return [common[(7 * place * place + 3 * place) % len(common)] for place in range(max(4, length))]


def window_widths(model: LoadedModel) -> Iterator[int]:
    """Yield the widths of all windows in the model's config, under any name."""
    _, details = get_layer_types_and_kwargs(model.config)
    named = [getattr(model.config, name, None) for name in _WINDOWS]
    listed = [item for value in named for item in (value if isinstance(value, list) else [value])]
    return (int(window) for window in [*(d.get("sliding_window") for d in details), *listed] if window)


def are_close(model: LoadedModel, scores: torch.Tensor, expected: torch.Tensor) -> bool:
    """Return whether logits equal `expected` except for rounding."""
    lost, whole = float((scores - expected).float().norm()), float(expected.float().norm())
    tolerance = 1e-3 if model.dtype == torch.float32 else 0.1
    return bool(lost <= tolerance * whole)


def _skips_probe(model: LoadedModel) -> bool:
    """Return whether a probe is unnecessary or impossible: proven, without weights, or with its own cache class."""
    is_known = (
        model.model.config.model_type in PROVEN_ARCHITECTURES or not model.model._supports_default_dynamic_cache()
    )
    return is_known or bool(next(model.model.parameters()).is_meta)


@torch.inference_mode()
def _probe(model: LoadedModel) -> MemoryKind:
    reader = _ContinuationProbe(model)
    whole = _try_pass(reader.full_pass)
    if whole is None:
        return "kept"  # the module raises the same in a run, with a proper message
    own = _try_pass(lambda: reader.one_by_one(config_cache, between=True))
    if own is None:
        return "none"
    is_right = are_close(model, own, whole)
    if not is_right and not are_close(model, own, reader.one_by_one(config_cache)):
        return "inside"
    if any(window_widths(model)) and not are_close(model, reader.one_by_one(without_windows), own):
        return "windows"
    # A module whose full pass lets later tokens change earlier scores cannot be probed for its memory.
    is_judge = not is_right and are_close(model, reader.full_pass(omitted_tokens=1)[:, -1], whole[:, -2])
    return "none" if is_judge else "kept"


def _try_pass(run_pass: Callable[[], torch.Tensor]) -> torch.Tensor | None:
    """Return the logits, or None if a third-party module raises any exception."""
    try:
        return run_pass()
    except Exception as error:
        if is_out_of_memory(error):
            raise
        return None


@torch.inference_mode()
def _positions_change_scores(model: LoadedModel) -> bool:
    reader = _ContinuationProbe(model)
    places = torch.arange(reader.length, device=model.device)[None]
    explicit, default = _try_pass(lambda: reader.full_pass(position_ids=places)), _try_pass(reader.full_pass)
    return explicit is not None and default is not None and not are_close(model, default, explicit)


class _ContinuationProbe:
    """One text read in several ways; returns the logits of its last two positions."""

    def __init__(self, model: LoadedModel) -> None:
        self._model = model
        reset_image_offset(model.model)
        self._ids = torch.tensor([probe_text(model)], device=model.device)
        self.length = self._ids.shape[1]
        self._extra_inputs: dict[str, object] = {"return_dict": True}
        if model.is_encoder_decoder:
            self._extra_inputs["encoder_outputs"] = dummy_encoder_outputs(model.model, self._ids)
        self._name = "decoder_input_ids" if model.is_encoder_decoder else "input_ids"

    def full_pass(self, omitted_tokens: int = 0, **more: torch.Tensor) -> torch.Tensor:
        """Read the text without its last `omitted_tokens` in one pass, without a cache; return logits [1, 2, V]."""
        ids = self._ids[:, : self.length - omitted_tokens]
        return self._logits(ids, use_cache=False, **more)[:, -2:]

    def one_by_one(self, layout: Callable[[LoadedModel], Cache], between: bool = False) -> torch.Tensor:
        """Read the last two tokens one by one after the others. If `between`, read another text in a separate cache in
        between.
        """
        cache = with_cross_attention(self._model, layout(self._model))
        self._read(cache, self._ids[:, :-2])
        if between:
            self._read(with_cross_attention(self._model, layout(self._model)), self._ids[:, 1:4])
        return torch.cat([self._read(cache, self._ids[:, -2:-1]), self._read(cache, self._ids[:, -1:])], dim=1)

    def _read(self, cache: Cache, ids: torch.Tensor) -> torch.Tensor:
        """Return the logits of the last position, [1, 1, V]."""
        name = self._model.cache_name
        cache_arguments = {name: cache} if name in self._model.forward_parameters else {}
        return self._logits(ids, use_cache=True, **cache_arguments)[:, -1:]

    def _logits(self, ids: torch.Tensor, **more: object) -> torch.Tensor:
        logits: torch.Tensor = self._model.model(**{self._name: ids}, **self._extra_inputs, **more).logits
        return logits


def full_cache(model: LoadedModel) -> Cache:
    """Return a cache in which every layer keeps all tokens, windowed layers too, unless the model relies on its
    windows.
    """
    return config_cache(model) if keeps_windows(model) else without_windows(model)


def keeps_windows(model: LoadedModel) -> bool:
    """Return whether windowed layers keep only their window in every cache."""
    return memory_kind(model) == "windows"


def draft_cache(model: LoadedModel) -> Cache:
    """Return an empty cache that keeps every token and the past of its states, so that drafts can be removed."""
    cache = with_cross_attention(model, full_cache(model))
    cache.activate_past_recording()
    return cache
