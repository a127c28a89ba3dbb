"""Replacements for the parts of torch that talk to a driver: `torch.cuda`, generators, streams, threads."""

from __future__ import annotations

import contextlib
import threading
import types
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any
from unittest import mock

import torch

from tests.card import card_tensor
from tests.card.card_graphs import CardGraph, CompiledFunction, GraphCapture, GraphMemory
from tests.card.card_tensor import BACKEND, Active

if TYPE_CHECKING:
    from tests.card.pretend_card import PretendCard

HostGenerator = torch.Generator


def card_index(device: Any) -> int:
    """Return the number of a card. Raises ValueError for a device that is no card."""
    if isinstance(device, int):
        return device
    if isinstance(device, CardStream):
        return device.device_index
    named = torch.device(device) if device is not None else torch.device("cuda")
    if named.type not in ("cuda", "mps", BACKEND):
        raise ValueError(f"Expected a cuda device, but got: {named}")
    return named.index or 0


class _GeneratorType(type(HostGenerator)):  # type: ignore[misc]
    def __instancecheck__(cls, item: object) -> bool:
        return isinstance(item, HostGenerator)


class CardGenerator(HostGenerator, metaclass=_GeneratorType):
    """A generator of the host whose device is a card; for the CPU a plain one.

    Operations receive another Python object for the same generator: `devices` finds its device by the C++ address.
    """

    devices: dict[int, torch.device] = {}  # noqa: RUF012

    def __new__(cls, device: Any = "cpu") -> Any:
        named = torch.device(device)
        if Active.card is None or named.type != Active.card.kind:
            plain = HostGenerator(named)
            cls.devices.pop(plain._cdata, None)  # the address of a generator that has been freed
            return plain
        made = super().__new__(cls)
        made._device = cls.devices[made._cdata] = torch.device(named.type, named.index or 0)
        return made

    device = property(lambda self: self._device)


class CardStream:
    """A stream: operations run at once, and the card records which stream has waited for which."""

    _count = 0

    def __init__(self, device: Any = None, is_default: bool = False, **_: object) -> None:
        self.device_index = card_index(device)
        self.device, self.cuda_stream = torch.device("cuda", self.device_index), 0
        if not is_default:
            CardStream._count += 1
        self.stream: card_tensor.Stream = self.device_index, 0 if is_default else CardStream._count

    def __enter__(self) -> CardStream:
        _card().streams.append(self.stream)
        return self

    def __exit__(self, *error: object) -> None:
        _card().streams.pop()

    def wait_stream(self, other: CardStream) -> None:
        _card().wait(self.stream, other.stream)

    def wait_event(self, event: CardEvent) -> None:
        _card().wait(self.stream, event.stream)

    def record_event(self, event: Any = None) -> Any:
        event = event or CardEvent()
        event.stream, event.device_index = self.stream, self.device_index
        return event

    def synchronize(self) -> None:
        _card().synchronize(self.device_index)

    def query(self) -> bool:
        return True


class CardEvent(CardStream):
    """An event of `torch.cuda.Event`."""

    def __init__(self, *_: object, **__: object) -> None:
        super().__init__()

    def record(self, stream: CardStream | None = None) -> None:
        self.stream = stream.stream if stream is not None else _card().current_stream(0)
        self.device_index = self.stream[0]

    def wait(self, stream: CardStream | None = None) -> None:
        waiting = stream.stream if stream is not None else _card().current_stream(0)
        _card().wait(waiting, self.stream)

    def elapsed_time(self, other: object) -> float:
        return 0.0


def _card() -> PretendCard:
    card: Any = Active.card
    return card


