"""Maximum and argmax of scores by NumPy and torch, and the ban on the end token before the minimum length."""

from __future__ import annotations

import math

import pytest
import torch
from transformers import MinLengthLogitsProcessor, MinNewTokensLengthLogitsProcessor

from decodescope.core.decoding.tensor_utils import argmax, row_max
from decodescope.core.processors.base import MinLengthBan

INFINITE = math.inf


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_argmax_returns_the_first_maximum(dtype: torch.dtype) -> None:
    scores = torch.tensor([[1.0, 3.0, 3.0, 2.0], [-INFINITE, -INFINITE, -5.0, -5.0], [-INFINITE] * 4], dtype=dtype)
    found = argmax(scores)
    assert found.tolist() == [1, 2, 0]
    assert found.dtype is torch.int64
    assert row_max(scores) == [3.0, -5.0, -INFINITE]


def test_argmax_equals_torch_for_any_memory_layout() -> None:
    scores = torch.randn(16, 5000).half().float()  # many are equal
    for one in (scores, scores[:, ::2], scores[3:4], scores.T):
        assert argmax(one).equal(torch.stack([row.eq(row.max()).nonzero()[0, 0] for row in one]))
        assert row_max(one) == one.amax(-1).tolist()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_nan_and_infinity_are_reported(dtype: torch.dtype) -> None:
    scores = torch.tensor([[1.0, math.nan], [math.inf, 0.0]], dtype=dtype)
    first, second = row_max(scores)
    assert math.isnan(first)
    assert second == INFINITE


def test_argmax_accepts_scores_that_require_grad() -> None:
    assert argmax(torch.ones(1, 3, requires_grad=True)).tolist() == [0]


@pytest.mark.parametrize("length", range(3, 9))
def test_min_length_ban_equals_that_of_transformers(length: int) -> None:
    ids, scores, ends = torch.zeros(2, length, dtype=torch.long), torch.randn(2, 10), torch.tensor([2, 7])
    came = scores.clone()
    reference = (
        MinLengthLogitsProcessor(6, ends)(ids, scores),
        MinNewTokensLengthLogitsProcessor(4, 2, ends)(ids, scores),
    )
    ours = MinLengthBan(6, ends)(ids, scores)
    assert ours.equal(reference[0])
    assert ours.equal(reference[1])
    assert scores.equal(came)
    assert (ours is scores) == (length >= 6)


def test_end_token_beyond_the_scores_is_ignored() -> None:
    stage, ids = MinLengthBan(9, torch.tensor([4, 12])), torch.zeros(1, 3, dtype=torch.long)
    assert stage(ids, torch.zeros(1, 10)).isneginf().nonzero().tolist() == [[0, 4]]
    assert stage(ids, torch.zeros(1, 13)).isneginf().nonzero().tolist() == [[0, 4], [0, 12]]
    assert not MinLengthBan(9, torch.tensor([-1, -100]))(ids, torch.zeros(1, 4)).isneginf().any()
    assert not MinLengthBan(9, None)(ids, torch.zeros(1, 4)).isneginf().any()
