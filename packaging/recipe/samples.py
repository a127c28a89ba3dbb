"""Sample texts: every example prompt of the program, run on the finished model."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from examine import repeated_share

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "resources" / "examples.json"
SAMPLED = ("sampling", "beam_sampling")
LIBRARY_CAN = ("beam_search", "beam_sampling", "prompt_lookup", "assisted", "early_exit")


@dataclass(frozen=True)
class PromptSample:
    """What an example prompt gave: its sequences, best first, and the share of repeated 4-grams of the first."""

    title: str
    strategy: str
    settings: dict[str, Any]
    prompt: str
    texts: list[str]
    repeated: float


def examples_for(name: str) -> list[dict[str, Any]]:
    """The example prompts that belong to a model."""
    examples: list[dict[str, Any]] = json.loads(EXAMPLES.read_text(encoding="utf-8"))
    return [example for example in examples if example["model"] == name]


def question_of(example: dict[str, Any]) -> str:
    """What the model is given: a text, the last message of a chat, or the names of files."""
    if example.get("media"):
        return ", ".join(Path(name).name for name in example["media"])
    return example.get("prompt") or example["messages"][-1]["content"]


def _core() -> Any:
    if str(ROOT) not in sys.path:
        sys.path.insert(0, str(ROOT))
    from decodescope import core

    return core


def _by_core(core: Any, loaded: Any, example: dict[str, Any], output: Path) -> tuple[list[list[int]], list[str]]:
    from transformers import GenerationConfig

    request = core.Request(
        prompt=example.get("messages") or example.get("prompt", ""),
        media=tuple(str(ROOT / "resources" / name) for name in example.get("media", ())),
        config=GenerationConfig(do_sample=example["strategy"] in SAMPLED, **example["params"]),
        strategy=example["strategy"],
        drafters=tuple(core.load(str(output / drafter)) for drafter in example.get("drafters", ())),
        top_n=0,
        seed=example.get("seed", 0),
    )
    result = core.run(loaded, request)
    return result.sequences, result.texts


def _by_library(loaded: Any, example: dict[str, Any], output: Path) -> tuple[list[list[int]], list[str]]:
    import torch
    from export import load

    tokenizer, params = loaded.tokenizer, dict(example["params"])
    if example.get("messages"):
        ids = tokenizer.apply_chat_template(example["messages"], add_generation_prompt=True, return_tensors="pt")[
            "input_ids"
        ]
    else:
        ids = tokenizer(example["prompt"], return_tensors="pt").input_ids
    if example.get("drafters"):
        params["assistant_model"] = load(output / example["drafters"][0])
    torch.manual_seed(example.get("seed", 0))
    sampled = example["strategy"] in SAMPLED
    out = loaded.model.generate(ids, attention_mask=torch.ones_like(ids), do_sample=sampled, **params)
    new = out if loaded.model.config.is_encoder_decoder else out[:, ids.shape[1] :]
    return new.tolist(), tokenizer.batch_decode(new, skip_special_tokens=True)


def sample_all(name: str, output: Path) -> list[PromptSample]:
    """Run a model's example prompts; strategies that neither the core nor the library has are left out."""
    core = _core()
    loaded = core.load(str(output / name))
    samples = []
    for example in examples_for(name):
        if not all((output / drafter / "config.json").exists() for drafter in example.get("drafters", ())):
            continue
        if example["strategy"] in core.strategies.registry:
            sequences, texts = _by_core(core, loaded, example, output)
        elif example["strategy"] in LIBRARY_CAN:
            sequences, texts = _by_library(loaded, example, output)
        else:
            continue
        samples.append(
            PromptSample(
                example["title"],
                example["strategy"],
                example["params"],
                question_of(example),
                texts,
                repeated_share(sequences[0]),
            )
        )
    return samples
