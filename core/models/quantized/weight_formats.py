"""The kinds that weights can be kept as; importing this does not import torch."""

from __future__ import annotations

from core.errors import ParameterError
from core.parameter import display_name
from resources.language import tr

FLOATS = ("float32", "bfloat16", "float16")
PACKED = {"int8": 8, "int4": 4}
"""Kinds that are made at load, and their bits."""
KINDS = ("auto", *FLOATS, *PACKED)


def check_format(kind: str) -> str:
    """`kind` itself. Raises ParameterError for what is none of KINDS."""
    if kind not in KINDS:
        raise ParameterError(
            tr("“{wish}” is no kind of weights.").format(wish=display_name(kind)),
            tr("Use {names}.").format(names=", ".join(KINDS)),
            "weights",
        )
    return kind
