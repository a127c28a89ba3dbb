"""A model in memory that is ready to decode, and functions to load or wrap one."""

from __future__ import annotations

import copy
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

from decodescope.core.common.text import cut_short
from decodescope.core.errors import CorruptWeightsError, ModelError, ParameterError, UnknownArchitectureError
from decodescope.core.events import ModelIdentity
from decodescope.core.models import catalog, token_bytes
from decodescope.core.models.adapters.adapter_choice import AdapterSource, check_adapters
from decodescope.core.models.adapters.adapter_set import AdapterSet
from decodescope.core.models.chat_templates import render_chat
from decodescope.core.models.config_validation import PACKED, QUANTIZED_FORMATS, stays_quantized
from decodescope.core.models.devices import SPREAD, choose_device, choose_weights
from decodescope.core.models.gguf.file_names import is_gguf, split_files
from decodescope.core.models.gguf.file_summary import content_stamp
from decodescope.core.models.gguf.loading import outline_blocks, stored_parameters
from decodescope.core.models.layer_offload import DiskOffload, MemoryLimit, plan_disk_offload
from decodescope.core.models.load_plan import check_reads_text, plan_model
from decodescope.core.models.mapped_files import MappedFiles
from decodescope.core.models.modalities import TEXT, Modalities, modalities_of
from decodescope.core.models.model_files import CONFIG_BYTES, INDEX_BYTES, find_weights, read_bytes
from decodescope.core.models.model_loading import load_network
from decodescope.core.models.quantized.card_quantization import can_quantize_on_card
from decodescope.core.models.quantized.packed_layers import count_weights, packed_kind, weight_bytes
from decodescope.core.models.quantized.packed_loading import outline_packed
from decodescope.core.models.text import TokenSpellings
from decodescope.core.models.text_decoder import as_encoder_decoder, cache_name
from decodescope.core.models.token_bytes import word_spellings
from decodescope.core.models.tokenizers import load_processor, load_tokenizer
from decodescope.core.parameter import short_repr
from decodescope.core.system.torch_state import isolated_construction
from decodescope.core.thinking import ThinkingMark, derive_marks
from decodescope.resources.language import tr

if TYPE_CHECKING:
    from decodescope.core.models.text import Network

_LENGTH = struct.Struct("<Q")
_MACHINE_KEYS = {"_name_or_path", "transformers_version"}
"""Config keys that depend on where and with what the model was loaded."""


def identify(network: Network, name: str, path: Path | None) -> ModelIdentity:
    """Identify a model by the files of its folder, or without a folder by the network itself."""
    if path is not None and is_gguf(path):
        stamp = content_stamp(split_files(path))
        config = _hash_of([_network_config(network)])
        return ModelIdentity(name, type(network).__name__, config, stamp, packed_kind(network) or "")
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
    """Return the bytes of a file in the folder; empty if it is missing."""
    if path is None:
        return b""
    try:
        return read_bytes(path / name, limit)
    except (FileNotFoundError, ModelError):
        return b""


def _weight_listing(path: Path | None) -> list[bytes]:
    """Return the index of the weights, or the headers of the weight files; empty if the folder has neither."""
    if index := _read_optional(path, "model.safetensors.index.json", INDEX_BYTES):
        return [index]
    return list(_headers(path)) if path is not None else []


def _headers(path: Path) -> Iterator[bytes]:
    """Yield the header of each safetensors file: names, dtypes, shapes."""
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
"""Config keys of the decoder's maximum length, in order of precedence."""
_RESERVED_POSITIONS = {"prophetnet": 2, "xlm": 1}
"""Positions that no token can use, reserved for padding, the predicted token or a mask."""


def embedding_rows(network: Any, default: int) -> int:
    """Return the number of rows of a network's input embedding; `default` if it has no plain one."""
    try:
        weight = getattr(network.get_input_embeddings(), "weight", None)
    except (AttributeError, NotImplementedError):
        return default
    rows = weight.shape[0] if isinstance(weight, torch.Tensor) and weight.dim() == 2 else 0
    return int(rows) or default


