"""A model whose layers are spread over two cards and main memory."""

from __future__ import annotations

import warnings

import pytest

import core
from core.errors import DeviceError
from tests.card.pretend_card import PretendCard

PROMPT = "Once upon a time"


def _figures(model: core.LoadedModel, **settings: object) -> list[tuple[int, float]]:
    asked = core.Request(PROMPT, {"max_new_tokens": 6, **settings}, top_n=3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        events = list(core.stream(model, asked))
    return [(one.id, round(one.probability, 3)) for one in events if isinstance(one, core.events.TokenChosen)]


@pytest.mark.parametrize("settings", [{}, {"num_beams": 3}, {"do_sample": True}], ids=str)
def test_the_text_is_the_same(settings: dict[str, object]) -> None:
    expected = _figures(core.load("storyteller", device="cpu", dtype="float32"), **settings)
    # A card of 24 MB holds a part of the 30 MB of weights.
    with PretendCard(capacity=24 * 2**20, count=2):
        model = core.load("storyteller", device="spread", dtype="float32")
        places = dict(model.placement)
        assert set(places) >= {"cuda:0", "cuda:1"}
        assert sum(places.values()) == model.weight_bytes
        assert model.device.type == "cuda"
        if not settings.get("do_sample"):
            assert _figures(model, **settings) == expected
        started = next(iter(core.stream(model, core.Request(PROMPT, {"max_new_tokens": 1}))))
        assert isinstance(started, core.events.RunStarted)
        assert started.placement == model.placement


def test_without_a_card_or_accelerate_it_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(DeviceError, match="NVIDIA"):
        core.load("storyteller", device="spread")
    with PretendCard():
        monkeypatch.setattr("core.system.optional_deps.find_spec", lambda name: None)
        with pytest.raises(DeviceError, match="accelerate") as caught:
            core.load("storyteller", device="spread")
        assert "pip install accelerate" in caught.value.remedy
