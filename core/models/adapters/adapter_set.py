"""The adapters of one model: loading, strengths, removal. The weights of the model are never changed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import nn
from transformers.pytorch_utils import Conv1D

from decodescope.core.common.text import cut_short
from decodescope.core.errors import AdapterError
from decodescope.core.events import AdapterUsed
from decodescope.core.models.adapters.adapter_choice import (
    CONFIG_FILE,
    WEIGHTS_FILE,
    AdapterChoice,
    AdapterSource,
    adapter_location,
    check_adapters,
    is_adapter_folder,
    not_an_adapter,
)
from decodescope.core.models.adapters.adapter_files import MAX_SHOWN_NAME, AdapterWeights, read_adapter, read_file_stamp
from decodescope.core.models.adapters.low_rank_path import LowRankFactors, LowRankPath
from decodescope.core.models.catalog import cached_model
from decodescope.core.models.gguf.block_layers import GgufEmbedding, GgufLinear
from decodescope.core.models.gguf.file_names import is_gguf
from decodescope.core.models.model_files import exists
from decodescope.core.models.quantized.packed_layers import PackedEmbedding, PackedLinear, PackedModule
from decodescope.core.models.quantized.packed_loading import embedding_factor
from decodescope.core.system.torch_state import isolated_construction
from decodescope.resources.language import join_names, tr

if TYPE_CHECKING:
    from decodescope.core.models.text import Network

_LINEAR = (nn.Linear, Conv1D, PackedLinear, GgufLinear)
_EMBEDDING = (nn.Embedding, PackedEmbedding, GgufEmbedding)
AdapterState = tuple[tuple[str, float], ...]
"""Hash and strength of each active adapter."""


class AdapterSet:
    """Adapters of a module. Changing a strength takes milliseconds: it loads nothing, and copies no weights but those
    that an adapter replaces as a whole.
    """

    def __init__(self, network: Network, model_name: str, is_offloaded: bool) -> None:
        """`is_offloaded`: some layers are read from disk for each pass."""
        self._network, self._model_name, self._is_offloaded = network, model_name, is_offloaded
        self._loaded: dict[str, AdapterWeights] = {}
        self._paths: dict[str, LowRankPath] = {}
        self._replacements: dict[str, _Replacement] = {}
        self._active: tuple[AdapterChoice, ...] = ()
        self._changes = 0

    @property
    def version(self) -> int:
        """Identifies the tensors of the active adapters, for data that depends on their addresses; 0 without any."""
        return self._changes if self._active else 0

    @property
    def active(self) -> tuple[AdapterChoice, ...]:
        """The adapters in effect, with their strengths; those with a strength of 0 are left out."""
        return self._active

    @property
    def loaded(self) -> Mapping[str, AdapterWeights]:
        """All loaded adapters by their paths, in effect or not."""
        return self._loaded

    @property
    def state(self) -> AdapterState:
        """Identifies what the adapters change, for data that depends on it."""
        return tuple((self._loaded[one.path].stamp, one.strength) for one in self._active)

    def used(self) -> tuple[AdapterUsed, ...]:
        """Describe the adapters in effect, for events."""
        return tuple(AdapterUsed(one.name, one.strength, self._loaded[one.path].stamp) for one in self._active)

    @isolated_construction
    def load(self, path: str | Path, allow_pickle: bool = False) -> AdapterWeights:
        """Read an adapter without using it yet, and return it. Raises AdapterError, PickledWeightsError,
        ModelFileError, CorruptWeightsError.
        """
        key = str(path)
        if key not in self._loaded:
            weights = self._fitted(read_adapter(_locate(key), *self._model_facts(), allow_pickle))
            self._attach(weights)
            self._loaded[key] = weights
        return self._loaded[key]

    @isolated_construction
    def set(self, adapters: Sequence[AdapterSource], allow_pickle: bool = False) -> None:
        """Use exactly these adapters; those not loaded are loaded. Raises the errors of `load`, and ParameterError.

        Without any adapter, or with strengths of 0, the model computes what it did before, to the last bit.
        """
        choices = tuple(one for one in check_adapters(adapters) if one.strength)
        for one in choices:
            self.load(one.path, allow_pickle)
        if choices != self._active:
            self._active = choices
            self._apply()

    def is_outdated(self, path: str | Path) -> bool:
        """Return whether the files of a loaded adapter have changed since it was read, as after another training; False
        if they are gone.
        """
        found = self._loaded.get(str(path))
        stamp = read_file_stamp(found.path) if found is not None else ()
        return found is not None and any(stamp) and stamp != found.file_stamp

    @isolated_construction
    def remove(self, path: str | Path) -> None:
        """Forget an adapter and free its memory; an unknown one is ignored."""
        if self._loaded.pop(str(path), None) is None:
            return
        self._active = tuple(one for one in self._active if one.path != str(path))
        self._apply()
        wanted = {name for weights in self._loaded.values() for name in weights.layers}
        for name in [name for name in self._paths if name not in wanted]:
            self._paths.pop(name).remove()
        kept = {name for weights in self._loaded.values() for name in weights.replacements}
        for name in [name for name in self._replacements if name not in kept]:
            self._replacements.pop(name).remove()

    @contextmanager
    def using(self, adapters: Sequence[AdapterSource] | None) -> Iterator[None]:
        """Use these adapters inside the context; None for those already in use. Raises the errors of `set`."""
        before = self._active
        if adapters is not None:
            self.set(adapters)
        try:
            yield
        finally:
            if adapters is not None:
                self.set([one for one in before if one.path in self._loaded])

    def merged(self, name: str, module: nn.Module, own: str) -> torch.Tensor:
        """Return a parameter as float32, in the shape of the file, with everything that the active adapters change.

        `own` is its name in `module`, `name` its full name.
        """
        path, parameter = self._paths.get(name.rpartition(".")[0]), module._parameters[own]
        assert parameter is not None
        if own == "bias" and path is not None and path.bias is not None:
            return parameter.detach().float().cpu() + path.bias.cpu()
        if own != "weight":
            return parameter.detach().float().cpu()
        replaced = self._replacements.get(name)
        if isinstance(replaced, _ReplacedProduct):
            return replaced.merged()
        if path is None or not path.is_active:
            return module.floats() if isinstance(module, PackedModule) else parameter.detach().float().cpu()
        if path.bias is not None and getattr(module, "bias", None) is None:
            raise AdapterError(
                tr("An adapter adds a bias to {name}, which has none in the model.").format(name=name),
                tr("Set the strength of the adapter to 0."),
            )
        if path.is_embedding:
            rows = module.floats() if isinstance(module, PackedModule) else parameter.detach().float().cpu()
            return path.merged(rows)
        found = path.merged(layer_weights(module))
        return found.t() if _is_transposed(module) else found

    def _model_facts(self) -> tuple[str, tuple[int, int]]:
        config = self._network.config.get_text_config(decoder=True)
        heads = int(getattr(config, "num_attention_heads", 1) or 1)
        return str(config.model_type), (heads, int(getattr(config, "num_key_value_heads", None) or heads))

    def _apply(self) -> None:
        self._changes += 1
        choices = [(self._loaded[one.path], one.strength) for one in self._active]
        for name, path in self._paths.items():
            path.set_factors([(found.layers[name], strength) for found, strength in choices if name in found.layers])
        for name, one in self._replacements.items():
            one.set_values(
                [(found.replacements[name], strength) for found, strength in choices if name in found.replacements]
            )

    # fitting

    def _fitted(self, weights: AdapterWeights) -> AdapterWeights:
        """Check that everything fits, and return the adapter with the names of the module. Raises AdapterError."""
        modules = dict(self._network.named_modules(remove_duplicate=False))
        parameters = dict(self._network.named_parameters(remove_duplicate=False))
        rename = _renaming(weights, modules)
        layers = {rename(name): factors for name, factors in weights.layers.items()}
        missing = [name for name in layers if name not in modules]
        if missing:
            raise self._unfit(
                weights,
                tr("it changes {names}, which the model does not have").format(names=_some(missing)),
            )
        fitted = {name: self._fitted_factors(weights, name, modules[name], one) for name, one in layers.items()}
        changed = {
            name: tensor
            for name, tensor in ((rename(name), tensor) for name, tensor in weights.replacements.items())
            if not self._is_same(weights, name, parameters, tensor)
        }
        if self._is_offloaded and (changed or any(one.magnitude is not None for one in fitted.values())):
            raise AdapterError(
                tr("The adapter {adapter} needs whole weights of {model}, of which some stay on the disk.").format(
                    adapter=weights.name, model=self._model_name
                ),
                tr("Load all weights of the model into memory."),
            )
        return replace(weights, layers=fitted, replacements=changed)

    def _fitted_factors(
        self, weights: AdapterWeights, name: str, module: nn.Module, factors: LowRankFactors
    ) -> LowRankFactors:
        """Return the factors with what depends on the layer."""
        if not isinstance(module, (*_LINEAR, *_EMBEDDING)):
            raise self._unfit(
                weights,
                tr("it changes {name}, a layer of the kind {kind}").format(name=name, kind=type(module).__name__),
            )
        outputs, inputs = layer_shape(module)
        there = factors.up.shape[0], factors.down.shape[1]
        if there != (outputs, inputs):
            raise self._unfit(
                weights,
                tr("its matrix for {name} is {there}, and the model's is {wanted}").format(
                    name=name, there=_times(there), wanted=_times((outputs, inputs))
                ),
            )
        if factors.magnitude is None:
            return factors
        if isinstance(module, _EMBEDDING):
            raise self._unfit(weights, tr("it is a DoRA of the embedding {name}").format(name=name))
        whole = layer_weights(module) + factors.delta()
        return replace(factors, gain=factors.magnitude / torch.linalg.norm(whole, dim=1))

    def _is_same(
        self, weights: AdapterWeights, name: str, parameters: Mapping[str, nn.Parameter], tensor: torch.Tensor
    ) -> bool:
        """Return whether a replaced parameter has the value of the model. Raises AdapterError if it does not fit."""
        own = parameters.get(name)
        if own is None:
            raise self._unfit(
                weights, tr("it changes {names}, which the model does not have").format(names=_some([name]))
            )
        if own.shape != tensor.shape:
            if own.dim() == 2 and own.shape[1:] == tensor.shape[1:]:
                reason = tr("it was trained with a vocabulary of {there:,} tokens, and the model has {own:,}").format(
                    there=len(tensor), own=len(own)
                )
            else:
                reason = tr("its matrix for {name} is {there}, and the model's is {wanted}").format(
                    name=name, there=_times(tensor.shape), wanted=_times(own.shape)
                )
            raise self._unfit(weights, reason)
        owner = self._network.get_submodule(name.rpartition(".")[0])
        if isinstance(owner, PackedModule) and name.endswith(".weight"):
            return False
        return bool(torch.equal(own.detach().cpu().to(tensor.dtype), tensor))

    def _unfit(self, weights: AdapterWeights, reason: str) -> AdapterError:
        remedy = tr("Choose the model that the adapter was trained for, or another adapter.")
        if weights.base:
            remedy = tr("It was trained for {base}. Choose that model, or another adapter.").format(base=weights.base)
        return AdapterError(
            tr("The adapter {adapter} does not fit {model}: {reason}.").format(
                adapter=weights.name, model=self._model_name, reason=reason
            ),
            remedy,
        )

    def _attach(self, weights: AdapterWeights) -> None:
        for name in weights.layers:
            if name not in self._paths:
                module = self._network.get_submodule(name)
                factor = _embedding_factor(module) if isinstance(module, _EMBEDDING) else None
                self._paths[name] = LowRankPath(module, layer_shape(module)[0], factor)
        for name in weights.replacements:
            if name not in self._replacements:
                owner, own = self._network.get_submodule(name.rpartition(".")[0]), name.rpartition(".")[2]
                is_packed = isinstance(owner, PackedModule) and own == "weight"
                self._replacements[name] = (_ReplacedProduct if is_packed else _ReplacedParameter)(owner, own)


class _Replacement:
    """A parameter that adapters replace."""

    def set_values(self, active: Sequence[tuple[torch.Tensor, float]]) -> None:
        """Use the model's own value, moved towards these by their strengths."""
        raise NotImplementedError

    def remove(self) -> None:
        """Use the model's own value from now on."""
        self.set_values([])


