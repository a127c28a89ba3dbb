"""Pipelines for real: stages in processes of this machine, held against one process and against the formulas."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from decodescope.core.errors import ParameterError
from decodescope.core.labs.scale import Options, RankMeasurement, measure, schedule
from decodescope.core.labs.scale.model_shape import Shape
from decodescope.core.labs.scale.pipeline_schedule import Box, max_versions
from decodescope.core.labs.scale.ranks import expected_load


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Llama of random weights, with three layers and a storyteller's words."""
    from transformers import AutoTokenizer, LlamaConfig, LlamaForCausalLM

    from decodescope.core.models import catalog

    folder = tmp_path_factory.mktemp("tiny")
    size = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 3, "num_attention_heads": 4}
    LlamaForCausalLM(LlamaConfig(vocab_size=2048, tie_word_embeddings=True, **size)).save_pretrained(folder)
    AutoTokenizer.from_pretrained(catalog.locate("storyteller")).save_pretrained(folder)
    return folder


def check(found: RankMeasurement) -> None:
    """To the byte, and as one process."""
    assert found.ranks == found.predicted
    assert found.traffic == found.expected_traffic
    assert found.losses == pytest.approx(found.alone, rel=1e-5)
    assert found.difference < 1e-5


def order(found: RankMeasurement) -> list[list[tuple[str, int]]]:
    """Return the work of each device in order, without waiting."""
    return [_order(found, device) for device in range(len(found.ranks))]


def _order(found: RankMeasurement, device: int) -> list[tuple[str, int]]:
    result = (box for box in found.boxes if box.device == device and box.kind != "wait")
    return [(box.kind, box.micro_batch) for box in result]


def uses(boxes: Sequence[Box], device: int) -> list[tuple[str, int, int]]:
    """The same, with the weights' versions."""
    result = (box for box in boxes if box.device == device and box.kind != "wait")
    return [(box.kind, box.micro_batch, box.version) for box in result]


def planned(stages: int, options: Options, kind: str) -> Iterator[list[tuple[str, int]]]:
    """The boxes of the schedule in the same form."""
    boxes = schedule(stages, options.micro_batches, kind, weights=options.weights)
    for device in range(stages):
        result = (box for box in boxes if box.device == device)
        yield [(box.kind, box.micro_batch) for box in result]


@pytest.mark.slow
def test_pipeline_equals_one_process(tiny: Path) -> None:
    options = Options(micro_batches=3, recompute=True)
    found = measure(str(tiny), "gpipe", 2, options=options)
    check(found)
    assert order(found) == list(planned(2, options, "gpipe"))
    assert found.seconds > 0


@pytest.mark.slow
@pytest.mark.parametrize(
    "weights", ["stashed", *(pytest.param(name, marks=pytest.mark.slow) for name in ("synced", "latest"))]
)
def test_pipedream_gradients_follow_its_definition(tiny: Path, weights: str) -> None:
    """Three stages, five micro-batches: the gradients of every update, and each box's version."""
    options = Options(micro_batches=5, weights=weights)
    found = measure(str(tiny), "pipedream", 3, options=options)
    check(found)
    boxes = schedule(3, 5, "pipedream", weights=weights)
    assert [uses(found.boxes, device) for device in range(3)] == [uses(boxes, device) for device in range(3)]
    whole = [parts.parameters for parts in found.ranks]
    older = {"stashed": (2, 1, 0), "synced": (2, 2, 2), "latest": (0, 0, 0)}[weights]
    assert [parts.buffers for parts in found.ranks] == [count * each for count, each in zip(older, whole, strict=True)]
    assert (found.stray > 1e-3) == (weights == "latest")


def test_weight_versions_match_a_manual_computation() -> None:
    """A long batch has as many as stages are ahead; of a short one, all go forward by the first."""
    assert max_versions(4, 16) == (4, 3, 2, 1)
    assert max_versions(4, 16, "synced") == (4, 4, 4, 4)
    assert max_versions(4, 4) == (2, 3, 2, 1)
    assert max_versions(4, 2) == (2, 2, 2, 1)
    assert max_versions(3, 1) == (1, 1, 1)


@pytest.mark.slow
def test_one_forward_one_backward_on_the_bundled_model() -> None:
    options = Options(micro_batches=5)
    found = measure("storyteller", "1f1b", 3, options=options)
    check(found)
    assert order(found) == list(planned(3, options, "1f1b"))


@pytest.mark.fuzz
@pytest.mark.parametrize("kind", ["gpipe", "1f1b", "pipedream"])
@pytest.mark.parametrize("processes", [1, 2, 3, 4])
@pytest.mark.parametrize("recompute", [False, True])
def test_every_pipeline_matches_its_plan(tiny: Path, kind: str, processes: int, recompute: bool) -> None:
    if processes == 4:
        with pytest.raises(ParameterError, match="3 layers, too few for 4 stages"):
            measure(str(tiny), kind, processes)
    else:
        check(measure(str(tiny), kind, processes, options=Options(4, recompute)))


def test_activation_bytes_match_a_manual_computation() -> None:
    """Width 4, one head of 4, inner 8, 10 words, 2 tokens: a layer keeps 2 · 13 + 8 + 8 + 1 + 32 = 75 numbers a token,
    its stage 8 for positions, the last 13 + 10 more, and the sum of the loss."""
    shape = Shape("tiny", 2, 4, 1, 1, 4, 8, 10)
    assert expected_load.layer_numbers_per_token(shape) == 75
    first = expected_load.stage_bytes(shape, 2, 0, 2, micro_batches=3, in_flight=3, recompute=False)
    assert first == 3 * (4 * 2 * 83) + 8 * 2 * 3
    last = expected_load.stage_bytes(shape, 2, 1, 2, micro_batches=3, in_flight=1, recompute=False)
    assert last == 4 * 2 * 83 + 4 * (2 * 23 + 1) + 8 * 2 * 3
    again = expected_load.stage_bytes(shape, 2, 0, 2, micro_batches=3, in_flight=3, recompute=True)
    assert again == 3 * 32 + 4 * 2 * 83 - 32 + 48


def test_invalid_pipelines_are_refused_before_the_start() -> None:
    with pytest.raises(ParameterError, match="2 are fewer than 3"):
        measure("storyteller", "1f1b", 3, options=Options(2))
    with pytest.raises(ParameterError, match="summarizer cannot be split"):
        measure("summarizer", "gpipe", 2)
    with pytest.raises(ParameterError, match="At most 16 micro-batches"):
        measure("storyteller", "gpipe", 2, options=Options(17))
    with pytest.raises(ParameterError, match="Unknown scheme 'zigzag'"):
        measure("storyteller", "zigzag", 2)
