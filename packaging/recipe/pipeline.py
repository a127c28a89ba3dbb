"""From a shape to a finished folder: train, export, measure, describe."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from itertools import islice
from pathlib import Path
from typing import Any

import scan
import torch
from batches import START, Batch, PairBatch, decoder_batches, pair_batches
from bpe import tokenizer_for
from corpus import FRENCH_TASKS, MIX, QUIZ_MIX, READING_MIX, SECOND_MIX
from distill import soft_loss, with_samples
from export import export, load
from lexicon import choose_language
from media import MEDIA
from networks import new_model
from shapes import ModelRecipe
from train import Trainer, decoder_loss, pair_loss

HILL_SEED = 1000  # added to the seed for every hill, so that no document is repeated


def say(line: str) -> None:
    """Show progress at once, also when the output is a file."""
    print(line, flush=True)


def starting_model(shape: ModelRecipe, output: Path) -> Any:
    """Return a model with random weights, or the one that this one continues."""
    model = new_model(shape)
    if shape.family in MEDIA:
        return MEDIA[shape.family].training(model)
    if shape.start_from:
        model.load_state_dict(load(output / shape.start_from).state_dict())
    return model


def finished(shape: ModelRecipe, trained: Any) -> Any:
    """The model that is shipped, without what only its training needs."""
    return MEDIA[shape.family].finished(trained) if shape.family in MEDIA else trained


def decoder_stream(shape: ModelRecipe, trainer: Trainer, tokenizer: Any) -> Iterator[Batch]:
    """The batches still to come: the shape's mix first, then, hill by hill, new documents with more questions."""
    first = SECOND_MIX if shape.second_mix else MIX
    while trainer.step < shape.all_steps:
        hill, number = shape.hill_at(trainer.step)
        mix, seed = (first, READING_MIX, QUIZ_MIX)[hill], shape.seed + HILL_SEED * hill
        start = trainer.place if number else START
        left = (shape.steps, *shape.hills)[hill] - number
        yield from islice(decoder_batches(tokenizer, seed, shape.batch, mix, start), left)


def pair_stream(shape: ModelRecipe, trainer: Trainer, tokenizer: Any) -> Iterator[PairBatch]:
    """The tasks still to come; from the second hill on they are nearly all French."""
    last = sum((shape.steps, *shape.hills[:1]))
    if trainer.step < last:
        first = pair_batches(tokenizer, shape.seed, shape.batch, start=trainer.place)
        yield from islice(first, last - trainer.step)
    start = trainer.place if trainer.step > last else START
    yield from pair_batches(tokenizer, shape.seed + HILL_SEED, shape.batch, FRENCH_TASKS, start)


def train(shape: ModelRecipe, trainer: Trainer, output: Path) -> None:
    """Run the training that belongs to the shape's family."""
    if shape.family in MEDIA:
        medium = MEDIA[shape.family]
        trainer.run(medium.batches(shape.seed, shape.batch, trainer.place), medium.loss, say)
        return
    tokenizer = tokenizer_for(shape.family)
    if shape.family == "t5":
        trainer.run(pair_stream(shape, trainer, tokenizer), pair_loss, say)
        return
    batches = decoder_stream(shape, trainer, tokenizer)
    if shape.teacher:
        teacher = load(output / shape.teacher)
        trainer.run(with_samples(teacher, batches, trainer.step), soft_loss(teacher), say)
    else:
        with scan.installed() if shape.family == "mamba" else nullcontext():
            trainer.run(batches, decoder_loss, say)


def build(shape: ModelRecipe, work: Path, output: Path, snapshot: bool = False) -> None:
    """Train the model (or go on training it), write its folder and its README."""
    choose_language(shape.language)
    trainer = Trainer(starting_model(shape, output), shape, work / shape.name / "state.pt")
    if not snapshot:
        train(shape, trainer, output)
    export(finished(shape, trainer.model), shape, output / shape.name)
    if not snapshot:
        from card import write_card

        torch.manual_seed(0)
        write_card(shape, output, trainer.tokens)
    say(f"wrote {output / shape.name}")