class _ReplacedParameter(_Replacement):
    """A parameter of a module; the original is kept and put back."""

    def __init__(self, module: nn.Module, name: str) -> None:
        self._module, self._name = module, name
        own = module._parameters[name]
        assert own is not None
        self._original = own

    @torch.inference_mode(False)
    @torch.no_grad()
    def set_values(self, active: Sequence[tuple[torch.Tensor, float]]) -> None:
        own = self._original
        if not active:
            self._module._parameters[self._name] = own
            return
        value = _moved(own.detach().float(), [(new.to(own.device).float(), strength) for new, strength in active])
        self._module._parameters[self._name] = nn.Parameter(value.to(own.dtype), requires_grad=False)


class _ReplacedProduct(_Replacement):
    """The weights of a packed layer: its output is replaced by the product with the adapter's float weights."""

    def __init__(self, module: nn.Module, name: str) -> None:
        assert name == "weight"
        self._module = module
        self._values: Sequence[tuple[torch.Tensor, float]] = ()
        self._handle: torch.utils.hooks.RemovableHandle | None = None

    def set_values(self, active: Sequence[tuple[torch.Tensor, float]]) -> None:
        self._values = [(new.float(), strength) for new, strength in active]
        if self._handle is not None:
            self._handle.remove()
            self._handle = None
        if active:
            self._handle = self._module.register_forward_hook(self)

    def __call__(self, module: nn.Module, inputs: tuple[torch.Tensor, ...], output: torch.Tensor) -> torch.Tensor:
        """Return the replaced output."""
        return _moved(
            output.float(), [(self._product(module, new, inputs[0]), strength) for new, strength in self._values]
        ).to(output.dtype)

    def merged(self) -> torch.Tensor:
        """Return the float32 weights."""
        assert isinstance(self._module, PackedModule)
        return _moved(self._module.floats(), self._values)

    def _product(self, module: nn.Module, weight: torch.Tensor, inputs: torch.Tensor) -> torch.Tensor:
        if isinstance(module, _EMBEDDING):
            return nn.functional.embedding(inputs, weight) * _embedding_factor(module)
        bias = getattr(module, "bias", None)
        whole = weight.t() if _is_transposed(module) else weight
        return nn.functional.linear(inputs.float(), whole, bias)


