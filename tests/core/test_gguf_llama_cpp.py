"""GGUF files that this program writes, read by llama.cpp itself (the package `xllamacpp`)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import urllib.request
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import pytest
import torch

import core
from tests.core import gguf_models
from tests.core.test_remote_real import free_port

SERVER = """
import sys, threading, xllamacpp
params = xllamacpp.CommonParams()
params.model.path, params.port, params.n_ctx = sys.argv[1], int(sys.argv[2]), 256
params.n_gpu_layers, params.cpuparams.n_threads = 0, 1
server = xllamacpp.Server(params)
threading.Event().wait()
"""
TOKENS = 8
TIE = 2e-3
"""Difference of log-probabilities within which either token may be the greedy one: llama.cpp's cache has 16 bits."""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(find_spec("xllamacpp") is None, reason="xllamacpp (llama.cpp's server) is missing"),
]


class Step(NamedTuple):
    token: int
    log_probability: float


def written_by_llama_cpp(path: Path) -> list[Step]:
    """Return the greedy continuation of the prompt, with log-probabilities."""
    port, spec = free_port(), find_spec("xllamacpp")
    assert spec is not None
    assert spec.origin is not None
    paths = os.pathsep.join(filter(None, (os.environ.get("PYTHONPATH"), str(Path(spec.origin).parents[1]))))
    server = subprocess.Popen(
        [sys.executable, "-c", SERVER, str(path), str(port)], env={**os.environ, "PYTHONPATH": paths},
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
    )  # fmt: skip
    try:
        wait_until_ready(server, port)
        body = {
            "prompt": gguf_models.PROMPT, "n_predict": TOKENS, "temperature": 0, "n_probs": 1, "ignore_eos": True,
            "cache_prompt": False,
        }  # fmt: skip
        request = urllib.request.Request(
            f"http://127.0.0.1:{port}/completion", json.dumps(body).encode(), {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=60) as answer:
            found = json.load(answer)["completion_probabilities"]
        return [Step(step["id"], step["logprob"]) for step in found]
    finally:
        server.kill()
        server.communicate()


def wait_until_ready(server: subprocess.Popen[bytes], port: int) -> None:
    """Return once the server answers. Fails with its messages if it ends."""
    for _ in range(600):
        if server.poll() is not None:
            assert server.stderr is not None
            pytest.fail(server.stderr.read().decode(errors="replace")[-2000:])
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=1):
                return
        except OSError:
            time.sleep(0.05)  # another process, which nothing here can signal
    pytest.fail("the server did not start")


@torch.inference_mode()
def next_step(model: core.LoadedModel, ids: list[int], chosen: int) -> tuple[Step, float]:
    """Return the likeliest next token, and the log-probability of `chosen`."""
    scores = gguf_models.logits(model, ids)[-1].log_softmax(-1)
    best = int(scores.argmax())
    return Step(best, float(scores[best])), float(scores[chosen])


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
