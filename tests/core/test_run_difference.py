"""Causes of differences between two runs: planted ones, equal runs, and causes that cannot be separated."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from decodescope import core
from decodescope.core.differences.compared_run import read_run
from decodescope.core.differences.part_exchange import relation_of_weights
from decodescope.core.differences.prompt_difference import prompt_difference
from decodescope.core.differences.score_shift import Spread, StepShift, is_within, rounding_limit
from decodescope.core.errors import ComparisonError, ParameterError
from decodescope.core.events import Finished, RunStarted, TokenChosen
from tests.core import tiny as models

PROMPT = "Once upon a time"
SAMPLED = {"do_sample": True, "temperature": 1.5}
WILD = {"do_sample": True, "temperature": 8.0}
"""So that any change of the scores changes the text."""


@pytest.fixture(scope="module")
def coarse() -> core.LoadedModel:
    return core.load("storyteller", dtype="bfloat16")


def _run(
    model: core.LoadedModel, prompt: object = PROMPT, *, cache: str = "dynamic", seed: int = 1, **more: Any
) -> core.Result:
    options = more.pop("cache_options", {})
    settings = {"max_new_tokens": 20, **more}
    return core.run(model, core.Request(prompt, settings, cache=cache, cache_options=options, seed=seed))


def _ids(model: core.LoadedModel, text: str) -> list[int]:
    return core.encode(model, text)


Pair = tuple[core.Result, core.Result]
PLANTED: dict[str, tuple[str, Callable[[core.LoadedModel, core.LoadedModel], Pair]]] = {
    "begin token twice": ("first_tokens", lambda m, _: (
        _run(m, **WILD), _run(m, [_ids(m, PROMPT)[0], *_ids(m, PROMPT)], **WILD))),
    "no begin token": ("first_tokens", lambda m, _: (_run(m, **WILD), _run(m, _ids(m, PROMPT)[1:], **WILD))),
    "space at the end": ("white_space", lambda m, _: (_run(m), _run(m, PROMPT + " "))),
    "frame around the prompt": ("template", lambda m, _: (
        _run(m, **SAMPLED), _run(m, f"User: {PROMPT}\nStory:", **SAMPLED))),
    "beginning cut": ("truncation", lambda m, _: (
        _run(m, "The big dog sat. " + PROMPT, **WILD), _run(m, **WILD))),
    "limit": ("stop_rules", lambda m, _: (_run(m), _run(m, max_new_tokens=8))),
    "stop string": ("stop_rules", lambda m, _: (_run(m), _run(m, stop_strings=["."]))),
    "repetition penalty": ("settings", lambda m, _: (_run(m), _run(m, repetition_penalty=1.5))),
    "temperature": ("settings", lambda m, _: (_run(m, **SAMPLED), _run(m, **{**SAMPLED, "temperature": 0.3}))),
    "sampling": ("settings", lambda m, _: (_run(m), _run(m, **SAMPLED))),
    "seed": ("random_numbers", lambda m, _: (_run(m, **SAMPLED), _run(m, seed=2, **SAMPLED))),
    "number of texts": ("random_numbers", lambda m, _: (
        _run(m, **SAMPLED), _run(m, num_return_sequences=2, seed=3, **SAMPLED))),
    "bfloat16": ("precision", lambda m, coarse: (_run(m), _run(coarse))),
    "other model": ("model", lambda m, _: (_run(m), _run(core.load("storyteller-draft")))),
}  # fmt: skip


@pytest.mark.parametrize("name", PLANTED)
def test_planted_cause_alone_is_named(name: str, storyteller: core.LoadedModel, coarse: core.LoadedModel) -> None:
    cause, make = PLANTED[name]
    found = core.explain_difference(*make(storyteller, coarse))
    assert found.cause == cause, found.sentence
    assert found.candidates == ()
    assert found.sentence
    assert found.advice
    assert all(row.evidence for row in found)


def test_equal_runs_have_no_difference(storyteller: core.LoadedModel) -> None:
    found = core.explain_difference(_run(storyteller), _run(storyteller))
    assert (found.cause, found.first, found.is_equal) == ("none", None, True)
    assert {row.verdict for row in found} <= {"equal", "excluded"}


def test_differing_settings_without_effect_are_excluded(storyteller: core.LoadedModel) -> None:
    """Other seeds and sampling settings change no greedy text; an unused setting does not hide the cause."""
    assert (
        core.explain_difference(_run(storyteller), _run(storyteller, seed=9, top_k=3, cache="static")).cause == "none"
    )
    found = core.explain_difference(
        _run(storyteller), _run(storyteller, repetition_penalty=1.5, seed=9, cache="static")
    )
    assert found.cause == "settings"
    assert next(row for row in found if row.subject == "cache").verdict == "excluded"


def test_first_difference_points_to_the_differing_token(storyteller: core.LoadedModel) -> None:
    a, b = _run(storyteller, **SAMPLED), _run(storyteller, seed=2, **SAMPLED)
    first = core.explain_difference(a, b).first
    assert first is not None
    ours, theirs = a.sequences[0], b.sequences[0]
    assert ours[: first.position] == theirs[: first.position]
    assert ours[first.position] != theirs[first.position]
    assert a.texts[0][: first.character] == b.texts[0][: first.character]


def test_two_possible_causes_without_model_cannot_be_told(storyteller: core.LoadedModel) -> None:
    found = core.explain_difference(_run(storyteller), _run(storyteller, PROMPT + " ", repetition_penalty=5.0))
    assert found.cause in ("unknown", "white_space")
    both = core.explain_difference(_run(storyteller, **SAMPLED), _run(storyteller, "A dog ran", seed=2, **SAMPLED))
    assert both.cause == "unknown"
    assert set(both.candidates) == {"prompt", "random_numbers"}


def test_exchanged_part_with_model_decides_between_two_causes(storyteller: core.LoadedModel) -> None:
    """B's prompt with A's seed gives B's first token, or B's seed with A's prompt does."""
    sentences: list[str] = []
    a = core.Request(PROMPT, {"max_new_tokens": 8, **SAMPLED}, seed=1)
    b = replace(a, prompt="A dog ran", config={**a.settings, "top_k": 1})
    found = core.explain_difference((storyteller, a), (storyteller, b), models=storyteller, progress=sentences.append)
    assert sentences[0].startswith("Repeating A")
    prompts, settings = found[0], next(row for row in found if row.subject == "settings")
    alone = [
        core.run(storyteller, one).sequences[0] for one in (replace(a, prompt=b.prompt), replace(b, prompt=a.prompt))
    ]
    other = core.run(storyteller, b).sequences[0]
    assert found.first is not None
    stop = found.first.position + 1
    gives = [one[:stop] == other[:stop] for one in alone]
    for row, expected in zip((prompts, settings), gives, strict=True):
        assert ("gives B's token" in row.evidence) is expected
    assert found.cause == {(True, False): "prompt", (False, True): "settings"}.get(tuple(gives), "unknown")


