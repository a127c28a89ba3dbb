"""Whether a model fits into the memory that is free, before it is loaded; importing this does not import torch."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

from core.errors import ModelError
from core.explain.words import count, size
from core.models.footprint import cache_bytes
from core.models.model_entry import ModelEntry, read_config
from resources.language import mark, tr

BYTES = {"float32": 4.0, "bfloat16": 2.0, "float16": 2.0, "int8": 1.05, "int4": 0.7}
"""Bytes of a weight, near enough: packed ones have scales beside them, and norms and positions stay floats."""


class Fit(NamedTuple):
    """Whether a model's weights fit into memory; sizes in bytes."""

    ok: bool
    needed: int
    free: int
    sentence: str


def weight_bytes(entry: ModelEntry, kind: str) -> int:
    """What a model's weights take in memory when they are kept as `kind`; auto and others: as float32."""
    return int(entry.parameters * BYTES.get(kind, 4.0)) if entry.parameters else entry.bytes


def fits(entry: ModelEntry, dtype: str = "float32", device: str = "auto", tokens: int = 0, rows: int = 1) -> Fit:
    """Whether the weights, kept as `dtype` (int8 and int4 too), fit into the memory that is free now.

    It is the host's memory that is looked at; a GPU is asked on loading.

    With `tokens`, the keys and values of `rows` texts of that length are reckoned in, or of the context where it is
    shorter. `core.estimate` reckons a whole request, with the model's own shape.
    """
    weights = weight_bytes(entry, dtype)
    tokens = min(tokens, entry.context or tokens)
    cache = rows * _cache_bytes(entry, tokens, 2 if dtype in ("bfloat16", "float16") else 4) if tokens else 0
    return check_memory(weights, cache, tokens, rows)


def check_memory(weights: int, cache: int, tokens: int = 0, rows: int = 1) -> Fit:
    """Whether so many bytes of weights, and of keys and values of `rows` texts of `tokens`, fit into what is free."""
    needed, free = weights + cache, free_memory()
    ok = has_room(needed, free)
    if cache:
        told = mark("needs {needed} ({weights} of weights, {cache} for {tokens}) of {free} free")
        failed = mark("needs {needed} ({weights} of weights, {cache} for {tokens}) of {free} free: it does not fit")
    else:
        told = mark("needs {needed} of {free} free")
        failed = mark("needs {needed} of {free} free: it does not fit")
    sizes = {"needed": size(needed), "weights": size(weights), "cache": size(cache), "free": size(free)}
    return Fit(ok, needed, free, tr(told if ok else failed).format(tokens=counted_tokens(tokens, rows), **sizes))


def counted_tokens(tokens: int, rows: int) -> str:
    """`560 tokens × 4`: the tokens of each text, and how many texts where there are several."""
    told = count(tokens, "token")
    return tr("{tokens} × {rows}").format(tokens=told, rows=rows) if rows > 1 else told


def has_room(needed: int, free: int) -> bool:
    """Whether so many bytes fit into those that are free, with a tenth to spare for what is computed on the way."""
    return needed * 1.1 < free


def _cache_bytes(entry: ModelEntry, tokens: int, element_bytes: int) -> int:
    try:
        return cache_bytes(read_config(entry.path), tokens, element_bytes)
    except ModelError:
        return 0


def free_memory() -> int:
    """Bytes of memory that can be had without swapping; a large guess where the system does not tell."""
    try:
        for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return 8 * 2**30
