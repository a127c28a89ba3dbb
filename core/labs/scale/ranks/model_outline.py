"""Facts about a model that are needed before any process starts: its folder, the sizes of its tensors, and its
shape.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from pathlib import Path

from decodescope.core.errors import ParameterError
from decodescope.core.labs.scale.model_shape import Shape, shape_of
from decodescope.resources.language import tr, trn

TensorSize = tuple[int, ...]
_LAYER = re.compile(r"\blayers\.(\d+)\.")
_LLAMA_PARTS = {"embed_tokens", "layers", "norm"}
"""Submodules of a decoder with Llama's layout."""


@dataclass(frozen=True)
class ModelOutline:
    """An outline of a model. `tensor_sizes`: size of each tensor, by name. `parts`: the submodules of its decoder."""

    folder: Path
    tensor_sizes: Mapping[str, TensorSize]
    config: Mapping[str, object]
    parts: frozenset[str]
    plan: Mapping[str, str] = field(default_factory=dict)
    """transformers' tensor parallelism plan: styles by module name, with `*` for a layer's number."""

    @property
    def sizes(self) -> list[TensorSize]:
        """Sizes of all tensors."""
        return list(self.tensor_sizes.values())

    @property
    def shape(self) -> Shape:
        """The shape from the config. Raises ParameterError if it is not a decoder's."""
        return shape_of(self.config, self.folder.name)

    @property
    def is_tied(self) -> bool:
        """Whether the input embedding and the output matrix are tied."""
        return bool(self.config.get("tie_word_embeddings"))

    def style(self, name: str) -> str:
        """Return how the plan splits that tensor, or "" if it does not. A tied embedding is split like the output
        matrix.
        """
        if self.is_tied and "embed_tokens" in name:
            name = "lm_head.weight"
        return self.plan.get(re.sub(r"\.\d+\.", ".*.", name.rpartition(".")[0]), "")

    def stages(self, count: int) -> list[list[TensorSize]]:
        """Return the tensors of each of `count` stages; a tied embedding is copied into the last. Raises
        ParameterError.
        """
        layers = self._checked_layers(count)
        ranges = [stage_layer_range(layers, stage, count) for stage in range(count)]
        held: list[list[TensorSize]] = [[] for _ in range(count)]
        for name, size in self.tensor_sizes.items():
            found = _LAYER.search(name)
            if found is not None:
                held[next(stage for stage, those in enumerate(ranges) if int(found[1]) in those)].append(size)
            elif "embed_tokens" in name:
                held[0].append(size)
                if count > 1 and self.is_tied:
                    held[-1].append(size)
            else:
                held[-1].append(size)
        return held

    def _checked_layers(self, count: int) -> int:
        if not self.parts >= _LLAMA_PARTS:
            raise ParameterError(
                tr("{name} cannot be split into stages because its layout is not Llama's.").format(
                    name=self.folder.name
                ),
                tr("Choose storyteller."),
                "model",
            )
        layers = self.shape.layers
        if count > layers:
            raise ParameterError(
                trn(
                    "{name} has {layers} layer, too few for {count} stages.",
                    "{name} has {layers} layers, too few for {count} stages.",
                    layers,
                ).format(name=self.folder.name, layers=layers, count=count),
                tr("Use fewer processes, or another model."),
                "processes",
            )
        return layers


def stage_layer_range(layers: int, stage: int, stages: int) -> range:
    """Return the layers of one stage, divided evenly; the first stages get the remainder."""
    share, rest = divmod(layers, stages)
    first = stage * share + min(stage, rest)
    return range(first, first + share + (stage < rest))


def count_numbers(sizes: Sequence[TensorSize]) -> int:
    """Return the total number of elements in tensors of these sizes."""
    return sum(map(prod, sizes))


def read_outline(model_name: str) -> ModelOutline:
    """Read a model's outline without its weights. Raises ModelError, ParameterError."""
    from decodescope.core.models.loaded_model import blueprint

    found = blueprint(model_name, device="cpu", dtype="float32")
    assert found.path is not None
    named = {name: tuple(parameter.shape) for name, parameter in found.model.named_parameters()}
    parts = frozenset(name for name, _ in found.model.base_model.named_children())
    plan = dict(getattr(found.model, "tp_plan", None) or {})
    return ModelOutline(found.path, named, found.model.config.to_dict(), parts, plan)