def test_changed_weights_with_equal_names_are_not_called_rounding(storyteller: core.LoadedModel) -> None:
    """Without the models the cause cannot be found; with both the weights are compared."""
    network = copy.deepcopy(storyteller.model)
    with torch.no_grad():
        network.model.layers[0].mlp.down_proj.weight.mul_(3.0)
    other = core.wrap(network, storyteller.tokenizer, name=storyteller.name)
    twin = core.wrap(copy.deepcopy(storyteller.model), storyteller.tokenizer, name=storyteller.name)
    runs = _run(twin, **SAMPLED), _run(other, **SAMPLED)
    alone = core.explain_difference(*runs)
    assert alone.cause == "unknown"
    found = core.explain_difference(*runs, models=(twin, other))
    assert found.cause == "model", found.sentence
    assert relation_of_weights(twin, twin) == "same"
    assert relation_of_weights(twin, core.wrap(copy.deepcopy(storyteller.model).bfloat16(), None)) == "rounded"


def test_same_weights_in_other_format_without_files_are_a_difference_of_precision(
    storyteller: core.LoadedModel,
) -> None:
    """Hashes of models in memory depend on the number format; the scores show that the weights are the same."""
    models_in_memory = [
        core.wrap(network, storyteller.tokenizer)
        for network in (copy.deepcopy(storyteller.model), copy.deepcopy(storyteller.model).bfloat16())
    ]
    runs = [_run(model) for model in models_in_memory]
    assert core.explain_difference(*runs).cause == "precision"
    assert core.explain_difference(*runs, models=tuple(models_in_memory)).cause == "precision"


