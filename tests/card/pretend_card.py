"""A graphics card without a graphics card: device rules, memory, streams and counts, with values from the CPU.

    with PretendCard() as card:
        model = core.load("storyteller", device="cuda")
        with card.counting() as counts:
            ...
        print(counts.table())

PrivateUse1 is registered as a Python backend named `card` (`_setup_privateuseone_for_python_backend` of torch, no C++).
A function mode replaces `cuda` by `card` where a device is named. A dispatch mode checks and counts each operation,
computes it on the CPU and wraps the result. The registration cannot be undone: use a process of its own.

The card cannot see: time; numerics of its kernels (TF32, another order of sums) and its own random numbers; errors
inside kernels, triton and inductor; graph breaks of dynamo; memory that is freed while another stream reads it
(`record_stream`); launches within an operation except those in `card_counts` (the launch count is a lower bound).
"""

from __future__ import annotations

import contextlib
import functools
import sys
import weakref
from collections import Counter
from collections.abc import Iterator
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes

from decodescope.core.system.torch_state import DEVICE_MODES
from tests.card.card_counts import DEVICE_ASSERTS, METADATA_ONLY, WAITS, Counts, kernel_count
from tests.card.card_graphs import CardGraph, GraphMemory, GraphRecording
from tests.card.card_patches import CardGenerator, HostGenerator, card_index, patches
from tests.card.card_tensor import BACKEND, Active, CardTensor, MemoryBlock, Stream

_aten = torch.ops.aten
_ASSERT_MESSAGES = ("out of range", "out of bounds", "probability")
_WITH_OWN_KERNEL = (_aten.linear, _aten.rms_norm)
"""Composite operations that are one kernel on a card."""
_COPIES = (_aten._to_copy, _aten.to)
_INDEXING = (_aten.index, _aten.index_put, _aten.index_put_, _aten._index_put_impl_)
_HOST_READS = (torch.Tensor.tolist, torch.Tensor.numpy, torch.Tensor.item)
"""Methods that read host memory without an operation of aten."""
_CREATIONS = (torch.tensor, torch.as_tensor, torch.asarray)
_SUBSCRIPTS = (torch.Tensor.__getitem__, torch.Tensor.__setitem__)
_REPLACED = {
    torch.device, torch.nn.functional.scaled_dot_product_attention, *_CREATIONS, *_HOST_READS, *_SUBSCRIPTS,
    torch.Tensor.new_tensor, torch.Tensor.cuda, torch.Tensor.pin_memory, torch.Tensor.is_pinned,
}  # fmt: skip
"""Functions that do something else here, even if no device is named."""
_DEVICES = (torch.device, str)
_LIKE = (_aten.empty_like, _aten.zeros_like, _aten.ones_like, _aten.full_like, _aten.rand_like, _aten.randn_like)
"""Operations that take shape and dtype from a tensor, which may be on another device."""
_WITH_SCALARS = (_aten.fill_, _aten.masked_fill, _aten.masked_fill_, _aten.where)
"""Operations that accept 0-dim tensors of the host without being tagged as pointwise."""


class UnsynchronizedAccessError(RuntimeError):
    """Memory is read that a transfer or another stream may still be writing."""


