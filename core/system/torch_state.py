"""Keep the library's computations apart from torch's settings, which belong to the program that calls the library.

A caller may have set another default dtype or device, autocast, inference mode, lower precision of products, or modes
that intercept operations. The library's results must not depend on them, and the caller must find them unchanged, also
between two events of a run. Public functions of the library are therefore decorated; an iterator replaces the settings
in each of its steps and restores them before it yields.

Not replaced: the number of threads, deterministic algorithms and the choice of kernels of one precision, because the
results do not depend on them beyond rounding.
"""

from __future__ import annotations

import functools
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, ParamSpec, TypeVar

import torch
from torch import overrides
from torch.utils import _device, _python_dispatch

T = TypeVar("T")
P = ParamSpec("P")

DEVICE_MODES: set[type] = set()
"""Classes of modes that stand for a device, and therefore stay active."""
_FULL_PRECISION = ("none", "ieee")
_PRODUCTS = (("cuda", "matmul"), ("mkldnn", "matmul"), ("mkldnn", "conv"), ("mkldnn", "rnn"))
"""Backends and operations whose precision changes results; torch's default for convolutions on CUDA is TF32."""
_AUTOCAST_DEVICES = ("cpu", "cuda", "mps", "xpu", "hpu", "xla", "mtia", "maia", "ipu")
_ATTENTION_SWITCHES = [
    (getattr(torch._C, f"_get_{kernel}_sdp_enabled"), getattr(torch._C, f"_set_sdp_use_{kernel}"))
    for kernel in ("flash", "mem_efficient", "math", "cudnn", "overrideable")
    if hasattr(torch._C, f"_get_{kernel}_sdp_enabled")
]
"""For each kernel of scaled dot-product attention, the functions that read and set whether it may be used."""


def _has_no_precision(backend: str, operation: str) -> str:
    """Stand for the function of torch 2.9 in earlier versions, which have one precision for all backends."""
    return _FULL_PRECISION[0]


_get_precision: Callable[[str, str], str] = getattr(torch._C, "_get_fp32_precision_getter", _has_no_precision)


class _ProcessSettings:
    """Settings of the whole process, replaced while at least one thread computes for the library.

    The first one saves them, the last one restores them: two runs in two threads would otherwise take each other's
    settings for those of the caller.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 0
        self._restore: list[Callable[[], object]] = []

    def enter(self) -> None:
        """Replace the settings unless another thread has."""
        with self._lock:
            if not self._users and not _has_expected_settings():
                self._replace()
            self._users += 1

    def leave(self) -> None:
        """Restore the settings unless another thread needs them."""
        with self._lock:
            self._users -= 1
            if self._restore and not self._users:
                while self._restore:
                    self._restore.pop()()

    def _replace(self) -> None:
        dtype, device = torch.get_default_dtype(), torch._C._get_default_device()
        if device != "cpu":  # of torch.set_default_tensor_type
            kind = torch.empty(0, dtype=dtype, device="cpu").type().rpartition(".")[2]
            torch.set_default_tensor_type(torch.FloatTensor)
            self._restore.append(partial(torch.set_default_tensor_type, f"torch.{device}.{kind}"))
        elif dtype is not torch.float32:
            torch.set_default_dtype(torch.float32)
            self._restore.append(partial(torch.set_default_dtype, dtype))
        if (precision := _matmul_precision()) not in ("highest", None):
            torch.set_float32_matmul_precision("highest")
            self._restore.append(partial(torch.set_float32_matmul_precision, precision))
        for backend, operation in _PRODUCTS:
            if (found := _get_precision(backend, operation)) not in _FULL_PRECISION:
                torch._C._set_fp32_precision_setter(backend, operation, "ieee")
                self._restore.append(partial(_restore_precision, backend, operation, found))
        for get, set_on in _ATTENTION_SWITCHES:
            if not get():
                set_on(True)
                self._restore.append(partial(set_on, False))


def _has_expected_settings() -> bool:
    """Return whether the caller's settings are those of the library; this is read for every event of a run."""
    return (
        torch.get_default_dtype() is torch.float32
        and torch._C._get_default_device() == "cpu"
        and _matmul_precision() == "highest"
        and _get_precision("mkldnn", "matmul") in _FULL_PRECISION
        and all([get() for get, _ in _ATTENTION_SWITCHES])  # a generator takes twice as long
    )


def _matmul_precision() -> str | None:
    """Return torch's setting for products of float32; None where its parts were set to something else."""
    try:
        return torch.get_float32_matmul_precision()
    except RuntimeError:  # the caller mixes torch's two ways of setting it
        return None


def _restore_precision(backend: str, operation: str, value: str) -> None:
    """Set a precision that may have been inherited from the backend's or the general one."""
    torch._C._set_fp32_precision_setter(backend, operation, "none")
    if _get_precision(backend, operation) != value:
        torch._C._set_fp32_precision_setter(backend, operation, value)


_SETTINGS = _ProcessSettings()


