"""Tensors that native code cannot read are refused by name instead of being read."""

from __future__ import annotations

import warnings

import pytest
import torch

from decodescope.core.decoding.step_stats import compute_native_stats
from decodescope.core.errors import NativeCodeError
from decodescope.core.native.tensor_address import row_address, tensor_address
from decodescope.core.processors.score_stats import score_histogram


def _freed(*shape: int) -> torch.Tensor:
    tensor = torch.ones(shape)
    tensor.untyped_storage().resize_(0)
    return tensor


def _compressed() -> torch.Tensor:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch calls this layout a trial
        return torch.eye(4).to_sparse_csr()


UNSUITABLE = {
    "bfloat16 instead of float32": torch.ones(4, 4, dtype=torch.bfloat16),
    "float64 instead of float32": torch.ones(4, 4, dtype=torch.float64),
    "on the device meta": torch.ones(4, 4, device="meta"),
    "sparse_coo": torch.eye(4).to_sparse(),
    "sparse_csr": _compressed(),
    "not adjacent": torch.ones(4, 8)[:, ::2],
    "memory has been freed": _freed(4, 4),
    "9 numbers instead of 16": torch.ones(3, 3),
}


@pytest.mark.parametrize("problem", UNSUITABLE)
def test_address_of_an_unsuitable_tensor_is_refused_with_the_reason(problem: str) -> None:
    with pytest.raises(NativeCodeError, match=problem):
        tensor_address(UNSUITABLE[problem], torch.float32, 16)


def test_address_of_a_suitable_tensor_is_that_of_its_first_number() -> None:
    tensor = torch.ones(4, 4)
    assert tensor_address(tensor[2:], torch.float32, 8) == tensor.data_ptr() + 32
    assert tensor_address(torch.ones(0), torch.float32) == 0


def test_rows_outside_of_the_storage_are_refused() -> None:
    ids = torch.arange(12).view(2, 6)
    assert row_address(ids, torch.int64, 6, 6) == ids.data_ptr() + 48
    with pytest.raises(NativeCodeError, match="numbers are not adjacent"):
        row_address(ids, torch.int64, 8, 6)
    with pytest.raises(NativeCodeError, match="int32 instead of int64"):
        row_address(ids.int(), torch.int64, 0, 6)


@pytest.mark.usefixtures("built")
def test_statistics_of_a_token_outside_of_the_vocabulary_are_refused() -> None:
    with pytest.raises(IndexError, match="not in the vocabulary of 8 tokens"):
        compute_native_stats([torch.ones(1, 8)], torch.tensor([8]), 2)


@pytest.mark.usefixtures("built")
def test_histogram_of_freed_scores_is_refused() -> None:
    with pytest.raises(NativeCodeError, match="memory has been freed"):
        score_histogram(_freed(16), 0.0, 1.0, 4)