@dataclass(eq=False)
class LoadedModel:
    """A transformers module with its tokenizer. If `tokenizer` is None, prompts and results are token ids."""

    model: Network
    tokenizer: Any
    name: str
    path: Path | None = None
    processor: Any = None
    """transformers' processor, which converts audio and images into model inputs; None for a text-only model."""
    modalities: Modalities = TEXT
    """Modalities the model reads: text, audio, images."""
    disk_offload: DiskOffload | None = None
    """The layers offloaded to disk, which are read for each pass; None if all are in memory."""
    mapped_files: MappedFiles | None = None
    """Files whose pages hold its weights; None if the weights are copies."""
    unpacked_format: str = ""
    """Format of the GGUF file whose blocks were unpacked at loading, because there is no native code; else empty."""
    strategy_data: dict[str, Any] = field(default_factory=dict)
    """Data about this model that strategies keep between runs (draft lengths, cost curves)."""

    def __repr__(self) -> str:
        name, kind = cut_short(self.name, 100), type(self.model).__name__
        return f"<{type(self).__name__}: {name}, {kind}, {self.weights} on {self.device}>"

    @property
    def device(self) -> torch.device:
        """Device of the weights; of a model that is spread, the one that reads tokens and returns logits."""
        spread = vars(self.model).get("hf_device_map")
        if spread and len(set(spread.values())) > 1:
            return torch.device(
                _device_name(next((one for one in spread.values() if one not in ("cpu", "disk")), "cpu"))
            )
        return torch.device(self.model.device)

    @cached_property
    def placement(self) -> tuple[tuple[str, int], ...]:
        """(device, bytes of weights) of a model that is spread over several devices; () for others."""
        spread = vars(self.model).get("hf_device_map") or {}
        if len(set(spread.values())) < 2:
            return ()
        found: dict[str, int] = {}
        for name, parameter in self.model.named_parameters():
            module = max((one for one in spread if _is_within(name, one)), key=len, default=None)
            place = "cpu" if module is None else _device_name(spread[module])
            found[place] = found.get(place, 0) + parameter.numel() * parameter.element_size()
        return tuple(sorted(found.items(), key=lambda pair: (pair[0] in ("cpu", "disk"), pair[0])))

    def check_files(self) -> None:
        """Check, before weights are read, that the files that they are mapped from are unchanged: the process would end
        at a page that is gone. Raises CorruptWeightsError.
        """
        if self.mapped_files is not None:
            self.mapped_files.check()

    @property
    def dtype(self) -> torch.dtype:
        """Dtype of the weights."""
        return self.model.dtype

    @cached_property
    def adapters(self) -> AdapterSet:
        """The adapters of this model and their strengths."""
        return AdapterSet(self.model, self.name, self.disk_offload is not None)

    @cached_property
    def weights(self) -> str:
        """Storage format of the layers: float32, bfloat16, float16, int8, int4 or fp8."""
        return packed_kind(self.model) or str(self.dtype).removeprefix("torch.")

    @property
    def has_exact_dtype(self) -> bool:
        """Whether its numbers have 32 bits or more, so that the order of computation does not change decisions."""
        return self.dtype in (torch.float32, torch.float64)

    @property
    def config(self) -> PreTrainedConfig:
        """Config of the text decoder (the generating part of a larger model). T5 counts the encoder's layers in it and
        the decoder's in another field: here they are the decoder's.
        """
        config = self.model.config.get_text_config(decoder=True)
        depth = getattr(config, "num_decoder_layers", None)
        if depth is None or depth == config.num_hidden_layers:
            return config
        own = copy.copy(config)
        own.num_hidden_layers = depth
        return own

    @property
    def generation_config(self) -> GenerationConfig:
        """The model's own default decoding settings."""
        config: GenerationConfig = self.model.generation_config
        return config

    @cached_property
    def thinking_marks(self) -> tuple[ThinkingMark, ...]:
        """The marks around its thinking, from its chat template and its added tokens, the likeliest first."""
        if self.tokenizer is None:
            return ()
        template = getattr(self.tokenizer, "chat_template", None)
        if isinstance(template, dict):
            template = template.get("default")
        source = template if isinstance(template, str) else ""
        special = getattr(self.tokenizer, "special_tokens_map", {})
        names = self.tokenizer.get_added_vocab() if hasattr(self.tokenizer, "get_added_vocab") else ()
        return derive_marks((lambda chat: render_chat(source, chat, special)) if source else None, source, names)

    @property
    def is_encoder_decoder(self) -> bool:
        """Whether it is an encoder–decoder such as T5 or Bart."""
        return bool(self.model.config.is_encoder_decoder)

    @cached_property
    def is_recurrent(self) -> bool:
        """Whether its cache includes a state that cannot be rolled back: Mamba, RWKV, Jamba."""
        return bool(getattr(self.model, "_is_stateful", False))

    @property
    def repeats_layers(self) -> bool:
        """Whether it runs some of its layers several times for a token (Dory)."""
        return int(getattr(self.config, "n_recurrent_loops", None) or 1) > 1

    @property
    def repeated_cache_layers(self) -> list[int]:
        """Indices of the layers whose copies the model appends to its cache, one for each further loop (Dory)."""
        config = self.config
        if not self.repeats_layers or getattr(config, "recurrent_kv_cache_mode", "") != "per_loop":
            return []
        start, count = int(config.n_input_layers), int(config.n_recurrent_layers)
        return list(range(start, start + count)) * (int(config.n_recurrent_loops) - 1)

    @cached_property
    def cache_name(self) -> str:
        """Name of the cache in the forward arguments and the output."""
        return cache_name(self.model)

    @cached_property
    def forward_parameters(self) -> frozenset[str]:
        """Names of the arguments of the module's `forward`."""
        return frozenset(inspect.signature(self.model.forward).parameters)

    @cached_property
    def layers(self) -> int:
        """Number of decoder layers."""
        layers = getattr(self.config, "num_hidden_layers", 0)
        return int(getattr(self.config, "num_decoder_layers", None) or layers)

    @cached_property
    def vocabulary(self) -> int:
        """Number of token ids that the model scores."""
        size: int = self.config.vocab_size
        return size

    @cached_property
    def readable_ids(self) -> int:
        """Number of token ids that have an input embedding."""
        return embedding_rows(self.model, self.vocabulary)

    @cached_property
    def context(self) -> int | None:
        """Maximum sequence length in tokens; None without such a limit (T5's relative positions, Mamba)."""
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
        """Bytes that each token adds after other tokens; None for a model without tokenizer. Computed once."""
        return token_bytes.token_bytes(self) if self.tokenizer is not None else None

    def spellings(self, text: str) -> list[list[int]]:
        """Return the token ids that spell `text`, with and without a space before it. Requires a tokenizer."""
        return word_spellings(self, text)

    def strips_first_space(self, before: Sequence[int]) -> bool:
        """Return whether an answer after the tokens `before` loses the leading space of its first token."""
        return token_bytes.strips_first_space(self, before)

    @cached_property
    def identity(self) -> ModelIdentity:
        """Identity of this model, for data stored about its runs."""
        return identify(self.model, self.name, self.path)

    @property
    def head(self) -> torch.nn.Linear:
        """Output projection from hidden states to logits."""
        return self.model.get_output_embeddings()


