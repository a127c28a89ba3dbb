"""Whatever fails while a model works is told as an error with cause and remedy."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator

import torch

from core.device_memory import is_out_of_memory
from core.errors import OutOfMemoryError, TokenscopeError, UnforeseenError
from core.events import Event
from core.explain.words import size
from core.models.model import LoadedModel


@torch.inference_mode()
def guarded(model: LoadedModel, make: Callable[[], Iterator[Event]]) -> Iterator[Event]:
    """The events of `make()`: memory failures as errors with figures, what nobody foresaw as an error with its words
    and place."""
    try:
        yield from make()
    except TokenscopeError:
        raise
    except Exception as error:
        known = _memory_error if is_out_of_memory(error) else _unforeseen
        raise known(model, error) from error


def _unforeseen(model: LoadedModel, error: Exception) -> UnforeseenError:
    kind, said = type(error).__name__, str(error).strip().split("\n")[0][:300]
    return UnforeseenError(
        f"{model.name} failed with {kind}{': ' if said else ''}{said}.",
        "Another strategy or cache may serve this model; the details say where it happened.",
        "".join(traceback.format_exception(error)),
    )


def _memory_error(model: LoadedModel, error: Exception) -> OutOfMemoryError:
    device = model.device
    if device.type == "cuda":
        free, total = torch.cuda.mem_get_info(device)
        torch.cuda.empty_cache()
        figures = f" ({size(free)} of {size(total)} were free)"
    else:
        figures = ""
    return OutOfMemoryError(
        f"{device} ran out of memory{figures}; the weights of {model.name} take {size(model.weight_bytes)}.",
        "Write fewer tokens or texts at once, shorten the prompt, or choose a smaller model or cache.",
        str(error),
    )