class _ReplacedSettings:
    """The caller's settings while the library computes in this thread: modes, autocast and grad mode. The settings of
    the process are replaced as long.
    """

    __slots__ = ("_autocast", "_dispatch_modes", "_function_modes", "_grad_mode")

    def __init__(self, inference: bool | None) -> None:
        """Replace them. `inference`: whether to compute in inference mode; None keeps the caller's grad mode."""
        _SETTINGS.enter()
        self._function_modes = _FUNCTION_MODES.take() if _count_function_modes() else ()
        self._dispatch_modes = _DISPATCH_MODES.take() if _count_dispatch_modes() else ()
        self._autocast = _disable_autocast() if _is_any_autocast_enabled() else ()
        self._grad_mode = None if inference is None else torch._C._InferenceMode(inference)
        if self._grad_mode is not None:
            self._grad_mode.__enter__()

    def restore(self) -> None:
        """Restore them."""
        if self._grad_mode is not None:
            self._grad_mode.__exit__(None, None, None)
        for device in self._autocast:
            torch.set_autocast_enabled(device, True)
        if self._dispatch_modes or _count_dispatch_modes():
            _DISPATCH_MODES.put(self._dispatch_modes)
        if self._function_modes or _count_function_modes():
            _FUNCTION_MODES.put(self._function_modes)
        _SETTINGS.leave()


_count_function_modes, _count_dispatch_modes = torch._C._len_torch_function_stack, torch._C._len_torch_dispatch_stack
_is_any_autocast_enabled = torch._C._is_any_autocast_enabled


@dataclass(frozen=True, slots=True)
class _ModeStack:
    """A thread's stack of modes of one kind."""

    count: Callable[[], int]
    pop: Callable[[], Any]
    push: Callable[[Any], object]

    def take(self) -> Sequence[Any]:
        """Remove the modes, except those of devices, and return all of them, the innermost first."""
        modes = [self.pop() for _ in range(self.count())]
        for mode in reversed(modes):
            if type(mode) in DEVICE_MODES:
                self.push(mode)
        return modes

    def put(self, modes: Sequence[Any]) -> None:
        """Replace the modes by the given ones, the innermost first."""
        for _ in range(self.count()):
            self.pop()
        for mode in reversed(modes):
            self.push(mode)


_FUNCTION_MODES = _ModeStack(_count_function_modes, overrides._pop_mode, overrides._push_mode)
_DISPATCH_MODES = _ModeStack(_count_dispatch_modes, _python_dispatch._pop_mode, _python_dispatch._push_mode)


def _disable_autocast() -> Sequence[str]:
    """Turn autocast off and return the types of devices for which it was on."""
    found = []
    for device in (*_AUTOCAST_DEVICES, torch._C._get_privateuse1_backend_name()):
        with suppress(RuntimeError):  # this version of torch has no such device
            if torch.is_autocast_enabled(device):
                torch.set_autocast_enabled(device, False)
                found.append(device)
    return found


def isolated(function: Callable[P, T]) -> Callable[P, T]:
    """Let a function that computes with a model run with the settings that the library expects."""
    return _decorate(function, inference=True)


def isolated_construction(function: Callable[P, T]) -> Callable[P, T]:
    """Let a function that creates weights run with the settings that the library expects, outside inference mode."""
    return _decorate(function, inference=False)


def _decorate(function: Callable[P, T], *, inference: bool) -> Callable[P, T]:
    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        state = _ReplacedSettings(inference)
        try:
            return function(*args, **kwargs)
        finally:
            state.restore()

    return call


def isolated_iterator(function: Callable[P, Iterator[T]]) -> Callable[P, Iterator[T]]:
    """Let each step of a generator function run with the settings that the library expects; its consumer has its own
    settings between the steps.
    """

    @functools.wraps(function)
    def iterate(*args: P.args, **kwargs: P.kwargs) -> Iterator[T]:
        iterator = function(*args, **kwargs)
        try:
            while True:
                state = _ReplacedSettings(True)
                try:
                    item = next(iterator)
                except StopIteration:
                    return
                finally:
                    state.restore()
                yield item
        finally:
            if (close := getattr(iterator, "close", None)) is not None:
                state = _ReplacedSettings(True)
                try:
                    close()
                finally:
                    state.restore()

    return iterate


@contextmanager
def library_settings() -> Iterator[None]:
    """Run the library's part of a hook within the caller's own computation with the settings that it expects."""
    state = _ReplacedSettings(None)
    try:
        yield
    finally:
        state.restore()


@contextmanager
def settings_undone() -> Iterator[None]:
    """Undo what foreign code in the block sets for the whole process or thread: default dtype and device, autocast,
    grad and inference mode, modes, threads, deterministic algorithms, and Python's recursion limit.
    """
    dtype, recursion, threads = torch.get_default_dtype(), sys.getrecursionlimit(), torch.get_num_threads()
    device = getattr(torch._GLOBAL_DEVICE_CONTEXT, "device_context", None)
    modes, dispatch = overrides._get_current_function_mode_stack(), _count_dispatch_modes()
    current = _device.CURRENT_DEVICE
    grad, deterministic = torch.is_grad_enabled(), torch.get_deterministic_debug_mode()
    try:
        yield
    finally:
        if getattr(torch._GLOBAL_DEVICE_CONTEXT, "device_context", None) is not device:
            torch._GLOBAL_DEVICE_CONTEXT.device_context = device
            _device.CURRENT_DEVICE = current
        if _count_function_modes() != len(modes):
            _FUNCTION_MODES.put(modes[::-1])
        for _ in range(_count_dispatch_modes() - dispatch):
            _DISPATCH_MODES.pop()
        if _is_any_autocast_enabled():
            _disable_autocast()
        if torch.is_grad_enabled() != grad:
            torch.set_grad_enabled(grad)
        if torch.get_default_dtype() is not dtype:
            torch.set_default_dtype(dtype)
        if torch.get_num_threads() != threads:
            torch.set_num_threads(threads)
        if torch.get_deterministic_debug_mode() != deterministic:
            torch.set_deterministic_debug_mode(deterministic)
        if sys.getrecursionlimit() != recursion:
            sys.setrecursionlimit(recursion)
