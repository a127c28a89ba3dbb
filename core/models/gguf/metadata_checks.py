"""Check the numbers of a GGUF file's metadata against each other and against its tensors, before anything is built.

What a number costs is thus paid for by the file: a layer has tensors, a width is that of a matrix. Importing this
module does not import torch.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from decodescope.core.errors import ConfigInvalidError
from decodescope.core.models.gguf.architectures import (
    JOINED,
    GgufArchitecture,
    invalid_value_error,
    missing_key_error,
)
from decodescope.core.models.gguf.gguf_file import GgufFile, GgufTensor
from decodescope.core.models.gguf.tensor_names import LAYER_NAME
from decodescope.resources.language import tr

MAX_LAYERS = 1024
"""Maximum number of layers: each costs some 50 kB of Python objects, whatever its size; llama.cpp allows 512."""
MAX_EXPERTS = 1024
"""Maximum number of experts of a layer; llama.cpp allows 512."""
_MAX_NUMBER = 2**31 - 1
"""Maximum of all numbers: llama.cpp reads them as 32 bits."""
_POSITIVE = (
    "rope.freq_base", "rope.freq_base_swa", "rope.scaling.factor", "rope.scaling.original_context_length",
    "rope.scaling.attn_factor", "rope.scaling.yarn_beta_fast", "rope.scaling.yarn_beta_slow",
    "attn_logit_softcapping", "final_logit_softcapping", "attention.clamp_kqv", "logit_scale",
)  # fmt: skip
"""Keys of numbers above 0, by which others are divided, or that limit them."""
_LIMITS = {"block_count": MAX_LAYERS, "decoder_block_count": MAX_LAYERS, "expert_count": MAX_EXPERTS}


class _Dimension(NamedTuple):
    """The dimension of a tensor, in torch's order, that a number of the metadata is."""

    tensor: str
    """Its name inside a layer, or outside, with `.weight` where it has that ending."""
    axis: int


_DIMENSIONS = {
    "embedding_length": _Dimension("token_embd.weight", 1), "context_length": _Dimension("position_embd.weight", 0),
    "feed_forward_length": _Dimension("ffn_down.weight", 1), "expert_count": _Dimension("ffn_gate_inp.weight", 0),
    "expert_feed_forward_length": _Dimension("ffn_up_exps.weight", 1),
    "ssm.inner_size": _Dimension("ssm_out.weight", 1), "ssm.state_size": _Dimension("ssm_a", 1),
    "ssm.conv_kernel": _Dimension("ssm_conv1d.weight", 1), "ssm.time_step_rank": _Dimension("ssm_dt.weight", 1),
    "shortconv.l_cache": _Dimension("shortconv.conv.weight", 1),
    "attention.kv_lora_rank": _Dimension("attn_kv_a_norm.weight", 0),
    "attention.q_lora_rank": _Dimension("attn_q_a_norm.weight", 0),
    "attention.relative_buckets_count": _Dimension("attn_rel_b.weight", 0),
}  # fmt: skip
"""By the metadata's key; checked where the architecture has the key and the file the tensor."""
_FACTORS = ("rope_freqs.weight", "rope_factors_long.weight", "rope_factors_short.weight")
"""Tensors of one factor for each rotated pair of numbers."""


def check_metadata(file: GgufFile, known: GgufArchitecture) -> None:
    """Check the numbers that describe the model, and that its tensors have them. Raises ConfigInvalidError."""
    _check_ranges(file)
    for key in ("context_length", "expert_count", "expert_used_count"):
        if known.keys.get(key) not in (None, *known.defaults) and file.number(f"{file.architecture}.{key}") is None:
            raise missing_key_error(file, f"{file.architecture}.{key}")
    _check_dimensions(file, known)
    _check_experts(file)
    _check_heads(file, known)
    _check_factors(file)


def _check_ranges(file: GgufFile) -> None:
    prefix = f"{file.architecture}."
    for key, value in file.metadata.items():
        if not key.startswith(prefix):
            continue
        own = key.removeprefix(prefix)
        for number in _numbers(value):
            if not math.isfinite(number) or abs(number) > _MAX_NUMBER:
                expected = tr("a number of at most {limit:,}").format(limit=_MAX_NUMBER)
                raise invalid_value_error(file, key, number, expected)
            if own in _POSITIVE and number <= 0:
                raise invalid_value_error(file, key, number, tr("a number above 0"))
            if own in _LIMITS and number > _LIMITS[own]:
                raise invalid_value_error(file, key, f"{number:,}", tr("at most {limit:,}").format(limit=_LIMITS[own]))


def _numbers(value: object) -> Iterator[int | float]:
    """Yield the numbers of a value, if it consists of numbers."""
    if isinstance(value, memoryview):
        yield from value
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        yield value


