"""Prefixes in safetensors files, with the model they belong to and a checksum."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from transformers.cache_utils import Cache, DynamicCache, EncoderDecoderCache

from decodescope.core.caches.tensors.cache_operations import adapted_layers, cached_length, cross_layers, min_length
from decodescope.core.caches.tensors.layer_adapters import adapt_layer
from decodescope.core.common.program_name import NAME
from decodescope.core.common.text import cut_short
from decodescope.core.errors import CacheError
from decodescope.core.models.loaded_model import LoadedModel
from decodescope.core.models.model_files import is_file
from decodescope.core.models.quantized.packed_layers import content_hashes
from decodescope.core.system.file_writing import atomic_write
from decodescope.core.system.system_errors import system_error_reason, writing_remedy
from decodescope.core.system.torch_state import isolated
from decodescope.resources.language import tr

_IRRELEVANT_KEYS = {"_name_or_path", "name_or_path", "transformers_version", "architectures"}
"""Config keys that do not change what the model computes."""


def model_fingerprint(model: LoadedModel) -> str:
    """Return a hash that changes with the architecture, the configuration, the precision and every weight.

    All weights are read once; the result is cached until a weight is changed in place.
    """
    key = _count_changes(model), model.adapters.state
    known: tuple[object, str] | None = model.strategy_data.get("fingerprint")
    if known is None or known[0] != key:
        known = (key, _hash_model(model))
        model.strategy_data["fingerprint"] = known
    return known[1]


def prefix_digest(ids: str, tensors: Mapping[str, torch.Tensor]) -> str:
    """Return the hash of a prefix: its token ids and its named tensors."""
    return _hash_tensors(hashlib.blake2b(ids.encode()), tensors)


def _hash_model(model: LoadedModel) -> str:
    config = {name: value for name, value in model.model.config.to_dict().items() if name not in _IRRELEVANT_KEYS}
    hashes = content_hashes(model.model.modules())
    about = f"{type(model.model).__name__} {json.dumps(config, sort_keys=True, default=str)} {hashes}"
    if model.adapters.state:
        about += f" {model.adapters.state}"
    return _hash_tensors(hashlib.blake2b(about.encode()), dict(_tensors(model)))


def _tensors(model: LoadedModel) -> list[tuple[str, torch.Tensor]]:
    return [*model.model.named_parameters(), *model.model.named_buffers()]


def _count_changes(model: LoadedModel) -> int:
    """Return how often weights were changed in place, as torch counts it."""
    return sum(tensor._version for _, tensor in _tensors(model) if not tensor.is_inference())


def _hash_tensors(running: hashlib.blake2b, tensors: Mapping[str, torch.Tensor]) -> str:
    for name, tensor in tensors.items():
        running.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        running.update(_flat_cpu(tensor).view(torch.uint8).numpy().data)
    return str(running.hexdigest())


def _flat_cpu(tensor: torch.Tensor) -> torch.Tensor:
    """Return the elements of `tensor` as a flat CPU tensor; of an expanded scalar (placeholder of packed weights), its
    one element.
    """
    if tensor.numel() and not any(tensor.stride()):
        tensor = tensor[(0,) * tensor.dim()].reshape(1)
    return tensor.detach().to("cpu").contiguous().flatten()


Legacy = tuple[tuple[torch.Tensor, ...], ...]
"""Per layer: (keys, values), or (keys, values, cross keys, cross values); every tensor is [B, H, T, D]."""


def to_legacy(cache: Cache) -> Legacy:
    """Return the keys and values of every layer, cropped to the tokens held.

    Raises CacheError for caches that store them differently: states, quantized blocks, windows that have moved, sinks.
    """
    length = cached_length(cache)
    if min_length(cache) > 0 or not all(layer.keeps_original_keys for layer in adapted_layers(cache)):
        raise CacheError(
            tr("This cache does not hold the keys and values of every token."), tr("Use the dynamic cache.")
        )
    states = (layer.states() for layer in adapted_layers(cache))
    own = [(keys[:, :, :length], values[:, :, :length]) for keys, values in states]
    if not isinstance(cache, EncoderDecoderCache):
        return tuple(own)
    cross = [adapt_layer(layer).states() for layer in cross_layers(cache)]
    return tuple((*mine, *theirs) for mine, theirs in zip(own, cross, strict=True))


def from_legacy(layers: Sequence[Sequence[torch.Tensor]]) -> Cache:
    """Return a DynamicCache for pairs or an EncoderDecoderCache for groups of four; tensors are not copied.

    Raises CacheError for anything else.
    """
    if not layers or any(len(layer) not in (2, 4) for layer in layers) or len({len(layer) for layer in layers}) > 1:
        raise CacheError(
            tr("The input is not a tuple with (keys, values) for every layer."),
            tr("Pass two tensors, or four, for each layer."),
        )
    own = _dynamic([layer[:2] for layer in layers])
    return own if len(layers[0]) == 2 else EncoderDecoderCache(own, _dynamic([layer[2:] for layer in layers]))


def _dynamic(pairs: Sequence[Sequence[torch.Tensor]]) -> DynamicCache:
    cache = DynamicCache()
    for number, (keys, values) in enumerate(pairs):
        cache.update(keys, values, number)
    return cache


_FORMAT = f"{NAME}-prefix-2"
_MAX_NAME_LENGTH = 200
_Layout = list[list[tuple[int, int, torch.dtype]]]
"""For each layer, for its keys and values: heads, width, dtype."""


@isolated
def save_prefix(path: str | Path, model: LoadedModel, token_ids: Sequence[int], cache: Cache) -> None:
    """Save the keys and values of every layer of `cache`, the token ids in `token_ids`, and hashes of these and of the
    model.

    Raises CacheError.
    """
    if model.is_recurrent or model.is_encoder_decoder:
        raise CacheError(
            tr("{model} does not store its prompt as keys and values per token, so it cannot be saved.").format(
                model=model.name
            ),
            tr("Choose a decoder-only model with attention in every layer."),
        )
    tensors = {
        f"{number}.{part}": tensor.to("cpu").contiguous()
        for number, layer in enumerate(to_legacy(cache))
        for part, tensor in zip(("keys", "values"), layer, strict=True)
    }
    ids = json.dumps(list(token_ids))
    about = {
        "format": _FORMAT,
        "model": model.name.encode("utf-8", "replace").decode(),
        "fingerprint": model_fingerprint(model),
        "ids": ids,
        "digest": prefix_digest(ids, tensors),
    }
    try:
        if Path(path).exists() and not is_file(Path(path)):
            raise OSError(tr("it is not a regular file"))
        with atomic_write(Path(path)) as part:
            save_file(tensors, str(part), metadata=about)
    except (OSError, ValueError, SafetensorError) as error:
        raise CacheError(
            tr("The prefix could not be written to {path}: {error}.").format(
                path=path, error=system_error_reason(error)
            ),
            writing_remedy(error, tr("Choose another location.")),
        ) from error


@isolated
def load_prefix(path: str | Path, model: LoadedModel) -> tuple[list[int], Cache]:
    """Load token ids and a dynamic cache on the model's device. Raises CacheError."""
    about, tensors = _read(path, model)
    ids, layers = _parse_ids(about), _pair_layers(tensors)
    whole = about.get("digest") == prefix_digest(about.get("ids", ""), dict(sorted(tensors.items(), key=_tensor_order)))
    if not whole or not ids or max(ids) >= model.vocabulary or not _has_model_layout(layers, len(ids), model):
        raise CacheError(
            tr("{path} is damaged: its tokens and tensors do not match its checksum.").format(path=path),
            tr("Save the prefix again."),
        )
    return ids, from_legacy([[tensor.to(model.device) for tensor in layer] for layer in layers])


