"""Save a trained model in Hugging Face format, with a model card."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Protocol

from transformers.utils import logging

from decodescope.core.labs.preference.events import PpoChecked, RewardChecked, SftChecked
from decodescope.core.models.loaded_model import LoadedModel

CONFIG_NAME = "config.json"
"""The file that marks a folder as a model; it is moved last."""


class Savable(Protocol):
    """A network or tokenizer with transformers' `save_pretrained`."""

    def save_pretrained(self, folder: Path, /) -> object: ...


def save_model(network: Savable, tokenizer: Savable, folder: Path, card: str) -> None:
    """Save config, safetensors weights, tokenizer and model card.

    Everything is written to a temporary folder and then moved into `folder`, so that a full disk leaves no partial
    model. Raises OSError, SafetensorError.
    """
    logging.disable_progress_bar()  # it would write to a terminal, which a windowed program may not have
    temporary = folder / ".part"
    shutil.rmtree(temporary, ignore_errors=True)  # left over from a killed process
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
    if target.is_dir():  # some tokenizers save their templates in a folder
        shutil.rmtree(target)
    os.replace(path, target)


_CARD_TEMPLATE = "# {title}\n\n{about}\n\n| | |\n| --- | --- |\n"


def reward_card(
    source: LoadedModel, checked: RewardChecked, rankings: int, steps: int, seed: int, seconds: float
) -> str:
    """Return the model card of a reward model."""
    about = (
        f"A reward model made from {source.name} in Decodescope's preference lab: its head gives one number, read at "
        "the last token, larger for the completion that is preferred. It writes no text."
    )
    rows = {
        "Made from": source.name,
        "Rankings": f"{rankings}",
        "Steps": f"{steps} (seed {seed}, {seconds:.0f} s)",
        "Held-out pairs put in the right order": f"{checked.accuracy:.1%} of {checked.pairs}",
        "Loss on held-out pairs": f"{checked.loss:.3f} nats a pair",
    }
    return _card("Reward model", about, rows)


def ppo_card(
    source: LoadedModel, checked: PpoChecked, beta: float, steps: int, seed: int, seconds: float
) -> str:  # fmt: skip
    """Return the model card of a model tuned by PPO."""
    about = (
        f"{source.name}, tuned by PPO in Decodescope's preference lab to be rewarded by a reward model, with a penalty "
        f"of β = {beta:g} on the KL divergence from what it was."
    )
    rows = {
        "Made from": source.name,
        "Steps": f"{steps} (seed {seed}, {seconds:.0f} s)",
        "Reward on held-out prompts": f"{checked.reward_before:.2f} → {checked.reward_after:.2f} "
        f"({checked.gain:+.2f} standard deviations, {checked.texts} texts)",
        "KL from what it was": f"{checked.kl:.2f} nats a text",
    }
    return _card(f"{source.name}, tuned by PPO", about, rows)


def sft_card(source: LoadedModel, checked: SftChecked, examples: int, seed: int, seconds: float) -> str:
    """Return the model card of a fine-tuned model."""
    about = f"{source.name}, fine-tuned on examples in Decodescope's preference lab."
    rows = {
        "Made from": source.name,
        "Examples": f"{examples}",
        "Steps": f"{checked.total} (seed {seed}, {seconds:.0f} s)",
        "Loss on held-out answers": f"{checked.loss:.3f} nats a token",
    }
    return _card(f"{source.name}, fine-tuned", about, rows)


def _card(title: str, about: str, rows: dict[str, str]) -> str:
    lines = "".join(f"| {name} | {value} |\n" for name, value in rows.items())
    return _CARD_TEMPLATE.format(title=title, about=about) + lines
