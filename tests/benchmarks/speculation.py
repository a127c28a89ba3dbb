"""Speculation on the bundled pair: against plain decoding, against transformers, trees against chains, useless drafts;
and on a published shape.

Every ratio is taken with one thread and with two. Speeds of different texts (sampling) are compared in tokens a second.
"""

from __future__ import annotations

import copy
import statistics
from collections.abc import Callable, Iterator
from typing import Any

import torch
from transformers import GenerationConfig, LlamaConfig, LlamaForCausalLM
from transformers.utils import logging

from decodescope import core
from decodescope.core.errors import ModelNotFoundError
from decodescope.core.models.catalog import locate
from tests.benchmarks.llama import random_model
from tests.benchmarks.timing import seconds

PROMPTS = (
    "Once upon a time, there was a little fox named Mia. She lived in a den under the hill.",
    "One day, a small bear lost his red ball. He looked for it everywhere.",
    "Tom the rabbit wanted to bake a cake for his friend.",
)
NO_END = [1_000_000]
TREES = ("1 1 3 1 1", "3 2 2 1 1", "3 3 2 2 1 1 1 1")
"""Widths by depth. A chain of 5 of so good a draft is near the most it can be, 6 tokens a pass: depth 8 leaves room."""
WEAKENED = 0.35
"""Noise on the second draft's weights, in their standard deviations."""
PUBLISHED, KEPT_LAYERS, LATER_LAYERS = "SmolLM2-360M", 2, 0.01
"""Shape of a target of which a draft has the first layers, and the factor on what its other layers add."""
Speed = Callable[[int], float]
"""Seconds a token of one run on the prompt of that number."""


def config(tokens: int, **more: Any) -> GenerationConfig:
    """Return a config that always generates up to the limit."""
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
    """Return the speedup: median over alternating runs on the same prompts."""
    for turn in range(len(PROMPTS)):
        fast(turn), slow(turn)
    pairs = []
    for turn in range(rounds):
        one, other = (fast(turn), slow(turn)) if turn % 2 else reversed((slow(turn), fast(turn)))
        pairs.append(other / one)
    return statistics.median(pairs)


def tokens_per_pass(model: core.LoadedModel, tokens: int, length: int | None = None, **request: Any) -> float:
    """Mean over the prompts. `length`: of a draft that is always the same."""
    found, settings = [], {} if length is None else {"num_assistant_tokens": length}
    for prompt in PROMPTS:
        metrics = core.run(model, core.Request(prompt, config(tokens, **settings), top_n=0, **request)).metrics
        assert metrics.tokens_per_target_pass is not None
        found.append(metrics.tokens_per_target_pass)
    return statistics.mean(found)


def weak_draft(model: core.LoadedModel, draft: core.LoadedModel) -> core.LoadedModel:
    """The draft with its weights shaken: its first choice is right about half of the time."""
    network, generator = copy.deepcopy(draft.model), torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in network.parameters():
            if parameter.dim() > 1:
                parameter.add_(torch.randn(parameter.shape, generator=generator) * parameter.std() * WEAKENED)
    return core.wrap(network, model.tokenizer, "weak")


def useless_draft(model: core.LoadedModel) -> core.LoadedModel:
    """Random weights in the shape of the bundled draft."""
    torch.manual_seed(0)
    shape = LlamaConfig(
        vocab_size=model.vocabulary, hidden_size=96, intermediate_size=256, num_hidden_layers=3,
        num_attention_heads=3, num_key_value_heads=3, max_position_embeddings=2048, tie_word_embeddings=True,
    )  # fmt: skip
    return core.wrap(LlamaForCausalLM(shape), model.tokenizer, "useless")


def truncated_pair(name: str) -> tuple[core.LoadedModel, core.LoadedModel, core.LoadedModel]:
    """A model of a published shape with random weights; its first layers, which are right about nine times in ten,
    because the later ones change little; and a draft of their shape that is never right.
    """
    model = random_model(name, tie_word_embeddings=False)  # tied ones would repeat a single token
    draft, useless = (random_model(name, tie_word_embeddings=False, num_hidden_layers=KEPT_LAYERS) for _ in range(2))
    with torch.no_grad():
        for parameter in model.model.parameters():
            if parameter.dim() > 1:
                parameter.mul_(2)
        for layer in model.model.model.layers[KEPT_LAYERS:]:
            layer.self_attn.o_proj.weight.mul_(LATER_LAYERS)
            layer.mlp.down_proj.weight.mul_(LATER_LAYERS)
        useless.model.lm_head.weight.copy_(useless.model.lm_head.weight.roll(1, 0))
    weights = model.model.state_dict()
    draft.model.load_state_dict({key: weights[key] for key in draft.model.state_dict()})
    return model, draft, useless


class LoadedPair:
    """The bundled models, loaded once."""

    def __init__(self) -> None:
        logging.disable_progress_bar()
        logging.set_verbosity_error()
        self.model, self.draft = core.load("storyteller"), core.load("storyteller-draft")

    def assisted(self, **options: Any) -> dict[str, Any]:
        """Request settings of assisted decoding."""
        return {"strategy": "assisted", "drafters": [self.draft], "options": options}

    def tree(self, **options: Any) -> dict[str, Any]:
        """Request settings of token trees."""
        return {"strategy": "token_tree", "drafters": [self.draft], "options": options}


