"""From a shape to a finished folder: train, export, measure, describe."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from batches import decoder_batches, pair_batches
from bpe import tokenizer_for
from corpus import MIX, SECOND_MIX
from distill import soft_loss, with_samples
from export import export, load
from shapes import Shape, new_model
from train import Trainer, decoder_loss, pair_loss


def say(line: str) -> None:
    """Show progress at once, also when the output is a file."""
    print(line, flush=True)


def starting_model(shape: Shape, output: Path) -> Any:
    """Fresh weights, or those of the model that this one continues."""
    model = new_model(shape)
    if shape.start_from:
        model.load_state_dict(load(output / shape.start_from).state_dict())
    return model


def train(shape: Shape, trainer: Trainer, output: Path) -> None:
    """Run the training that belongs to the shape's family."""
    tokenizer, start = tokenizer_for(shape.family), trainer.place
    if shape.family == "t5":
        trainer.run(pair_batches(tokenizer, shape.seed, shape.batch, start), pair_loss, say)
        return
    batches = decoder_batches(tokenizer, shape.seed, shape.batch, SECOND_MIX if shape.second_mix else MIX, start)
    if shape.teacher:
        teacher = load(output / shape.teacher)
        trainer.run(with_samples(teacher, batches, trainer.step), soft_loss(teacher), say)
    else:
        trainer.run(batches, decoder_loss, say)


def build(shape: Shape, work: Path, output: Path, snapshot: bool = False) -> None:
    """Train the model (or go on training it), write its folder and its README."""
    trainer = Trainer(starting_model(shape, output), shape, work / shape.name / "state.pt")
    if not snapshot:
        train(shape, trainer, output)
    export(trainer.model, tokenizer_for(shape.family), shape, output / shape.name)
    if not snapshot:
        from card import write_card

        torch.manual_seed(0)
        write_card(shape, output, trainer.tokens)
    say(f"wrote {output / shape.name}")
