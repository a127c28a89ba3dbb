"""Where models are found, what they are and whether they fit; importing this does not import torch."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from core.errors import ConfigMissingError, ModelError, ModelFileError, ModelNotFoundError
from core.explain.words import size
from core.models import hub
from core.models.files import INDEX_BYTES, is_file, read_bytes, read_json
from core.models.footprint import cache_bytes
from core.models.sanity import impossible, misnamed
from core.models.weights import Stored, WeightFiles, count_stored, find_weights

BUNDLED = Path(__file__).resolve().parents[2] / "resources" / "models"
_BYTES = {"float32": 4, "bfloat16": 2, "float16": 2}


@dataclass(frozen=True, slots=True)
class ModelEntry:
    """A model on this disk, described without loading it."""

    name: str
    """What `core.load` takes."""
    title: str
    source: str
    """bundled, hub or folder."""
    path: Path
    architecture: str
    """Family and shape in a few words: `Llama · 12 layers × 192`."""
    model_type: str
    parameters: int | None
    bytes: int
    """Of the weights as stored."""
    context: int | None
    encoder_decoder: bool
    pickled: bool = False
    """Its weights are pickles, which must be allowed first."""
    problem: str | None = None
    """Why it cannot be loaded as it is, in a sentence."""


@dataclass(frozen=True, slots=True)
class Fit:
    """Whether a model's weights fit into memory; sizes in bytes."""

    ok: bool
    needed: int
    free: int
    sentence: str


def available() -> list[ModelEntry]:
    """Every model found without being told where: bundled ones, then the local hub cache."""
    return [*bundled(), *hub_cached()]


def bundled() -> list[ModelEntry]:
    """The models that ship with the program; the full-size ones before their drafts."""
    if not BUNDLED.is_dir():
        return []
    entries = [describe(path, path.name, "bundled") for path in BUNDLED.iterdir() if is_file(path / "config.json")]
    return sorted(entries, key=lambda entry: ("draft" in entry.name, entry.name != "storyteller", entry.name))


def hub_cached() -> list[ModelEntry]:
    """Models in the Hugging Face hub's local cache that write text, and those too damaged to tell.

    Slower than the others: `hub_has_models` says at once whether there are any.
    """
    return [_describe_cached(model) for model in hub.cached_models() if model.problem or _generates(model.path)]


def hub_has_models() -> bool:
    """Whether anything of a model lies in the hub's cache."""
    return hub.has_models()


def hub_entry(name: str) -> ModelEntry | None:
    """The model with that hub id, when it is in the cache."""
    model = hub.cached_model(name)
    return _describe_cached(model) if model is not None else None


def _describe_cached(model: hub.CachedModel) -> ModelEntry:
    entry = describe(model.path, model.name, "hub")
    return replace(entry, problem=model.problem) if model.problem else entry


def inspect(folder: str | Path) -> ModelEntry:
    """A model in a folder of the user's. Raises ModelNotFoundError, ConfigMissingError."""
    path = locate(str(folder))
    read_config(path)
    return describe(path, str(path), "folder")


def locate(name: str) -> Path:
    """The folder of a bundled name, a path, or a hub id in the local cache. Raises ModelNotFoundError."""
    if name and "/" not in name and "\\" not in name and is_file(BUNDLED / name / "config.json"):
        return BUNDLED / name
    path = Path(os.path.expanduser(name))
    if os.path.isdir(path):
        return path
    cached = hub.cached_model(name)
    if cached is not None and cached.problem is None:
        return cached.path
    if cached is not None:
        raise ModelNotFoundError(
            f"“{name}” cannot be used: {cached.problem}.", "Remove it from the cache, and download it again."
        )
    looks_local = path.is_absolute() or name.startswith((".", "~")) or name.count("/") != 1
    what = "The folder {} does not exist." if looks_local else "There is no model “{}” on this disk."
    known = ", ".join(entry.name for entry in bundled()) or "none"
    raise ModelNotFoundError(
        what.format(name), f"Choose a folder with a model, a model in the hub cache, or a bundled one ({known})."
    )


def same_tokenizer(one: ModelEntry, other: ModelEntry) -> bool:
    """Whether two folders hold the same tokenizer.json; both may lack one that can be read."""
    return _tokenizer(one) == _tokenizer(other)


def _tokenizer(entry: ModelEntry) -> bytes:
    try:
        return read_bytes(entry.path / "tokenizer.json", INDEX_BYTES)
    except (FileNotFoundError, ModelFileError):
        return b""


def display_name(name: str, path: Path) -> str:
    """A bundled or hub model's own name; the folder's name otherwise."""
    return path.name if os.path.isdir(os.path.expanduser(name)) else name


