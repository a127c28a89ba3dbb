"""Faults that were found on the pretend card, one test for each; the numbers are those of the list of faults."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import pytest
import torch
from transformers import GenerationConfig

from decodescope import core
from decodescope.core.decoding import token_loop
from decodescope.core.decoding.forward.fused_decoder import get_fused_decoder
from decodescope.core.errors import ParameterError
from decodescope.core.events import TokenChosen
from tests.card import matrix
from tests.card.pretend_card import PretendCard
from tests.core import tiny

_COMPILED = {"compile": True}


def _request(cache: str = "dynamic", options: dict[str, Any] | None = None, **settings: Any) -> core.Request:
    config = GenerationConfig(**{"max_new_tokens": 12, "eos_token_id": [tiny.VOCABULARY + 5], **settings})
    return core.Request(tiny.prompt(), config, cache=cache, cache_options=options or {}, top_n=5, seed=1, steady=True)


def _figures(result: core.Result) -> list[tuple[int, int, float]]:
    return [
        (event.id, event.rank, round(event.raw_probability, 4))
        for event in result.events
        if isinstance(event, TokenChosen)
    ]


def _on_both(kind: str, asked: core.Request, on_card: core.Request | None = None, device: str = "cuda") -> None:
    """Compare the tokens, ranks and probabilities of a run on the CPU and on the card."""
    host = matrix.host_model(kind)
    expected = _figures(core.run(host, asked))
    assert _figures(core.run(matrix.on_card(host, device), on_card or asked)) == expected


def test_4_1_a_graph_does_not_overwrite_the_scores_of_a_pair(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(token_loop, "_MAX_WAIT_SECONDS", 3600.0)  # as on a card, whose steps are fast
    with PretendCard(overwrites=True):
        _on_both("llama", _request(), _request("static", _COMPILED))


def test_4_2_a_graph_does_not_overwrite_cached_scores() -> None:
    with PretendCard(overwrites=True):
        model, kept = matrix.on_card(matrix.host_model("llama")), core.ScoreCache()
        asked = _request("static", _COMPILED)
        result = core.run(model, asked, scores=kept)
        for step, (token, rank, probability) in enumerate(_figures(result)):
            found = core.replay_step(model, asked, result.sequences[0], step, scores=kept)
            again = found.before.id, found.before.rank, round(found.before.raw_probability, 4)
            assert again == (token, rank, probability), f"step {step}"
            assert found.is_kept


@pytest.mark.every(3)
@pytest.mark.parametrize("cache", ["offloaded", "offloaded_static"])
@pytest.mark.parametrize("layers", [2, 5])
def test_4_3_offloading_follows_the_depth_of_the_decoder(card: PretendCard, cache: str, layers: int) -> None:
    host = tiny.make("t5", num_decoder_layers=layers)
    expected = _figures(core.run(host, _request()))
    assert _figures(core.run(matrix.on_card(host), _request(cache))) == expected


@pytest.mark.every(3)
@pytest.mark.parametrize("cache", ["dynamic", "static", "offloaded", "offloaded_static", "quantized"])
def test_4_4_a_stored_prefix_is_reused_on_the_card(card: PretendCard, cache: str) -> None:
    host, store, other = matrix.host_model("llama"), core.PrefixStore(), core.PrefixStore()
    model = matrix.on_card(host)
    for _ in range(2):
        expected = core.run(host, _request("dynamic" if cache.startswith("off") else cache), prefixes=other)
        found = core.run(model, _request(cache), prefixes=store)
    assert _figures(found) == _figures(expected)
    assert store.prefixes


@pytest.mark.every(6)
@pytest.mark.parametrize("cache", ["offloaded", "offloaded_static"])
@pytest.mark.parametrize("device", ["cuda", "cuda:1"])
@pytest.mark.parametrize(
    "settings",
    [{"num_beams": 3}, {"penalty_alpha": 0.6, "top_k": 3}, {"do_sample": True, "num_return_sequences": 2}],
    ids=["beams", "contrastive", "several texts"],
)
def test_4_5_offloaded_rows_are_not_moved_before_they_have_arrived(
    settings: dict[str, Any], device: str, cache: str
) -> None:
    with PretendCard(count=2, is_strict=True):
        _on_both("llama", _request(**settings), _request(cache, **settings), device)


@pytest.mark.parametrize(
    "settings", [{"num_beams": 3}, {"do_sample": True, "xtc_probability": 1.0}], ids=["beams", "likely tokens"]
)
def test_4_6_mps_needs_no_float64(settings: dict[str, Any]) -> None:
    options = {name: settings.pop(name) for name in list(settings) if name == "xtc_probability"}
    with PretendCard(kind="mps", is_strict=True):
        model = matrix.on_card(matrix.host_model("llama"), "mps")
        config = GenerationConfig(max_new_tokens=4, **settings)
        core.run(model, core.Request(tiny.prompt(), config, options=options))
        assert get_fused_decoder(model) is not None, "the comparison of the fused pass needs no float64 either"


def test_4_7_several_rows_run_in_one_graph(card: PretendCard) -> None:
    model = matrix.on_card(matrix.host_model("llama"))
    asked = _request("static", _COMPILED, do_sample=True, num_return_sequences=3)
    core.run(model, asked)
    with card.counting() as counts:
        core.run(model, asked)
    assert counts.graphs["launch"] > 5, counts.table()
    assert set(counts.graphs) <= {"launch", "compile"}, counts.table()


def test_4_8_a_draft_on_another_device_is_refused_with_the_reason(card: PretendCard) -> None:
    host = matrix.host_model("llama")
    model, draft = matrix.on_card(host), matrix.host_model("llama", seed=3)
    reason = core.why_not_draft(model, draft)
    assert reason is not None
    assert "cuda:0" in reason
    assert "cpu" in reason
    with pytest.raises(core.errors.StrategyError, match="cuda:0"):
        core.run(model, _request(), drafters=[draft])


@pytest.mark.every(2)
@pytest.mark.parametrize("arguments", [{"weights": "int8"}, {"weights": "int4"}, {"memory_limit": 0}], ids=str)
def test_4_9_models_with_cpu_only_options_load_on_the_cpu(card: PretendCard, arguments: dict[str, Any]) -> None:
    model = core.load("storyteller", **arguments)
    assert model.device.type == "cpu"
    assert core.run(model, core.Request("Once", {"max_new_tokens": 3})).sequences
    assert core.load("storyteller").device.type == "cuda"
    with pytest.raises(ParameterError, match="CPU only"):
        core.load("storyteller", device="cuda", **arguments)


def test_4_10_reserved_memory_is_free_for_tensors() -> None:
    with PretendCard(capacity=2**30) as card:
        model = matrix.on_card(matrix.host_model("llama"))
        gc.collect()
        before = core.estimate(model, _request()).free
        torch.zeros(2**27, device="cuda")  # half of the card; freed at once, but reserved
        assert card.reserved[0] >= 2**29
        assert core.estimate(model, _request()).free == pytest.approx(before, abs=2**20)


def _waits_for(function: Callable[[], object]) -> list[object]:
    """Return the devices that `torch.cuda.synchronize` was called for."""
    devices: list[object] = []
    original = torch.cuda.synchronize

    def synchronize(device: object = None) -> None:
        devices.append(device)
        original(device)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch.cuda, "synchronize", synchronize)
        function()
    return devices


def test_4_11_every_wait_names_its_device() -> None:
    with PretendCard(count=2, is_strict=True):
        model = matrix.on_card(matrix.host_model("llama"), "cuda:1")
        asked = _request("offloaded", prompt_lookup_num_tokens=3)
        devices = _waits_for(lambda: core.run(model, asked))
        assert devices
        assert all(torch.device(device) == torch.device("cuda:1") for device in devices), devices


def test_4_11_mps_waits_for_the_prompt(monkeypatch: pytest.MonkeyPatch) -> None:
    with PretendCard(kind="mps") as card:
        waits = []
        monkeypatch.setattr(torch.mps, "synchronize", lambda: waits.append(card))
        core.run(matrix.on_card(matrix.host_model("llama"), "mps"), _request())
        assert waits
