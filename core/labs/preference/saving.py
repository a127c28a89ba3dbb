"""A trained language model as a folder that any program of the field reads, and this one's picker lists."""

from __future__ import annotations

from pathlib import Path

from transformers.utils import logging

from core.models.model import LoadedModel


def save_model(model: LoadedModel, folder: Path, card: str) -> None:
    """Config, weights as safetensors, tokenizer, card."""
    folder.mkdir(parents=True, exist_ok=True)
    logging.disable_progress_bar()  # it would write to a terminal that a window need not have
    model.model.save_pretrained(folder)
    model.tokenizer.save_pretrained(folder)
    (folder / "README.md").write_text(card, encoding="utf-8")
