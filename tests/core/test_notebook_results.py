"""Results in notebooks: pages within their limit, tables of every kind of result, a progress bar."""

from __future__ import annotations

import base64
import gzip
import json
import re
from functools import cache
from typing import Any

import pytest
import torch

from decodescope import core
from decodescope.core.trace.page.html_page import page_text
from tests.core import tiny

LIMIT = 300_000
"""Bytes of a run of 200 tokens with ten alternatives."""
LENGTH = 200
RUNS: dict[str, dict[str, Any]] = {
    "sampling": {"do_sample": True, "temperature": 0.9, "top_p": 0.9, "repetition_penalty": 1.1},
    "beams": {"num_beams": 5, "num_return_sequences": 5},
    "speculation": {"prompt_lookup_num_tokens": 10},
}


@cache
def storyteller() -> core.LoadedModel:
    model = core.load("storyteller")
    assert isinstance(model, core.LoadedModel)
    return model


def make_run(settings: dict[str, Any]) -> core.Result:
    config = {"max_new_tokens": LENGTH, "min_new_tokens": LENGTH, **settings}
    return core.run(storyteller(), core.Request("Once upon a time", config, seed=1))


def data_of(frame: str) -> dict[str, Any]:
    """Return the data inside a frame."""
    found = re.search(r'<script id="run" type="application/gzip">(.*?)</script>', frame)
    assert found is not None
    data: dict[str, Any] = json.loads(gzip.decompress(base64.b64decode(found[1])))
    return data


@pytest.mark.slow
@pytest.mark.parametrize("kind", RUNS)
def test_a_page_of_200_tokens_is_small(kind: str) -> None:
    frame = make_run(RUNS[kind])._repr_html_()
    assert len(frame.encode()) <= LIMIT
    data = data_of(frame)
    steps = data["beams"]["steps"] if kind == "beams" else data["texts"][0]["tokens"]
    assert len(steps) == LENGTH
    assert kind == "beams" or all(len(step["others"]) >= 10 for step in steps)


@pytest.mark.slow
def test_a_captured_batch_has_one_small_page() -> None:
    loaded = storyteller()
    assert loaded.tokenizer is not None
    inputs = loaded.tokenizer(["Once upon a time", "The dragon ate"], return_tensors="pt", padding=True)
    with core.capture(loaded) as captured:
        loaded.model.generate(**inputs, max_new_tokens=LENGTH, min_new_tokens=LENGTH)
    frame = captured._repr_html_()
    assert frame.count("<iframe") == 1
    assert len(data_of(frame)["runs"]) == 2
    assert len(frame.encode()) <= 2 * LIMIT


def test_page_of_twelve_short_runs_is_small() -> None:
    network = tiny.make("llama").model
    with core.capture(network) as captured:
        for token in range(3, 15):
            network.generate(torch.tensor([[1, token]]), max_new_tokens=6, pad_token_id=0)
    frame = captured._repr_html_()
    assert len(frame.encode()) <= 150_000
    data = data_of(frame)
    assert [run["prompt"][1][1] for run in data["runs"]] == list(range(3, 15))


def test_a_frame_contains_the_data_of_the_page() -> None:
    """A frame and a file show the same; nothing of the data can end the attribute or the script."""
    result = core.run(tiny.make("llama"), core.Request(tiny.prompt(), {"max_new_tokens": 8}))
    data = json.loads(re.search(r'type="application/json">(.*?)</script>', page_text(result.events))[1])  # type: ignore[index]
    frame = result._repr_html_()
    assert data_of(frame) == data
    assert frame.count("'") == 2
    assert frame == result._repr_html_()


def test_a_failed_run_shows_its_text_and_its_error() -> None:
    def fail(ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        if ids.shape[1] > 6:
            raise KeyError("<mine>")
        return scores

    network, ids = tiny.make("llama").model, torch.tensor([[1, 17, 34, 11]])
    with core.capture(network) as captured, pytest.raises(KeyError):
        network.generate(ids, max_new_tokens=9, pad_token_id=0, logits_processor=[fail])
    shown = captured._repr_html_()
    assert "<p>The call failed: KeyError: &#x27;&lt;mine&gt;&#x27;</p><iframe" in shown
    assert len(data_of(shown)["texts"][0]["tokens"]) == 3


def test_capture_without_calls_shows_a_message_and_an_empty_table() -> None:
    pandas = pytest.importorskip("pandas")
    network = tiny.make("llama").model
    with pytest.warns(RuntimeWarning, match="not called"), core.capture(network) as captured:
        pass
    assert captured._repr_html_() == "<p>No generate call was captured.</p>"
    assert captured.to_dataframe().empty
    empty = core.CapturedRun([], [], None, [], core.events.Metrics(), "stopped")
    assert data_of(empty._repr_html_())["texts"]
    table = empty.to_dataframe()
    assert isinstance(table, pandas.DataFrame)
    assert table.empty
    assert "piece" in table


def test_every_kind_of_result_is_a_table() -> None:
    pytest.importorskip("pandas")
    model, ids = tiny.make("llama"), tiny.prompt()
    run = core.run(model, core.Request(ids, {"max_new_tokens": 5}))
    beams = core.run(model, core.Request(ids, {"max_new_tokens": 5, "num_beams": 3}))
    drafts = core.run(model, core.Request(ids, {"max_new_tokens": 5, "prompt_lookup_num_tokens": 2}))
    lengths = {
        "run": (run, 5), "drafts": (drafts, 5), "score": (core.score(model, ids), len(ids) - 1),
        "lens": (core.lens(model, ids, 4), 5), "occlude": (core.occlude(model, ids, 4), 4),
        "attention": (core.attention(model, ids, 4), 4),
    }  # fmt: skip
    for name, (result, length) in lengths.items():
        table = result.to_dataframe()
        assert len(table) == length, name
        assert result._repr_html_().startswith(("<iframe", "<table")), name
    candidates = sum(len(event.candidates) for event in beams.events if isinstance(event, core.events.BeamStep))
    assert len(beams.to_dataframe()) == candidates
    assert set(beams.to_dataframe()["fate"]) >= {"kept", "pruned"}


@pytest.mark.parametrize(("settings", "total"), [({}, 5), ({"num_beams": 2}, 5),
                                                 ({"do_sample": True, "num_return_sequences": 2}, 10)])  # fmt: skip
def test_progress_counts_tokens_or_steps(
    settings: dict[str, Any], total: int, capsys: pytest.CaptureFixture[str]
) -> None:
    model = tiny.make("llama")
    wanted = core.Request(tiny.prompt(), {"max_new_tokens": 5, "min_new_tokens": 5, **settings})
    core.run(model, wanted)
    assert capsys.readouterr().err == ""
    core.run(model, wanted, progress=True)
    assert f"{total}/{total}" in capsys.readouterr().err
