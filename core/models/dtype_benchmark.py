"""Whether products in bfloat16 are quicker than in float32 on this processor: measured once, and kept.

Processors with instructions for bfloat16 read half the bytes for the same product; others turn every number into a
float32 first, and lose by it, most of all for many rows at once.
"""

from __future__ import annotations

import json
import logging
import os
import platform
import time
from pathlib import Path

import torch
from torch.nn import functional as F

from core.errors import ModelFileError
from core.file_writing import atomic_write
from core.models.model_files import read_json

log = logging.getLogger(__name__)

_OUTPUTS, _INPUTS = 4096, 2048
"""Of the matrix that is tried: larger than most caches, as a model's weights are."""
_TIMES = 5


PROMPT_ROWS = 32
"""Rows that are a prompt."""


def is_bfloat16_faster(rows: int = 1) -> bool:
    """For one row, as single tokens are, or for MANY."""
    kept = _read_results()
    key = f"{platform.node()} {platform.machine()} {torch.__version__} {torch.get_num_threads()}"
    key = f"{key} ×{rows}" if rows > 1 else key
    if key not in kept:
        kept[key] = _best_time(torch.bfloat16, rows) < _best_time(torch.float32, rows)
        _write_results(kept)
    return kept[key]


def _best_time(dtype: torch.dtype, rows: int) -> float:
    """The quickest of a few products; the first makes the kernel."""
    weight, several = torch.ones(_OUTPUTS, _INPUTS, dtype=dtype), torch.ones(rows, _INPUTS, dtype=dtype)
    F.linear(several, weight)
    taken = []
    for _ in range(_TIMES):
        begun = time.perf_counter()
        F.linear(several, weight)
        taken.append(time.perf_counter() - begun)
    return min(taken)


def _cache_file() -> Path:
    """In the folder for what can be found out again."""
    base = os.environ.get("XDG_CACHE_HOME") or (os.environ.get("LOCALAPPDATA") if os.name == "nt" else None)
    return (Path(base) if base else Path.home() / ".cache") / "decodescope" / "speeds.json"


def _read_results() -> dict[str, bool]:
    """What is kept; nothing where there is none, or something else."""
    try:
        kept = read_json(_cache_file())
    except (OSError, ModelFileError):
        return {}
    return {key: value for key, value in kept.items() if isinstance(value, bool)}


def _write_results(kept: dict[str, bool]) -> None:
    """Measured again next time where it cannot be kept."""
    try:
        _cache_file().parent.mkdir(parents=True, exist_ok=True)
        with atomic_write(_cache_file()) as part:
            part.write_text(json.dumps(kept), encoding="utf-8")
    except OSError:
        log.debug("the speeds of this machine cannot be kept", exc_info=True)
