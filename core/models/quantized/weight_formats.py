"""The kinds that weights can be kept as; importing this does not import torch."""

from __future__ import annotations

from core.errors import ParameterError
from core.parameter import named
from resources.language import tr

FLOATS = ("float32", "bfloat16", "float16")
PACKED = {"int8": 8, "int4": 4}
"""Kinds that are made at load, and their bits."""
KINDS = ("auto", *FLOATS, *PACKED)


def check_kind(wish: str) -> str:
    """`wish` itself. Raises ParameterError for what is none of KINDS."""
    if wish not in KINDS:
        raise ParameterError(
            tr("“{wish}” is no kind of weights.").format(wish=named(wish)),
            tr("Use {names}.").format(names=", ".join(KINDS)),
            "weights",
        )
    return wish
