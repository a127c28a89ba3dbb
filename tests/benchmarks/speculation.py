"""Speculation on the bundled pair: against plain decoding, against transformers, trees against chains, useless drafts.

Every ratio is taken with one thread and with two. Speeds of different texts (sampling) are compared in tokens a second.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from typing import Any

import torch
from transformers import GenerationConfig, LlamaConfig, LlamaForCausalLM

import core
from core.catalog import locate
from core.errors import ModelNotFoundError
from tests.benchmarks.timing import seconds

PROMPTS = (
    "Once upon a time, there was a little fox named Mia. She lived in a den under the hill.",
    "One day, a small bear lost his red ball. He looked for it everywhere.",
    "Tom the rabbit wanted to bake a cake for his friend.",
)
NO_END = [1_000_000]
WIDTHS = "1 1 3 1 1"
Speed = Callable[[int], float]
"""Seconds a token of one run on the prompt of that number."""


def config(tokens: int, **more: Any) -> GenerationConfig:
    """To the limit, whatever the model would like."""
    return GenerationConfig(max_new_tokens=tokens, eos_token_id=NO_END, **{"do_sample": False, **more})


def ours(model: core.LoadedModel, tokens: int, sampling: dict[str, Any], **request: Any) -> Speed:
    """A run of the core, tracing as the window does."""

    def run(turn: int) -> float:
        prompt = PROMPTS[turn % len(PROMPTS)]
        made = core.Request(prompt, config(tokens, **sampling), seed=turn, **request)
        return seconds(lambda: core.run(model, made)) / tokens

    return run


def theirs(model: core.LoadedModel, draft: core.LoadedModel, tokens: int) -> Speed:
    """transformers' assisted generation with the same pair and a constant draft of five."""
    settings = {"num_assistant_tokens": 5, "num_assistant_tokens_schedule": "constant"}
    draft.model.generation_config.update(**settings, assistant_confidence_threshold=0.0)

    def run(turn: int) -> float:
        ids = torch.tensor([model.tokenizer(PROMPTS[turn % len(PROMPTS)])["input_ids"]])
        made = config(tokens, pad_token_id=0)
        call = lambda: model.model.generate(  # noqa: E731
            ids, generation_config=made, assistant_model=draft.model, attention_mask=torch.ones_like(ids)
        )
        return seconds(call) / tokens

    return run


def speed_of(fast: Speed, slow: Speed, rounds: int) -> float:
    """How many times as fast: median over alternating runs on the same prompts."""
    for turn in range(len(PROMPTS)):
        fast(turn), slow(turn)
    pairs = []
    for turn in range(rounds):
        one, other = (fast(turn), slow(turn)) if turn % 2 else reversed((slow(turn), fast(turn)))
        pairs.append(other / one)
    return statistics.median(pairs)


def tokens_per_pass(model: core.LoadedModel, tokens: int, **request: Any) -> float:
    """Mean over the prompts."""
    found = []
    for prompt in PROMPTS:
        metrics = core.run(model, core.Request(prompt, config(tokens), top_n=0, **request)).metrics
        assert metrics.tokens_per_target_pass is not None
        found.append(metrics.tokens_per_target_pass)
    return statistics.mean(found)


def useless_draft(model: core.LoadedModel) -> core.LoadedModel:
    """Random weights in the shape of the bundled draft."""
    torch.manual_seed(0)
    shape = LlamaConfig(
        vocab_size=model.vocabulary, hidden_size=96, intermediate_size=256, num_hidden_layers=3,
        num_attention_heads=3, num_key_value_heads=3, max_position_embeddings=2048, tie_word_embeddings=True,
    )  # fmt: skip
    return core.wrap(LlamaForCausalLM(shape), model.tokenizer, "useless")


def with_threads(threads: int, tokens: int, rounds: int) -> dict[str, float]:
    """All ratios at this number of threads."""
    torch.set_num_threads(threads)
    model, draft = core.load("storyteller"), core.load("storyteller-draft")
    assisted: dict[str, Any] = {"strategy": "assisted", "drafters": [draft]}
    five = assisted | {"options": {"schedule": "constant"}}
    tree: dict[str, Any] = {"strategy": "token_tree", "drafters": [draft]}
    sampling = {"do_sample": True, "temperature": 0.8, "top_k": 0}
    greedy, sampled = ours(model, tokens, {}, strategy="greedy"), ours(model, tokens, sampling, strategy="sampling")
    chain = ours(model, tokens, {}, **assisted)
    wasted = assisted | {"drafters": [useless_draft(model)]}
    ratios = {
        "assisted ÷ greedy": speed_of(chain, greedy, rounds),
        "assisted ÷ transformers' (5, constant)": speed_of(
            ours(model, tokens, {}, **five), theirs(model, draft, tokens), rounds
        ),
        "assisted ÷ sampling, T 0.8": speed_of(ours(model, tokens, sampling, **assisted), sampled, rounds),
        "tree ÷ chain, auto": speed_of(ours(model, tokens, {}, **tree), chain, rounds),
        "useless draft ÷ greedy, auto": speed_of(ours(model, tokens, {}, **wasted), greedy, rounds),
        "prompt lookup ÷ greedy, auto": speed_of(ours(model, tokens, {}, strategy="prompt_lookup"), greedy, rounds),
        "early exit ÷ greedy, auto": speed_of(ours(model, tokens, {}, strategy="early_exit"), greedy, rounds),
    }
    return {f"{name}, {threads} thread{'s' * (threads > 1)}": value for name, value in ratios.items()}


def shares(tokens: int) -> dict[str, float]:
    """Figures without a clock: acceptance, and tokens a target pass of a tree ÷ of the chain of its depth."""
    model, draft = core.load("storyteller"), core.load("storyteller-draft")
    fixed: dict[str, Any] = {"strategy": "assisted", "options": {"schedule": "constant"}, "drafters": [draft]}
    accepted = [core.run(model, core.Request(prompt, config(tokens), top_n=0, **fixed)) for prompt in PROMPTS]
    chain = tokens_per_pass(model, tokens, **fixed)
    tree = {"strategy": "token_tree", "drafters": [draft]}
    return {
        "draft acceptance, greedy": statistics.mean(run.metrics.acceptance_rate or 0.0 for run in accepted),
        "chain of 5 (tokens a pass)": chain,
        f"tree ⟨{WIDTHS}⟩ ÷ chain of 5 (tokens a pass)": tokens_per_pass(
            model, tokens, **tree, options={"widths": WIDTHS}
        ) / chain,
        "tree ⟨3 2 2 1 1⟩ ÷ chain of 5 (tokens a pass)": tokens_per_pass(
            model, tokens, **tree, options={"widths": "3 2 2 1 1"}
        ) / chain,
    }  # fmt: skip


def measure(quick: bool = False) -> dict[str, float]:
    """All figures of this module; none without the bundled draft model."""
    try:
        locate("storyteller-draft")
    except ModelNotFoundError:
        return {}
    tokens, rounds = (60, 3) if quick else (120, 9)
    figures = shares(tokens)
    for threads in (2, 1):
        figures |= with_threads(threads, tokens, rounds)
    return figures