def patches(card: PretendCard) -> Iterator[Any]:
    """Yield the patches that are active within `with PretendCard()`."""
    replaced = {"_lazy_init": lambda: None} if card.kind == "mps" else _cuda_functions(card)
    for name, function in replaced.items():
        yield mock.patch.object(torch.cuda, name, function)
    if card.kind == "mps":
        yield mock.patch.object(torch.backends.mps, "is_available", return_value=True)
        yield mock.patch.object(torch.mps, "empty_cache", card.empty_cache)
        yield mock.patch.object(torch.mps, "synchronize", card.synchronize)
        yield mock.patch.object(torch.mps, "current_allocated_memory", side_effect=lambda: card.used[0])
        yield mock.patch.object(torch.mps, "driver_allocated_memory", side_effect=lambda: card.reserved[0])
        yield mock.patch.object(torch.mps, "recommended_max_memory", return_value=card.capacity)
    yield mock.patch.object(torch, "Generator", CardGenerator)
    yield mock.patch.object(torch, "Stream", CardStream)
    yield mock.patch.object(torch, "compile", _fake_compile(card))
    yield mock.patch.object(torch.compiler, "is_compiling", side_effect=lambda: card.recording is not None)
    yield mock.patch.object(torch.nn.Module, "to", _module_to(torch.nn.Module.to))
    yield mock.patch.object(threading.Thread, "run", _thread_run(card, threading.Thread.run))


def _cuda_functions(card: PretendCard) -> dict[str, Any]:
    properties = types.SimpleNamespace(
        name="Pretend H100", major=9, minor=0, total_memory=card.capacity, multi_processor_count=132, warp_size=32,
        gcnArchName="", is_integrated=False, L2_cache_size=50 * 2**20,
    )  # fmt: skip
    return {
        "_lazy_init": lambda: None,
        "init": lambda: None,
        "is_available": lambda: True,
        "is_initialized": lambda: True,
        "device_count": lambda: card.count,
        "current_device": lambda: 0,
        "set_device": lambda device: None,
        "mem_get_info": card.mem_get_info,
        "memory_allocated": lambda device=None: card.used[card_index(device)],
        "memory_reserved": lambda device=None: card.reserved[card_index(device)],
        "max_memory_allocated": lambda device=None: card.peak[card_index(device)],
        "reset_peak_memory_stats": card.reset_peak,
        "empty_cache": card.empty_cache,
        "synchronize": card.synchronize,
        "get_device_properties": lambda device=None: properties,
        "get_device_capability": lambda device=None: (9, 0),
        "get_device_name": lambda device=None: properties.name,
        "is_bf16_supported": lambda *args, **kwargs: True,
        "Stream": CardStream,
        "Event": CardEvent,
        "ipc_collect": lambda: None,
        "default_stream": lambda device=None: CardStream(device, is_default=True),
        "current_stream": lambda device=None: _current_stream(card, device),
        "is_current_stream_capturing": lambda: card.recording is not None or card.capturing is not None,
        "stream": lambda stream: stream or contextlib.nullcontext(),
        "CUDAGraph": CardGraph,
        "graph": GraphCapture,
        "graph_pool_handle": GraphMemory,
        "manual_seed": lambda seed: None,
        "manual_seed_all": lambda seed: None,
    }


def _current_stream(card: PretendCard, device: Any) -> CardStream:
    stream = CardStream(device, is_default=True)
    stream.stream = card.current_stream(stream.device_index)
    return stream


def _fake_compile(card: PretendCard) -> Any:
    def compile(model: Any = None, *, mode: str | None = None, **options: Any) -> Any:
        if model is None:
            return lambda function: compile(function, mode=mode, **options)
        return CompiledFunction(card, model, mode)

    return compile


def _module_to(original: Any) -> Any:
    def to(module: Any, *args: Any, **kwargs: Any) -> Any:
        """Move a module; torch creates new parameters for wrappers, so tied ones are tied again."""
        places: dict[int, list[tuple[Any, str]]] = {}
        before = []  # keeps the identities valid
        for part in module.modules():
            for name, parameter in part._parameters.items():
                if parameter is not None:
                    before.append(parameter)
                    places.setdefault(id(parameter), []).append((part, name))
        made = original(module, *args, **kwargs)
        for (owner, first), *others in places.values():
            for part, name in others:
                part._parameters[name] = owner._parameters[first]
        return made

    return to


def _thread_run(card: PretendCard, original: Any) -> Any:
    def run(thread: threading.Thread) -> None:
        """Run a thread within the card's modes, which torch keeps per thread."""
        with card.modes():
            original(thread)

    return run
