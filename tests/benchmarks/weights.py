"""Weight formats: decoding speed on one thread, and memory for loading."""

from __future__ import annotations

import copy
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median

import torch
from transformers import GenerationConfig

from decodescope import core
from tests.benchmarks.decode import PROMPT, decode_ratio, random_llama
from tests.benchmarks.timing import speed_ratio

_PEAK = """
import sys; from decodescope import core
from decodescope.core.system.device_memory import PeakMemory
import torch
core.load("storyteller", weights=sys.argv[2])      # libraries and kernels are in memory now
before = int(open("/proc/self/statm").read().split()[1]) * 4096
peak = PeakMemory(torch.device("cpu"))
model = core.load(sys.argv[1], weights=sys.argv[2])
print((peak.read() - before) / model.weight_bytes)
"""


def measure(quick: bool = False) -> Iterator[tuple[str, float]]:
    """All figures of this module, one by one."""
    torch.set_num_threads(1)
    story = core.load("storyteller")
    ids = story.tokenizer(PROMPT)["input_ids"]
    yield "storyteller, decode ÷ generate, 1 thread", decode_ratio(story, ids, 60, 3 if quick else 9)["vs_generate"]
    yield from _offloaded(3 if quick else 7)
    with tempfile.TemporaryDirectory() as folder:
        random_llama().model.to(torch.bfloat16).save_pretrained(folder)
        yield from _speeds(folder, "97 M Llama", ("int8", "int4", "bfloat16", "auto"), quick)
        if sys.platform == "linux":
            for kind in ("float32", "int8", "int4"):
                yield f"peak memory while loading ÷ weights kept, {kind}", peak_ratio(folder, kind)
    with tempfile.TemporaryDirectory() as folder:
        random_llama(400).model.to(torch.bfloat16).save_pretrained(folder)
        yield from _speeds(folder, "400 M Llama", ("int8",), quick)


def _offloaded(rounds: int) -> Iterator[tuple[str, float]]:
    """Speedup by drafts, and accuracy of the predicted speed, with as few weights in memory as possible."""
    model, draft = core.load("storyteller", memory_limit=0), core.load("storyteller-draft")
    reported, gains = _prediction_and_gain(model, draft, rounds)
    yield "layers on the disk, predicted ÷ measured, storyteller, 1 thread", median(reported)
    yield "layers on the disk, predicted ÷ measured, the lowest of all runs", min(reported)
    yield "layers on the disk, predicted ÷ measured, the highest of all runs", max(reported)
    yield "layers on the disk, assisted ÷ plain, storyteller, 1 thread", median(gains)
    with tempfile.TemporaryDirectory() as folder:
        deep = deepened(folder)
        reported, gains = _prediction_and_gain(deep, core.load("storyteller"), max(2, rounds // 2))
    yield "layers on the disk, predicted ÷ measured, storyteller in 48 layers, 1 thread", median(reported)
    yield "layers on the disk, assisted ÷ plain, storyteller in 48 layers drafted by its first 12", median(gains)


def _prediction_and_gain(
    model: core.LoadedModel, draft: core.LoadedModel, rounds: int
) -> tuple[list[float], list[float]]:
    """Predicted ÷ measured, and drafted ÷ plain, of each round; a first round adapts the draft length."""
    plain = core.Request(PROMPT, {"max_new_tokens": 40, "min_new_tokens": 40, "do_sample": False}, top_n=0)
    longer = {"max_new_tokens": 80, "min_new_tokens": 80, "do_sample": False}
    drafted = replace(plain, config=longer, strategy="assisted", drafters=(draft,))
    gains, reported = [], []
    for _ in range(rounds + 1):
        predicted = core.estimate_throughput(model).tokens_per_second
        speeds = [core.run(model, one).metrics.decode_tokens_per_second for one in (plain, drafted)]
        gains.append(speeds[1] / speeds[0])
        reported.append(predicted / speeds[0])
    return reported[1:], gains[1:]


def deepened(folder: str | Path, times: int = 4, change: float = 0.02) -> core.LoadedModel:
    """storyteller with its layers repeated, each repetition adding `change` of what a layer adds: a target so large
    beside its draft, its own first layers, and so much of one mind with it, as large models and good drafts are."""
    story = core.load("storyteller")
    own = story.layers
    config = copy.deepcopy(story.model.config)
    config.num_hidden_layers = own * times
    deep = type(story.model)(config)
    weights = story.model.state_dict()
    for name in deep.state_dict():
        layer = re.search(r"(?<=layers\.)\d+", name)
        if layer is None:
            continue
        known = weights[name[: layer.start()] + str(int(layer[0]) % own) + name[layer.end() :]]
        is_added = int(layer[0]) >= own and name.endswith(("o_proj.weight", "down_proj.weight"))
        weights[name] = known * change if is_added else known
    deep.load_state_dict(weights)
    deep.to(torch.bfloat16).save_pretrained(folder)
    for file in (*story.path.glob("tokenizer*"), story.path / "generation_config.json"):
        shutil.copy(file, folder)
    return core.load(folder, weights="float32", memory_limit=0)


def _speeds(folder: str, called: str, kinds: Sequence[str], quick: bool) -> Iterator[tuple[str, float]]:
    tokens, rounds = (12, 3) if quick else (24, 7)
    plain = _writer(core.load(folder, weights="float32"), tokens)
    for kind in kinds:
        own = _writer(core.load(folder, weights=kind), tokens)
        yield f"{kind} ÷ float32, {called}, 1 thread", speed_ratio(own, plain, rounds)


def _writer(model: core.LoadedModel, tokens: int) -> Callable[[], object]:
    """Return a traced greedy run of the given length after a prompt of twenty tokens."""
    config = GenerationConfig(max_new_tokens=tokens, min_new_tokens=tokens, do_sample=False)
    return lambda: core.run(model, core.Request(list(range(5, 25)), config))


def peak_ratio(folder: str | Path, kind: str) -> float:
    """The most memory above what was there before, ÷ bytes of the weights, in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", _PEAK, str(folder), kind], capture_output=True, text=True, check=True
    )
    return float(done.stdout.strip().splitlines()[-1])
