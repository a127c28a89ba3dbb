"""transformers' models, imported without torch's compiler.

Its caches import hqq, whose decorators call `torch.compile`, which loads the whole compiler: a fifth of all that the
first model waits for. Compiling is put off until something that was so decorated is called.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch


@contextmanager
def without_torch_compile() -> Iterator[None]:
    """`torch.compile` loads nothing meanwhile; what it is given compiles itself when it is first called."""
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
