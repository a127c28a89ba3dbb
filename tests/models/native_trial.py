"""Trial of one family with the native decode step: used or not and why, and its speed beside the module's."""

from __future__ import annotations

import logging
import tempfile
import time
import warnings
from collections.abc import Callable
from typing import Any

import torch
from transformers import DynamicCache

from decodescope import core
from decodescope.core.decoding.forward.native_step import get_native_step
from tests.core.native_shapes import SHAPES

WEIGHTS = ("float32", "bfloat16", "int8", "int4")
PROMPT, STEPS, ROUNDS = 48, 4, 4
"""Tokens read before, and timed in each of the rounds, of which the fastest counts."""
_LOGGER = logging.getLogger("decodescope.core.decoding.forward")


class _LastMessage(logging.Handler):
    """Keeps the last message: the reason why a pass is not used."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.text = ""

    def emit(self, record: logging.LogRecord) -> None:
        self.text = record.getMessage()


def try_native(kind: str, is_deep: bool = True) -> dict[str, Any]:
    """Return a family's shape and, for each kind of weights, `{"speedup"}` (native ÷ module tokens per second) with
    `{"tokens_per_second"}`, or `{"reason"}`.
    """
    warnings.simplefilter("ignore")
    shape = SHAPES[kind]
    with tempfile.TemporaryDirectory() as folder:
        network = shape.make(is_deep)
        network.save_pretrained(folder)
        layers, width = network.config.num_hidden_layers, network.config.hidden_size
        del network
        found = {weights: _try_weights(folder, weights) for weights in WEIGHTS}
    return {"kind": kind, "title": shape.title, "like": shape.like, "layers": layers, "width": width, "weights": found}


def _try_weights(folder: str, weights: str) -> dict[str, Any]:
    message = _LastMessage()
    _LOGGER.addHandler(message)
    before, _LOGGER.level = _LOGGER.level, logging.DEBUG
    try:
        model = core.load(folder, weights=weights)
        if not core.has_native_step(model):
            return {"reason": message.text}
        return _measure(model)
    except Exception as error:
        return {"reason": f"{type(error).__name__}: {error}"}
    finally:
        _LOGGER.removeHandler(message)
        _LOGGER.level = before


@torch.inference_mode()
def _measure(model: core.LoadedModel) -> dict[str, Any]:
    step = get_native_step(model, DynamicCache())
    assert step is not None
    network, token = model.model, torch.tensor([[7]])
    ids = torch.randint(8, model.config.vocab_size, (1, PROMPT), generator=torch.Generator().manual_seed(0))
    passes: dict[str, tuple[Callable[[DynamicCache], Any], DynamicCache]] = {
        "native": (lambda cache: step(token, cache), DynamicCache()),
        "module": (
            lambda cache: network(token, use_cache=True, **{model.cache_name: cache}).logits,
            DynamicCache(),
        ),
    }
    best = dict.fromkeys(passes, float("inf"))
    for _, cache in passes.values():
        network(ids, use_cache=True, **{model.cache_name: cache})
    for _ in range(ROUNDS):
        for name, (run, cache) in passes.items():
            for _ in range(STEPS):
                begun = time.perf_counter()
                run(cache)
                best[name] = min(best[name], time.perf_counter() - begun)
    return {"speedup": round(best["module"] / best["native"], 2), "tokens_per_second": round(1 / best["native"], 1)}
