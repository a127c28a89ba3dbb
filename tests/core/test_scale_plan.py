"""The Scale lab's formulas against cases worked out by hand, and against the papers' own figures."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace

import pytest

from decodescope import core, resources
from decodescope.core.errors import ParameterError
from decodescope.core.labs.scale import (
    SHAPES,
    Cluster,
    Layout,
    Parts,
    RankMeasurement,
    Shape,
    Training,
    estimate_setup,
    explain_measured,
    idle_share,
    plan,
    remedies,
    schedule,
    shape_of,
    traffic,
)


def test_plan_is_available_without_torch() -> None:
    code = (
        "import sys; from decodescope import core; "
        "core.labs.scale.plan(8, 2); core.labs.scale.schedule(2, 2); print('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
    assert core.labs.scale.plan is plan


@pytest.mark.parametrize(("scheme", "gigabytes"), [("ddp", 120), ("zero1", 31.4), ("zero2", 16.6), ("zero3", 1.9)])
def test_plan_equals_the_table_of_the_zero_paper(scheme: str, gigabytes: float) -> None:
    parts = plan(7_500_000_000, 64, scheme)
    assert round(parts.total / 1e9, 1) == gigabytes
    assert sum(parts.values()) == parts.total == parts.states


def test_plan_parts_are_exact_to_the_byte() -> None:
    """Ten parameters on four devices: the fullest share is three."""
    assert dict(plan(10, 4, "zero2")) == {
        "parameters": 20, "gradients": 6, "optimizer": 36, "activations": 0, "buffers": 0, "cache": 0,
    }  # fmt: skip
    assert plan(10, 4, "zero3", "float32").states == 12 + 12 + 24
    assert plan(10, 4, "ddp", "float32").states == 40 + 40 + 80


def test_traffic_is_that_of_a_ring() -> None:
    """Each device sends all but its own part, for every pass around the ring."""
    assert [traffic(12, 4, scheme) for scheme in ("ddp", "zero1", "zero2", "zero3")] == [18, 18, 18, 27]
    assert [traffic(64, devices, "ddp") for devices in (1, 2, 8, 64)] == [0, 64, 112, 126]
    assert traffic(10, 1, "zero3") == 0


@pytest.mark.parametrize(("stages", "count"), [(2, 4), (4, 4), (4, 8), (3, 1), (1, 5), (8, 32)])
@pytest.mark.parametrize("kind", ["gpipe", "1f1b"])
def test_idle_share_of_a_pipeline_that_is_flushed(kind: str, stages: int, count: int) -> None:
    boxes = schedule(stages, count, kind)
    assert idle_share(boxes) == pytest.approx((stages - 1) / (count + stages - 1))
    assert {box.version for box in boxes if box.kind != "update"} == {0}
    assert [box.version for box in boxes if box.kind == "update"] == [1] * stages


def test_gpipe_box_by_box() -> None:
    """Two stages, two micro-batches: worked out on paper."""
    boxes = [box for box in schedule(2, 2, "gpipe") if box.kind != "update"]
    assert {(box.device, box.start, box.stop, box.kind, box.micro_batch) for box in boxes} == {
        (0, 0, 1, "forward", 0), (0, 1, 2, "forward", 1), (1, 1, 2, "forward", 0), (1, 2, 3, "forward", 1),
        (1, 3, 5, "backward", 0), (0, 5, 7, "backward", 0), (1, 5, 7, "backward", 1), (0, 7, 9, "backward", 1),
    }  # fmt: skip


def activations_in_flight(kind: str, device: int) -> int:
    """The most micro-batches that a device has sent on and not yet had back."""
    boxes = [box for box in schedule(4, 8, kind) if box.device == device and box.kind in ("forward", "backward")]
    held = [sum(1 if box.kind == "forward" else -1 for box in boxes[: n + 1]) for n in range(len(boxes))]
    return max(held)


def test_activations_in_flight_per_device() -> None:
    assert [activations_in_flight("gpipe", device) for device in range(4)] == [8, 8, 8, 8]
    assert [activations_in_flight("1f1b", device) for device in range(4)] == [4, 3, 2, 1]


def versions(weights: str, kind: str, device: int) -> list[int]:
    boxes = schedule(4, 8, "pipedream", weights=weights)
    return [box.version for box in boxes if box.device == device and box.kind == kind]


def test_pipedream_keeps_several_weight_versions() -> None:
    """Section 3.3 of the paper: micro-batch 5 uses the update of 1 on machine 1, those of 1 and 2 on machine 2."""
    assert versions("stashed", "forward", 0) == [0, 0, 0, 0, 1, 2, 3, 4]
    assert versions("stashed", "forward", 1) == [0, 0, 0, 1, 2, 3, 4, 5]
    assert versions("stashed", "forward", 3) == [0, 1, 2, 3, 4, 5, 6, 7]
    assert versions("stashed", "backward", 0) == versions("stashed", "forward", 0)
    assert versions("latest", "backward", 0) == [0, 1, 2, 3, 4, 5, 6, 7]
    assert all(versions("synced", "forward", device) == [0, 0, 0, 0, 1, 2, 3, 4] for device in range(4))


def test_steady_pipedream_has_no_idle_time() -> None:
    boxes = schedule(4, 40, "pipedream")
    assert idle_share(boxes, 30, 90) == pytest.approx(0)


def test_schedule_includes_the_sending_time() -> None:
    boxes = schedule(2, 1, "gpipe", hop=0.5, update=1)
    assert [(box.kind, box.device, box.start, box.stop) for box in boxes] == [
        ("forward", 0, 0, 1), ("send", 0, 1, 1.5), ("forward", 1, 1.5, 2.5), ("backward", 1, 2.5, 4.5),
        ("send", 1, 4.5, 5.0), ("update", 1, 4.5, 5.5), ("backward", 0, 5.0, 7.0), ("update", 0, 7.0, 8.0),
    ]  # fmt: skip


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)
def test_shapes_have_the_parameters_that_the_paper_prints(shape: Shape) -> None:
    printed = {"B": 1e9, "T": 1.008e12}
    number, unit = shape.name.split()[1:]
    assert shape.parameters == pytest.approx(float(number) * printed[unit], rel=0.03)


def test_the_bundled_model_by_its_config() -> None:
    config = json.loads(resources.path("models", "storyteller", "config.json").read_text())
    shape = shape_of(config)
    assert shape.parameters == 5_706_432  # 22.8 MB in float32: as measured
    table = shape.table_parameters
    for stages in (1, 2, 5):  # a tied embedding is stored at both ends of a pipeline
        held = sum(shape.stage_parameters(stage, stages) for stage in range(stages))
        assert held == shape.parameters + (table if stages > 1 else 0)
    with pytest.raises(ParameterError, match="vocab_size"):
        shape_of({"num_hidden_layers": 2, "hidden_size": 8, "num_attention_heads": 2})


TINY = Shape("tiny", 4, 8, 2, 2, 4, 32, 16)


def test_cluster_estimate_matches_a_manual_computation() -> None:
    """4 layers of 1,040 parameters, a table of 128 at either end, on 2 × 2 × 2 devices."""
    assert TINY.layer_parameters == 4 * 64 + 3 * 256 + 16 == 1040
    step = Training(batch=2, length=4, micro_batches=3)
    found = estimate_setup(TINY, Cluster(8, within=100, between=10, per_machine=4), Layout("zero1", 2, 2), step)
    first = -(-(2 * 1040 + 128) // 2)
    assert (found.data, found.stages[0].parameters, found.stages[0].optimizer) == (2, 2 * first, 12 * first // 2)
    one = 2 * 4 * 8  # elements of one layer's input
    assert found.traffic.tensor == 2 * 4 * (one * 2 * 3) * 2 // 2, "half of it on two devices"
    assert found.traffic.pipeline == one * 2 * 3 * 2
    last = -(-(2 * 1040 + 128 + 8) // 2)
    assert found.traffic.data == 2 * last * 2 // 2
    assert found.traffic.seconds == pytest.approx(found.traffic.tensor / 100 + (found.traffic.data + 768) / 10)
    assert found.idle == pytest.approx(1 / 4)
    layer = one * (10 + (24 + 5 * 2 * 4 / 8) / 2)
    assert [parts.activations for parts in found.stages] == [int(2 * 2 * layer), int(2 * layer)]


def test_generation_needs_weights_and_cache_only() -> None:
    found = estimate_setup(TINY, Cluster(1), Layout(), Training(length=10, precision="float32", purpose="write"))
    assert found.fullest.total == TINY.parameters * 4 + 2 * 4 * 8 * 10 * 4
    assert found.traffic.total == 0


def test_remedies_make_the_setup_fit() -> None:
    shape, cluster = SHAPES[1], Cluster(64, 80e9)
    found = {remedy.lever: remedy for remedy in remedies(shape, cluster, Layout(), Training())}
    assert found["scheme"].value == "zero1"
    for remedy in found.values():
        after = estimate_setup(shape, remedy.cluster, remedy.layout, remedy.training)
        assert after.fits
        assert after.fullest.total == remedy.bytes
    assert remedies(shape, cluster, Layout("zero3"), Training()) == ()
    (all_at_once,) = remedies(SHAPES[-1], Cluster(64, 80e9), Layout(), Training())
    assert all_at_once.lever == "all"
    assert all_at_once.cluster.devices > 64


def test_explanation_matches_the_measurement() -> None:
    parts, less = Parts(parameters=400, gradients=400), Parts(parameters=400)
    found = RankMeasurement("zero1", (parts, parts), (parts, parts), (9, 9), 9, 6, (9.0, 8.0), (9.0, 8.0), 0.1)
    reported = explain_measured(found)
    assert "exactly the predicted bytes: 800 B" in reported
    assert "paper needs 6 B" in reported
    assert "a single process reaches 8.000000" in reported
    reported = explain_measured(replace(found, ranks=(parts, less), predicted=(less, less), losses=(9.0, 7.0)))
    assert "held 800 B; 400 B was predicted" in reported
    assert "a single process differs" in reported
    boxes = schedule(2, 2, "pipedream")
    dreamed = replace(found, scheme="pipedream", boxes=boxes, expected_boxes=boxes, weights="latest", stray=0.42)
    reported = explain_measured(replace(dreamed, difference=1e-7))
    assert "match PipeDream's definition, to within 1.0e-07" in reported
    assert "differ from those of the forward pass's weights by 42 % of the largest" in reported
    assert "become untied" not in reported
    assert "become untied" in explain_measured(replace(dreamed, parted=True))
    assert "The gradients differ from those of a single process" in explain_measured(replace(dreamed, difference=1e-3))


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: plan(0, 2),
        lambda: plan(8, 2, "zero4"),
        lambda: plan(8, 2, precision="int8"),
        lambda: schedule(0, 1),
        lambda: schedule(1, 1, "zigzag"),
        lambda: estimate_setup(TINY, Cluster(6), Layout(tensor=4), Training()),
        lambda: estimate_setup(TINY, Cluster(8), Layout(pipeline=8), Training()),
    ],
)
def test_invalid_arguments_raise_parameter_error(wrong: object) -> None:
    assert callable(wrong)
    with pytest.raises(ParameterError):
        wrong()


@pytest.mark.parametrize(
    ("parameters", "devices"), [("7B", 4), (float("nan"), 4), (float("inf"), 4), (1e9, 2.5), (0, 1)]
)
def test_invalid_count_raises_parameter_error(parameters: object, devices: object) -> None:
    with pytest.raises(ParameterError, match="whole number"):
        core.labs.scale.plan(parameters, devices)  # type: ignore[arg-type]


def test_too_large_schedule_is_refused_before_allocation() -> None:
    with pytest.raises(ParameterError, match="too many to draw"):
        core.labs.scale.schedule(10**6, 10**6)
