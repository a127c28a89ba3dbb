"""The training loop on a tiny model: it learns, it goes on where it stopped, it repeats itself exactly."""

from dataclasses import replace
from itertools import islice
from pathlib import Path

import batches
import bpe
import pytest
import scan
import torch
from distill import soft_loss
from media import MEDIA
from muon import Muon, orthogonalize
from networks import new_model
from pipeline import decoder_stream
from shapes import SHAPES
from train import WARM_UP, Trainer, decoder_loss, pair_loss, rate_at

TINY = replace(SHAPES["storyteller"], width=32, layers=1, heads=2, inner=48, steps=8, batch=512)
TINY_T5 = replace(SHAPES["summarizer"], width=32, layers=1, heads=2, inner=48, steps=6, batch=512)


def train(shape, state: Path, steps: int):
    trainer = Trainer(new_model(shape), shape, state)
    stream = batches.decoder_batches(bpe.for_decoder(), 0, shape.batch, start=trainer.place)
    while trainer.step < steps:
        trainer._one(next(stream), decoder_loss)
    trainer.save()
    return trainer


@pytest.mark.slow
def test_interrupted_training_ends_with_the_same_weights(tmp_path: Path) -> None:
    whole = train(TINY, tmp_path / "whole" / "state.pt", 8)
    train(TINY, tmp_path / "parts" / "state.pt", 3)
    parts = train(TINY, tmp_path / "parts" / "state.pt", 8)
    assert parts.tokens == whole.tokens
    for one, other in zip(whole.model.parameters(), parts.model.parameters(), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-6)


@pytest.mark.every(2)
@pytest.mark.parametrize(("shape", "loss"), [(TINY, decoder_loss), (TINY_T5, pair_loss)])
def test_training_lowers_the_loss_of_both_model_families(shape, loss, tmp_path: Path) -> None:
    trainer = Trainer(new_model(shape), replace(shape, steps=60, rate=1e-2), tmp_path / "state.pt")
    make = batches.pair_batches if shape.family == "t5" else batches.decoder_batches
    batch = next(make(bpe.tokenizer_for(shape.family), 0, shape.batch))
    for _ in range(40):
        trainer._one(batch, loss)
    assert trainer.losses[-1] < trainer.losses[0] - 2


def test_distillation_loss_is_lowest_for_the_teacher() -> None:
    teacher, student = new_model(TINY), new_model(replace(TINY, seed=3))
    batch = next(batches.decoder_batches(bpe.for_decoder(), 0, 512))
    with torch.no_grad():
        loss = soft_loss(teacher)
        assert loss(teacher, batch) < loss(student, batch)


def test_batches_resume_at_the_saved_position() -> None:
    tokenizer = bpe.for_decoder()
    fourth, fifth = islice(batches.decoder_batches(tokenizer, 0, 2048), 3, 5)
    again = next(batches.decoder_batches(tokenizer, 0, 2048, start=fourth.after))
    assert torch.equal(again.ids, fifth.ids)
    assert again.after == fifth.after
    assert fifth.ids.shape == fifth.weights.shape
    assert fifth.ids.numel() <= 2048


def test_length_groups_stay_within_the_budget_and_keep_all_texts() -> None:
    import random

    lengths = [random.Random(index).randint(5, 90) for index in range(200)]
    groups = batches.by_length(lengths, 300, random.Random(0))
    assert sorted(index for group in groups for index in group) == list(range(200))
    assert all(len(group) * max(lengths[index] for index in group) <= 300 for group in groups)


@pytest.mark.parametrize("shape", [(3, 8, 24), (2, 24, 8), (1, 16, 16)])
def test_orthogonalized_singular_values_are_near_one(shape: tuple[int, ...]) -> None:
    torch.manual_seed(0)
    values = torch.linalg.svdvals(orthogonalize(torch.randn(shape)))
    assert values.min() > 0.4
    assert values.max() < 1.4


def test_muon_lowers_the_loss() -> None:
    torch.manual_seed(0)
    weight, goal = torch.nn.Parameter(torch.zeros(6, 6)), torch.randn(6, 6)
    optimizer = Muon([weight], lr=0.1, weight_decay=0.0)
    losses = []
    for _ in range(60):
        loss = (weight - goal).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    assert losses[-1] < 0.2 * losses[0]


def test_learning_rate_warms_up_stays_and_decays_to_zero() -> None:
    shape = replace(SHAPES["storyteller"], steps=1000, decay=0.4)
    assert rate_at(shape, 0) == pytest.approx(shape.rate / WARM_UP)
    assert rate_at(shape, 300) == shape.rate
    assert rate_at(shape, 800) == pytest.approx(shape.rate / 2)
    assert rate_at(shape, 999) < 0.01 * shape.rate


@pytest.mark.parametrize("name", [name for name in SHAPES if SHAPES[name].family not in MEDIA])
def test_every_shape_creates_a_model(name: str) -> None:
    model = new_model(replace(SHAPES[name], layers=1))
    assert model.config.vocab_size == bpe.VOCABULARY
    assert model.config.pad_token_id == 0


def test_scan_has_the_gradients_of_the_transformers_loop() -> None:
    shape = replace(SHAPES["storyteller-mamba"], width=24, layers=2, inner=40)
    ids = torch.randint(4, 2000, (2, 17), generator=torch.Generator().manual_seed(0))

    def gradients() -> dict[str, torch.Tensor]:
        model = new_model(shape).train()
        model(ids, labels=ids, use_cache=False).loss.backward()
        return {name: weight.grad for name, weight in model.named_parameters()}

    expected = gradients()
    with scan.installed():
        through_scan = gradients()
    for name, found in through_scan.items():
        torch.testing.assert_close(found, expected[name], rtol=1e-3, atol=1e-6, msg=name)


@pytest.mark.parametrize("name", ["storyteller", "storyteller-draft-b", "storyteller-chinese"])
def test_each_hill_of_a_training_has_its_own_documents(name: str, tmp_path: Path) -> None:
    shape = replace(SHAPES[name], steps=1, hills=(1, 1) if SHAPES[name].hills else (), batch=1024, layers=1)
    trainer = Trainer(new_model(shape), shape, tmp_path / "state.pt")
    seen = []
    for batch in decoder_stream(shape, trainer, bpe.for_decoder()):
        trainer.step += 1
        seen.append(batch.ids)
    assert len(seen) == shape.all_steps
    assert len({tuple(ids.flatten().tolist()) for ids in seen}) == len(seen)