def test_recordings_and_events_are_read_as_runs(storyteller: core.LoadedModel, tmp_path: Path) -> None:
    request = core.Request(PROMPT, {"max_new_tokens": 12}, seed=1)
    list(core.record(tmp_path / "a.dscope", core.stream(storyteller, request), request))
    other = _run(storyteller, max_new_tokens=6)
    found = core.explain_difference(tmp_path / "a.dscope", other.events)
    assert found.cause == "stop_rules"
    assert "limit" in found.sentence
    assert read_run(tmp_path / "a.dscope").request is not None


def test_captured_generate_with_own_processor_names_the_settings() -> None:
    model = models.make("llama", scale=1.5)
    text = torch.tensor([models.prompt()])

    def ban(ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        scores[:, first[0]] = -torch.inf
        return scores

    with core.capture(model.model) as captured:
        plain = model.model.generate(text, max_new_tokens=6, do_sample=False)
        first = plain[0, text.shape[1] :].tolist()
        model.model.generate(text, max_new_tokens=6, do_sample=False, logits_processor=[ban])
    found = core.explain_difference(*captured.runs)
    assert found.cause == "settings", found.sentence
    assert "processor" in found.sentence


def _with_prompt(result: core.Result, **changes: Any) -> core.Result:
    start = next(event for event in result.events if isinstance(event, RunStarted))
    events = [replace(start, **changes) if event is start else event for event in result.events]
    return replace(result, events=events)


def test_engine_without_scores_leaves_the_model_open(storyteller: core.LoadedModel) -> None:
    """The weights and the program of an engine may differ. Equal scores rule that out."""
    local = _run(storyteller)
    remote = _with_prompt(local, engine="vLLM", device="http://a", dtype="", cache="", identity=None)
    tokens = [event for event in remote.events if isinstance(event, TokenChosen)]
    changed = {id(tokens[6]): replace(tokens[6], id=tokens[6].alternatives[1].id, text="x", piece="x")}
    events = [changed.get(id(event), event) for event in remote.events if not isinstance(event, Finished)]
    agreeing = core.explain_difference(local, events)
    assert agreeing.cause == "unknown"
    assert "prompt" not in agreeing.candidates
    silent = [replace(event, alternatives=()) if isinstance(event, TokenChosen) else event for event in events]
    found = core.explain_difference(local, silent)
    assert found.cause == "unknown"
    assert {"model", "program"} <= set(found.candidates)


@pytest.mark.parametrize(
    ("shift", "most", "limit", "expected"),
    [(0.01, 0.02, 1.0, True), (0.9, 0.01, 1.0, False), (0.01, 2.0, 1.0, False), (0.5, 0.4, 0.01, False)],
)
def test_shift_counts_as_rounding_only_within_spread_and_limit(
    shift: float, most: float, limit: float, expected: bool
) -> None:
    found = StepShift((shift / 2, -shift / 2), (shift / 2, -shift / 2), (False, False), shift, 0.1)
    assert is_within(found, Spread(20, 10, most / 3, most), limit) is expected
    assert rounding_limit("float32", "float32") < rounding_limit("float32", "bfloat16") < rounding_limit("int4")


def test_prompts_of_other_words_are_not_called_template_or_truncation(storyteller: core.LoadedModel) -> None:
    runs = [read_run(_run(storyteller, text, max_new_tokens=1)) for text in ("The dog ran home", "The cat ran home")]
    found = prompt_difference(*runs)
    assert found is not None
    assert found.cause == "prompt"
    assert "dog" in found.sentence
    assert prompt_difference(runs[0], runs[0]) is None


def test_explain_difference_with_other_values_is_refused(storyteller: core.LoadedModel) -> None:
    run = _run(storyteller, max_new_tokens=2)
    with pytest.raises(ParameterError, match="A run to compare"):
        core.explain_difference(run, 3)  # type: ignore[arg-type]
    with pytest.raises(ComparisonError, match="no events"):
        core.explain_difference(run, [])
    with pytest.raises(ParameterError, match="Text 2"):
        core.explain_difference(run, run, sequence=1)