def _moved(own: torch.Tensor, active: Sequence[tuple[torch.Tensor, float]]) -> torch.Tensor:
    """Return a value moved towards others; exactly the other for one with the strength 1."""
    if len(active) == 1 and active[0][1] == 1:
        return active[0][0]
    moved = own
    for new, strength in active:
        moved = moved + strength * (new - own)
    return moved


def _is_transposed(module: nn.Module) -> bool:
    """Return whether weights are stored as [inputs, outputs]."""
    return isinstance(module, Conv1D) or bool(getattr(module, "transposed", False))


def layer_shape(module: nn.Module) -> tuple[int, int]:
    """Return outputs and inputs of a linear layer; of an embedding, width and tokens."""
    if isinstance(module, _EMBEDDING):
        return int(vars(module)["embedding_dim"]), int(vars(module)["num_embeddings"])
    if isinstance(module, Conv1D):
        inputs, outputs = module.weight.shape
        return int(outputs), int(inputs)
    return int(vars(module)["out_features"]), int(vars(module)["in_features"])


def layer_weights(module: nn.Module) -> torch.Tensor:
    """Return float32 weights [outputs, inputs] of a linear layer, packed or not, on the CPU."""
    own = module._parameters["weight"]
    assert own is not None
    weight = module.floats() if isinstance(module, PackedModule) else own.detach().float().cpu()
    return weight.t() if _is_transposed(module) else weight