def _first_tensors(file: GgufFile) -> Mapping[str, GgufTensor]:
    """Return the tensors outside the layers, and the first one of each name inside a layer."""
    found: dict[str, GgufTensor] = {}
    for name, tensor in file.tensors.items():
        layer = LAYER_NAME.match(name)
        found.setdefault(name if layer is None else layer["inside"], tensor)
    return found


def _check_dimensions(file: GgufFile, known: GgufArchitecture) -> None:
    tensors = _first_tensors(file)
    for key, dimension in _DIMENSIONS.items():
        value = file.number(f"{file.architecture}.{key}")
        tensor = tensors.get(dimension.tensor)
        if value is None or tensor is None or key not in known.keys or dimension.axis >= len(tensor.shape):
            continue
        if value != tensor.shape[dimension.axis]:
            _raise_mismatch(file, key, value, tensor, tensor.shape[dimension.axis])


def _raise_mismatch(file: GgufFile, key: str, value: float, tensor: GgufTensor, expected: int) -> None:
    raise ConfigInvalidError(
        tr("The metadata of {file} do not match its tensors: {key} is {value}, but {tensor} has {expected}.").format(
            file=file.files[0].name, key=f"{file.architecture}.{key}", value=value, tensor=tensor.name,
            expected=expected,
        ),
        tr("Copy or download the file again."),
    )  # fmt: skip


def _check_experts(file: GgufFile) -> None:
    prefix = file.architecture
    experts, used = file.number(f"{prefix}.expert_count"), file.number(f"{prefix}.expert_used_count")
    groups, used_groups = file.number(f"{prefix}.expert_group_count"), file.number(f"{prefix}.expert_group_used_count")
    if not experts:
        return
    if used is not None and not 1 <= used <= experts:
        raise invalid_value_error(
            file, f"{prefix}.expert_used_count", used,
            tr("between 1 and {key} ({value})").format(key=f"{prefix}.expert_count", value=experts),
        )  # fmt: skip
    if groups and (groups > experts or experts % groups):
        raise invalid_value_error(
            file, f"{prefix}.expert_group_count", groups,
            tr("a divisor of {key} ({value})").format(key=f"{prefix}.expert_count", value=experts),
        )  # fmt: skip
    if groups and groups > 1 and used_groups is None:
        raise missing_key_error(file, f"{prefix}.expert_group_used_count")
    if groups and used_groups is not None and not 1 <= used_groups <= groups:
        raise invalid_value_error(
            file, f"{prefix}.expert_group_used_count", used_groups,
            tr("between 1 and {key} ({value})").format(key=f"{prefix}.expert_group_count", value=groups),
        )  # fmt: skip
    layers, dense = file.number(f"{prefix}.block_count"), file.number(f"{prefix}.leading_dense_block_count")
    if layers is not None and dense is not None and not 0 <= dense <= layers:
        raise invalid_value_error(
            file, f"{prefix}.leading_dense_block_count", dense,
            tr("between {least} and {key} ({value})").format(least=0, key=f"{prefix}.block_count", value=layers),
        )  # fmt: skip


def _check_heads(file: GgufFile, known: GgufArchitecture) -> None:
    """Check that heads of the stated width give the rows of queries and keys."""
    if JOINED in known.operations.values():  # latent attention has widths of its own
        return
    prefix, tensors = file.architecture, _first_tensors(file)
    heads, hidden = file.number(f"{prefix}.attention.head_count"), file.number(f"{prefix}.embedding_length")
    width = file.number(f"{prefix}.attention.key_length")
    if not isinstance(heads, int) or not isinstance(hidden, int) or heads < 1:
        return
    width = hidden // heads if width is None else width
    for key, name in (("attention.head_count", "attn_q.weight"), ("attention.head_count_kv", "attn_k.weight")):
        tensor, count = tensors.get(name), file.metadata.get(f"{prefix}.{key}", heads)
        if tensor is not None and isinstance(count, int) and count * width != tensor.shape[0]:
            raise ConfigInvalidError(
                tr(
                    "The metadata of {file} do not match its tensors: {key} is {value} heads of {width} numbers, but "
                    "{tensor} has {expected} rows."
                ).format(
                    file=file.files[0].name, key=f"{prefix}.{key}", value=count, width=width, tensor=tensor.name,
                    expected=tensor.shape[0],
                ),
                tr("Copy or download the file again."),
            )  # fmt: skip


def _check_factors(file: GgufFile) -> None:
    """Check that there is one factor for each rotated pair of numbers."""
    prefix = file.architecture
    rotated = file.number(f"{prefix}.rope.dimension_count")
    if rotated is None:
        heads, hidden = file.number(f"{prefix}.attention.head_count"), file.number(f"{prefix}.embedding_length")
        rotated = file.number(f"{prefix}.attention.key_length", hidden // heads if heads and hidden else None)
    for name in _FACTORS:
        tensor = file.tensors.get(name)
        if tensor is not None and rotated is not None and 2 * tensor.numbers != rotated:
            _raise_mismatch(file, "rope.dimension_count", rotated, tensor, 2 * tensor.numbers)
