"""Choose the number of CPU threads of a model's decoding steps: measured once per machine and size of model."""

from __future__ import annotations

import os
import platform
import sys
from typing import TYPE_CHECKING

import torch

from decodescope.core.errors import DecodescopeError
from decodescope.core.generation.running import run
from decodescope.core.models.loaded_model import check_model
from decodescope.core.models.machine_speeds import read_speeds, write_speed
from decodescope.core.request import Request

if TYPE_CHECKING:
    from decodescope.core.models.loaded_model import LoadedModel

SMALL_MODEL_PARAMETERS = 30_000_000
"""Below this, one thread: steps are too short to share, and a processor is left to the window."""
MAX_THREADS = 8
_PROMPT_TOKENS, _NEW_TOKENS, _ROUNDS = 16, 6, 2
_MAX_STEP_SECONDS = 0.15
"""Models with slower steps are limited by the memory and take all processors without a measurement."""
_MIN_RELATIVE_SPEED = 0.97
"""Fewer threads are chosen if they reach this fraction of the best speed."""


def usable_processors() -> int:
    """Return the number of usable processors, up to MAX_THREADS."""
    count = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
    return max(1, min(MAX_THREADS, count))


def default_threads(parameters: int) -> int:
    """Return the thread count by the number of parameters alone."""
    return 1 if parameters < SMALL_MODEL_PARAMETERS else usable_processors()


def choose_threads(model: LoadedModel) -> int:
    """Return the number of threads with which this model decodes fastest.

    The first model of a size and kind of weights is measured with up to 18 tokens for each candidate, a second at most;
    the result is kept in the user's cache folder. `default_threads` decides for models on a GPU or on disk, for small
    and slow ones, and for those that decode no plain text. torch's number of threads is the same afterwards. Raises
    ParameterError for a value that is not a loaded model.
    """
    check_model(model)
    max_threads = default_threads(model.parameters)
    if max_threads == 1 or model.device.type != "cpu" or model.disk_offload is not None:
        return max_threads
    key = _key(model, max_threads)
    known = read_speeds().get(key)
    if isinstance(known, int) and not isinstance(known, bool) and 1 <= known <= max_threads:
        return known
    before = torch.get_num_threads()
    try:
        found = _fastest(model, max_threads)
    except DecodescopeError:
        return max_threads
    finally:
        torch.set_num_threads(before)
    write_speed(key, found)
    return found


def _fastest(model: LoadedModel, max_threads: int) -> int:
    speeds: dict[int, float] = {}
    count = max_threads
    while count:
        speeds[count] = _tokens_per_second(model, count)
        if speeds[max_threads] < 1 / _MAX_STEP_SECONDS:
            return max_threads
        if speeds[count] < _MIN_RELATIVE_SPEED * max(speeds.values()):
            break  # fewer are slower still
        count //= 2
    best = max(speeds.values())
    return min(count for count, speed in speeds.items() if speed >= _MIN_RELATIVE_SPEED * best)


def _tokens_per_second(model: LoadedModel, threads: int) -> float:
    """Return the best speed of several short runs."""
    torch.set_num_threads(threads)
    ids = [1 + place % max(1, model.vocabulary - 1) for place in range(_PROMPT_TOKENS)]
    settings = {"max_new_tokens": _NEW_TOKENS, "min_new_tokens": _NEW_TOKENS, "do_sample": False}
    runs = [run(model, Request(ids, settings, top_n=0)).metrics for _ in range(_ROUNDS + 1)]
    return max(metrics.decode_tokens_per_second or 0.0 for metrics in runs[1:])  # the first warms up


def _key(model: LoadedModel, max_threads: int) -> str:
    size = model.weight_bytes.bit_length()
    return f"threads {platform.node()} {platform.machine()} {torch.__version__} {max_threads} {model.weights} 2^{size}"