def _embedding_factor(module: nn.Module) -> float:
    if isinstance(module, nn.Embedding):
        return embedding_factor(module) or 1.0
    return float(vars(module)["factor"])


def _renaming(weights: AdapterWeights, modules: Mapping[str, nn.Module]) -> Callable[[str], str]:
    """Return a function that turns the adapter's names into the module's: they may differ by one leading part."""
    names = list(weights.layers) or [name.rpartition(".")[0] for name in weights.replacements]
    candidates: tuple[Callable[[str], str], ...] = (
        lambda name: name, lambda name: f"model.{name}", lambda name: name.partition(".")[2],
    )  # fmt: skip
    return max(candidates, key=lambda rename: sum(rename(name) in modules for name in names))


def _locate(name: str) -> Path:
    """Return the folder or file of an adapter. Raises AdapterError."""
    path = adapter_location(name)
    if is_gguf(path) or is_adapter_folder(path):
        return path
    if path.name in (CONFIG_FILE, WEIGHTS_FILE) and is_adapter_folder(path.parent):
        return path.parent
    cached = cached_model(name) if name.count("/") == 1 and not exists(path) else None
    if cached is not None and is_adapter_folder(cached.path):
        return cached.path
    if not exists(path):
        raise AdapterError(
            tr("There is no adapter at {path}.").format(path=name),
            tr("Choose a folder that PEFT has saved, or a GGUF adapter."),
        )
    raise not_an_adapter(name)


def _times(shape: Iterable[int]) -> str:
    return " × ".join(map(str, shape)) or "1"


def _some(names: Sequence[str]) -> str:
    return join_names(cut_short(name, MAX_SHOWN_NAME) for name in names[:3]) + (" …" if len(names) > 3 else "")
