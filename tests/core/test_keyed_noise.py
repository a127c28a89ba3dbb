"""Noise keyed by seed, position and token, and sampling with it."""

from __future__ import annotations

import itertools
from collections import Counter
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats
from scipy.special import softmax

from decodescope import core
from decodescope.core.decoding.keyed_noise import (
    KeyedNoise,
    TextNoise,
    context_spellings,
    philox,
    posterior_noise,
    same_choice_probability,
    token_keys,
)
from tests.core import tiny as models

SCORES = np.log(softmax(np.random.default_rng(0).normal(0, 1.5, 6)))
IDS = np.arange(6, dtype=np.uint64)


@pytest.mark.parametrize(
    ("counter", "seed", "words"),
    [
        ((0, 0, 0, 0), 0, (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
        ((0xFFFFFFFF,) * 4, 2**64 - 1, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
        (
            (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344), 0x299F31D0A4093822,
            (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
        ),
    ],
)  # fmt: skip
def test_philox_returns_the_published_test_vectors(counter: tuple[int, ...], seed: int, words: tuple[int, ...]) -> None:
    """Known answers of the Random123 library for philox4x32-10."""
    assert tuple(int(word) for word in philox(counter, seed)) == words


def test_noise_depends_on_seed_position_and_token_alone() -> None:
    noise = KeyedNoise(3, IDS)
    later, first = noise.gumbel(7), noise.gumbel(2)
    assert (first == KeyedNoise(3, IDS).gumbel(2)).all()
    assert (later[[5, 1]] == KeyedNoise(3, IDS[[5, 1]]).gumbel(7)).all()  # of another, smaller vocabulary
    others = (KeyedNoise(4, IDS).gumbel(2), noise.gumbel(3), noise.gumbel(2, draw=1))
    assert not any((first == other).any() for other in others)


def test_noise_follows_the_standard_gumbel_distribution() -> None:
    found = KeyedNoise(1, np.arange(20_000, dtype=np.uint64)).gumbel(0)
    assert np.isfinite(found).all()
    assert stats.kstest(found, "gumbel_r").pvalue > 1e-3


def _spelled(*data: bytes | None) -> SimpleNamespace:
    """A model of these tokens."""
    names = [f"<{token}>" for token in range(len(data))]
    return SimpleNamespace(
        vocabulary=len(data), tokenizer=object(), token_bytes=data, pieces=names, strategy_data={},
    )  # fmt: skip


def test_token_keys_follow_the_bytes_and_number_equal_ones() -> None:
    first, second = token_keys(_spelled(b"a", b" fox", None, b"a")), token_keys(_spelled(b" fox", b"a", None))
    assert len(set(first.tolist())) == 4
    assert (first[[1, 0, 2]] == second).all()


def test_token_keys_without_a_tokenizer_are_ids() -> None:
    assert token_keys(models.make("llama")).tolist() == list(range(61))


@pytest.mark.parametrize("token", range(3))
def test_posterior_noise_reproduces_the_token_and_the_prior(token: int) -> None:
    """Posterior noise chooses its token; mixed over tokens, it is standard Gumbel noise again."""
    draws = [posterior_noise(SCORES, token, KeyedNoise(5, IDS).gumbel(n)) for n in range(300)]
    assert {int((SCORES + noise).argmax()) for noise in draws} == {token}


def test_posterior_noise_of_drawn_tokens_is_gumbel_noise() -> None:
    prior, rng = KeyedNoise(9, IDS), np.random.default_rng(1)
    tokens = rng.choice(6, 4_000, p=np.exp(SCORES))
    mixed = np.array([posterior_noise(SCORES, int(token), prior.gumbel(n)) for n, token in enumerate(tokens)])
    assert all(stats.kstest(mixed[:, place], "gumbel_r").pvalue > 1e-3 for place in range(6))


def test_posterior_noise_of_an_excluded_token_is_refused() -> None:
    with pytest.raises(ValueError, match="exclude"):
        posterior_noise(np.array([0.0, -np.inf]), 1, np.zeros(2))


def test_same_choice_probability_equals_the_share_of_posterior_noise() -> None:
    other = np.log(softmax(SCORES * 0.5 + np.arange(6) * 0.3))
    draws = [posterior_noise(SCORES, 1, KeyedNoise(2, IDS).gumbel(n)) for n in range(2_000)]
    share = np.mean([(other + noise).argmax() == 1 for noise in draws])
    assert share == pytest.approx(same_choice_probability(SCORES, other, 1), abs=0.045)
    assert same_choice_probability(SCORES, SCORES.copy(), 1) == 1.0
    cut = np.where(np.arange(6) == 1, -np.inf, other)
    assert same_choice_probability(SCORES, cut, 1) == 0.0


SPELLINGS = [b"a", b"bb", b"", b"the same words", b"c", b"d"]


def test_noise_after_equal_text_is_equal_at_any_position_and_split() -> None:
    one, other = (TextNoise(KeyedNoise(3, IDS), SPELLINGS) for _ in range(2))
    for token in (0, 3):
        one.add(token)
    for token in (1, 4, 0, 3):
        other.add(token)
    assert (one.step.gumbel(0) == other.step.gumbel(0)).all()
    in_parts = [b"a", b"same words", b"the "]
    split = TextNoise(KeyedNoise(3, IDS), in_parts)
    for token in (2, 1):
        split.add(token)
    assert (one.step.gumbel(0) == split.step.gumbel(0)).all()
    assert one.step.uniform(0, 1) == other.step.uniform(0, 1)
    assert not (one.step.gumbel(0) == TextNoise(KeyedNoise(4, IDS), SPELLINGS).step.gumbel(0)).any()


def test_noise_after_repeated_text_is_drawn_again() -> None:
    """A loop: every step has the same text before it, and a token without bytes changes nothing."""
    noise, found = TextNoise(KeyedNoise(3, IDS), SPELLINGS), list[float]()
    for token in (3, 3, 3, 2, 2):
        noise.add(token)
        found.append(float(noise.step.gumbel(0)[0]))
    assert len(set(found)) == len(found)


def test_texts_drawn_with_noise_by_text_follow_their_distribution() -> None:
    """χ² of all texts of five tokens over two words: their contexts repeat within a text."""
    shares, counts = np.log([0.6, 0.4]), Counter[tuple[int, ...]]()
    for seed in range(1_500):
        noise, text = TextNoise(KeyedNoise(seed, IDS[:2]), [b"twelve bytes", b"others"]), list[int]()
        for _ in range(5):
            text.append(int((shares + noise.step.gumbel(0)).argmax()))
            noise.add(text[-1])
        counts[tuple(text)] += 1
    texts = list(itertools.product(range(2), repeat=5))
    expected = [1_500 * np.exp(sum(shares[token] for token in text)) for text in texts]
    assert stats.chisquare([counts[text] for text in texts], expected).pvalue > 1e-3


def test_context_spellings_are_bytes_names_or_ids() -> None:
    assert context_spellings(_spelled(b"a", None)) == [b"a", b"<1>"]
    assert len(set(context_spellings(models.make("llama")))) == 61


def _run(model: core.LoadedModel, seed: int, **settings: object) -> core.Result:
    config = {"do_sample": True, "max_new_tokens": 6, "keyed_noise": True, **settings}
    return core.run(model, core.Request(models.prompt(), config, seed=seed, top_n=0))


def test_sampling_with_keyed_noise_draws_from_the_processed_distribution() -> None:
    """χ² of the first token over seeds, against the probabilities that a traced run reports."""
    model = models.make("llama", scale=1.5)
    settings = {"temperature": 1.3, "top_k": 8, "max_new_tokens": 1}
    traced = core.run(model, core.Request(models.prompt(), {"do_sample": True, **settings}, top_n=61))
    token = next(event for event in traced.events if isinstance(event, core.events.TokenChosen))
    expected = {one.id: one.probability for one in token.alternatives if one.probability > 0}
    count = 600
    found = Counter(ids[0] for ids in _run(model, 0, num_return_sequences=count, **settings).sequences)
    assert set(found) <= set(expected)
    observed = [found[token] for token in expected]
    assert stats.chisquare(observed, [share * count for share in expected.values()]).pvalue > 1e-3


def test_sampling_with_keyed_noise_continues_and_numbers_texts_by_seed() -> None:
    model = models.shared("llama")
    whole = _run(model, 4, xtc_probability=0.5, num_return_sequences=2)
    assert whole.sequences[1] == _run(model, 5, xtc_probability=0.5).sequences[0]
    config = {"do_sample": True, "max_new_tokens": 3, "keyed_noise": True, "xtc_probability": 0.5}
    rest = core.run(model, core.Request(models.prompt(), config, seed=4, beginning=whole.sequences[0][:3]))
    assert rest.sequences[0] == whole.sequences[0][3:6]


def test_replayed_step_with_keyed_noise_repeats_the_choice() -> None:
    model = models.shared("llama")
    config = {"do_sample": True, "max_new_tokens": 5, "keyed_noise": True, "xtc_probability": 0.5}
    request = core.Request(models.prompt(), {**config, "num_return_sequences": 2}, seed=8)
    found = core.run(model, request)
    replayed = core.replay_step(model, request, found.sequences[1], 3, {"temperature": 0.7}, sequence=1)
    assert replayed.is_decided
    assert replayed.before.id == found.sequences[1][3]


def test_script_of_a_run_with_keyed_noise_says_why_there_is_none() -> None:
    request = core.Request("Once", {"do_sample": True, "keyed_noise": True})
    assert "noise" in str(core.why_not_generate(request))
