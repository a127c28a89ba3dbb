"""Drawn scenes: captions are unique, held-out scenes are not trained on, and the vision encoder learns."""

import random
from dataclasses import replace
from pathlib import Path

import describer.batches as batches
import numpy as np
import pytest
import torch
from corpus import is_held_out
from describer import words
from describer.drawing import draw, pixels, shown
from describer.model import Seeing, seen_loss
from describer.scenes import LEGEND, NEW_PAIRS, Scene, Thing, draw_scene
from networks import new_model
from shapes import SHAPES
from train import Trainer
from trial import ComparedTexts

TINY = replace(SHAPES["describer"], width=32, layers=1, heads=2, inner=48, batch=6, extra={"decoder_layers": 1})


def scenes(held_out: bool, new_pairs: bool = False, count: int = 200) -> list[Scene]:
    rng = random.Random(4)
    return [draw_scene(rng, held_out, new_pairs) for _ in range(count)]


def test_training_scenes_exclude_held_out_captions_and_pairs() -> None:
    assert not any(is_held_out(scene.caption) for scene in scenes(held_out=False))
    assert all(is_held_out(scene.caption) for scene in scenes(held_out=True))
    pairs = {(thing.colour, thing.shape) for scene in scenes(held_out=False) for thing in scene.things}
    assert not pairs & NEW_PAIRS
    assert all(any(thing.is_new for thing in scene.things) for scene in scenes(held_out=True, new_pairs=True, count=20))


def test_caption_matches_the_positions_of_things() -> None:
    for scene in scenes(held_out=False):
        first, *others = scene.things
        if " to the left of " in scene.caption:
            assert first.at[0] + 0.2 < others[0].at[0]
        elif " above " in scene.caption:
            count = scene.caption.split(" above ")[0].count(" and ") + 1
            assert max(thing.at[1] for thing in scene.things[:count]) < min(t.at[1] for t in scene.things[count:]) - 0.2
        assert scene.caption.endswith(f" on a {scene.ground} ground")
        assert all(thing.colour != scene.ground for thing in scene.things)


def test_every_word_is_one_token() -> None:
    for scene in scenes(held_out=False, count=40):
        ids = words.tokenizer()(scene.caption).input_ids
        assert len(ids) == len(scene.caption.split()) + 2
        assert words.tokenizer().decode(ids, skip_special_tokens=True) == scene.caption


def test_image_processor_returns_the_training_pixels() -> None:
    rng = random.Random(1)
    picture = draw(rng, draw_scene(rng, held_out=False))
    processed = words.image_processor()(picture, return_tensors="np").pixel_values[0]
    np.testing.assert_allclose(processed, pixels(picture), atol=1e-6)


def test_patch_labels_mark_only_the_patches_of_the_shape() -> None:
    scene = Scene((Thing("large", "red", "star", (0.25, 0.75)),), "grey", "")
    marks = shown(scene).reshape(8, 8, 3)
    names = [legend[number] for legend, number in zip(LEGEND, marks[5, 2], strict=True)]
    assert names == ["star", "red", "large"]
    assert not marks[:4].any()
    assert not marks[:, 4:].any()


def test_describer_training_lowers_the_loss_and_batches_resume(tmp_path: Path) -> None:
    trainer = Trainer(Seeing(new_model(TINY)), replace(TINY, steps=60, rate=1e-2), tmp_path / "state.pt")
    first, second = batches.seen_batches(0, TINY.batch), batches.seen_batches(0, TINY.batch)
    batch = next(first)
    for _ in range(25):
        trainer._one(batch, seen_loss)
    assert trainer.losses[-1] < trainer.losses[0] - 2
    next(second)
    torch.testing.assert_close(next(batches.seen_batches(0, TINY.batch, batch.after)).pixels, next(second).pixels)


def test_trial_counts_exact_captions() -> None:
    found = scenes(held_out=True, count=2)
    trial = ComparedTexts([scene.caption for scene in found], [found[0].caption, "a small red circle"])
    assert trial.exact == 1
    assert trial.wrong == [(found[1].caption, "a small red circle")]
    assert trial.only([True, False]) == ComparedTexts([found[0].caption], [found[0].caption])


@pytest.mark.parametrize("share", [0, 1])
def test_drawing_depends_on_the_seed(share: int) -> None:
    scene = scenes(held_out=bool(share), count=1)[0]
    one, other = (np.asarray(draw(random.Random(seed), scene)) for seed in (1, 2))
    assert not np.array_equal(one, other)
    assert np.array_equal(one, np.asarray(draw(random.Random(1), scene)))
