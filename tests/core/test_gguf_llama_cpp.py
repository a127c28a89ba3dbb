"""GGUF files that this program writes, read by llama.cpp itself (the package `xllamacpp`)."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest
import torch

from decodescope import core
from tests.core import gguf_models
from tests.llama_cpp_server import IS_INSTALLED, LlamaCppServer

TOKENS = 8
TIE = 2e-3
"""Difference of log-probabilities within which either token may be the greedy one: llama.cpp's cache has 16 bits."""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not IS_INSTALLED, reason="xllamacpp (llama.cpp's server) is missing"),
]


class ScoredToken(NamedTuple):
    token: int
    log_probability: float


def written_by_llama_cpp(path: Path) -> list[ScoredToken]:
    """Return the greedy continuation of the prompt, with log-probabilities."""
    with LlamaCppServer(path) as server:
        found = server.complete(gguf_models.PROMPT, TOKENS, 1)["completion_probabilities"]
    return [ScoredToken(step["id"], step["logprob"]) for step in found]


@torch.inference_mode()
def next_step(model: core.LoadedModel, ids: list[int], chosen: int) -> tuple[ScoredToken, float]:
    """Return the likeliest next token, and the log-probability of `chosen`."""
    scores = gguf_models.logits(model, ids)[-1].log_softmax(-1)
    best = int(scores.argmax())
    return ScoredToken(best, float(scores[best])), float(scores[chosen])


@pytest.mark.parametrize("kind", gguf_models.KINDS)
def test_llama_cpp_writes_the_same_text(kind: str, tmp_path: Path) -> None:
    model = gguf_models.make(kind)
    ids = list(gguf_models.PROMPT)
    theirs = written_by_llama_cpp(gguf_models.save(kind, model, tmp_path / "tiny.gguf", "F32"))
    assert len(theirs) == TOKENS
    for step in theirs:
        best, own = next_step(model, ids, step.token)
        assert own == pytest.approx(step.log_probability, abs=TIE)
        assert best.token == step.token or best.log_probability - own < TIE
        ids.append(step.token)
