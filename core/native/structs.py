"""What the quick step reads, field by field as `source/parts.h` has it."""

from __future__ import annotations

import ctypes
from ctypes import POINTER, c_double, c_int64, c_void_p

NORMS = {"none": 0, "root_mean_square": 1, "layer_norm": 2}
WEIGHTS = {"float32": 0, "bfloat16": 1, "int8": 2, "float16": 3, "int4": 4}
ACTIVATIONS = {"silu": 0, "gelu_tanh": 1, "gelu_erf": 2, "relu": 3}


class NormStruct(ctypes.Structure):
    """Weight and bias [width] in float32."""

    _fields_ = (("kind", c_int64), ("weight", c_void_p), ("bias", c_void_p), ("eps", c_double))


class MatrixStruct(ctypes.Structure):
    """Weights [outputs, inputs] of a kind of WEIGHTS, row behind row; float32 bias [outputs]; scales
    of int8, float32 [outputs], or of int4, bfloat16 [outputs, 2, groups], offsets among them. Of floats `in_panels`:
    weights [panels, inputs, rows of a panel]."""

    _fields_ = (
        ("kind", c_int64), ("outputs", c_int64), ("inputs", c_int64), ("weights", c_void_p), ("bias", c_void_p),
        ("scales", c_void_p), ("sums", c_void_p), ("in_panels", c_int64),
    )  # fmt: skip


class LayerStruct(ctypes.Structure):
    """One layer."""

    _fields_ = (
        ("norm", NormStruct),
        ("q_norm", NormStruct),
        ("k_norm", NormStruct),
        ("norm_out", NormStruct),
        ("norm_mlp", NormStruct),
        ("norm_mlp_out", NormStruct),
        ("projections", c_int64),
        ("project", MatrixStruct * 3),
        ("out", MatrixStruct),
        ("ups", c_int64),
        ("up", MatrixStruct * 2),
        ("down", MatrixStruct),
        ("gated", c_int64),
        ("parallel", c_int64),
        ("window", c_int64),
        ("turned", c_int64),
        ("cos", c_void_p),
        ("sin", c_void_p),
    )


class ModelStruct(ctypes.Structure):
    """A whole decoder behind its embedding."""

    _fields_ = (
        ("layers", c_int64), ("hidden", c_int64), ("heads", c_int64), ("kv_heads", c_int64), ("width", c_int64),
        ("act", c_int64), ("rounds", c_int64), ("scaling", c_double), ("logit_cap", c_double),
        ("layer", POINTER(LayerStruct)), ("norm", NormStruct), ("head", MatrixStruct),
    )  # fmt: skip


class PassStruct(ctypes.Structure):
    """One pass over a few tokens: sizes, what goes in, what comes out, where keys and values lie."""

    _fields_ = (
        ("texts", c_int64), ("count", c_int64), ("past", c_int64), ("keep", c_int64), ("threads", c_int64),
        ("hidden", c_void_p), ("logits", c_void_p), ("old_keys", c_void_p), ("old_values", c_void_p),
        ("new_keys", c_void_p), ("new_values", c_void_p), ("old_places", c_void_p), ("new_places", c_void_p),
        ("mask", c_void_p), ("positions", c_void_p),
    )  # fmt: skip


class RaggedAttentionStruct(ctypes.Structure):
    """What the heads of a layer read in a pass over many tokens of several texts, each behind what it keeps of one."""

    _fields_ = (
        ("heads", c_int64), ("kv_heads", c_int64), ("width", c_int64), ("scaling", c_double), ("q_norm", NormStruct),
        ("k_norm", NormStruct), ("cos", c_void_p), ("sin", c_void_p), ("texts", c_int64), ("last_only", c_int64),
        ("threads", c_int64), ("places", c_int64), ("kept", c_void_p), ("counts", c_void_p), ("keys", c_void_p),
        ("values", c_void_p), ("joined", c_void_p), ("read", c_void_p),
    )  # fmt: skip
