"""Settings of torch and Python that a program may have made before it calls the library."""

from __future__ import annotations

import contextlib
import inspect
import random
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial
from types import ModuleType
from typing import Any

import numpy as np
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode


class ChangingMode(TorchFunctionMode):
    """Changes the result of every softmax and linear map."""

    def __torch_function__(self, function: Any, kinds: Any, args: Any = (), kwargs: Any = None) -> Any:
        found = function(*args, **(kwargs or {}))
        if getattr(function, "__name__", "") in ("softmax", "log_softmax", "linear", "argmax", "topk"):
            return found.flip(-1) if isinstance(found, torch.Tensor) else found
        return found


class ChangingDispatchMode(TorchDispatchMode):
    """Doubles the result of every matrix product."""

    def __torch_dispatch__(self, function: Any, kinds: Any, args: Any = (), kwargs: Any = None) -> Any:
        found = function(*args, **(kwargs or {}))
        return -2 * found if "mm" in function.__name__ else found


@contextmanager
def _restored(set_value: Callable[[Any], object], value: Any, before: Any) -> Iterator[None]:
    set_value(value)
    try:
        yield
    finally:
        set_value(before)


def _default_dtype(dtype: torch.dtype) -> AbstractContextManager[None]:
    return _restored(torch.set_default_dtype, dtype, torch.float32)


def _default_device(device: str) -> AbstractContextManager[None]:
    return _restored(torch.set_default_device, device, None)


