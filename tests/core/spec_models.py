"""Drafters for the tiny models, and the reference results of speculation."""

from __future__ import annotations

import copy
from functools import cache
from typing import Any

import torch
from transformers import GenerationConfig, LlamaConfig, LlamaForCausalLM

from decodescope import core
from decodescope.core.decoding.speculation.round_plan import RoundResult
from decodescope.core.decoding.speculation.tree import Branch, merge_branches
from decodescope.core.decoding.speculation.verification import VerifiedPath
from decodescope.core.events import DraftRound, TokenChosen
from tests.core import tiny
from tests.core.spec_tables import SIZE

LENGTH = 32
NO_END = [tiny.VOCABULARY + 5]
"""An end token that no tiny model has: the text runs to its limit."""


@cache
def similar_model(kind: str, seed: int = 3, noise: float = 0.15) -> core.LoadedModel:
    """The shared tiny model with its weights shaken: agrees with it often, but not always."""
    network = copy.deepcopy(tiny.shared(kind).model)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in network.parameters():
            if parameter.dim() > 1:
                parameter.add_(torch.randn(parameter.shape, generator=generator) * parameter.std() * noise)
    return core.wrap(network, name=f"near-{kind}-{seed}")


@cache
@torch.random.fork_rng()  # keeps the state of the global random generator
def few_token_model(seed: int, vocabulary: int = SIZE, sharpness: float = 8.0) -> core.LoadedModel:
    """Create a model with few tokens and uneven probabilities, so that a few hundred runs fill every cell of a table.

    `sharpness` multiplies the weights.
    """
    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=vocabulary, hidden_size=16, intermediate_size=32, num_hidden_layers=3, num_attention_heads=2,
        num_key_value_heads=2, max_position_embeddings=64, bos_token_id=None, eos_token_id=None, pad_token_id=None,
    )  # fmt: skip
    network = LlamaForCausalLM(config).eval()
    with torch.no_grad():
        for parameter in network.parameters():
            if parameter.dim() > 1:
                parameter.mul_(sharpness)
    return core.wrap(network, name=f"few-{vocabulary}-{seed}")


def config(**more: Any) -> GenerationConfig:
    """Greedy, to the limit."""
    return GenerationConfig(**{"max_new_tokens": LENGTH, "eos_token_id": NO_END, **more})


def greedy(model: core.LoadedModel, ids: list[int] | None = None, **more: Any) -> list[int]:
    """Return the tokens of plain greedy decoding."""
    result = core.run(model, core.Request(ids or tiny.prompt(), config(**more), strategy="greedy", top_n=0))
    return result.sequences[0]


def rounds(result: Any) -> list[DraftRound]:
    """The rounds of a run."""
    return [event for event in result.events if isinstance(event, DraftRound)]


def chosen_tokens(result: Any) -> list[TokenChosen]:
    """The tokens of a run."""
    return [event for event in result.events if isinstance(event, TokenChosen)]


def outcome(accepted: int, length: int, share: float = 0.9, first: float = 0.1, extra: float = 0.0) -> RoundResult:
    """A chain of `length`, each token given `share`; a draft token takes 0.1 s, `first` until the first of them."""
    tree = merge_branches(0, [Branch.chain(list(range(1, length + 1)), [share] * length)])
    verdict = VerifiedPath(list(range(1, accepted + 1)), 0, accepted == length)
    return RoundResult(tree, verdict, length, first + 0.1 * (length - 1), 1.0, first, extra, accepted + 1)