def read_config(path: Path) -> dict[str, Any]:
    """config.json of the folder. Raises ConfigMissingError when there is none or it cannot be read."""
    file = path / "config.json"
    try:
        return read_json(file)
    except FileNotFoundError:
        raise ConfigMissingError(
            f"{path} holds no config.json, so it is not a Hugging Face model folder.",
            "Choose the folder that holds config.json beside the weights.",
        ) from None
    except ModelFileError as error:
        raise ConfigMissingError(error.cause, error.remedy) from error


def fits(entry: ModelEntry, dtype: str = "float32", device: str = "auto", tokens: int = 0, rows: int = 1) -> Fit:
    """Whether the weights, in `dtype`, fit into the memory that is free now (the host's; a GPU is asked on loading).

    With `tokens`, the keys and values of `rows` texts of that length are reckoned in, or of the context where it is
    shorter. `core.estimate` reckons a whole request, with the model's own shape.
    """
    weights = entry.parameters * _BYTES.get(dtype, 4) if entry.parameters else entry.bytes
    tokens = min(tokens, entry.context or tokens)
    cache = rows * _cache_bytes(entry, tokens, _BYTES.get(dtype, 4)) if tokens else 0
    needed, free = weights + cache, free_memory()
    ok = has_room(needed, free)
    texts = f" × {rows}" if rows > 1 else ""
    parts = f" ({size(weights)} of weights, {size(cache)} for {tokens:,} tokens{texts})" if cache else ""
    words = f"needs {size(needed)}{parts} of {size(free)} free"
    return Fit(ok, needed, free, words if ok else f"{words}: it does not fit")


def has_room(needed: int, free: int) -> bool:
    """Whether so many bytes fit into those that are free, with a tenth to spare for what is computed on the way."""
    return needed * 1.1 < free


def _cache_bytes(entry: ModelEntry, tokens: int, element_bytes: int) -> int:
    try:
        return cache_bytes(read_config(entry.path), tokens, element_bytes)
    except ModelError:
        return 0


def free_memory() -> int:
    """Bytes of memory that can be had without swapping; a large guess where the system does not tell."""
    try:
        for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return 8 * 2**30


def describe(path: Path, name: str, source: str) -> ModelEntry:
    """What config.json and the weights' headers tell; never raises for a broken model, but says so in `problem`."""
    config, problem = _read_or_say(path)
    weights, stored, trouble = _weigh(path)
    values = misnamed(config) or impossible(config, stored.tensors if stored is not None else None)
    usable = config if values is None else {}
    return ModelEntry(
        name=name,
        title=Path(name).name if source == "folder" else name,
        source=source,
        path=path,
        architecture=_shape(usable),
        model_type=str(usable.get("model_type", "")),
        parameters=stored.numbers if stored is not None else None,
        bytes=weights.bytes,
        context=_first_size(usable, ("max_position_embeddings", "n_positions")),
        encoder_decoder=bool(usable.get("is_encoder_decoder")),
        pickled=weights.pickled and not (problem or values),
        problem=problem or values or trouble,
    )


def _read_or_say(path: Path) -> tuple[dict[str, Any], str | None]:
    if not os.path.isdir(path):
        return {}, f"there is no folder {path}"
    try:
        return read_config(path), None
    except ConfigMissingError as error:
        return {}, error.cause


def _weigh(path: Path) -> tuple[WeightFiles, Stored | None, str | None]:
    """The files, what their headers promise, and what is wrong with them."""
    try:
        weights = find_weights(path)
    except ModelError as error:
        return WeightFiles((), False), None, error.cause
    return weights, count_stored(weights), _weights_problem(weights)


def _weights_problem(weights: WeightFiles) -> str | None:
    if not weights.files:
        return "holds no weights"
    if missing := [file.name for file in weights.files if not is_file(file)]:
        return f"{missing[0]} is missing"
    return "only pickled weights; they must be allowed first" if weights.pickled else None


def _shape(config: dict[str, Any]) -> str:
    family = str(config.get("model_type", "unknown")).replace("_", " ").title()
    layers = _first_size(config, ("num_hidden_layers", "n_layer", "num_layers"))
    width = _first_size(config, ("hidden_size", "n_embd", "d_model"))
    return f"{family} · {layers} layers × {width}" if layers and width else family


def _first_size(config: dict[str, Any], names: tuple[str, ...]) -> int | None:
    """The first of these that is a number above 0."""
    sizes = (config.get(name) for name in names)
    return next((size for size in sizes if isinstance(size, int) and size > 0), None)


def _generates(snapshot: Path) -> bool:
    """Whether its architectures name a language-model head (embedders and classifiers are left out of the list), or
    cannot be read, which is to be told."""
    try:
        names = read_config(snapshot).get("architectures")
    except ConfigMissingError:
        return (snapshot / "config.json").exists()
    heads = ("ForCausalLM", "LMHeadModel", "ForConditionalGeneration")
    return isinstance(names, list) and any(str(name).endswith(heads) for name in names)
