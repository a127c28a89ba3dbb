"""The benchmark of graphics cards runs through the same code on the CPU."""

from __future__ import annotations

import math
import warnings

import torch

from tests.benchmarks import gpu


def test_every_figure_is_measured() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # transformers on settings that this version of generate does not use
        figures = dict(gpu.measure_on(torch.device("cpu"), quick=True))
    assert len(figures) == 2 + 4 * len(gpu.CPU_SHAPES)
    assert all(math.isfinite(value) and value > 0 for value in figures.values()), figures


def test_the_shapes_have_the_sizes_of_their_names() -> None:
    for name, shape in gpu.CARD_SHAPES.items():
        layer = shape.width * (2 * shape.width + 2 * shape.width * shape.kv_heads // shape.heads)
        layer += 3 * shape.width * shape.feed_forward
        total = shape.layers * layer + 2 * shape.vocabulary * shape.width
        assert 0.9 < total / 1e9 / float(name.split()[0]) < 1.6, name
