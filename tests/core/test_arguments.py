"""Arguments of public functions that have a wrong type raise an error of core.errors that names them."""

from __future__ import annotations

import multiprocessing
from pathlib import Path

import pytest
from transformers import GenerationConfig

from decodescope import core
from tests.core.invalid_arguments import ODD, ODDER, Calls, consumed, pass_odd_values

IDS = [5, 6, 7, 8, 9]


@pytest.fixture(scope="module")
def storyteller() -> core.LoadedModel:
    return core.load("storyteller", device="cpu")


@pytest.fixture(scope="module")
def calls(storyteller: core.LoadedModel, tmp_path_factory: pytest.TempPathFactory) -> Calls:
    """Every function with arguments of the right kind."""
    model, folder = storyteller, tmp_path_factory.mktemp("files")
    request = core.Request("Once upon a time", GenerationConfig(max_new_tokens=2))
    stored = core.ScoreCache()
    result = core.run(model, request, scores=stored)
    beside = {"cancel": None, "streamer": None, "prefixes": None, "drafters": None, "scores": None}
    inside = {"model": model, "ids": IDS, "source": None, "media": ()}
    parts = {**inside, "step": 4, "other": None, "unit": "token", "instead": None, "cancel": None}
    form = {"request": request, "model": "storyteller", "drafters": (), "device": "auto", "dtype": "auto"}
    text = {"model": model, "text_or_ids": "Hello there", "top_n": 3, "given": None}
    return {
        "stream": (core.stream, {"model": model, "request": request, **beside}),
        "run": (core.run, {"model": model, "request": request, **beside}),
        "score": (core.score, text),
        "score_stream": (core.score_stream, {**text, "second": None, "cancel": None, "watermark": None}),
        "lens": (core.lens, {**inside, "step": 4}),
        "lens_text": (core.lens_text, {**inside, "first": 3, "cancel": None}),
        "occlude": (core.occlude, parts),
        "occlusion": (core.occlusion, parts),
        "attention": (core.attention, {**inside, "step": 4}),
        "replay_step": (core.replay_step, {"model": model, "request": request, "ids": result.sequences[0], "step": 1,
                                   "changes": {"repetition_penalty": 1.2}, "sequence": 0, "scores": stored}),
        "encode": (core.encode, {"model": model, "prompt": "Hi"}),
        "weights_cost": (core.weights_cost, {"model": model, "plain": model, "text": "Hello there", "cancel": None}),
        "estimate": (core.estimate, {"model": model, "request": request, "held": 0, "drafters": None}),
        "effective_settings": (core.effective_settings, {"model": model, "request": request}),
        "blueprint": (core.blueprint, {"name": "storyteller", "device": "auto", "dtype": "auto", "weights": "auto",
                                       "memory_limit": None}),
        "estimate_throughput": (core.estimate_throughput, {"model": model}),
        "has_native_step": (core.has_native_step, {"model": model}),
        "why_not_draft": (core.why_not_draft, {"target": model, "draft": model}),
        "as_code": (core.as_code, {**form, "flavour": "core"}),
        "why_not_generate": (core.why_not_generate, form),
        "make_config": (core.make_config, {"settings": {}}),
        "stage_order": (core.stage_order, {"names": ["top_p"]}),
        "watermark_settings": (core.watermark_settings, {"options": {"watermark_bias": 2.0}}),
        "why_missing": (core.why_missing, {"extra": "grammar"}),
        "record_loop": (lambda model, prompt, **more: repr(core.record_loop(model, None, prompt, **more)), {
            "model": model, "prompt": IDS, "rows": 1, "name": "mine", "settings": {}, "top_n": 3}),
        "record": (core.record, {"path": folder / "run", "events": result.events, "request": request, "extra": None}),
        "page": (core.page, {"events": result.events, "path": folder / "page.html", "title": ""}),
        "page_text": (core.page_text, {"events": result.events, "title": ""}),
        "ScoreCache": (core.ScoreCache, {"budget": 1}),
        "PrefixStore": (core.PrefixStore, {"budget": 1}),
        "build_kernels": (lambda cancel: None if cancel is None else core.build_kernels(cancel), {"cancel": None}),
    }  # fmt: skip


NAMES = (
    "stream", "run", "score", "score_stream", "lens", "lens_text", "occlude", "occlusion", "attention", "replay_step",
    "encode", "weights_cost", "estimate", "effective_settings", "blueprint", "estimate_throughput", "has_native_step",
    "why_not_draft", "as_code", "why_not_generate", "make_config", "stage_order", "watermark_settings", "why_missing",
    "record_loop", "record", "page", "page_text", "ScoreCache", "PrefixStore", "build_kernels",
)  # fmt: skip


@pytest.mark.every(2)
@pytest.mark.parametrize("name", NAMES)
def test_wrong_argument_types_raise_core_errors(
    calls: Calls, name: str, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """The value is accepted, or refused by an error of core.errors; no raw Python exception."""
    monkeypatch.chdir(tmp_path)  # some of them are paths
    function, right = calls[name]
    consumed(function(**right))
    pass_odd_values(function, right, [*ODD, *ODDER])


def test_invalid_cancel_or_scores_is_named(storyteller: core.LoadedModel) -> None:
    with pytest.raises(core.errors.ParameterError, match=r"cancel is True\. Pass a threading\.Event, or None\."):
        core.run(storyteller, core.Request("Hi"), cancel=True)  # type: ignore[arg-type]
    with pytest.raises(core.errors.ParameterError, match=r"scores is 64\. Pass a decodescope\.ScoreCache, or None\."):
        core.run(storyteller, core.Request("Hi"), scores=64)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["a\0b", "\ud800"])
def test_page_at_an_impossible_path_raises_file_not_written(tmp_path: Path, name: str) -> None:
    with pytest.raises(core.errors.FileNotWrittenError):
        core.page([], tmp_path / name)


def test_an_event_of_other_processes_cancels(storyteller: core.LoadedModel) -> None:
    event = multiprocessing.Event()
    event.set()
    request = core.Request("Hi", GenerationConfig(max_new_tokens=3))
    assert core.run(storyteller, request, cancel=event).reason == "stopped"  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "watermark",
    [{"watermark_bias": "x"}, {"watermark_bias": 2.0, "watermark_ratio": "a"}, {"synthid_length": -3},
     {"watermark_bias": 2.0, "watermark_scheme": "odd"}, {"synthid_length": 5, "synthid_keys": "a"}],
)  # fmt: skip
def test_invalid_watermark_is_named(storyteller: core.LoadedModel, watermark: dict[str, object]) -> None:
    with pytest.raises(core.errors.ParameterError) as reported:
        list(core.score_stream(storyteller, "Hello there", watermark=watermark))
    assert reported.value.parameter in watermark
