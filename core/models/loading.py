"""From a folder to a module: safetensors only, no code of the model's own, unless explicitly allowed."""

from __future__ import annotations

import json
import logging
import pickle
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForSeq2SeqLM, AutoTokenizer
from transformers.models.auto.modeling_auto import (
    MODEL_FOR_CAUSAL_LM_MAPPING_NAMES,
    MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES,
)

from core.device_memory import is_out_of_memory
from core.errors import (
    CorruptWeightsError,
    OutOfMemoryError,
    PickledWeightsError,
    RemoteCodeError,
    TokenizerMissingError,
    UnknownArchitectureError,
)
from core.models.catalog import TOKENIZER_FILES, WeightFiles, find_weights, read_config

log = logging.getLogger(__name__)


def load_network(path: Path, dtype: torch.dtype, allow_pickle: bool, allow_remote_code: bool) -> Any:
    """The module with its weights, on the CPU. Raises ModelError subclasses and OutOfMemoryError."""
    raw = read_config(path)
    check_code(raw, path, allow_remote_code)
    weights = _check_weights(path, allow_pickle)
    config = AutoConfig.from_pretrained(path, trust_remote_code=allow_remote_code, local_files_only=True)
    auto: Any = AutoModelForSeq2SeqLM if config.is_encoder_decoder else AutoModelForCausalLM
    try:
        network, report = auto.from_pretrained(
            path, config=config, dtype=dtype, trust_remote_code=allow_remote_code, local_files_only=True,
            use_safetensors=not weights.pickled, output_loading_info=True,
        )  # fmt: skip
    except (SafetensorError, RuntimeError, OSError, ValueError, KeyError, EOFError, pickle.UnpicklingError) as error:
        raise _loading_error(error, path) from error
    _check_complete(report, path)
    return network


def check_code(raw: dict[str, Any], path: Path, allowed: bool) -> None:
    """That transformers knows the model, or that its own code may be run.

    Raises RemoteCodeError, UnknownArchitectureError.
    """
    _check_permission(raw, path, allowed)
    _check_architecture(raw, path, allowed)


def _check_permission(raw: dict[str, Any], path: Path, allowed: bool) -> None:
    if allowed or "auto_map" not in raw or _known(raw):
        return
    raise RemoteCodeError(
        f"{path.name} brings program code of its own ({', '.join(sorted(raw['auto_map']))}), which would run on this "
        "machine with your rights.",
        "Allow it for this model only if you trust where it comes from, or choose a model transformers knows.",
    )


def _known(raw: dict[str, Any]) -> bool:
    return raw.get("model_type") in {
        **MODEL_FOR_CAUSAL_LM_MAPPING_NAMES,
        **MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES,
    }


def _check_architecture(raw: dict[str, Any], path: Path, allow_remote_code: bool) -> None:
    if _known(raw) or (allow_remote_code and "auto_map" in raw):
        return
    kind = raw.get("model_type")
    named = f"of the type “{kind}”" if kind else "of no stated type"
    raise UnknownArchitectureError(
        f"{path.name} is {named}, which the installed transformers cannot generate text with.",
        "Update transformers, or choose a decoder-only or encoder–decoder language model.",
    )


def _check_weights(path: Path, allow_pickle: bool) -> WeightFiles:
    weights = find_weights(path)
    if not weights.files:
        raise CorruptWeightsError(
            f"{path} holds no weights (no *.safetensors file).", "Copy or download the model again, whole."
        )
    if weights.pickled and not allow_pickle:
        raise PickledWeightsError(
            f"{path.name} has only pickled weights ({weights.files[0].name}). Loading a pickle can run any code in it.",
            "Allow it for this model if you trust its source, or convert the weights to safetensors.",
        )
    for file in () if weights.pickled else weights.files:
        _check_safetensors(file)
    return weights


def _check_safetensors(file: Path) -> None:
    """Read the header and compare the size it promises with the file's own."""
    if not file.exists():
        raise CorruptWeightsError(
            f"The weights file {file.name} is missing from {file.parent}.", "Copy or download the model again, whole."
        )
    try:
        with safe_open(file, framework="pt") as handle:
            handle.keys()
    except (SafetensorError, OSError) as error:
        size = file.stat().st_size
        raise CorruptWeightsError(
            f"The weights file {file.name} is truncated or corrupt: {_shortfall(file, size)}.",
            "Copy or download it again; nothing was changed on disk.",
            str(error),
        ) from error


def _shortfall(file: Path, size: int) -> str:
    """How many bytes are missing, as far as the header can still tell."""
    with file.open("rb") as stream:
        length = int.from_bytes(stream.read(8), "little")
        try:
            header = json.loads(stream.read(length)) if 8 + length <= size else None
        except (json.JSONDecodeError, UnicodeDecodeError):
            header = None
    if not isinstance(header, dict):
        return f"its header cannot be read ({size:,} bytes in all)"
    ends = [entry["data_offsets"][1] for name, entry in header.items() if name != "__metadata__"]
    expected = 8 + length + max(ends, default=0)
    return f"{size:,} of {expected:,} bytes are there"


def _check_complete(report: dict[str, Any], path: Path) -> None:
    missing, shapes = sorted(report.get("missing_keys", ())), list(report.get("mismatched_keys", ()))
    if not missing and not shapes:
        return
    names = ", ".join([*missing, *(str(key[0] if isinstance(key, tuple) else key) for key in shapes)][:3])
    raise CorruptWeightsError(
        f"The weights in {path.name} do not fit its config.json: {len(missing)} tensors missing, {len(shapes)} of "
        f"another shape ({names} …).",
        "Copy or download the model again, whole.",
    )


def _loading_error(error: Exception, path: Path) -> Exception:
    if is_out_of_memory(error):
        return OutOfMemoryError(
            f"{path.name} does not fit into memory.", "Choose a smaller model or number type, or free memory.",
            str(error),
        )  # fmt: skip
    return CorruptWeightsError(
        f"The weights in {path.name} cannot be read, or do not fit its config.json.",
        "Copy or download the model again, whole.",
        f"{type(error).__name__}: {error}",
    )


def load_tokenizer(path: Path, allow_remote_code: bool) -> Any:
    """The tokenizer in the folder, or None when it holds none. Raises TokenizerMissingError when it is broken."""
    if not any((path / name).exists() for name in TOKENIZER_FILES):
        return None
    try:
        return AutoTokenizer.from_pretrained(path, trust_remote_code=allow_remote_code, local_files_only=True)
    except Exception as error:  # every tokenizer class fails in a way of its own
        log.debug("tokenizer of %s", path, exc_info=True)
        raise TokenizerMissingError(
            f"The tokenizer in {path.name} cannot be loaded: {error}",
            "Copy or download the model's tokenizer files again.",
            f"{type(error).__name__}: {error}",
        ) from error
