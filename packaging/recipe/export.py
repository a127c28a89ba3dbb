"""Write a trained model as a Hugging Face folder, and read it back."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import bpe
import torch
from media import MEDIA
from shapes import BOS, END, EOS, PAD, ModelRecipe


def generation_config(shape: ModelRecipe) -> dict[str, Any]:
    """Where generation starts and ends; nothing that would force a strategy."""
    if shape.family in MEDIA:
        return MEDIA[shape.family].settings()
    if shape.family == "t5":
        return {"decoder_start_token_id": PAD, "eos_token_id": EOS, "pad_token_id": PAD}
    return {"bos_token_id": BOS, "eos_token_id": [EOS, END], "pad_token_id": PAD}


def save_words(shape: ModelRecipe, folder: Path) -> None:
    """Write what the model reads with: its tokenizer, and its processor of sounds or pictures where it has one."""
    if shape.family in MEDIA:
        MEDIA[shape.family].save_words(folder)
    else:
        bpe.save(bpe.tokenizer_for(shape.family), folder)


def export(model: Any, shape: ModelRecipe, folder: Path) -> None:
    """Write the folder beside its place and move it there at once; weights are stored as float16."""
    from transformers import GenerationConfig

    fresh = folder.with_name(f".{folder.name}.new")
    shutil.rmtree(fresh, ignore_errors=True)
    copy = type(model)(model.config)
    copy.load_state_dict(model.state_dict())
    copy.generation_config = GenerationConfig(**generation_config(shape))
    copy.to(torch.float16).save_pretrained(fresh)
    (fresh / "model.safetensors").chmod(0o644)
    save_words(shape, fresh)
    for kept in folder.glob("README.md"):
        shutil.copy(kept, fresh / kept.name)
    _replace(fresh, folder)


def _replace(fresh: Path, folder: Path) -> None:
    old = folder.with_name(f".{folder.name}.old")
    shutil.rmtree(old, ignore_errors=True)
    if folder.exists():
        os.replace(folder, old)
    os.replace(fresh, folder)
    shutil.rmtree(old, ignore_errors=True)


def load(folder: Path) -> Any:
    """A finished model in float32, ready to generate."""
    import transformers as hf

    kinds = {"t5": hf.AutoModelForSeq2SeqLM, "whisper": hf.AutoModelForSpeechSeq2Seq}
    family = json.loads((folder / "config.json").read_text())["model_type"]
    kind = kinds.get(family, hf.AutoModelForCausalLM)
    return kind.from_pretrained(folder, dtype=torch.float32).eval()