def with_threads(pair: LoadedPair, threads: int, tokens: int, rounds: int) -> Iterator[tuple[str, float]]:
    """All ratios of speed at this number of threads."""
    torch.set_num_threads(threads)
    model, sampling = pair.model, {"do_sample": True, "temperature": 0.8, "top_k": 0}
    greedy, sampled = ours(model, tokens, {}, strategy="greedy"), ours(model, tokens, sampling, strategy="sampling")
    chain = ours(model, tokens, {}, **pair.assisted())
    five = ours(model, tokens, {}, **pair.assisted(schedule="constant"))
    wasted = pair.assisted() | {"drafters": [useless_draft(model)]}
    pairs: dict[str, tuple[Speed, Speed]] = {
        "assisted ÷ greedy": (chain, greedy),
        "assisted ÷ transformers' (5, constant)": (five, theirs(model, pair.draft, tokens)),
        "assisted ÷ sampling, T 0.8": (ours(model, tokens, sampling, **pair.assisted()), sampled),
        "tree ÷ chain, auto": (ours(model, tokens, {}, **pair.tree()), chain),
        "lookahead ÷ greedy, auto": (ours(model, tokens, {}, strategy="lookahead"), greedy),
        "useless draft ÷ greedy, auto": (ours(model, tokens, {}, **wasted), greedy),
        "prompt lookup ÷ greedy, auto": (ours(model, tokens, {}, strategy="prompt_lookup"), greedy),
        "early exit ÷ greedy, auto": (ours(model, tokens, {}, strategy="early_exit"), greedy),
    }
    if others := second_draft():
        weak, both = {"drafters": [weak_draft(model, others[0])]}, [pair.draft, *others]
        pairs["tree ÷ chain, auto, weak draft"] = (
            ours(model, tokens, {}, **pair.tree() | weak), ours(model, tokens, {}, **pair.assisted() | weak)
        )  # fmt: skip
        chosen = pair.assisted(several="choose", with_lookup=True) | {"drafters": both}
        pairs["chosen of two drafts and lookup ÷ the better draft"] = (ours(model, tokens, {}, **chosen), chain)
    for name, (fast, slow) in pairs.items():
        yield f"{name}, {threads} thread{'s' * (threads > 1)}", speed_of(fast, slow, rounds)


def shares(pair: LoadedPair, tokens: int) -> Iterator[tuple[str, float]]:
    """Figures without a clock: acceptance, and tokens a target pass of trees ÷ of the chain of their depth."""
    fixed = pair.assisted(schedule="constant")
    accepted = [core.run(pair.model, core.Request(prompt, config(tokens), top_n=0, **fixed)) for prompt in PROMPTS]
    yield "draft acceptance, greedy", statistics.mean(run.metrics.acceptance_rate or 0.0 for run in accepted)
    drafts = {"tree": [pair.draft], "trees of two drafts": [pair.draft, *second_draft()]}
    for widths in TREES:
        depth = len(widths.split())
        chain = tokens_per_pass(pair.model, tokens, depth, **fixed)
        yield f"chain of {depth} (tokens a pass)", chain
        for name, drafters in drafts.items():
            request = pair.tree(widths=widths) | {"drafters": drafters}
            found = tokens_per_pass(pair.model, tokens, **request)
            yield f"{name} ⟨{widths}⟩ ÷ chain of {depth} (tokens a pass)", found / chain


def second_draft() -> list[core.LoadedModel]:
    """The other bundled draft, where it is here."""
    try:
        return [core.load("storyteller-draft-b")]
    except ModelNotFoundError:
        return []


def measure(quick: bool = False) -> Iterator[tuple[str, float]]:
    """All figures of this module, one by one; none without the bundled draft model."""
    try:
        locate("storyteller-draft")
    except ModelNotFoundError:
        return
    tokens, rounds = (60, 3) if quick else (120, 7)
    pair = LoadedPair()
    yield from shares(pair, tokens)
    for threads in (2, 1):
        yield from with_threads(pair, threads, tokens, rounds)
    yield from from_the_disk(pair, tokens // 2, rounds)
    if not quick:
        yield from on_published_shape(tokens, rounds)


def on_published_shape(tokens: int, rounds: int) -> Iterator[tuple[str, float]]:
    """A good and a useless draft of a model that is bound by memory, as people's models are."""
    model, good, useless = truncated_pair(PUBLISHED)
    run = core.run(model, core.Request(PROMPTS[0], config(tokens), "assisted", top_n=0, drafters=[good]))
    yield f"draft acceptance, {PUBLISHED}'s shape", run.metrics.acceptance_rate or 0.0
    for threads in (2, 1):
        torch.set_num_threads(threads)
        greedy = ours(model, tokens, {}, strategy="greedy")
        for name, draft in (("assisted", good), ("useless draft", useless)):
            drafted = ours(model, tokens, {}, strategy="assisted", drafters=[draft])
            suffix = f"{PUBLISHED}'s shape, {threads} thread{'s' * (threads > 1)}"
            yield f"{name} ÷ greedy, {suffix}", speed_of(drafted, greedy, rounds)


def from_the_disk(pair: LoadedPair, tokens: int, rounds: int) -> Iterator[tuple[str, float]]:
    """Compare trees with chains of drafts that are wrong nearly half of the time, on one thread, where a pass costs far
    more than a drafted token, as with large models.
    """
    model = core.load("storyteller", memory_limit=0)
    for draft in second_draft():
        weak: dict[str, Any] = {"drafters": [weak_draft(pair.model, draft)]}
        chain, tree = ours(model, tokens, {}, **pair.assisted() | weak), ours(model, tokens, {}, **pair.tree() | weak)
        yield "tree ÷ chain, auto, weak draft, layers on the disk, 1 thread", speed_of(tree, chain, rounds)
        plain = ours(model, tokens, {}, strategy="greedy")
        yield "tree ÷ greedy, auto, weak draft, layers on the disk, 1 thread", speed_of(tree, plain, rounds)
