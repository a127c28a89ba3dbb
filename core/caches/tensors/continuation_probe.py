"""How a model reads on behind a text, tried on the model itself once and remembered.

A cache is only as good as the module's use of it: some keep nothing between calls (GPT, XLM), some keep their state
inside the module (RecurrentGemma), some rely on windowed layers having forgotten (Moshi). What such a module says of
itself does not tell; whether two tokens read one by one score as they do in the whole text, does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Literal

import torch
from transformers.cache_utils import Cache, get_layer_types_and_kwargs

from core.caches.tensors.windowed import by_config, laid_full, with_cross
from core.device_memory import is_out_of_memory
from core.models.loaded_model import LoadedModel
from core.models.text_decoder import forget_pictures, source_for_trial

Memory = Literal["kept", "windows", "inside", "none"]
"""kept: in the cache, whatever it keeps; windows: in a cache that forgets what its windows have passed; inside: in the
module itself, for one text at a time; none: nowhere, so that every token needs the whole text."""
PROVEN = frozenset({
    "bart", "gemma", "gemma2", "gemma3_text", "gpt2", "gpt_neox", "llama", "mamba", "mistral", "mixtral", "olmo2",
    "phi3", "qwen2", "qwen3", "smollm3", "t5",
})  # fmt: skip
"""Architectures whose texts the tests hold against `generate` on every cache: they need no trial."""
KNOWN: dict[str, Memory] = {
    "cpmant": "none", "dory": "none", "moshi": "windows", "openai-gpt": "none", "recurrent_gemma": "inside",
    "xlm": "none",
}  # fmt: skip
"""Results of the trial for other architectures, for models without weights, which cannot be tried."""
_KEY, _COUNTS = "memory", "counts_otherwise"
_WORK = 4e10
"""Tokens · parameters that a trial's text may cost; never fewer tokens than `_LEAST`."""
_LEAST = 16
_BEYOND = 5
"""Tokens behind the widest window."""
_WINDOWS = ("window_size", "attention_window", "attention_window_size", "local_attn_chunk_length")
"""Names of windows that transformers' caches know nothing of."""


def memory_of(model: LoadedModel) -> Memory:
    """Where `model` keeps what it has read; by its architecture without a trial for proven ones, and for those without
    weights."""
    found: Memory | None = model.remembered.get(_KEY)
    if found is None:
        known = KNOWN.get(model.model.config.model_type, "kept")
        found = model.remembered[_KEY] = known if _is_beyond_trial(model) else _try(model)
    return found


def counts_otherwise(model: LoadedModel) -> bool:
    """It would not place tokens at 0, 1, 2 … by itself, and `generate` tells it to (RoBERTa)."""
    if _COUNTS not in model.remembered:
        named = "position_ids" in model.forward_parameters and not model.is_encoder_decoder
        model.remembered[_COUNTS] = named and not _is_beyond_trial(model) and _counts_otherwise(model)
    return bool(model.remembered[_COUNTS])


def trial_text(model: LoadedModel) -> list[int]:
    """Ids for a trial: a text longer than any window, as far as that is no work to speak of."""
    length = max([_LEAST, *(window + _BEYOND for window in windows_of(model))])
    length = min(length, max(_LEAST, int(_WORK / model.parameters)), (model.context or length) - 4)
    common = range(5, max(6, model.vocabulary - 1))
    return [common[(7 * place * place + 3 * place) % len(common)] for place in range(max(4, length))]


def windows_of(model: LoadedModel) -> Iterator[int]:
    """Tokens that any layer looks at, by whatever name."""
    _, details = get_layer_types_and_kwargs(model.config)
    named = [getattr(model.config, name, None) for name in _WINDOWS]
    listed = [item for value in named for item in (value if isinstance(value, list) else [value])]
    return (int(window) for window in [*(d.get("sliding_window") for d in details), *listed] if window)


