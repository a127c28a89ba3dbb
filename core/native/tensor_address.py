"""Addresses of tensors for native code.

Native code cannot check what an address points to, so this is the only place where a tensor becomes one, except for the
storages of graphics cards. It takes a microsecond at most, because it is called several times for each token.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from decodescope.core.errors import NativeCodeError
from decodescope.resources.language import tr

if TYPE_CHECKING:
    import torch


def tensor_address(tensor: torch.Tensor, dtype: torch.dtype, count: int | None = None) -> int:
    """Return the address of a contiguous tensor of `dtype` in main memory, of `count` numbers if that is given.

    The caller keeps the tensor alive. Raises NativeCodeError if the tensor has another dtype, device or layout, another
    number of elements, or no memory any more.
    """
    if tensor.dtype is not dtype or not tensor.is_cpu or (count is not None and tensor.numel() != count):
        raise _unsuitable_error(tensor, dtype, count)
    try:
        address = tensor.data_ptr() if tensor.is_contiguous() else 0
    except RuntimeError as error:  # sparse tensors, and those of torch's tracers
        raise _unsuitable_error(tensor, dtype, count) from error
    if not address and (tensor.numel() or not tensor.is_contiguous()):
        raise _unsuitable_error(tensor, dtype, count)
    return int(address)


def optional_address(tensor: torch.Tensor | None, dtype: torch.dtype, count: int | None = None) -> int | None:
    """Return the same, or None without a tensor."""
    return None if tensor is None else tensor_address(tensor, dtype, count)


def row_address(tensor: torch.Tensor, dtype: torch.dtype, start: int, length: int) -> int:
    """Return the address of `length` adjacent numbers from index `start` of a storage on.

    `tensor` is a view of that storage, whose numbers in the last dimension are adjacent. Raises NativeCodeError as
    `tensor_address`, and if the numbers are not in the storage.
    """
    first = tensor.storage_offset() + start
    size = tensor.element_size()
    is_suitable = tensor.dtype is dtype and tensor.is_cpu and tensor.stride(-1) == 1
    if not is_suitable or first < 0 or (first + length) * size > tensor.untyped_storage().nbytes():
        raise _unsuitable_error(tensor, dtype, None)
    return int(tensor.data_ptr()) + size * start


def _unsuitable_error(tensor: torch.Tensor, dtype: torch.dtype, count: int | None) -> NativeCodeError:
    """Return the error that names the difference between a tensor and the one that native code reads."""
    wanted, found = (str(one).removeprefix("torch.") for one in (dtype, tensor.dtype))
    layout = str(tensor.layout).removeprefix("torch.")
    if tensor.dtype is not dtype:
        problem = tr("it has the type {found} instead of {wanted}").format(found=found, wanted=wanted)
    elif tensor.device.type != "cpu":
        problem = tr("it is on the device {device}").format(device=tensor.device)
    elif layout != "strided":
        problem = tr("its layout is {layout}").format(layout=layout)
    elif count is not None and tensor.numel() != count:
        problem = tr("it has {found:,} numbers instead of {wanted:,}").format(found=tensor.numel(), wanted=count)
    else:
        problem = tr("its memory has been freed, or its numbers are not adjacent")
    return NativeCodeError(
        tr("Native code cannot read a tensor of shape {shape}: {problem}.").format(
            shape=list(tensor.shape), problem=problem
        ),
        tr("Repeat the run without plug-ins, or turn native code off (DECODESCOPE_NATIVE_STEP=0)."),
    )
