"""Predicted sizes of caches against measured ones, over the architectures of transformers."""

from __future__ import annotations

import warnings

import pytest
import torch
from transformers import GenerationConfig
from transformers.cache_utils import DYNAMIC_LAYER_TYPE_MAPPING

from decodescope import core
from decodescope.core.caches.tensors.cache_sizes import MetaValueMode
from decodescope.core.caches.tensors.continuation_probe import KNOWN_RESULTS, memory_kind
from decodescope.core.errors import DecodescopeError, UnpredictableError
from decodescope.core.events import CacheMeasured, CachePlan
from decodescope.core.explain.sizes import format_names, format_numbers
from tests.core import zoo

LENGTHS = (8, 40, 200)
SOURCE = 11
TOLERANCE = 0.1
UNLIKE = (
    "bart", "deepseek_v32", "deepseek_v4", "fsmt", "gemma3n_text", "inkling_text", "jamba", "lfm2", "llama", "mamba",
    "mimo_v2_flash", "minimax_m2", "moshi", "qwen3_next", "xlm", "zaya",
)  # fmt: skip
"""Architectures whose layers differ in what they keep."""
DEPENDS_ON_WEIGHTS = {"bailing_hybrid", "bamba"}
"""Whether these can read on from a cache is found out by a trial with their weights only."""


def without_weights(model: core.LoadedModel) -> core.LoadedModel:
    with torch.device("meta"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        network = type(model.model)(model.model.config)
    network.generation_config = model.model.generation_config
    return core.wrap(network, name=model.name)


def measured(model: core.LoadedModel, cache: str, length: int) -> list[CacheMeasured]:
    """Run until the text has `length` tokens; all measurements, that of the prompt first."""
    prompt, new = (SOURCE, length) if model.is_encoder_decoder else (length - 3, 3)
    config = GenerationConfig(max_new_tokens=new, min_new_tokens=new, num_beams=1, do_sample=False)
    events = core.run(model, core.Request(zoo.prompt(prompt), config, cache=cache)).events
    return [event for event in events if isinstance(event, CacheMeasured)]


def check_predictions(kind: str) -> None:
    """Compare a model and its blueprint with runs of the model; skips what cannot be built small or run."""
    try:
        model = zoo.make(kind)
        blueprint = without_weights(model)
    except Exception as error:
        pytest.skip(f"no small model of this type can be built: {error}")
    predicting = (model,) if kind in DEPENDS_ON_WEIGHTS else (model, blueprint)
    for cache in ("dynamic", "model_specific"):
        backend = core.caches.registry[cache]
        if backend.unsupported_reason(model):
            continue
        for length in LENGTHS:
            predicted: list[tuple[core.LoadedModel, int]] = []
            try:
                for one in predicting:  # before the run, which would show what the layers keep
                    backend.predict(one, length, 1, {"source_length": SOURCE})
                    predicted.append((one, length))
                events = measured(model, cache, length)
            except UnpredictableError:
                continue
            except DecodescopeError as error:
                pytest.skip(f"the small model cannot run: {error}")
            for one in predicting:
                for event in (events[0], events[-1]):
                    size = backend.predict(one, event.tokens or length, 1, {"source_length": SOURCE})
                    case = (kind, cache, event.tokens, one is blueprint)
                    assert abs(size - event.bytes) <= TOLERANCE * event.bytes, (case, size, event.bytes)


@pytest.mark.every(4)
@pytest.mark.parametrize("kind", UNLIKE)
def test_predictions_are_within_ten_percent(kind: str) -> None:
    check_predictions(kind)


@pytest.mark.parametrize("kind", sorted(KNOWN_RESULTS))
def test_blueprint_has_the_memory_kind_of_its_model(kind: str) -> None:
    model = zoo.make(kind)
    assert memory_kind(without_weights(model)) == memory_kind(model) == KNOWN_RESULTS[kind]


@pytest.mark.slow
@pytest.mark.parametrize("kind", sorted(set(zoo.names()) - set(UNLIKE)))
def test_predictions_of_every_architecture_are_within_ten_percent(kind: str) -> None:
    check_predictions(kind)


@pytest.mark.every(2)
@pytest.mark.parametrize("rows", [1, 3])
def test_rows_of_compressed_attention_are_predicted(rows: int) -> None:
    """The estimate, the plan of a run and its measurement agree, for every row and every position in a block."""
    model = zoo.make("deepseek_v4")
    more = {"do_sample": True, "num_return_sequences": rows} if rows > 1 else {}
    config = GenerationConfig(max_new_tokens=140, min_new_tokens=140, **more)
    request = core.Request(zoo.prompt(9), config)
    events = core.run(model, request).events
    sizes = [event for event in events if isinstance(event, CacheMeasured)]
    backend = core.caches.registry["dynamic"]
    for event in sizes:
        assert event.bytes == pytest.approx(backend.predict(model, event.tokens, rows, {}), rel=0.02)
    (plan,) = (event for event in events if isinstance(event, CachePlan))
    assert plan.predicted[-1] == core.estimate(model, request).cache


def test_cache_plan_explains_compressed_attention() -> None:
    model = zoo.make("deepseek_v4")
    request = core.Request(zoo.prompt(9), GenerationConfig(max_new_tokens=4))
    (plan,) = (event for event in core.run(model, request).events if isinstance(event, CachePlan))
    assert "entry · batch · (length − buffered) ÷ compression" in format_names(plan.size)
    assert "÷ 4" in format_numbers(plan.size, 40)


def test_building_a_cache_leaves_transformers_layers_unchanged() -> None:
    before = dict(DYNAMIC_LAYER_TYPE_MAPPING)
    model = zoo.make("deepseek_v4")
    cache = core.caches.registry["dynamic"].build(model, 40, {})
    assert cache is not None
    assert dict(DYNAMIC_LAYER_TYPE_MAPPING) == before
    assert not set(map(type, cache.layers)) & set(before.values())


def test_operations_on_meta_tensors_have_results() -> None:
    tokens = torch.ones(3, 4, device="meta")
    with MetaValueMode():
        assert torch.nonzero(tokens).shape == (0, 2)
        assert not bool(tokens.sum() > 2)
    assert torch.nonzero(torch.ones(3)).shape == (3, 1)
