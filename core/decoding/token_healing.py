"""Token healing: the last token of a prompt is replaced by one that its text may begin (as `generate` does it)."""

from __future__ import annotations

import copy
from typing import Any

import torch

from core.errors import ParameterError
from core.models.loaded_model import LoadedModel
from core.parameter import Parameter, check
from resources.language import mark, tr

SETTING = Parameter("token_healing", mark("Token healing"), "bool", False, "")


def heal_tokens(model: LoadedModel, ids: list[int], seed: int) -> list[int]:
    """Return the ids of the prompt with its end healed by transformers' own method.

    Raises ParameterError where the tokenizer lacks what that method needs.
    """
    network: Any = model.model
    tokenizer = model.tokenizer
    if tokenizer is None or not hasattr(network, "heal_tokens"):
        raise _healing_error(tr("Token healing needs a tokenizer, and a transformers release that has it."))
    missing = [name for name in ("bos_token", "pad_token") if getattr(tokenizer, f"{name}_id", None) is None]
    if missing:
        raise _healing_error(
            tr("Token healing needs a tokenizer with a {token}, and that of {model} has none.").format(
                token=missing[0], model=model.name
            )
        )
    with torch.random.fork_rng(devices=[model.device] if model.device.type == "cuda" else []):
        torch.manual_seed(seed)
        healed: list[int] = network.heal_tokens(torch.tensor([ids], device=model.device), copy.copy(tokenizer))[
            0
        ].tolist()
    return healed


def should_heal(model: LoadedModel, setting: object) -> bool:
    """Whether a run with this setting heals its prompt. Raises ParameterError for what is neither true nor false."""
    if setting is None:
        return False
    check(SETTING, setting)
    return bool(setting) and not model.is_encoder_decoder


def _healing_error(cause: str) -> ParameterError:
    return ParameterError(cause, tr("Switch token_healing off."), "token_healing")