def are_close(model: LoadedModel, scores: torch.Tensor, expected: torch.Tensor) -> bool:
    """Whether logits are those expected, but for rounding."""
    lost, whole = float((scores - expected).float().norm()), float(expected.float().norm())
    share = 1e-3 if model.dtype == torch.float32 else 0.1
    return bool(lost <= share * whole)


def _is_beyond_trial(model: LoadedModel) -> bool:
    """Proven, without weights, or with a memory that transformers leaves to the model."""
    is_known = model.model.config.model_type in PROVEN or not model.model._supports_default_dynamic_cache()
    return is_known or bool(next(model.model.parameters()).is_meta)


@torch.inference_mode()
def _try(model: LoadedModel) -> Memory:
    reader = _ContinuationProbe(model)
    whole = _attempt(reader.whole)
    if whole is None:
        return "kept"  # what a module raises here its runs will raise too, with words
    own = _attempt(lambda: reader.one_by_one(by_config, between=True))
    if own is None:
        return "none"
    is_right = are_close(model, own, whole)
    if not is_right and not are_close(model, own, reader.one_by_one(by_config)):
        return "inside"
    if any(windows_of(model)) and not are_close(model, reader.one_by_one(laid_full), own):
        return "windows"
    # A module whose whole pass lets later tokens change earlier scores is no judge of its memory.
    is_judge = not is_right and are_close(model, reader.whole(less=1)[:, -1], whole[:, -2])
    return "none" if is_judge else "kept"


def _attempt(read: Callable[[], torch.Tensor]) -> torch.Tensor | None:
    """Logits; None where a foreign module raises whatever it raises."""
    try:
        return read()
    except Exception as error:
        if is_out_of_memory(error):
            raise
        return None


@torch.inference_mode()
def _counts_otherwise(model: LoadedModel) -> bool:
    reader = _ContinuationProbe(model)
    places = torch.arange(reader.length, device=model.device)[None]
    told, own = _attempt(lambda: reader.whole(position_ids=places)), _attempt(reader.whole)
    return told is not None and own is not None and not are_close(model, own, told)


class _ContinuationProbe:
    """One text, read in several ways; logits of its last two places."""

    def __init__(self, model: LoadedModel) -> None:
        self._model = model
        forget_pictures(model.model)
        self._ids = torch.tensor([trial_text(model)], device=model.device)
        self.length = self._ids.shape[1]
        self._more: dict[str, object] = {"return_dict": True}
        if model.is_encoder_decoder:
            self._more["encoder_outputs"] = source_for_trial(model.model, self._ids)
        self._name = "decoder_input_ids" if model.is_encoder_decoder else "input_ids"

    def whole(self, less: int = 0, **more: torch.Tensor) -> torch.Tensor:
        """The text, without its last `less` tokens, in one pass that keeps nothing; [1, 2, V]."""
        ids = self._ids[:, : self.length - less]
        return self._logits(ids, use_cache=False, **more)[:, -2:]

    def one_by_one(self, layout: Callable[[LoadedModel], Cache], between: bool = False) -> torch.Tensor:
        """The last two tokens alone behind the others; `between` them another text is read in a cache of its own."""
        cache = with_cross(self._model, layout(self._model))
        self._read(cache, self._ids[:, :-2])
        if between:
            self._read(with_cross(self._model, layout(self._model)), self._ids[:, 1:4])
        return torch.cat([self._read(cache, self._ids[:, -2:-1]), self._read(cache, self._ids[:, -1:])], dim=1)

    def _read(self, cache: Cache, ids: torch.Tensor) -> torch.Tensor:
        """Logits of the last place, [1, 1, V]."""
        name = self._model.cache_name
        kept = {name: cache} if name in self._model.forward_parameters else {}
        return self._logits(ids, use_cache=True, **kept)[:, -1:]

    def _logits(self, ids: torch.Tensor, **more: object) -> torch.Tensor:
        logits: torch.Tensor = self._model.model(**{self._name: ids}, **self._more, **more).logits
        return logits
