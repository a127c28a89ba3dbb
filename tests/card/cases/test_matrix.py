"""Same tokens, probabilities and events on the card as on the CPU, or a refusal for the same reason."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

import core
from core.caches import registry as caches
from core.decoding.forward import fused_decoder
from core.strategies import registry as strategies
from tests.card import matrix
from tests.card.pretend_card import PretendCard
from tests.core import tiny, tiny_media

Draft = tuple[core.LoadedModel, core.LoadedModel]


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # transformers on settings that a strategy does not use
        yield


def _media(kind: str, folder: Path) -> str | None:
    return tiny_media.given(kind, folder) if kind in tiny_media.KINDS else None


def _compare(
    kind: str, dtype: str, row: str, cache_names: list[str], traced: bool, folder: Path, device: str = "cuda"
) -> Counter[str]:
    """Compare a row of the matrix with several caches; fail with all differences."""
    host, seeds, media = matrix.host_model(kind, dtype), matrix.SETTINGS[row].drafters, _media(kind, folder)
    drafts = [matrix.host_model(kind, dtype, seed) for seed in seeds]
    card = matrix.on_card(host, device)
    pairs = {seed: (draft, matrix.on_card(draft, device)) for seed, draft in zip(seeds, drafts, strict=True)}
    totals, found = Counter[str](), list[str]()
    for cache_name in cache_names:
        result, differences = matrix.compare(host, card, row, cache_name, traced, media, pairs)
        totals[result] += 1
        found += differences[:3]
    assert not found, "\n".join(found)
    return totals


def test_the_matrix_has_every_strategy() -> None:
    assert set(strategies) == {setting.strategy for setting in matrix.SETTINGS.values()}


@pytest.mark.slow
@pytest.mark.parametrize("row", matrix.SETTINGS)
@pytest.mark.parametrize("traced", [True, False], ids=["traced", "untraced"])
@pytest.mark.parametrize("dtype", matrix.DTYPES)
@pytest.mark.parametrize("kind", matrix.MODELS)
def test_whole(
    kind: str, dtype: str, traced: bool, row: str, card: PretendCard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if dtype != "float32":
        # Native steps, fused passes and modules round in other places, and scores that are equal to eight bits change
        # their ranks. The modules alone compute the same on both.
        monkeypatch.setattr(fused_decoder, "_can_be_fused", lambda model: False)
    assert _compare(kind, dtype, row, list(caches), traced, tmp_path).total() == len(caches)
    assert not card.hazards


@pytest.mark.parametrize(("row", "cache_name"), matrix.SHORT)
@pytest.mark.parametrize("kind", matrix.SHORT_MODELS)
def test_short(kind: str, row: str, cache_name: str, card: PretendCard, tmp_path: Path) -> None:
    _compare(kind, "float32", row, [cache_name], True, tmp_path)


@pytest.mark.parametrize("row", ["greedy", "beam_search", "assisted"])
def test_on_the_second_of_two_cards(row: str) -> None:
    with PretendCard(count=2, is_strict=True) as card:
        _compare("llama", "float32", row, ["dynamic", "offloaded"], True, Path(), "cuda:1")
        assert card.used[1] > card.used[0]


@pytest.mark.parametrize("row", matrix.SETTINGS)
def test_without_float64_on_mps(row: str) -> None:
    with PretendCard(kind="mps", is_strict=True):
        if row in matrix.DRAWN_IN_FLOAT64:
            asked, host = matrix.request(matrix.SETTINGS[row], "dynamic", True, None), matrix.host_model("llama")
            drafts = [matrix.on_card(matrix.host_model("llama", seed=n), "mps") for n in matrix.SETTINGS[row].drafters]
            assert core.run(matrix.on_card(host, "mps"), asked, drafters=drafts).sequences
        else:
            _compare("llama", "float32", row, ["dynamic"], True, Path(), "mps")


def test_greedy_equals_generate(card: PretendCard) -> None:
    """The CPU's own reference: not only the same on both, but right."""
    host = matrix.host_model("llama")
    asked = matrix.request(matrix.SETTINGS["greedy"], "dynamic", True, None)
    result = core.run(matrix.on_card(host), asked)
    assert result.sequences == tiny.reference(host, tiny.prompt(), asked.config)
