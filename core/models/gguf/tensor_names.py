"""Names of tensors in GGUF files, and of the parameters in transformers that they belong to, in both directions.

Importing this module does not import torch.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from decodescope.core.models.gguf.architectures import (
    BY_GROUP,
    BY_HEAD,
    INTERLEAVED,
    ROWS_OF_K,
    ROWS_OF_Q,
    GgufArchitecture,
    architecture_of,
    unsupported_error,
)
from decodescope.core.models.gguf.gguf_file import GgufFile
from decodescope.resources.language import join_names, tr

LAYER_NAME = re.compile(r"^(?P<stack>(?:enc\.|dec\.)?)blk\.(?P<number>\d+)\.(?P<inside>.+)$")
"""Names of tensors inside a layer, of an encoder's or a decoder's stack where there are two."""
_IGNORED = re.compile(
    r"^(rope_freqs|rope_factors_(long|short)|blk\.\d+\.rope_freqs|blk\.\d+\.attn_rot_embd"
    r"|dec\.blk\.\d+\.cross_attn_rel_b)\.weight$"
)
"""Tensors that the config already contains, or that no implementation reads."""
_WITHOUT_SUFFIX = ("ssm_a", "ssm_d")
"""Tensors whose names do not end with `.weight`."""
_BARE = (".sinks", ".expert_bias", ".e_score_correction_bias", ".A_log", ".D")
"""Parameters of transformers that are not the weight or the bias of a module."""
_PARTS = {"ffn_gate_exps": "gate", "ffn_up_exps": "up", "attn_k_b": "key", "attn_v_b": "value"}
"""Parts of a parameter by the names of their tensors."""
PARTS = ("", *_PARTS.values())
"""All parts, in their order in the parameter."""
_OF_BIASES = (ROWS_OF_Q, ROWS_OF_K, BY_HEAD, BY_GROUP, INTERLEAVED)
"""Operations that apply to a bias too."""


class Target(NamedTuple):
    """The parameter that a tensor of the file belongs to."""

    name: str
    operation: str = ""
    part: str = ""
    """`gate` or `up` for experts, `key` or `value` for latent attention, whose tensors are two in the file and one in
    transformers; else empty.
    """


class StoredName(NamedTuple):
    """A tensor of the file that a parameter is written to."""

    name: str
    operation: str
    part: str
    """As of `Target`."""


def parameter_names(file: GgufFile) -> dict[str, Target]:
    """Return the parameter of each tensor. Raises UnknownArchitectureError if there are tensors of unknown meaning."""
    known = architecture_of(file)
    there = [tensor for tensor in file.tensors if not _IGNORED.match(tensor)]
    found = {tensor: target for tensor in there if (target := target_of(known, tensor)) is not None}
    if unknown := [tensor for tensor in there if tensor not in found]:
        raise unsupported_error(
            file, tr("it contains tensors of unknown meaning ({names} …)").format(names=join_names(unknown[:3]))
        )
    return found


def target_of(known: GgufArchitecture, tensor: str) -> Target | None:
    """Return the parameter of a tensor; None for a tensor of unknown meaning."""
    stem, _, kind = tensor.rpartition(".")
    if kind in _WITHOUT_SUFFIX:
        stem, kind = tensor, ""
    elif kind not in ("weight", "bias"):
        return None
    layer = LAYER_NAME.match(stem)
    inside = stem if layer is None else layer["stack"] + layer["inside"]
    name = (known.outside if layer is None else known.inside).get(inside)
    if name is None:
        return None
    whole = name if layer is None else (known.layer + name).format(n=layer["number"])
    if inside.endswith("_exps"):
        whole += "_bias" if kind == "bias" else ""
    elif kind and not name.endswith(_BARE):
        whole += f".{kind}"
    return Target(whole, _operation(known, inside, kind), _PARTS.get(inside, ""))


def stored_names(known: GgufArchitecture, parameter: str) -> list[StoredName]:
    """Return the tensors that contain a parameter: one for each of its parts; empty for an unknown parameter."""
    stem, kind = _split_parameter(parameter)
    place, names = "", _tensors_of(known.outside, stem)
    prefix = known.layer.partition("{n}")[0]
    if not names and stem.startswith(prefix):
        number, _, rest = stem.removeprefix(prefix).partition(".")
        place, names = f"blk.{number}.", _tensors_of(known.inside, rest)
    return [
        StoredName(
            place + own + ("" if own in _WITHOUT_SUFFIX else f".{kind}"), _operation(known, own, kind),
            _PARTS.get(own, ""),
        )
        for own in names
    ]  # fmt: skip


def _tensors_of(names: Mapping[str, str], target: str) -> list[str]:
    """Return the tensor that contains a whole parameter, or else those of its parts."""
    found = [tensor for tensor, name in names.items() if name == target]
    return [tensor for tensor in found if tensor not in _PARTS] or found


def _split_parameter(name: str) -> tuple[str, str]:
    """Split a parameter's name into that of its module, or of itself if it is bare, and `weight` or `bias`."""
    if name.endswith((".expert_bias", ".e_score_correction_bias")):
        return name, "bias"
    stem, _, kind = name.rpartition(".")
    if kind in ("weight", "bias"):
        return stem, kind
    return (name.removesuffix("_bias"), "bias") if name.endswith("_proj_bias") else (name, "weight")


def _operation(known: GgufArchitecture, tensor: str, kind: str) -> str:
    operation = known.operations.get(tensor, "")
    return "" if kind == "bias" and operation not in _OF_BIASES else operation