def _set_tensor_type(kind: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it is deprecated
        torch.set_default_tensor_type(kind)


def _tensor_type(kind: Any) -> AbstractContextManager[None]:
    return _restored(_set_tensor_type, kind, torch.FloatTensor)


def _set_one_dnn(enabled: bool, deterministic: bool) -> None:
    torch.backends.mkldnn.enabled, torch.backends.mkldnn.deterministic = enabled, deterministic  # type: ignore[attr-defined]


@contextmanager
def _one_dnn(*, enabled: bool, deterministic: bool) -> Iterator[None]:
    _set_one_dnn(enabled, deterministic)
    try:
        yield
    finally:
        _set_one_dnn(True, False)


def _threads(count: int) -> AbstractContextManager[None]:
    return _restored(torch.set_num_threads, count, torch.get_num_threads())


def _matmul_precision(value: str) -> AbstractContextManager[None]:
    return _restored(torch.set_float32_matmul_precision, value, "highest")


def _set_precision(owner: Any, value: str) -> None:
    owner.fp32_precision = value


def _precision(owner: Any, value: str) -> AbstractContextManager[None]:
    return _restored(partial(_set_precision, owner), value, "none")


@contextmanager
def _deterministic() -> Iterator[None]:
    torch.use_deterministic_algorithms(True)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(False)


@contextmanager
def _autocast_in_bfloat16_and_float16() -> Iterator[None]:
    with torch.autocast("cpu", torch.float16), torch.autocast("cpu", torch.bfloat16, cache_enabled=False):
        yield


@contextmanager
def _warnings_as_errors() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


@contextmanager
def _several() -> Iterator[None]:
    with ExitStack() as stack:
        for name in ("float64 by default", "meta device by default", "autocast in float16", "low precision of products",
                     "a mode that changes results", "inference mode"):  # fmt: skip
            stack.enter_context(CALLER_SETTINGS[name]())
        yield


CALLER_SETTINGS: dict[str, Callable[[], AbstractContextManager[Any]]] = {
    "bfloat16 by default": partial(_default_dtype, torch.bfloat16),
    "float16 by default": partial(_default_dtype, torch.float16),
    "float64 by default": partial(_default_dtype, torch.float64),
    "double tensors by default": partial(_tensor_type, torch.DoubleTensor),
    "bfloat16 tensors by default": partial(_tensor_type, torch.BFloat16Tensor),
    "meta device by default": partial(_default_device, "meta"),
    "meta device in a block": lambda: torch.device("meta"),
    "autocast in bfloat16": lambda: torch.autocast("cpu", torch.bfloat16),
    "autocast in float16": lambda: torch.autocast("cpu", torch.float16),
    "nested autocast": _autocast_in_bfloat16_and_float16,
    "inference mode": torch.inference_mode,
    "no gradients": torch.no_grad,
    "gradients": torch.enable_grad,
    "anomaly detection": lambda: torch.autograd.set_detect_anomaly(True),
    "hooks on saved tensors": lambda: torch.autograd.graph.saved_tensors_hooks(lambda x: x, lambda x: x),
    "deterministic algorithms": _deterministic,
    "deterministic kernels of oneDNN": partial(_one_dnn, enabled=True, deterministic=True),
    "one thread": partial(_threads, 1),
    "three threads": partial(_threads, 3),
    "low precision of products": partial(_matmul_precision, "medium"),
    "TF32 for products": partial(_matmul_precision, "high"),
    "bfloat16 in products of oneDNN": lambda: _precision(torch.backends.mkldnn.matmul, "bf16"),
    "TF32 everywhere": lambda: _precision(torch.backends, "tf32"),
    "no denormal numbers": lambda: _restored(torch.set_flush_denormal, True, False),
    "without oneDNN": partial(_one_dnn, enabled=False, deterministic=False),
    "attention by flash kernels only": lambda: sdpa_kernel(SDPBackend.FLASH_ATTENTION),
    "attention by math kernels only": lambda: sdpa_kernel(SDPBackend.MATH),
    "attention by kernels of CUDA only": lambda: sdpa_kernel(SDPBackend.CUDNN_ATTENTION),
    "a mode that changes results": ChangingMode,
    "a dispatch mode that changes results": ChangingDispatchMode,
    "fake tensors": lambda: FakeTensorMode(allow_non_fake_inputs=True),
    "a counter of operations": lambda: FlopCounterMode(display=False),
    "errors instead of warnings": _warnings_as_errors,
    "errors of NumPy": lambda: np.errstate(all="raise"),
    "all warnings": lambda: _restored(torch.set_warn_always, True, False),
    "a short recursion limit": lambda: _restored(sys.setrecursionlimit, 500, sys.getrecursionlimit()),
    "several at once": _several,
}  # fmt: skip

COVERED_FUNCTIONS = {
    "set_autocast_cpu_dtype", "set_autocast_cpu_enabled", "set_autocast_dtype", "set_autocast_enabled",
    "set_autocast_gpu_dtype", "set_autocast_ipu_dtype", "set_autocast_ipu_enabled", "set_autocast_xla_dtype",
    "set_autocast_xla_enabled", "set_autocast_cache_enabled", "set_anomaly_enabled", "set_default_device",
    "set_default_dtype", "set_default_tensor_type", "set_deterministic_debug_mode", "set_float32_matmul_precision",
    "set_flush_denormal", "set_grad_enabled", "set_num_threads", "set_warn_always", "use_deterministic_algorithms",
}  # fmt: skip
"""Functions of torch that change a setting which a case above makes."""
HARMLESS_FUNCTIONS = {
    "set_num_interop_threads": "can be set only before any work",
    "set_printoptions": "is about printing only",
    "set_rng_state": "sets the random numbers of the caller, which the library does not use",
}
COVERED_SWITCHES = {"backends.fp32_precision", "mkldnn.enabled", "mkldnn.deterministic", "mkldnn.fp32_precision"}
"""Switches in `torch.backends` that a case above makes."""
HARMLESS_SWITCHES = {
    "cudnn.enabled": "selects among kernels of a graphics card",
    "cudnn.deterministic": "selects among kernels of a graphics card",
    "cudnn.benchmark": "selects among kernels of a graphics card",
    "cudnn.depthwise_kernel": "selects among kernels of a graphics card",
    "cudnn.allow_tf32": "is about convolutions on a graphics card, for which torch allows it by default",
    "cudnn.fp32_precision": "is about convolutions on a graphics card, for which torch allows TF32 by default",
    "cudnn.rnn.fp32_precision": "is about recurrent layers of cuDNN, which no model here has",
    "mkldnn.allow_tf32": "is the same as its fp32_precision",
    "miopen.immediate": "selects among kernels of a graphics card",
    "python_native.available_dsls": "cannot be set",
    "python_native.all_dsls": "cannot be set",
}


def torch_functions() -> set[str]:
    """Return the names of the functions of torch that change a setting of the process or of a thread."""
    return {name for name in dir(torch) if name.startswith(("set_", "use_"))}


def torch_switches() -> set[str]:
    """Return the names of the switches of `torch.backends`."""
    found = set()
    for name, module in list(sys.modules.items()):
        if name == "torch.backends" or name.startswith("torch.backends."):
            kind = type(module)
            if kind is not ModuleType:
                names = [key for key, value in vars(kind).items() if isinstance(value, property) or _is_switch(value)]
                found |= {f"{name.removeprefix('torch.backends').lstrip('.') or 'backends'}.{key}" for key in names}
    return found


def _is_switch(value: object) -> bool:
    return type(value).__name__ == "ContextProp"


def readable_state() -> dict[str, Any]:
    """Return what torch and Python say of their settings: every function without arguments that reads one."""
    found: dict[str, Any] = {"recursion": sys.getrecursionlimit(), "random": random.getstate(), "numpy": np.geterr()}
    found["random of NumPy"] = [part if np.isscalar(part) else list(part) for part in np.random.get_state()]
    found["function modes"] = [id(mode) for mode in torch.overrides._get_current_function_mode_stack()]
    found["dispatch modes"] = torch._C._len_torch_dispatch_stack()
    for name in dir(torch):
        if name.startswith(("get_", "is_")) and (name.endswith("_enabled") or name.startswith("get_")):
            function = getattr(torch, name)
            with contextlib.suppress(TypeError, ValueError, RuntimeError), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                if not _takes_arguments(function):
                    value = function()
                    found[name] = value.tolist() if isinstance(value, torch.Tensor) else value
    for backend in ("mkldnn", "cuda"):
        for operation in ("all", "matmul", "conv", "rnn"):
            found[f"{backend} {operation}"] = torch._C._get_fp32_precision_getter(backend, operation)
    for kernel in ("flash", "math", "mem_efficient", "cudnn"):
        found[f"attention by {kernel}"] = getattr(torch.backends.cuda, f"{kernel}_sdp_enabled")()
    return found


def _takes_arguments(function: Any) -> bool:
    try:
        return any(one.default is one.empty for one in inspect.signature(function).parameters.values())
    except ValueError:  # built in
        return False
