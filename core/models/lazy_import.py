"""Import transformers' models without torch's compiler.

Their caches import hqq, whose decorators call `torch.compile`, which loads the full compiler: a fifth of the time to
load the first model. Compilation is deferred until a decorated function is called.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch


@contextmanager
def without_torch_compile() -> Iterator[None]:
    """Make `torch.compile` lazy within the context: functions are compiled on their first call."""
    original = torch.compile

    def later(model: Callable[..., object] | None = None, **options: Any) -> Any:
        if model is None:
            return functools.partial(later, **options)

        @functools.cache
        def compiled() -> Callable[..., object]:
            return original(model, **options)

        @functools.wraps(model)
        def call(*args: object, **settings: object) -> object:
            return compiled()(*args, **settings)

        return call

    torch.compile = later
    try:
        yield
    finally:
        torch.compile = original


with without_torch_compile():
    from transformers.modeling_utils import load_state_dict

__all__ = ["load_state_dict", "without_torch_compile"]
