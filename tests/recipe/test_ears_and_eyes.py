"""The two bundled models that hear and see: small enough, and as good as their cards say."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from describer.figures import look
from exhibits import PICTURES, SOUNDS
from export import load
from listener.figures import listen

from decodescope import core, resources
from tests.recipe.test_listener import speaks

MODELS = resources.path("models")
MEDIA = resources.path("media")
FLAWED = {"purple-star"}
"""Taken for something else, as its example says."""


def size(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


@pytest.mark.parametrize("name", ["listener", "describer"])
def test_it_is_small(name: str) -> None:
    assert size(MODELS / name) <= 6e6


@pytest.mark.parametrize("name", sorted(SOUNDS.keys() - FLAWED))
def test_a_sound_that_ships_is_written_down(name: str) -> None:
    received = core.run(
        core.load("listener"), core.Request("", {"max_new_tokens": 40}, media=(MEDIA / f"{name}.flac",))
    )
    assert received.texts[0].strip() == SOUNDS[name].text


@pytest.mark.parametrize("name", sorted(PICTURES.keys() - FLAWED))
def test_a_picture_that_ships_is_put_into_words(name: str) -> None:
    seen = core.run(core.load("describer"), core.Request("", {"max_new_tokens": 40}, media=(MEDIA / f"{name}.png",)))
    assert seen.texts[0].strip() == PICTURES[name].scene.caption


@speaks
def test_held_out_sentences_are_heard() -> None:
    trial = listen(load(MODELS / "listener"), 100)
    assert trial.errors / trial.words <= 0.1


def test_held_out_scenes_are_described() -> None:
    assert look(load(MODELS / "describer"), 100).exact >= 85


@pytest.mark.parametrize("name", ["listener", "describer"])
def test_its_card_tells_figures_that_are_good_enough(name: str) -> None:
    card = (MODELS / name / "README.md").read_text(encoding="utf-8")
    first = re.search(r"\| (?:Word errors|Captions)[^|]*\| [\d,]+ of [\d,]+ \(([\d.]+) %\)", card)
    assert first is not None
    assert float(first[1]) <= 10 if name == "listener" else float(first[1]) >= 85
