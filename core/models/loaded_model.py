"""A model in memory, ready to decode with, and how it gets there."""

from __future__ import annotations

import hashlib
import inspect
import json
import struct
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from transformers import GenerationConfig, PreTrainedConfig

from core.errors import CorruptWeightsError, ModelError, ParameterError, UnknownArchitectureError
from core.events import ModelIdentity
from core.models import catalog, token_bytes
from core.models.config_validation import stays_quantized
from core.models.devices import choose_device, choose_weights
from core.models.layer_offload import DiskOffload, MemoryLimit, plan_disk_offload
from core.models.load_plan import check_reads_text, plan_model
from core.models.modalities import TEXT, Takes, modalities_of
from core.models.model_files import CONFIG_BYTES, INDEX_BYTES, find_weights, read_bytes
from core.models.model_loading import load_network
from core.models.quantized.packed_layers import count_weights, packed_kind, weight_bytes
from core.models.quantized.packed_loading import outline_packed
from core.models.text import TokenSpellings
from core.models.text_decoder import as_encoder_decoder, cache_name
from core.models.token_bytes import word_spellings
from core.models.tokenizers import load_processor, load_tokenizer
from core.parameter import short_repr
from resources.language import tr

if TYPE_CHECKING:
    from core.models.text import Network

_LENGTH = struct.Struct("<Q")
_MACHINE_KEYS = {"_name_or_path", "transformers_version"}
"""What a configuration says of where it was loaded, and with what."""


def identify(network: Network, name: str, path: Path | None) -> ModelIdentity:
    """By the files of its folder where there is one, else by the network itself."""
    return ModelIdentity(
        name,
        type(network).__name__,
        _hash_of([_read_optional(path, "config.json", CONFIG_BYTES) or _network_config(network)]),
        _hash_of(_weight_listing(path) or [_network_weights(network)]),
        packed_kind(network) or "",
    )


def _hash_of(parts: list[bytes]) -> str:
    total = hashlib.sha256()
    for part in parts:
        total.update(part)
    return total.hexdigest()


def _read_optional(path: Path | None, name: str, limit: int) -> bytes:
    """The bytes of a file of the folder; none where it is not there."""
    if path is None:
        return b""
    try:
        return read_bytes(path / name, limit)
    except (FileNotFoundError, ModelError):
        return b""


def _weight_listing(path: Path | None) -> list[bytes]:
    """The index of the weights, or the headers of the files that hold them; none where a folder has neither."""
    if index := _read_optional(path, "model.safetensors.index.json", INDEX_BYTES):
        return [index]
    return list(_headers(path)) if path is not None else []


def _headers(path: Path) -> Iterator[bytes]:
    """What each safetensors file says it holds: names, types, shapes."""
    try:
        for file in sorted(path.glob("*.safetensors")):
            with file.open("rb") as weights:
                start = weights.read(_LENGTH.size)
                if len(start) == _LENGTH.size and (length := _LENGTH.unpack(start)[0]) <= INDEX_BYTES:
                    yield weights.read(length)
    except OSError:
        return


def _network_config(network: Network) -> bytes:
    held = {name: value for name, value in network.config.to_dict().items() if name not in _MACHINE_KEYS}
    return json.dumps(held, sort_keys=True, default=str).encode()


def _network_weights(network: Network) -> bytes:
    held = [(name, str(weight.dtype), list(weight.shape)) for name, weight in network.named_parameters()]
    return json.dumps(sorted(held)).encode()


_LENGTH_KEYS = ("max_decoder_position_embeddings", "max_target_positions", "max_position_embeddings", "max_seq_len")
"""Fields that hold the decoder's longest text, in the order they are asked."""
_RESERVED_POSITIONS = {"prophetnet": 2, "xlm": 1}
"""Places that no token can have: a padding's and the one that is predicted, a mask's."""


def embedding_rows(network: Any, default: int) -> int:
    """Return how many rows a network's input embedding has; `default` where it has no plain one."""
    try:
        weight = getattr(network.get_input_embeddings(), "weight", None)
    except (AttributeError, NotImplementedError):
        return default
    rows = weight.shape[0] if isinstance(weight, torch.Tensor) and weight.dim() == 2 else 0
    return int(rows) or default