def _is_within(parameter: str, module: str) -> bool:
    return not module or parameter == module or parameter.startswith(f"{module}.")


def _device_name(device: object) -> str:
    """Return the name of a device in accelerate's map, which numbers cards."""
    return f"cuda:{device}" if isinstance(device, int) else str(device)


@isolated_construction
def wrap(model: Any, tokenizer: object = None, name: str | None = None, processor: object = None) -> LoadedModel:
    """Wrap a loaded transformers model; with its `processor` (or feature extractor, or image processor), one that reads
    audio or images. Raises UnknownArchitectureError if it cannot generate text from these inputs.
    """
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
    return LoadedModel(
        as_encoder_decoder(model), tokenizer, name or _name_of(model), processor=processor, modalities=reads
    )


def _name_of(model: Network) -> str:
    path = getattr(model.config, "_name_or_path", "") or model.config.model_type
    return Path(path).name


def check_model(model: object) -> None:
    """Raise ParameterError unless `model` is a result of `load` or `wrap`; a model's name is a common mistake.

    Raises CorruptWeightsError if its weights cannot be read any more.
    """
    if not isinstance(model, LoadedModel):
        raise ParameterError(
            tr("The model is {value}, which is not a loaded model.").format(value=short_repr(model)),
            tr("Load it first: decodescope.load(name), or decodescope.wrap(module, tokenizer)."),
            "model",
        )
    model.check_files()


_SCALES = 1.1
"""Bytes of codes and scales ÷ bytes of the codes, approximately."""


def needs_cpu(weights: object, memory_limit: MemoryLimit | None = None) -> bool:
    """Return whether the device auto is the CPU, because only that supports this format of weights or a limit."""
    return memory_limit is not None or (weights in tuple(PACKED) and not can_quantize_on_card(str(weights)))