class _DeviceNames(TorchFunctionMode):
    """Replaces the card's device type where Python code names a device."""

    def __init__(self, card: PretendCard) -> None:
        super().__init__()
        self._card = card

    def __torch_function__(self, func: Any, kinds: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func not in _REPLACED and not kwargs:
            for one in args:
                if isinstance(one, _DEVICES):
                    break
            else:
                return func(*args)
        return self._replace(func, args, kwargs or {})

    def _replace(self, func: Any, args: Any, kwargs: Any) -> Any:
        card = self._card
        if func is torch.device:
            return func(*args, **kwargs)
        if func is torch.nn.functional.scaled_dot_product_attention and isinstance(args[0], CardTensor):
            return card.attend(func, args, kwargs)
        if kwargs.get("pin_memory") and not isinstance(args[0] if args else None, CardTensor):
            kwargs = {name: value for name, value in kwargs.items() if name != "pin_memory"}
            return card.pin(func(*args, **kwargs))
        if func in _CREATIONS:
            device = kwargs.pop("device", None)
            made = func(*args, **kwargs)
            return made if device is None else made.to(card.inner(device))
        if func is torch.Tensor.new_tensor and isinstance(args[0], CardTensor):
            made = torch.tensor(*args[1:], **{"dtype": args[0].dtype, **kwargs})
            return made.to(torch.device(BACKEND, args[0].index))
        if func is torch.Tensor.cuda:
            return args[0].to(card.inner("cuda"))
        if func is torch.Tensor.pin_memory and not isinstance(args[0], CardTensor):
            return card.pin(args[0].clone())
        if func is torch.Tensor.is_pinned:
            return card.is_pinned(args[0])
        if func in _HOST_READS and not isinstance(args[0], CardTensor):
            card.check_host_read(func.__name__, args[0])
        if func in _SUBSCRIPTS and isinstance(args[0], CardTensor):
            args = (args[0], _upload_lists(args[0], args[1]), *args[2:])
        if "device" in kwargs:
            kwargs = {**kwargs, "device": card.inner(kwargs["device"])}
        args = tuple(card.inner(one) if isinstance(one, _DEVICES) else one for one in args)
        return func(*args, **kwargs)


def _upload_lists(tensor: CardTensor, index: Any) -> Any:
    """Convert lists among indices to tensors of the card as torch does, which is an upload."""
    if isinstance(index, list):
        return torch.tensor(index).to(torch.device(BACKEND, tensor.index))
    if isinstance(index, tuple):
        return tuple(_upload_lists(tensor, part) if isinstance(part, list) else part for part in index)
    return index


class _Operations(TorchDispatchMode):
    """Passes every operation to the card."""

    def __init__(self, card: PretendCard) -> None:
        super().__init__()
        self._card = card

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # nothing is compiled here, and the switch costs as much as an operation

    def __torch_dispatch__(self, func: Any, kinds: Any, args: Any = (), kwargs: Any = None) -> Any:
        return self._card.dispatch(func, args, kwargs or {})


def _integer_histc(values: torch.Tensor, *args: Any, **kwargs: Any) -> torch.Tensor:
    return torch.histc(values, *args, **kwargs).long()


DEVICE_MODES.update((_DeviceNames, _Operations))


class PretendCard:
    """`count` cards of `capacity` bytes each.

    `kind`: cuda, or mps, which has no float64. `is_strict`: unsynchronized accesses raise; otherwise they are collected
    in `hazards`. `overwrites`: a launch of a CUDA graph silently overwrites its last outputs, as torch allows between
    replays; otherwise access to them raises. `root`: files below this folder appear in counts.
    """

    def __init__(
        self, capacity: int = 80 * 2**30, count: int = 1, *, kind: str = "cuda", is_strict: bool = False,
        overwrites: bool = False, root: str = "/core/",
    ) -> None:  # fmt: skip
        if torch._C._get_privateuse1_backend_name() != BACKEND:
            torch.utils.backend_registration._setup_privateuseone_for_python_backend(BACKEND)
            backend: Any = getattr(torch, BACKEND)  # called by `torch.random.fork_rng`
            backend.get_rng_state = lambda device=None: torch.empty(0)
            backend.set_rng_state = lambda state, device=None: None
        self.kind, self.overwrites, self.is_strict = kind, overwrites, is_strict
        self.capacity, self.count = capacity, count
        self.used, self.peak, self.reserved = [0] * count, [0] * count, [0] * count
        """Bytes by card: in tensors, their maximum, and taken from the driver."""
        self.hazards: Counter[tuple[str, str]] = Counter()
        self.broken = ""
        """Message of a device-side assertion, after which every operation fails."""
        self.fail_after: int | None = None
        """Operations until memory runs out once."""
        self.streams: list[Stream] = [(0, 0)]
        """Entered streams, the current one last."""
        self.counts: list[Counts] = []
        self.recording: GraphRecording | None = None
        self.capturing: CardGraph | None = None
        self._pools: weakref.WeakSet[GraphMemory] = weakref.WeakSet()
        self._root = root
        self._now = 0
        self._waited: dict[Stream, dict[Stream, int]] = {}
        """Stream → other stream → operation up to which it has waited for it."""
        self._blocks: weakref.WeakValueDictionary[int, MemoryBlock] = weakref.WeakValueDictionary()
        self._transfers: dict[int, tuple[weakref.ref[Any], tuple[Stream, int]]] = {}
        """Address of host memory that an asynchronous copy writes to."""
        self._pinned: dict[int, torch.Tensor] = {}
        """Pinned memory of the host by its address; it is kept, so that no other memory gets the address."""
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> PretendCard:
        Active.card = self
        for patch in patches(self):
            self._stack.enter_context(patch)
        self._stack.enter_context(self.modes())
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()
        Active.card = None

    @contextlib.contextmanager
    def modes(self) -> Iterator[None]:
        """Enter the card's modes, which torch keeps per thread."""
        with _Operations(self), _DeviceNames(self):
            yield

    @contextlib.contextmanager
    def counting(self) -> Iterator[Counts]:
        """Count what happens within the context."""
        counts = Counts()
        self.counts.append(counts)
        try:
            yield counts
        finally:
            self.counts.remove(counts)

    def inner(self, device: Any) -> Any:
        """Return the device of C++ for one of this card; other values as they are."""
        named = torch.device(device) if isinstance(device, str) and device.split(":")[0] == self.kind else device
        if not isinstance(named, torch.device) or named.type != self.kind:
            return device
        if (named.index or 0) >= self.count:
            raise RuntimeError("CUDA error: invalid device ordinal")
        return torch.device(BACKEND, named.index or 0)

    # Memory

    def allocate(self, block: MemoryBlock) -> None:
        """Count new memory. Raises torch.OutOfMemoryError."""
        index = block.index
        pools = self.pool_bytes() if index == 0 and self._pools else 0
        if self.used[index] + pools + block.size > self.capacity:
            size, block.size = block.size, 0
            raise torch.OutOfMemoryError(f"CUDA out of memory. Tried to allocate {size / 2**20:.2f} MiB. GPU {index}")
        self.used[index] += block.size
        self.peak[index] = max(self.peak[index], self.used[index])
        self.reserved[index] = max(self.reserved[index], self.used[index] + pools)

    def pool_bytes(self) -> int:
        """Return the bytes of graphs, all of them on the first card."""
        return sum(pool.size for pool in self._pools)

    def add_pool(self, pool: GraphMemory, size: int) -> None:
        """Reserve memory for the intermediate results of a pool's graphs."""
        pool.size = size
        self._pools.add(pool)
        self.reserved[0] = max(self.reserved[0], self.used[0] + self.pool_bytes())

    def free(self, block: MemoryBlock) -> None:
        """Return memory to the allocator, which keeps it reserved."""
        self.used[block.index] -= block.size

    def mem_get_info(self, device: Any = None) -> tuple[int, int]:
        """Return free and total bytes as the driver sees them: reserved memory is not free."""
        return self.capacity - self.reserved[card_index(device)], self.capacity

    def reset_peak(self, device: Any = None) -> None:
        """Start the maximum of used bytes again."""
        self.peak[card_index(device)] = self.used[card_index(device)]

    def empty_cache(self) -> None:
        """Return reserved memory to the driver."""
        self.reserved = list(self.used)
        self.reserved[0] += self.pool_bytes()

    def pin(self, tensor: torch.Tensor) -> torch.Tensor:
        """Mark memory of the host as pinned, so that copies into it can be asynchronous."""
        self._pinned[tensor.untyped_storage().data_ptr()] = tensor
        return tensor

    def is_pinned(self, tensor: torch.Tensor) -> bool:
        """Return whether a host tensor is in pinned memory."""
        return not isinstance(tensor, CardTensor) and tensor.untyped_storage().data_ptr() in self._pinned

    def wrap(self, values: torch.Tensor, index: int) -> CardTensor:
        """Return a tensor of card `index`; views of one storage share a block."""
        storage = values.untyped_storage()
        key = storage.data_ptr() or id(storage)
        block = self._blocks.get(key)
        if block is None:
            block = self._blocks[key] = MemoryBlock(self, index, storage.nbytes())
        if values.is_inference() == torch.is_inference_mode_enabled():
            return CardTensor(values, block, index)
        with torch.inference_mode(values.is_inference()):  # a view of a normal tensor is a normal tensor
            return CardTensor(values, block, index)

    # Operations

    def dispatch(self, func: Any, args: Any, kwargs: Any) -> Any:
        """Check, count and compute one operation."""
        flat = _flatten(args, kwargs)
        cards = [item for item in flat if isinstance(item, CardTensor)]
        target = kwargs.get("device") or next((item for item in args if isinstance(item, torch.device)), None)
        target = self.inner(target)  # devices from C++ or from patched functions
        is_on_card = isinstance(target, torch.device) and target.type == BACKEND
        if not cards and not is_on_card:
            self._check_host_reads(func, flat)
            return func(*args, **kwargs)
        if self.broken:
            raise RuntimeError(self.broken)
        packet = func.overloadpacket
        # Composites arrive whole in inference mode; a card launches their parts.
        if packet not in _WITH_OWN_KERNEL and _is_composite(func):
            with _Operations(self):
                made = func.decompose(*args, **kwargs)
            if made is not NotImplemented:
                return made
        index = (target.index or 0) if is_on_card else cards[0].index
        self._check(func, packet, flat, cards, index)
        is_download = packet in _COPIES and isinstance(target, torch.device) and not is_on_card
        writes_host = packet is _aten.copy_ and not isinstance(args[0], CardTensor)
        is_async = bool(kwargs.get("non_blocking") or (packet is _aten.copy_ and len(args) > 2 and args[2]))
        if writes_host and not self.is_pinned(args[0]):
            is_async = False  # the driver waits for copies into pageable memory
        self._count(func, packet, args, kwargs, cards, index, is_download or writes_host, is_on_card, is_async)
        self._check_streams(func, packet, flat, cards, index, is_on_card)
        result = self._compute(func, packet, args, kwargs, is_on_card, is_download)
        if is_download or writes_host:
            if is_async:
                self._transfers[result.untyped_storage().data_ptr()] = (
                    weakref.ref(result), (self.current_stream(index), self._now),
                )  # fmt: skip
            return result
        return self._wrap_results(func, result, flat, cards, index)

    def _compute(self, func: Any, packet: Any, args: Any, kwargs: Any, is_on_card: bool, is_download: bool) -> Any:
        args, kwargs = _host_values(args), {name: _host_values(item) for name, item in kwargs.items()}
        if is_on_card:
            kwargs = {**kwargs, "device": torch.device("cpu")}
            args = tuple(torch.device("cpu") if isinstance(one, torch.device) else one for one in args)
            if any(isinstance(one, torch.device) for one in args):
                del kwargs["device"]
        if is_on_card or is_download:
            kwargs.pop("pin_memory", None)
            if packet is _aten._to_copy:
                kwargs["non_blocking"] = False
        if packet is _aten.histc and not args[0].is_floating_point():  # a GPU counts integers, too
            args = (args[0].double(), *args[1:])
            func = _integer_histc
        try:
            if self.capturing is not None:
                return self.capturing.record(func, args, kwargs, func, 0)
            return func(*args, **kwargs)
        except (IndexError, RuntimeError) as error:
            message = str(error)
            if (
                packet not in DEVICE_ASSERTS
                or "dimension" in message
                or not any(words in message for words in _ASSERT_MESSAGES)
            ):
                raise
            self.broken = f"CUDA error: device-side assert triggered ({func}: {error}; {self._line()})"
            raise RuntimeError(self.broken) from error

    def _wrap_results(self, func: Any, result: Any, flat: list[Any], cards: list[CardTensor], index: int) -> Any:
        owners = {id(item.values): item for item in cards}
        inputs = {id(item) for item in flat if isinstance(item, torch.Tensor)}
        written = self.current_stream(index), self._now

        def wrap(found: torch.Tensor) -> torch.Tensor:
            if self.kind == "mps" and found.dtype is torch.float64:
                raise TypeError(
                    "Cannot convert a MPS Tensor to float64 dtype as the MPS framework doesn't support float64. Please "
                    "use float32 instead."
                )
            if id(found) in owners:  # in place
                owner = owners[id(found)]
                owner.block.written = written
                if self.capturing is not None:
                    self.capturing.note_written(owner.block)
                if owner.shape != found.shape:
                    raise NotImplementedError(f"The pretend card cannot resize in place ({func}).")
                return owner
            if id(found) in inputs:
                return found
            made = self.wrap(found, index)
            if not func.is_view:
                made.block.written = written
                if self.capturing is not None:
                    self.capturing.note_written(made.block)
            return made

        if isinstance(result, list | tuple):
            return type(result)(wrap(item) if isinstance(item, torch.Tensor) else item for item in result)
        return wrap(result) if isinstance(result, torch.Tensor) else result

    def _check(self, func: Any, packet: Any, flat: list[Any], cards: list[CardTensor], index: int) -> None:
        """Raise the errors of a card: wrong devices, wrong generators, memory of a graph."""
        for tensor in cards:
            if tensor.block.stale:
                raise RuntimeError(tensor.block.stale)
        generator = next((item for item in flat if isinstance(item, HostGenerator)), None)
        if generator is not None:
            device = CardGenerator.devices.get(generator._cdata, torch.device("cpu"))
            if device != torch.device(self.kind, index):
                raise RuntimeError(f"Expected a 'cuda' device type for generator but found '{device}'")
        if packet in (_aten.copy_, _aten._to_copy, _aten.to, _aten.set_, *_LIKE):
            return
        other_card = next((tensor for tensor in cards if tensor.index != index), None)
        if other_card is not None:
            raise RuntimeError(
                "Expected all tensors to be on the same device, but found at least two devices, "
                f"cuda:{index} and cuda:{other_card.index}!"
            )
        hosts = [item for item in flat if isinstance(item, torch.Tensor) and not isinstance(item, CardTensor)]
        if not hosts:
            return
        if packet in _INDEXING:
            if isinstance(flat[0], torch.Tensor) and not isinstance(flat[0], CardTensor):
                raise RuntimeError("indices should be either on cpu or on the same device as the indexed tensor (cpu)")
            if packet is _aten.index or not any(one.dtype.is_floating_point and one.dim() for one in hosts):
                return  # indices of the host are uploaded
        if (torch.Tag.pointwise in func.tags or packet in _WITH_SCALARS) and all(one.dim() == 0 for one in hosts):
            return
        raise RuntimeError(
            f"Expected all tensors to be on the same device, but found at least two devices, cuda:{index} and cpu! "
            f"(when checking argument in method {func})"
        )

    def attend(self, func: Any, args: Any, kwargs: Any) -> Any:
        """Compute attention as one kernel; the decomposition of torch would be that of an unknown device."""
        self._note_attention(*args, **kwargs)
        flat = _flatten(args, kwargs)
        cards = [item for item in flat if isinstance(item, CardTensor)]
        if torch.is_grad_enabled() and any(item.requires_grad for item in cards):
            return func(*args, **kwargs)
        operation = _aten.scaled_dot_product_attention.default
        index = cards[0].index
        self._check(operation, operation.overloadpacket, flat, cards, index)
        self._count(operation, operation.overloadpacket, args, kwargs, cards, index, False, False, False)
        self._check_streams(operation, operation.overloadpacket, flat, cards, index, False)
        args, kwargs = _host_values(args), {name: _host_values(item) for name, item in kwargs.items()}
        with _disable_current_modes():
            if self.capturing is not None:
                made = self.wrap(self.capturing.record(func, args, kwargs, func, index), index)
                self.capturing.note_written(made.block)
            else:
                made = self.wrap(func(*args, **kwargs), index)
        made.block.written = self.current_stream(index), self._now
        return made

    def _note_attention(
        self, query: Any, key: Any, value: Any, attn_mask: Any = None, dropout_p: float = 0.0,
        is_causal: bool = False, scale: Any = None, enable_gqa: bool = False,
    ) -> None:  # fmt: skip
        """Note the kernel by the rules of `sdp_utils.cpp`: flash takes no mask, memory-efficient no grouped heads."""
        is_grouped = query.shape[1] != key.shape[1]
        is_half = query.dtype in (torch.float16, torch.bfloat16)
        kernel = "flash" if is_half and attn_mask is None else "math" if is_grouped and enable_gqa else "efficient"
        mask, grouped = ", mask" if attn_mask is not None else "", ", grouped" if is_grouped else ""
        for counts in self.counts:
            counts.attention[f"{kernel} ({str(query.dtype)[6:]}{mask}{grouped})", self._line()] += 1

    # Counts

    def _line(self) -> str:
        """Return the innermost line below `root`, or the innermost outside torch."""
        frame: Any = sys._getframe(2)
        other = ""
        while frame is not None:
            name = frame.f_code.co_filename
            if self._root in name and "site-packages" not in name:
                return f"{name[name.rindex(self._root) + 1 :]}:{frame.f_lineno}"
            if not other and "/torch/" not in name and "/tests/card/" not in name:
                other = f"{name.split('site-packages/')[-1]}:{frame.f_lineno}"
            frame = frame.f_back
        return other

    def _count(
        self, func: Any, packet: Any, args: Any, kwargs: Any, cards: list[CardTensor], index: int, is_download: bool,
        is_on_card: bool, is_async: bool,
    ) -> None:  # fmt: skip
        is_upload = is_on_card and not cards and packet in _COPIES and args[0].numel() > 0
        if packet is _aten.copy_ and isinstance(args[0], CardTensor) and not isinstance(args[1], CardTensor):
            is_upload |= args[1].dim() > 0
        waits = packet in WAITS or (is_download and not is_async)
        if packet in _INDEXING:
            masks = [one for one in args[1] if one is not None and one.dtype in (torch.bool, torch.uint8)]
            waits |= bool(masks) and (packet is _aten.index or args[2].numel() != 1)
            is_upload |= any(one is not None and not isinstance(one, CardTensor) for one in args[1])
        if packet is _aten.repeat_interleave and kwargs.get("output_size") is None:
            waits |= func is _aten.repeat_interleave.Tensor
        is_blocking_upload = is_upload and not is_async
        if waits or is_blocking_upload:
            self._host_waited(index)
        if (self.recording is not None or self.capturing is not None) and (waits or is_upload):
            message = "CUDA error: operation not permitted when stream is capturing"
            raise RuntimeError(f"{message} ({func}, {self._line()})")
        if self.recording is not None:
            self.recording.add(func, args)
        elif self.fail_after is not None:
            self.fail_after -= 1
            if self.fail_after < 0:
                self.fail_after = None
                raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 MiB. GPU 0")
        if not self.counts:
            return
        kernels = kernel_count(func)
        cause = str(func).removeprefix("aten."), self._line()
        for counts in self.counts:
            counts.waits[cause] += waits
            counts.uploads[cause] += is_blocking_upload
            if self.recording is None and self.capturing is None:
                counts.launches[cause] += kernels

    # Streams

    def current_stream(self, index: int) -> Stream:
        """Return the current stream of a card: an entered one applies to its own card alone."""
        return self.streams[-1] if self.streams[-1][0] == index else (index, 0)

    def next_operation(self, index: int) -> tuple[Stream, int]:
        """Return the stream and the time of an operation that starts now."""
        self._now += 1
        return self.current_stream(index), self._now

    def wait(self, stream: Stream, other: Stream) -> None:
        """Let a stream wait for another, and for everything that one has waited for."""
        waited = self._waited.setdefault(stream, {})
        waited[other] = self._now
        for third, when in self._waited.get(other, {}).items():
            waited[third] = max(waited.get(third, -1), when)

    def synchronize(self, device: Any = None) -> None:
        """Let the host wait for all streams of a card; without a device, of the current card 0."""
        self._host_waited(card_index(device), every_stream=True)
        for counts in self.counts:
            counts.waits["synchronize", self._line()] += 1

    def _host_waited(self, index: int, every_stream: bool = False) -> None:
        """Note that the host has waited: what it launches from here on comes after that."""
        known = {*self._waited, *self.streams, *((card, 0) for card in range(self.count))}
        for stream in {one for one in known if one[0] == index} if every_stream else {self.current_stream(index)}:
            for other in known:
                self._waited.setdefault(other, {})[stream] = self._now
            self._transfers = {key: one for key, one in self._transfers.items() if one[1][0] != stream}

    def _check_streams(
        self, func: Any, packet: Any, flat: list[Any], cards: list[CardTensor], index: int, is_on_card: bool
    ) -> None:
        self._now += 1
        if func.is_view or packet in METADATA_ONLY:
            return
        for tensor in cards:
            self._check_written(func, tensor.block.written, index)
        if self._transfers and is_on_card:
            for item in flat:
                transfer = self._transfer(item)
                if transfer is not None:
                    self._check_written(func, transfer[1], index)

    def _check_written(self, func: Any, written: tuple[Stream, int], index: int) -> None:
        stream, when = written
        here = self.current_stream(index)
        if stream != here and self._waited.get(here, {}).get(stream, -1) < when:
            self._report("a stream reads what another one may still write", func)

    def _check_host_reads(self, func: Any, flat: list[Any]) -> None:
        if self._transfers and not func.is_view and func.overloadpacket not in METADATA_ONLY:
            for item in flat:
                self.check_host_read(func, item)

    def check_host_read(self, func: Any, item: Any) -> None:
        """Report a read of host memory that a transfer may still be writing."""
        if self._transfers and self._transfer(item) is not None:
            self._report("the host reads an unfinished transfer", func)

    def _transfer(self, item: Any) -> tuple[Any, tuple[Stream, int]] | None:
        """Return the transfer that writes to a host tensor; None if its memory has been reused since."""
        if not isinstance(item, torch.Tensor) or isinstance(item, CardTensor) or item.device.type != "cpu":
            return None
        found = self._transfers.get(item.untyped_storage().data_ptr())
        return found if found is not None and found[0]() is not None else None

    def _report(self, problem: str, func: Any) -> None:
        line = self._line()
        self.hazards[f"{problem}: {func}", line] += 1
        if self.is_strict:
            raise UnsynchronizedAccessError(f"{problem}: {func} at {line}")


def _flatten(args: Any, kwargs: Any) -> list[Any]:
    """Return all arguments of an operation; those of aten are nested no deeper than in lists."""
    flat: list[Any] = []
    for item in (*args, *kwargs.values()):
        flat += item if isinstance(item, list | tuple) else (item,)
    return flat


def _host_values(item: Any) -> Any:
    """Return an argument, or a list of them, with host tensors in place of the card's."""
    if isinstance(item, CardTensor):
        return item.values
    return type(item)(map(_host_values, item)) if type(item) in (list, tuple) else item


@functools.cache
def _is_composite(func: Any) -> bool:
    return torch._C._dispatch_has_kernel_for_dispatch_key(func.name(), "CompositeImplicitAutograd")
