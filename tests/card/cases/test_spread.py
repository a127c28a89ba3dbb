"""A model whose layers are spread over two cards and main memory."""

from __future__ import annotations

import warnings

import pytest

from decodescope import core
from decodescope.core.errors import DeviceError
from tests.card.pretend_card import PretendCard

PROMPT = "Once upon a time"


def _figures(model: core.LoadedModel, **settings: object) -> list[tuple[int, float]]:
    asked = core.Request(PROMPT, {"max_new_tokens": 6, **settings}, top_n=3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        events = list(core.stream(model, asked))
    return [(one.id, round(one.probability, 3)) for one in events if isinstance(one, core.events.TokenChosen)]


@pytest.mark.parametrize(
    ("megabytes", "settings", "places"),
    [
        pytest.param(24, {}, {"cuda:0", "cuda:1"}, marks=pytest.mark.slow),
        (10, {"num_beams": 3}, {"cuda:0", "cuda:1", "cpu"}),
    ],
    ids=["two cards", "two cards and main memory"],
)
def test_model_spread_over_two_cards_generates_the_same_text(
    megabytes: int, settings: dict[str, object], places: set[str]
) -> None:
    expected = _figures(core.load("storyteller", device="cpu", dtype="float32"), **settings)
    with PretendCard(capacity=megabytes * 2**20, count=2):  # the weights take 24 MB
        model = core.load("storyteller", device="spread", dtype="float32")
        assert {place for place, _ in model.placement} == places
        assert sum(size for _, size in model.placement) == model.weight_bytes
        assert model.device.type == "cuda"
        assert _figures(model, **settings) == expected
        started = next(iter(core.stream(model, core.Request(PROMPT, {"max_new_tokens": 1}))))
        assert isinstance(started, core.events.RunStarted)
        assert started.placement == model.placement


def test_spread_without_a_card_or_accelerate_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(DeviceError, match="NVIDIA"):
        core.load("storyteller", device="spread")
    with PretendCard():
        monkeypatch.setattr("decodescope.core.system.optional_deps.find_spec", lambda name: None)
        with pytest.raises(DeviceError, match="accelerate") as caught:
            core.load("storyteller", device="spread")
        assert "pip install accelerate" in caught.value.remedy
