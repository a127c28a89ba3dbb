"""A trained model as a folder that any program of the field reads, and this one's picker lists."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Protocol

from transformers.utils import logging

CONFIG_NAME = "config.json"
"""What says that there is a model: it is moved to its place last."""


class Savable(Protocol):
    """A network or a tokenizer, as transformers has them."""

    def save_pretrained(self, folder: Path, /) -> object: ...


def save_model(network: Savable, tokenizer: Savable, folder: Path, card: str) -> None:
    """Config, weights as safetensors, tokenizer, card: written beside, and moved into `folder` once they are whole, so
    that a full disk leaves no half of a model. Raises OSError, SafetensorError."""
    logging.disable_progress_bar()  # it would write to a terminal that a window need not have
    temporary = folder / ".part"
    shutil.rmtree(temporary, ignore_errors=True)  # of a program that was killed
    try:
        temporary.mkdir(parents=True)
        network.save_pretrained(temporary)
        tokenizer.save_pretrained(temporary)
        (temporary / "README.md").write_text(card, encoding="utf-8")
        for path in sorted(temporary.iterdir(), key=lambda path: path.name == CONFIG_NAME):
            _move_into_place(path, folder / path.name)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _move_into_place(path: Path, target: Path) -> None:
    if target.is_dir():  # a tokenizer may keep its templates in one
        shutil.rmtree(target)
    os.replace(path, target)
