"""The two models with audio and image inputs: how their training and their files differ from those of the others."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import describer.batches
import describer.card
import describer.figures
import describer.model
import describer.words
import listener.batches
import listener.card
import listener.figures
import listener.model
import listener.words
from batches import Place


@dataclass(frozen=True)
class FamilyTraining:
    """How a family is trained (batches of a given number of rows, the loss, the trained parts) and described."""

    batches: Callable[[int, int, Place], Iterator[Any]]
    loss: Callable[[Any, Any], Any]
    training: Callable[[Any], Any]
    finished: Callable[[Any], Any]
    settings: Callable[[], dict[str, Any]]
    save_words: Callable[[Path], None]
    vocabulary: str
    measure: Callable[[Any], list[tuple[str, str]]]
    data: tuple[str, str]
    recipe: str
    limits: str


def _without_head(training: Any) -> Any:
    return training.model


MEDIA = {
    "whisper": FamilyTraining(
        listener.batches.heard_batches,
        listener.model.heard_loss,
        listener.model.Listening,
        _without_head,
        listener.model.generation_settings,
        listener.words.save,
        "byte-level BPE tokens, learned from the sentences",
        listener.figures.rows,
        (listener.card.DATA, listener.card.HELD_OUT),
        listener.card.RECIPE.format(utterances=listener.batches.UTTERANCES),
        listener.card.LIMITS,
    ),
    "git": FamilyTraining(
        describer.batches.seen_batches,
        describer.model.seen_loss,
        describer.model.Seeing,
        _without_head,
        describer.model.generation_settings,
        describer.words.save,
        "tokens, one a word",
        describer.figures.rows,
        (describer.card.DATA, describer.card.HELD_OUT),
        describer.card.RECIPE,
        describer.card.LIMITS,
    ),
}