def _check_model(path: str | Path, metadata: dict[str, str], model: LoadedModel) -> None:
    if metadata.get("fingerprint") != model_fingerprint(model):
        raise CacheError(
            tr(
                "{path} was made by {made_with}, or by another version or precision of it, so {model} cannot use it."
            ).format(path=path, made_with=cut_short(str(metadata.get("model")), _MAX_NAME_LENGTH), model=model.name),
            tr("Load the model it was made with."),
        )


def _read(path: str | Path, model: LoadedModel) -> tuple[dict[str, str], dict[str, torch.Tensor]]:
    """Read the metadata of the file, check that it belongs to `model`, then read its tensors."""
    remedy = tr("Choose a prefix saved by this program.")
    if not is_file(Path(path)):
        raise CacheError(tr("{path} could not be read: it is not a regular file.").format(path=path), remedy)
    try:
        with safe_open(str(path), framework="pt", backend="pread") as file:
            about = file.metadata() or {}
            _check_format(path, about)
            _check_model(path, about, model)
            return about, {name: file.get_tensor(name) for name in file.keys()}
    except (OSError, ValueError, SafetensorError) as error:
        raise CacheError(
            tr("{path} could not be read: {error}.").format(path=path, error=system_error_reason(error)), remedy
        ) from error


def _check_format(path: str | Path, metadata: dict[str, str]) -> None:
    if metadata.get("format") != _FORMAT:
        raise CacheError(
            tr("{path} is not a saved prefix.").format(path=path), tr("Choose a prefix saved by this program.")
        )


def _parse_ids(metadata: dict[str, str]) -> list[int]:
    """Return the token ids, or [] if they are not non-negative integers."""
    try:
        ids = json.loads(metadata.get("ids", ""))
    except (ValueError, RecursionError):
        return []
    return ids if isinstance(ids, list) and all(type(token) is int and token >= 0 for token in ids) else []


def _pair_layers(tensors: dict[str, torch.Tensor]) -> Legacy:
    """Return (keys, values) pairs in layer order, or () if names are missing or unexpected."""
    count = len(tensors) // 2
    names = [(f"{number}.keys", f"{number}.values") for number in range(count)]
    if set(tensors) != {name for pair in names for name in pair}:
        return ()
    return tuple(tuple(tensors[name] for name in pair) for pair in names)


def _tensor_order(item: tuple[str, torch.Tensor]) -> tuple[int, str]:
    """Return the sort key of a tensor name: layer number, then part. Files list their tensors in any order."""
    number, _, part = item[0].partition(".")
    return (int(number) if number.isascii() and number.isdecimal() and len(number) < 9 else -1, part)


def _has_model_layout(layers: Legacy, tokens: int, model: LoadedModel) -> bool:
    """Return whether `layers` are keys and values of `tokens` tokens in the layout of `model`."""
    if not layers or any(tensor.dim() != 4 or tensor.shape[0] != 1 for layer in layers for tensor in layer):
        return False
    lengths = {tensor.shape[2] for layer in layers for tensor in layer}
    return lengths == {tokens} and _layout(layers) == _model_layout(model)


def _layout(layers: Legacy) -> _Layout:
    return [[(tensor.shape[1], tensor.shape[3], tensor.dtype) for tensor in layer] for layer in layers]


@torch.inference_mode()
def _model_layout(model: LoadedModel) -> _Layout:
    """Return the cache layout, found by reading one token: configurations name the sizes inconsistently."""
    cache, one = DynamicCache(), torch.zeros(1, 1, dtype=torch.long, device=model.device)
    model.model(input_ids=one, use_cache=True, **{model.cache_name: cache})
    return _layout(to_legacy(cache))