@dataclass(eq=False)
class LoadedModel:
    """A transformers module with its tokenizer. `tokenizer` may be None: then ids go in and ids come out."""

    model: Network
    tokenizer: Any
    name: str
    path: Path | None = None
    processor: Any = None
    """transformers' own, which turns sound and pictures into what the module reads; None for a model of text alone."""
    takes: Takes = TEXT
    """What it reads: text, sound, pictures."""
    disk_offload: DiskOffload | None = None
    """The layers that stay on the disk and are read for each pass; None where all are in memory."""
    remembered: dict[str, Any] = field(default_factory=dict)
    """What strategies learn about this model and keep between runs (draft lengths, cost curves)."""

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return torch.device(self.model.device)

    @property
    def dtype(self) -> torch.dtype:
        """Type of the weights."""
        return self.model.dtype

    @cached_property
    def weights(self) -> str:
        """What its layers are kept as: float32, bfloat16, float16, int8 or int4."""
        return packed_kind(self.model) or str(self.dtype).removeprefix("torch.")

    @property
    def has_exact_dtype(self) -> bool:
        """Its numbers have 32 bits or more: computing in another order changes nothing that decides."""
        return self.dtype in (torch.float32, torch.float64)

    @property
    def config(self) -> PreTrainedConfig:
        """Configuration of the text decoder (the part of a larger one that generates)."""
        return self.model.config.get_text_config(decoder=True)

    @property
    def generation_config(self) -> GenerationConfig:
        """The model's own defaults for decoding."""
        config: GenerationConfig = self.model.generation_config
        return config

    @property
    def is_encoder_decoder(self) -> bool:
        """True for T5, Bart and their like."""
        return bool(self.model.config.is_encoder_decoder)

    @cached_property
    def is_recurrent(self) -> bool:
        """True when (part of) its memory is a state that cannot be rolled back: Mamba, RWKV, Jamba."""
        return bool(getattr(self.model, "_is_stateful", False))

    @cached_property
    def cache_name(self) -> str:
        """What its forward and what that gives back call the cache."""
        return cache_name(self.model)

    @cached_property
    def forward_parameters(self) -> frozenset[str]:
        """Names that the module's forward accepts."""
        return frozenset(inspect.signature(self.model.forward).parameters)

    @cached_property
    def layers(self) -> int:
        """Number of decoder layers."""
        layers = getattr(self.config, "num_hidden_layers", 0)
        return int(getattr(self.config, "num_decoder_layers", None) or layers)

    @cached_property
    def vocabulary(self) -> int:
        """Number of token ids the model scores."""
        size: int = self.config.vocab_size
        return size

    @cached_property
    def readable_ids(self) -> int:
        """Number of token ids the model has an input embedding for."""
        return embedding_rows(self.model, self.vocabulary)

    @cached_property
    def context(self) -> int | None:
        """Longest sequence it was built for, in tokens; None without such a limit (T5's relative positions, Mamba)."""
        if has_state_only(self):
            return None
        limits = (getattr(self.config, name, None) for name in _LENGTH_KEYS)
        limit = next((int(limit) for limit in limits if isinstance(limit, int)), 0)
        return limit - _RESERVED_POSITIONS.get(self.config.model_type, 0) if limit > 0 else None

    @cached_property
    def parameters(self) -> int:
        """Number of weights, shared ones counted once."""
        return count_weights(self.model)

    @cached_property
    def weight_bytes(self) -> int:
        """Bytes of the weights in memory."""
        return weight_bytes(self.model) if self.disk_offload is None else self.disk_offload.kept_bytes

    @cached_property
    def pieces(self) -> TokenSpellings:
        """Text of single tokens."""
        return TokenSpellings(self.tokenizer)

    @property
    def token_bytes(self) -> Sequence[bytes | None] | None:
        """What each token writes behind others; None for a model of ids alone. Found out once."""
        return token_bytes.token_bytes(self) if self.tokenizer is not None else None

    def spellings(self, text: str) -> list[list[int]]:
        """Token ids that write `text`, behind a space and without one. Requires a tokenizer."""
        return word_spellings(self, text)

    def strips_first_space(self, before: Sequence[int]) -> bool:
        """Whether the text of an answer behind `before` loses the space that its first token begins with."""
        return token_bytes.strips_first_space(self, before)

    @cached_property
    def identity(self) -> ModelIdentity:
        """What tells this model from any other, for what is kept of its runs."""
        return identify(self.model, self.name, self.path)

    @property
    def head(self) -> torch.nn.Linear:
        """The output projection from hidden states to logits."""
        return self.model.get_output_embeddings()


def wrap(model: Any, tokenizer: object = None, name: str | None = None, processor: object = None) -> LoadedModel:
    """A transformers model you already have; with its `processor` (or feature extractor, or image processor) one that
    hears or sees. Raises UnknownArchitectureError if it cannot generate text from what it is given."""
    if not getattr(model, "can_generate", lambda: False)():
        raise UnknownArchitectureError(
            tr("{model} has no language-model head, so it cannot generate text.").format(model=type(model).__name__),
            tr("Load it with AutoModelForCausalLM or AutoModelForSeq2SeqLM."),
        )
    reads = modalities_of({**model.config.to_dict(), "architectures": None}) if processor is not None else TEXT
    if not reads.media:
        check_reads_text(model)
    model.config.return_dict = True
    model.eval()
    return LoadedModel(as_encoder_decoder(model), tokenizer, name or _name_of(model), processor=processor, takes=reads)


