"""Spoken sentences: words, speakers and times of sounds, and learning of the audio encoder."""

import random
from dataclasses import replace
from pathlib import Path

import listener.batches as batches
import numpy as np
import pytest
import torch
from corpus import is_held_out
from listener import words
from listener.aligned import POSITION, aligned, legend, word_at
from listener.model import Listening, heard_loss
from listener.sentences import draw_sentence, in_words
from listener.sounds import SECONDS, placed, with_noise
from listener.voices import NEW_VARIANTS, RATE, VARIANTS, Moment, Speaker, Spoken, draw_speaker, say
from networks import new_model
from shapes import SHAPES
from train import Trainer
from trial import ComparedTexts, word_errors

TINY = replace(SHAPES["listener"], width=32, layers=1, heads=2, inner=48, batch=4, extra={"decoder_layers": 1})
speaks = pytest.mark.usefixtures("needs_espeak")


@pytest.mark.parametrize(
    ("number", "linked", "expected"),
    [
        (0, True, "zero"),
        (40, True, "forty"),
        (113, False, "one hundred thirteen"),
        (113, True, "one hundred and thirteen"),
        (1005, True, "one thousand and five"),
        (20_300, True, "twenty thousand three hundred"),
        (999_999, False, "nine hundred ninety nine thousand nine hundred ninety nine"),
    ],
)
def test_in_words_spells_out_numbers(number: int, linked: bool, expected: str) -> None:
    assert in_words(number, linked) == expected


def test_training_sentences_and_voices_exclude_held_out_ones() -> None:
    rng = random.Random(4)
    assert not any(is_held_out(draw_sentence(rng, held_out=False)) for _ in range(200))
    assert all(is_held_out(draw_sentence(rng, held_out=True)) for _ in range(50))
    assert not set(VARIANTS) & set(NEW_VARIANTS)
    assert draw_speaker(rng, held_out=True).voice.split("+")[1] in NEW_VARIANTS


def test_whisper_tokens_decode_to_the_original_text() -> None:
    tokenizer, rng = words.tokenizer(), random.Random(4)
    texts = [f" {draw_sentence(rng, held_out=True)}" for _ in range(50)]
    for text in texts:
        ids = tokenizer(text).input_ids
        assert tokenizer.convert_ids_to_tokens(ids[:2]) == [words.START, words.NO_TIMES]
        assert tokenizer.decode(ids, skip_special_tokens=True) == text


def test_word_errors_count_substitutions_deletions_and_insertions() -> None:
    reference = "turn on the light".split()
    assert word_errors(reference, reference) == 0
    assert word_errors(reference, "turn off the light".split()) == 1
    assert word_errors(reference, "turn the the light now".split()) == 2
    assert word_errors(reference, []) == 4
    trial = ComparedTexts(["one two", "three"], ["one two", "tree"])
    assert (trial.words, trial.errors, trial.exact, trial.wrong) == (3, 1, 1, [("three", "tree")])


def test_aligned_labels_positions_with_their_phone_and_word() -> None:
    text, start = "ten past two", 2 * POSITION
    moments = (Moment(0, "t", 0), Moment(POSITION, "E", 0), Moment(3 * POSITION, "u:", 9))
    found = aligned(text, Spoken(np.ones(5 * POSITION, np.int16), moments), start)
    phones, known = legend()
    wanted = [("t", "ten"), ("E", "ten"), ("E", "ten"), ("u:", "two"), ("u:", "two")]
    assert found[2:7].tolist() == [[phones[phone], known[word]] for phone, word in wanted]
    assert not found[:2].any()
    assert not found[7:].any()
    assert [word_at(text, letter) for letter in (0, 2, 4, 11, 12)] == ["ten", "ten", "past", "two", ""]


def test_added_noise_has_the_requested_signal_to_noise_ratio() -> None:
    rng = np.random.default_rng(1)
    speech = (3000 * np.sin(np.arange(RATE))).astype(np.int16)
    wave, start = placed(rng, speech)
    noisy_wave = with_noise(rng, wave, 20.0)
    assert len(noisy_wave) == SECONDS * RATE
    assert wave[start + 1] != 0
    assert 10 * np.log10(wave[wave != 0].var() / (noisy_wave - wave).var()) == pytest.approx(20.0, abs=1.5)


@speaks
def test_synthesized_speech_follows_the_rate_and_has_phone_times() -> None:
    slow, quick = (say("seven hundred and forty two", Speaker("en-us+m3", rate, 50, 0)) for rate in (140, 210))
    assert len(quick.sound) < 0.8 * len(slow.sound)
    assert 0 <= slow.moments[0].sample < slow.moments[-1].sample <= 1.1 * len(slow.sound)
    with pytest.raises(ValueError, match="no voice"):
        say("seven", Speaker("en-nowhere", 150, 50, 0))


@speaks
def test_listener_training_lowers_the_loss_and_batches_resume(tmp_path: Path) -> None:
    trainer = Trainer(Listening(new_model(TINY)), replace(TINY, steps=60, rate=1e-2), tmp_path / "state.pt")
    batch = next(batches.heard_batches(0, TINY.batch))
    for _ in range(25):
        trainer._one(batch, heard_loss)
    assert trainer.losses[-1] < trainer.losses[0] - 2
    whole = batches.heard_batches(0, TINY.batch)
    next(whole)
    torch.testing.assert_close(next(batches.heard_batches(0, TINY.batch, batch.after)).features, next(whole).features)
