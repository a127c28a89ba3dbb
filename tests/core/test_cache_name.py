"""The name of a module's cache argument in every supported release of transformers."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from decodescope.core.models.loaded_model import has_state_only
from decodescope.core.models.text_decoder import cache_name
from tests.core import tiny


class Since524(nn.Module):
    def forward(self, input_ids: torch.Tensor, cache: object = None) -> None: ...


class Before(nn.Module):
    def forward(self, input_ids: torch.Tensor, past_key_values: object = None) -> None: ...


class Both(nn.Module):
    def forward(self, input_ids: torch.Tensor, past_key_values: object = None, cache: object = None) -> None: ...


class RecurrentModule(nn.Module):
    def forward(self, input_ids: torch.Tensor, cache_params: object = None) -> None: ...


class Wrapper(nn.Module):
    def forward(self, *args: object, **more: object) -> None: ...


@pytest.mark.parametrize(
    ("module", "name"),
    [(Since524, "cache"), (Before, "past_key_values"), (Both, "cache"), (RecurrentModule, "cache_params")],
)
def test_cache_name_is_read_from_the_forward_signature(module: type[nn.Module], name: str) -> None:
    assert cache_name(module()) == name


def test_cache_name_of_a_wrapper_is_that_of_transformers() -> None:
    assert cache_name(Wrapper()) == tiny.shared("llama").cache_name


@pytest.mark.parametrize("kind", tiny.ALL)
def test_model_accepts_and_returns_its_cache_by_name(kind: str) -> None:
    """Fails with a warning, which is an error here, where transformers is called by a name that it has given up."""
    model = tiny.shared(kind)
    source = {"decoder_input_ids" if model.is_encoder_decoder else "input_ids": torch.tensor([[3, 4]])}
    more = {"input_ids": torch.tensor([tiny.prompt()])} if model.is_encoder_decoder else {}
    with torch.inference_mode():
        first = model.model(**source, **more, use_cache=True)
        stored = getattr(first, model.cache_name)
        second = model.model(**source, **more, use_cache=True, **{model.cache_name: stored})
    assert getattr(second, model.cache_name) is stored
    assert has_state_only(model) == (kind == "mamba")
