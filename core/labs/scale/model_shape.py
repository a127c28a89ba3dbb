"""The shape of a model from its config.json alone: how many parameters it has, and where."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from decodescope.core.checks.arguments import check_bool, check_integer, check_kind, check_text
from decodescope.core.errors import ParameterError
from decodescope.resources.language import join_names, tr

MAX_LAYERS = 10_000
MAX_SIZE = 100_000_000


@dataclass(frozen=True)
class Shape:
    """A decoder of equal layers.

    `gated`: three MLP matrices per layer instead of two; `biased`: bias vectors in linear layers and norms;
    `positions`: number of learned positions.
    """

    name: str
    layers: int
    width: int
    heads: int
    kv_heads: int
    head_width: int
    inner: int
    vocabulary: int
    positions: int = 0
    gated: bool = True
    biased: bool = False
    tied: bool = True

    def check(self) -> None:
        """Raise ParameterError if a field is invalid."""
        check_text("name", self.name)
        check_integer("layers", self.layers, 1, MAX_LAYERS)
        check_integer("positions", self.positions, 0, MAX_SIZE)
        sizes = {"width": self.width, "heads": self.heads, "kv_heads": self.kv_heads, "head_width": self.head_width,
                 "inner": self.inner, "vocabulary": self.vocabulary}  # fmt: skip
        for name, size in sizes.items():
            check_integer(name, size, 1, MAX_SIZE)
        for name, truth in {"gated": self.gated, "biased": self.biased, "tied": self.tied}.items():
            check_bool(name, truth)

    @property
    def layer_parameters(self) -> int:
        """Parameters of one layer: attention, MLP, two norms."""
        query, key = self.heads * self.head_width, self.kv_heads * self.head_width
        matrices = self.width * (2 * query + 2 * key) + self.width * self.inner * (3 if self.gated else 2)
        vectors = query + 2 * key + self.width + self.inner + self.width + 2 * self.width if self.biased else 0
        return matrices + vectors + 2 * self.width

    @property
    def table_parameters(self) -> int:
        """Parameters of the embedding table."""
        return self.vocabulary * self.width

    @property
    def parameters(self) -> int:
        """Total parameters, with shared ones counted once."""
        norm = self.width * (2 if self.biased else 1)
        tables = self.table_parameters * (1 if self.tied else 2) + self.positions * self.width
        return self.layers * self.layer_parameters + tables + norm

    def stage_layers(self, stage: int, stages: int) -> int:
        """Return the number of layers of a stage, divided evenly; the first stages get the remainder."""
        return self.layers // stages + (stage < self.layers % stages)

    def stage_parameters(self, stage: int, stages: int) -> int:
        """Return the parameters of a stage; a tied embedding is in the first and, as a copy, in the last."""
        held = self.stage_layers(stage, stages) * self.layer_parameters
        if stage == 0:
            held += self.table_parameters + self.positions * self.width
        if stage == stages - 1:
            held += self.width * (2 if self.biased else 1)
            held += self.table_parameters if not self.tied or stages > 1 else 0
        return held


_CONFIG_KEYS = {
    "layers": ("num_hidden_layers", "n_layer", "num_layers", "n_layers"),
    "width": ("hidden_size", "n_embd", "d_model"),
    "heads": ("num_attention_heads", "n_head", "num_heads", "n_heads"),
    "kv_heads": ("num_key_value_heads",),
    "head_width": ("head_dim", "d_kv"),
    "inner": ("intermediate_size", "n_inner", "ffn_dim", "d_ff"),
    "vocabulary": ("vocab_size",),
}
_GPT2_FAMILY = ("gpt2", "gpt_bigcode", "opt", "biogpt", "xglm", "openai-gpt")
"""Model types with learned positions, two MLP matrices, and biases."""


def shape_of(config: Mapping[str, object], name: str = "") -> Shape:
    """Read the shape from a config.json, as of a Llama, or of a GPT-2 for models of that family.

    Raises ParameterError if layers, width, heads or vocabulary are missing.
    """
    check_kind("config", config, Mapping, tr("Pass the content of a config.json."))
    check_text("name", name)
    inner = config.get("text_config")
    text = inner if isinstance(inner, Mapping) else config
    size = {field: _first_size(text, names) for field, names in _CONFIG_KEYS.items()}
    missing = [_CONFIG_KEYS[field][0] for field in ("layers", "width", "heads", "vocabulary") if not size[field]]
    if missing:
        raise ParameterError(tr("The config lacks {names}.").format(names=join_names(missing)))
    kind = str(text.get("model_type", ""))
    old = kind in _GPT2_FAMILY
    return Shape(
        name or kind, size["layers"], size["width"], size["heads"], size["kv_heads"] or size["heads"],
        size["head_width"] or size["width"] // size["heads"], size["inner"] or 4 * size["width"], size["vocabulary"],
        positions=_first_size(text, ("n_positions", "max_position_embeddings")) if old else 0,
        gated=not old and kind != "gpt_neox", biased=old or kind == "gpt_neox",
        tied=bool(text.get("tie_word_embeddings", old)),
    )  # fmt: skip


def _first_size(config: Mapping[str, object], names: tuple[str, ...]) -> int:
    """Return the first of these keys that is a positive size, or 0."""
    found = (config.get(name) for name in names)
    return next((value for value in found if type(value) is int and value > 0), 0)


def _gpt_shape(name: str, layers: int, width: int, heads: int) -> Shape:
    """Return one of the GPT shapes of Megatron-LM's second paper: 51,200 tokens, 2,048 positions."""
    return Shape(name, layers, width, heads, heads, width // heads, 4 * width, 51_200, 2_048, gated=False, biased=True)


SHAPES = (
    _gpt_shape("GPT 1.7 B", 24, 2_304, 24),
    _gpt_shape("GPT 7.5 B", 36, 4_096, 32),
    _gpt_shape("GPT 39 B", 48, 8_192, 64),
    _gpt_shape("GPT 145.6 B", 80, 12_288, 96),
    _gpt_shape("GPT 529.6 B", 105, 20_480, 128),
    _gpt_shape("GPT 1 T", 128, 25_600, 160),
)
"""Narayanan et al. 2021, "Efficient Large-Scale Language Model Training on GPU Clusters", table 1."""
