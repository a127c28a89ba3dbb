"""Tensor parallel by transformers' own plan: each of the processes that have met keeps a part of each matrix."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from transformers import AutoModelForCausalLM, PreTrainedModel


def load_tensor_parallel(folder: Path, dtype: torch.dtype) -> PreTrainedModel:
    """This process's part of the model."""
    network: PreTrainedModel = AutoModelForCausalLM.from_pretrained(
        folder, tp_plan="auto", dtype=dtype, local_files_only=True
    )
    return network


def generate_greedily(network: Any, prompt: Tensor, tokens: int) -> list[int]:
    """The greedy continuation of ids [1, length]: so many, whatever ends a text. A whole model's too."""
    with torch.inference_mode():
        found = network.generate(
            prompt, attention_mask=torch.ones_like(prompt), do_sample=False, use_cache=True,
            max_new_tokens=tokens, min_new_tokens=tokens,
        )  # fmt: skip
    ids: list[int] = found[0, prompt.shape[1] :].tolist()
    return ids
