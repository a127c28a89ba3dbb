"""Tensors of the pretend card: the device is named `cuda:N`, the values are in host memory."""

from __future__ import annotations

from typing import Any, Protocol, TypeAlias

import torch

BACKEND = "card"
"""Name under which PrivateUse1 is registered, for torch's C++; Python code sees `cuda`."""
Stream: TypeAlias = tuple[int, int]
"""Card and number of a stream on it; 0 is the card's default stream."""


class ActiveCard(Protocol):
    """The used interface of the card that is active in this process."""

    kind: str

    def dispatch(self, func: Any, args: Any, kwargs: Any) -> Any: ...
    def allocate(self, block: MemoryBlock) -> None: ...
    def free(self, block: MemoryBlock) -> None: ...


class Active:
    """The card of this process; tensors are used in threads that have no dispatch mode."""

    card: ActiveCard | None = None


class MemoryBlock:
    """Allocated memory of a card; it is freed with the last tensor in it."""

    GRANULARITY = 512
    """Bytes that the allocator of torch rounds sizes up to."""

    def __init__(self, card: ActiveCard, index: int, size: int) -> None:
        self.index, self.size = index, -(-size // self.GRANULARITY) * self.GRANULARITY
        self.stale = ""
        """Reason for refusing access: a CUDA graph that owns the memory has been launched again."""
        self.written: tuple[Stream, int] = ((index, 0), 0)
        """The stream that wrote it last, and when, in operations of the card."""
        self._card = card
        card.allocate(self)

    def __del__(self) -> None:
        self._card.free(self)


class _Storage:
    """The part of the interface of an untyped storage that is used here."""

    def __init__(self, tensor: CardTensor) -> None:
        self._storage, self.device = tensor.values.untyped_storage(), tensor.device

    def data_ptr(self) -> int:
        return self._storage.data_ptr()

    def nbytes(self) -> int:
        return self._storage.nbytes()

    size = __len__ = nbytes


class CardTensor(torch.Tensor):
    """Wrapper of a host tensor.

    For C++ its device is `card:N`, so that torch's own device logic applies. The properties below answer `cuda:N`.
    """

    values: torch.Tensor
    block: MemoryBlock
    index: int
    __torch_function__ = torch._C._disabled_torch_function_impl

    @staticmethod
    def __new__(
        cls, values: torch.Tensor, block: MemoryBlock | None = None, index: int = 0, requires_grad: bool = False
    ) -> Any:
        """Wrap host values; without a block, return a parameter as its class does (accelerate calls it so)."""
        if block is None:
            return torch.nn.Parameter(values, requires_grad)
        made = torch.Tensor._make_wrapper_subclass(
            cls, values.shape, strides=values.stride(), storage_offset=values.storage_offset(), dtype=values.dtype,
            device=torch.device(BACKEND, index),
        )  # fmt: skip
        made.values, made.block, made.index = values, block, index
        return made

    @classmethod
    def __torch_dispatch__(cls, func: Any, kinds: Any, args: Any = (), kwargs: Any = None) -> Any:
        if Active.card is None:
            raise RuntimeError("A tensor of the pretend card is used outside of `with PretendCard()`.")
        return Active.card.dispatch(func, args, kwargs or {})

    device = property(lambda self: torch.device(Active.card.kind if Active.card else "cuda", self.index))
    is_cuda = property(lambda self: self.device.type == "cuda")
    is_mps = property(lambda self: self.device.type == "mps")
    is_cpu = property(lambda self: False)

    def get_device(self) -> int:
        return self.index

    def data_ptr(self) -> int:
        return self.values.data_ptr()

    def untyped_storage(self) -> Any:
        return _Storage(self)

    def is_pinned(self, device: object = None) -> bool:
        return False

    def tolist(self) -> Any:
        return self.cpu().tolist()

    def numpy(self, *args: object, **kwargs: object) -> Any:
        raise TypeError(
            f"can't convert {self.device} device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host "
            "memory first."
        )

    __array__ = numpy

    def pin_memory(self, *_: object) -> Any:
        raise RuntimeError("cannot pin 'torch.cuda.FloatTensor' only dense CPU tensors can be pinned")

    def __repr__(self, **_: object) -> str:
        return f"{self.device} {self.values!r}"

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        copy: Any = self.detach().clone()
        if getattr(self, "_is_param", False):
            copy = torch.nn.Parameter(copy, self.requires_grad)
        memo[id(self)] = copy
        return copy

    def __reduce_ex__(self, _: Any) -> Any:
        raise TypeError("A tensor of the pretend card cannot be pickled.")