def _name_of(model: Network) -> str:
    path = getattr(model.config, "_name_or_path", "") or model.config.model_type
    return Path(path).name


def check_model(model: object) -> None:
    """Raises ParameterError for anything else than what `load` and `wrap` give, a model's name most of all."""
    if not isinstance(model, LoadedModel):
        raise ParameterError(
            tr("The model is {value}, and not one that was loaded.").format(value=short_repr(model)),
            tr("Load it first: decodescope.load(name), or decodescope.wrap(module, tokenizer)."),
            "model",
        )


def load(
    name: str | Path,
    *,
    device: str = "auto",
    dtype: str = "auto",
    weights: str = "auto",
    allow_pickle: bool = False,
    allow_remote_code: bool = False,
    memory_limit: MemoryLimit | None = None,
) -> LoadedModel:
    """Load a bundled model, a folder, or a hub model already on this disk; nothing is downloaded.

    `device`: auto, cpu, cuda, cuda:1, mps. `dtype`: auto, float32, bfloat16, float16.
    `weights`: how they are kept. auto: as `dtype` says; float32, bfloat16 and float16 win over `dtype`; int8 and int4
    are made layer by layer while loading, on a CPU, and computed with in float32.
    `memory_limit`: bytes that its weights may take, on a CPU, 0 for as few as it goes, `fit` for as many as
    the free memory takes; layers beyond stay on the disk and are read for each pass (`core.foretell` says how quick
    that is).
    Raises ModelError subclasses, DeviceError, ParameterError or OutOfMemoryError, each with its remedy.
    """
    path = catalog.locate(name)
    where = choose_device(device)
    plan = plan_model(path, allow_remote_code)
    kept = choose_weights(weights, dtype, where, plan.config)
    shelf = plan_disk_offload(plan, kept.dtype, where, kept.packed, memory_limit)
    network = load_network(plan, kept.dtype, where, allow_pickle, kept.packed, shelf)
    tokenizer = load_tokenizer(path, allow_remote_code)
    processor = load_processor(path, plan.config, plan.takes, allow_remote_code)
    reads = plan.takes if processor is not None else TEXT
    called = catalog.display_name(str(name), path)
    return LoadedModel(as_encoder_decoder(network), tokenizer, called, path, processor, reads, shelf)


def has_state_only(model: LoadedModel) -> bool:
    """Whether its memory is a state in a cache, without keys and values: Mamba's, xLSTM's."""
    has_heads = getattr(model.config, "num_attention_heads", None) is not None
    return model.is_recurrent and not has_heads and model.cache_name in model.forward_parameters


class Blueprint(LoadedModel):
    """Takes no memory to speak of and cannot be run; `device` is where the model would be."""

    planned = torch.device("cpu")
    stored_bytes: int | None = None
    """Size of quantized weights that stay as they are stored; None for plain ones."""

    @property
    def device(self) -> torch.device:
        """Where the weights would be."""
        return self.planned

    @cached_property
    def weight_bytes(self) -> int:
        """Bytes that the weights would take in memory."""
        return super().weight_bytes if self.stored_bytes is None else self.stored_bytes


def blueprint(
    name: str | Path, *, device: str = "auto", dtype: str = "auto", weights: str = "auto",
    allow_remote_code: bool = False, memory_limit: MemoryLimit | None = None,
) -> Blueprint:  # fmt: skip
    """What `core.load` of the same arguments would give, as a module on torch's meta device.

    Raises ModelError subclasses, DeviceError, ParameterError, or OutOfMemoryError for a limit that is too low.
    """
    path = catalog.locate(name)
    where = choose_device(device)
    plan = plan_model(path, allow_remote_code)
    kept = choose_weights(weights, dtype, where, plan.config)
    shelf = plan_disk_offload(plan, kept.dtype, where, kept.packed, memory_limit)
    network = plan.outline(kept.dtype)
    if kept.packed is not None:
        outline_packed(plan, network, kept.packed)
    model = Blueprint(
        network, load_tokenizer(path, allow_remote_code), catalog.display_name(str(name), path), path,
        takes=plan.takes, disk_offload=shelf,
    )  # fmt: skip
    model.planned = where
    if kept.packed is None and shelf is None and stays_quantized(plan.config):
        with suppress(CorruptWeightsError):  # reported when the weights are read
            model.stored_bytes = find_weights(path).bytes or None
    return model