@isolated_construction
def load(
    name: str | Path,
    *,
    device: str = "auto",
    dtype: str = "auto",
    weights: str = "auto",
    allow_pickle: bool = False,
    allow_remote_code: bool = False,
    memory_limit: MemoryLimit | None = None,
    adapters: Sequence[AdapterSource] = (),
) -> LoadedModel:
    """Load a local model like `core.load`, which documents the arguments. Raises the same errors."""
    choices = check_adapters(adapters)
    path = catalog.locate(name)
    where = choose_device(device, needs_cpu=needs_cpu(weights, memory_limit))
    plan = plan_model(path, allow_remote_code)
    weights_choice = choose_weights(weights, dtype, where, plan.config, plan.gguf)
    shelf = plan_disk_offload(plan, weights_choice.dtype, where, weights_choice.packed, memory_limit)
    network, mapped = load_network(
        plan, weights_choice.dtype, where, allow_pickle, weights_choice.packed, shelf, weights_choice.on_card,
        is_spread=device == SPREAD,
    )  # fmt: skip
    tokenizer = load_tokenizer(path, allow_remote_code, plan.gguf)
    processor = load_processor(path, plan.config, plan.modalities, allow_remote_code)
    reads = plan.modalities if processor is not None else TEXT
    called = catalog.display_name(str(name), path)
    model = LoadedModel(as_encoder_decoder(network), tokenizer, called, path, processor, reads, shelf, mapped)
    model.unpacked_format = plan.gguf_format if weights_choice.is_unpacked else ""
    model.adapters.set(choices, allow_pickle)
    return model


def has_state_only(model: LoadedModel) -> bool:
    """Return whether its cache is a state without keys and values: Mamba, xLSTM."""
    has_heads = getattr(model.config, "num_attention_heads", None) is not None
    return model.is_recurrent and not has_heads and model.cache_name in model.forward_parameters


class Blueprint(LoadedModel):
    """A model on the meta device, which takes almost no memory and cannot be run; `device` is where the model would
    be.
    """

    planned = torch.device("cpu")
    stored_bytes: int | None = None
    """Size of quantized weights that keep their stored format; None for unquantized weights."""

    @property
    def device(self) -> torch.device:
        """The device where the weights would be."""
        return self.planned

    @cached_property
    def weight_bytes(self) -> int:
        """Bytes that the weights would take in memory."""
        return super().weight_bytes if self.stored_bytes is None else self.stored_bytes


@isolated_construction
def blueprint(
    name: str | Path, *, device: str = "auto", dtype: str = "auto", weights: str = "auto",
    allow_remote_code: bool = False, memory_limit: MemoryLimit | None = None,
) -> Blueprint:  # fmt: skip
    """Return what `core.load` with the same arguments would, as a module on torch's meta device.

    Raises ModelError subclasses, DeviceError, ParameterError, or OutOfMemoryError for a limit that is too low.
    """
    path = catalog.locate(name)
    where = choose_device(device, needs_cpu=needs_cpu(weights, memory_limit))
    plan = plan_model(path, allow_remote_code)
    weights_choice = choose_weights(weights, dtype, where, plan.config, plan.gguf)
    shelf = plan_disk_offload(plan, weights_choice.dtype, where, weights_choice.packed, memory_limit)
    network = plan.outline(weights_choice.dtype)
    if plan.gguf is not None and weights_choice.packed is not None:
        outline_blocks(plan.gguf, network, stored_parameters(plan.gguf, plan.config))
    elif weights_choice.packed is not None:
        outline_packed(plan, network, weights_choice.packed)
    model = Blueprint(
        network, load_tokenizer(path, allow_remote_code, plan.gguf), catalog.display_name(str(name), path), path,
        modalities=plan.modalities, disk_offload=shelf,
    )  # fmt: skip
    model.planned = where
    if plan.gguf is not None and weights_choice.packed is not None:
        model.stored_bytes = plan.gguf.nbytes
    if weights_choice.on_card is not None:
        words = sum(one.numel() for one in network.get_input_embeddings().parameters())
        share = QUANTIZED_FORMATS[weights_choice.on_card] / 16 * _SCALES
        model.stored_bytes = int(2 * (words + (model.parameters - words) * share))
    elif weights_choice.packed is None and shelf is None and stays_quantized(plan.config):
        with suppress(CorruptWeightsError):  # reported when the weights are read
            model.stored_bytes = find_weights(path).bytes or None
    return model
