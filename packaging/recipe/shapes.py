"""What each bundled model is: its shape, its corpus and its training budget."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

BOS, EOS, PAD, END = 1, 2, 0, 3


@dataclass(frozen=True)
class ModelRecipe:
    """A model to train: ``steps`` fix the training in tokens, not in hours; ``hills`` are lower ones after it.

    ``batch`` counts the tokens of a step; with sounds and pictures it counts those.
    """

    name: str
    family: str
    title: str
    width: int
    layers: int
    heads: int
    inner: int
    steps: int
    batch: int = 2048
    rate: float = 3e-3
    hills: tuple[int, ...] = ()
    decay: float = 0.4
    seed: int = 0
    second_mix: bool = False
    teacher: str | None = None
    start_from: str | None = None
    language: str = "english"
    extra: dict[str, Any] = field(default_factory=dict)

    @property
    def all_steps(self) -> int:
        """The steps of the first training and of all lower hills after it."""
        return self.steps + sum(self.hills)

    def hill_at(self, step: int) -> tuple[int, int]:
        """Which hill a step belongs to (0 is the first training), and its number within it."""
        hill = 0
        for length in (self.steps, *self.hills[:-1]) if self.hills else ():
            if step < length:
                break
            hill, step = hill + 1, step - length
        return hill, step


SHAPES = {
    shape.name: shape
    for shape in (
        ModelRecipe("storyteller", "llama", "The default storyteller", 192, 12, 6, 512, steps=2700, hills=(500, 450)),
        ModelRecipe(
            "summarizer",
            "t5",
            "Summaries and French",
            192,
            4,
            6,
            512,
            steps=3400,
            hills=(1500, 500, 300),
            decay=0.45,
            extra={"decoder_layers": 2},
        ),
        ModelRecipe(
            "storyteller-draft", "llama", "A small draft model", 96, 3, 3, 256, steps=3000, teacher="storyteller"
        ),
        ModelRecipe(
            "storyteller-draft-b", "llama", "A second draft model", 96, 3, 3, 256, steps=1200, seed=7, second_mix=True
        ),
        ModelRecipe(
            "storyteller-window",
            "mistral",
            "The storyteller with a window of 64",
            192,
            12,
            6,
            512,
            steps=300,
            rate=1e-3,
            start_from="storyteller",
            extra={"sliding_window": 64},
        ),
        ModelRecipe(
            "storyteller-mamba",
            "mamba",
            "A storyteller with a constant-size state",
            160,
            6,
            1,
            320,
            steps=1500,
            extra={"state_size": 8},
        ),
        ModelRecipe(
            "storyteller-chinese",
            "llama",
            "A storyteller in Chinese",
            192,
            6,
            6,
            512,
            steps=1500,
            hills=(300, 250),
            language="chinese",
        ),
        ModelRecipe(
            "listener",
            "whisper",
            "Writes down spoken numbers, times and simple commands",
            128,
            4,
            4,
            512,
            steps=1500,
            batch=24,
            extra={"decoder_layers": 3},
        ),
        ModelRecipe(
            "describer",
            "git",
            "Puts drawn scenes of shapes and colours into words",
            128,
            3,
            4,
            512,
            steps=1700,
            batch=32,
            extra={"decoder_layers": 3},
        ),
    )
}

DEFAULT_NAMES = ("storyteller", "summarizer", "storyteller-draft")
