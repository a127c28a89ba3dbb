"""The library in another program: its results do not depend on torch's settings there, and it changes none of them."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch

from decodescope import core
from decodescope.core.errors import DecodescopeError
from decodescope.core.events import TokenChosen
from decodescope.core.generation.throughput_estimate import weights_cost
from tests.card.matrix import SETTINGS, host_model, request
from tests.core.caller_settings import (
    CALLER_SETTINGS,
    COVERED_FUNCTIONS,
    COVERED_SWITCHES,
    HARMLESS_FUNCTIONS,
    HARMLESS_SWITCHES,
    readable_state,
    torch_functions,
    torch_switches,
)

pytestmark = pytest.mark.usefixtures("built")
REQUESTS = {name: request(setting, "dynamic", True, None) for name, setting in SETTINGS.items()}


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a small model and its two drafts."""
    folder = tmp_path_factory.mktemp("models")
    for seed in (0, 3, 4):
        host_model("llama", "float32", seed).model.save_pretrained(folder / str(seed))
    return folder


def load_all(models: Path) -> dict[int, core.LoadedModel]:
    """Load the model and its drafts."""
    loaded = {seed: core.load(models / str(seed), device="cpu") for seed in (0, 3, 4)}
    assert not any(isinstance(model, core.RemoteModel) for model in loaded.values())
    return loaded  # type: ignore[return-value]


def texts_of_strategies(
    loaded: dict[int, core.LoadedModel], check: Callable[[], None] = lambda: None
) -> dict[str, Any]:
    """Return ids and probabilities that each strategy writes; `check` is called at each event."""
    found: dict[str, Any] = {}
    for name, setting in SETTINGS.items():
        drafters = tuple(loaded[seed] for seed in setting.drafters)
        try:
            events = []
            for event in core.stream(loaded[0], REQUESTS[name], drafters=drafters):
                check()
                events.append(event)
        except DecodescopeError as error:
            found[name] = type(error).__name__, str(error)
            continue
        found[name] = events[-1].sequences
    return found


@cache
def expected_texts(models: Path) -> dict[str, Any]:
    """Return the texts that the strategies write in a program without settings of its own."""
    return texts_of_strategies(load_all(models))


def test_every_strategy_of_the_registry_is_tried() -> None:
    assert {setting.strategy for setting in SETTINGS.values()} == set(core.strategies.registry)


def test_every_setting_of_torch_has_a_case_or_a_reason() -> None:
    assert torch_functions() <= COVERED_FUNCTIONS | set(HARMLESS_FUNCTIONS)
    assert torch_switches() <= COVERED_SWITCHES | set(HARMLESS_SWITCHES)


@pytest.mark.every(4)
@pytest.mark.parametrize("name", CALLER_SETTINGS)
def test_text_under_settings_of_the_caller_is_the_same(name: str, models: Path) -> None:
    expected = expected_texts(models)
    with CALLER_SETTINGS[name]():
        before = readable_state()
        loaded = load_all(models)
        assert readable_state() == before
        found = texts_of_strategies(loaded)
        assert readable_state() == before
    assert found == expected


@pytest.mark.every(4)
@pytest.mark.parametrize("name", CALLER_SETTINGS)
def test_text_of_a_model_loaded_before_the_settings_is_the_same(name: str, models: Path) -> None:
    expected, loaded = expected_texts(models), load_all(models)
    with CALLER_SETTINGS[name]():
        before = readable_state()

        def check() -> None:
            assert readable_state() == before

        assert texts_of_strategies(loaded, check) == expected


PROMPT = [5, 9, 13, 21, 5, 9, 30, 7]


def other_results(model: core.LoadedModel, folder: Path) -> dict[str, Any]:
    """Return the results of the other functions that compute with a model."""
    sampled = core.Request(PROMPT, {"do_sample": True, "max_new_tokens": 4}, seed=3)
    store, path = core.PrefixStore(), folder / "prefix.safetensors"
    core.run(model, sampled, prefixes=store)
    store.save(path, model)
    return {
        "score": [event.log_probability for event in core.score(model, PROMPT)],
        "lens": core.lens(model, PROMPT, 5),
        "text": list(core.lens_text(model, PROMPT, 2)),
        "occlude": core.occlude(model, PROMPT, 5),
        "attention": list(core.attention(model, PROMPT, 5)),
        "replay": core.replay_step(model, sampled, PROMPT, 3, {"temperature": 0.5}),
        "estimate": core.estimate(model, sampled).needed,
        "cost": list(weights_cost(model, model, "a text of a few words")) if model.tokenizer else [],
        "file": core.save_gguf(model, folder / "model.gguf", "F32").read_bytes() if model.tokenizer else b"",
        "prefix": core.PrefixStore().load(path, model).ids,
        "native": core.has_native_step(model),
        "blueprint": core.blueprint(model.path or "").weight_bytes,
        "streamed": streamed_ids(model, sampled),
    }


def streamed_ids(model: core.LoadedModel, request: core.Request) -> list[int]:
    """Return the ids that a streamer receives."""
    found: list[int] = []

    class IdStreamer:
        def put(self, value: torch.Tensor) -> None:
            found.extend(value.flatten().tolist())

        def end(self) -> None:
            pass

    core.run(model, request, streamer=IdStreamer())
    return found


@pytest.mark.parametrize("name", ["several at once", "errors of NumPy", "errors instead of warnings"])
def test_other_results_under_settings_of_the_caller_are_the_same(name: str, models: Path, tmp_path: Path) -> None:
    model = load_all(models)[0]
    expected = other_results(model, tmp_path)
    with CALLER_SETTINGS[name]():
        before = readable_state()
        found = other_results(model, tmp_path)
        assert readable_state() == before
    assert found == expected


def test_settings_of_two_threads_are_restored_by_the_last(models: Path) -> None:
    model = load_all(models)[0]
    long_run = core.Request(PROMPT, {"max_new_tokens": 60, "min_new_tokens": 60})
    texts: list[Any] = []
    expected = core.run(model, long_run).sequences
    torch.set_default_dtype(torch.float64)
    try:
        threads = [threading.Thread(target=lambda: texts.append(core.run(model, long_run).sequences)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert torch.get_default_dtype() is torch.float64
    finally:
        torch.set_default_dtype(torch.float32)
    assert texts == [expected] * 4


@pytest.mark.parametrize("name", ["bfloat16 by default", "autocast in bfloat16", "float64 by default"])
def test_capture_under_settings_of_the_caller_changes_nothing(name: str, models: Path) -> None:
    model = load_all(models)[0]
    inputs = torch.tensor([PROMPT])
    options = {"max_new_tokens": 5, "do_sample": False, "output_scores": True, "return_dict_in_generate": True}
    with CALLER_SETTINGS[name]():
        plain = model.model.generate(inputs, **options)
        with core.capture(model) as captured:
            recorded = model.model.generate(inputs, **options)
    assert recorded.sequences.tolist() == plain.sequences.tolist()
    assert not captured.troubles
    chosen = [event for event in captured.run.events if isinstance(event, TokenChosen)]
    for event, scores in zip(chosen, plain.scores, strict=True):
        wanted = scores[0].float().log_softmax(-1)[event.id]
        assert event.log_probability == pytest.approx(float(wanted), abs=2e-3)
