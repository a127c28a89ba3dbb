"""Translate exceptions raised during inference into errors with cause and remedy."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from typing import TypeVar

import torch

from decodescope.core.errors import DecodescopeError, OutOfMemoryError, UnforeseenError
from decodescope.core.explain.words import size
from decodescope.core.models.loaded_model import LoadedModel
from decodescope.core.system.device_memory import is_out_of_memory
from decodescope.core.system.gpu import device_memory
from decodescope.core.system.plugin_code import attribute_error
from decodescope.core.system.torch_state import isolated_iterator
from decodescope.resources.language import tr

T = TypeVar("T")


@isolated_iterator
def translate_iterator_errors(model: LoadedModel, make_iterator: Callable[[], Iterator[T]]) -> Iterator[T]:
    """Iterate over `make_iterator()`, usually events: translate out-of-memory errors into errors with sizes, those of a
    plug-in into errors that name it, and unexpected ones into errors with message and traceback. No item is yielded
    after a file of weights in use has changed.
    """
    with translate_errors(model):
        items = make_iterator()
        try:
            for item in items:
                model.check_files()
                yield item
        finally:
            if isinstance(items, Generator):
                items.close()


@contextmanager
def translate_errors(model: LoadedModel) -> Iterator[None]:
    """Translate exceptions within the block into errors of `core.errors`.

    Raises CorruptWeightsError if a file of weights in use has changed, whatever came of it within the block.
    """
    try:
        yield
        model.check_files()
    except DecodescopeError:
        model.check_files()
        raise
    except Exception as error:
        model.check_files()
        if is_out_of_memory(error):
            raise _memory_error(model, error) from error
        raise attribute_error(error) or _unforeseen_error(model, error) from error


def _unforeseen_error(model: LoadedModel, error: Exception) -> UnforeseenError:
    kind, message = type(error).__name__, str(error).strip().split("\n")[0][:300]
    cause = tr("{model} failed with {kind}: {said}.") if message else tr("{model} failed with {kind}.")
    return UnforeseenError(
        cause.format(model=model.name, kind=kind, said=message),
        tr("Try another strategy or cache; the details say where it failed."),
        "".join(traceback.format_exception(error)),
    )


def _memory_error(model: LoadedModel, error: Exception) -> OutOfMemoryError:
    device = model.device
    if device.type == "cuda":
        memory, total = device_memory(device), torch.cuda.mem_get_info(device)[1]
        reserved, free = (0, 0) if memory is None else memory[1:]
        torch.cuda.empty_cache()
        cause = tr(
            "{device} ran out of memory (of {total}, {free} were free and {reserved} reserved by torch); the weights "
            "of {model} take {size}."
        )
    else:
        reserved = free = total = 0
        cause = tr("{device} ran out of memory; the weights of {model} take {size}.")
    return OutOfMemoryError(
        cause.format(
            device=device,
            free=size(free),
            reserved=size(reserved),
            total=size(total),
            model=model.name,
            size=size(model.weight_bytes),
        ),
        tr("Generate fewer tokens or sequences, shorten the prompt, or choose a smaller model or cache."),
        str(error),
    )
