"""Prefixes in safetensors files, which say what they hold, of which model, and whether they are still whole."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from transformers.cache_utils import Cache, DynamicCache

from core.caches.prefixes.fingerprint import model_fingerprint, prefix_digest
from core.caches.tensors.legacy import Legacy, from_legacy, to_legacy
from core.errors import CacheError
from core.file_writing import atomic_write
from core.former_name import FORMER_NAME, NAME
from core.models.loaded_model import LoadedModel
from core.models.model_files import is_file
from core.text_truncation import cut_short
from resources.language import tr

_FORMAT = f"{NAME}-prefix-2"
_FORMATS = {_FORMAT, f"{FORMER_NAME}-prefix-2"}
_MAX_NAME_LENGTH = 200
_OLD_FORMATS = {f"{FORMER_NAME}-prefix-1"}
_Layout = list[list[tuple[int, int, torch.dtype]]]
"""Of each layer, of its keys and its values: heads, width, type."""


def save_prefix(path: str | Path, model: LoadedModel, token_ids: Sequence[int], cache: Cache) -> None:
    """Keys and values of every layer of `cache`, the token ids it has `token_ids`, and hashes of both and of the model.

    Raises CacheError.
    """
    if model.is_recurrent or model.is_encoder_decoder:
        raise CacheError(
            tr("{model} does not read its prompt into keys and values of single tokens that could be saved.").format(
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
        "format": _FORMAT, "model": model.name.encode("utf-8", "replace").decode(), "fingerprint": model_fingerprint(model),
        "ids": ids, "digest": prefix_digest(ids, tensors),
    }  # fmt: skip
    try:
        if Path(path).exists() and not is_file(Path(path)):
            raise OSError(tr("it is no regular file"))
        with atomic_write(Path(path)) as part:
            save_file(tensors, str(part), metadata=about)
    except (OSError, ValueError, SafetensorError) as error:
        raise CacheError(
            tr("The prefix could not be written to {path}: {error}").format(path=path, error=error),
            tr("Choose another place."),
        ) from error


def load_prefix(path: str | Path, model: LoadedModel) -> tuple[list[int], Cache]:
    """Token ids and a dynamic cache on the model's device. Raises CacheError."""
    about, tensors = _read(path, model)
    ids, layers = _parse_ids(about), _pair_layers(tensors)
    whole = about.get("digest") == prefix_digest(about.get("ids", ""), dict(sorted(tensors.items(), key=_tensor_order)))
    if not whole or not ids or max(ids) >= model.vocabulary or not _has_model_layout(layers, len(ids), model):
        raise CacheError(
            tr("{path} is damaged: its tokens and its tensors are not those that were saved.").format(path=path),
            tr("Save the prefix again."),
        )
    return ids, from_legacy([[tensor.to(model.device) for tensor in layer] for layer in layers])


def _check_model(path: str | Path, about: dict[str, str], model: LoadedModel) -> None:
    if about.get("fingerprint") != model_fingerprint(model):
        raise CacheError(
            tr(
                "{path} was made by {made_with}, or by another version or precision of it, and {model} "
                "would read nonsense from it."
            ).format(path=path, made_with=cut_short(str(about.get("model")), _MAX_NAME_LENGTH), model=model.name),
            tr("Load the model it was made with."),
        )


def _read(path: str | Path, model: LoadedModel) -> tuple[dict[str, str], dict[str, torch.Tensor]]:
    """What the file says of itself, and its tensors: those are read once it is known to be of this model."""
    remedy = tr("Choose a prefix saved by this program.")
    if not is_file(Path(path)):
        raise CacheError(tr("{path} could not be read: there is no such regular file.").format(path=path), remedy)
    try:
        with safe_open(str(path), framework="pt") as file:
            about = file.metadata() or {}
            _check_format(path, about)
            _check_model(path, about, model)
            return about, {name: file.get_tensor(name) for name in file.keys()}
    except (OSError, ValueError, SafetensorError) as error:
        raise CacheError(tr("{path} could not be read: {error}").format(path=path, error=error), remedy) from error


def _check_format(path: str | Path, about: dict[str, str]) -> None:
    if about.get("format") in _OLD_FORMATS:
        raise CacheError(
            tr(
                "{path} was saved by an older version, which did not note what would tell it from a damaged file."
            ).format(path=path),
            tr("Read the text again, and save it."),
        )
    if about.get("format") not in _FORMATS:
        raise CacheError(
            tr("{path} is no saved prefix.").format(path=path), tr("Choose a prefix saved by this program.")
        )


def _parse_ids(about: dict[str, str]) -> list[int]:
    """The token ids; none when they are not whole numbers from 0."""
    try:
        ids = json.loads(about.get("ids", ""))
    except (ValueError, RecursionError):
        return []
    return ids if isinstance(ids, list) and all(type(token) is int and token >= 0 for token in ids) else []


def _pair_layers(tensors: dict[str, torch.Tensor]) -> Legacy:
    """Pairs in the order of the layers; none when a name is missing, or one too many."""
    count = len(tensors) // 2
    names = [(f"{number}.keys", f"{number}.values") for number in range(count)]
    if set(tensors) != {name for pair in names for name in pair}:
        return ()
    return tuple(tuple(tensors[name] for name in pair) for pair in names)


def _tensor_order(item: tuple[str, torch.Tensor]) -> tuple[int, str]:
    """As they were saved; files list their tensors as they like."""
    number, _, part = item[0].partition(".")
    return (int(number) if number.isascii() and number.isdecimal() and len(number) < 9 else -1, part)


def _has_model_layout(layers: Legacy, tokens: int, model: LoadedModel) -> bool:
    """Whether these are the keys and values of so many tokens, as the model itself makes them."""
    if not layers or any(tensor.dim() != 4 or tensor.shape[0] != 1 for layer in layers for tensor in layer):
        return False
    lengths = {tensor.shape[2] for layer in layers for tensor in layer}
    return lengths == {tokens} and _layout(layers) == _model_layout(model)


def _layout(layers: Legacy) -> _Layout:
    return [[(tensor.shape[1], tensor.shape[3], tensor.dtype) for tensor in layer] for layer in layers]


@torch.inference_mode()
def _model_layout(model: LoadedModel) -> _Layout:
    """Seen after reading one token: configurations name sizes in too many ways."""
    cache, one = DynamicCache(), torch.zeros(1, 1, dtype=torch.long, device=model.device)
    model.model(input_ids=one, use_cache=True, **{model.cache_name: cache})
    return _layout(to_legacy(cache))
