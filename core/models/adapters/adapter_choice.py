"""Adapters of a run and their strengths as plain data. Importing this module imports neither torch nor what reads
files: the window starts faster without.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from decodescope.core.common.setting_values import to_plain_value
from decodescope.core.common.text import cut_short
from decodescope.core.errors import AdapterError, DecodescopeError, ParameterError
from decodescope.core.models.gguf.file_names import SUFFIX, is_gguf
from decodescope.core.parameter import short_repr
from decodescope.resources.language import mark, tr

if TYPE_CHECKING:
    from decodescope.core.models.model_files import JsonObject

CONFIG_FILE = "adapter_config.json"
WEIGHTS_FILE = "adapter_model.safetensors"
PICKLED_FILE = "adapter_model.bin"
_UNSUPPORTED = {
    "alora_invocation_tokens": mark("it is switched on by certain tokens of the text (aLoRA)"),
    "layer_replication": mark("it repeats layers of the model"),
    "use_qalora": mark("it is a QALoRA"),
    "use_bdlora": mark("it is a block-diagonal LoRA"),
    "arrow_config": mark("it routes between several adapters (Arrow)"),
    "kasa_config": mark("it changes the weights of the model when it is created (KaSA)"),
    "monteclora_config": mark("it draws random numbers (MonteCLoRA)"),
    "trainable_token_indices": mark("it contains new embeddings of single tokens"),
}
"""Settings of PEFT's LoRA that change what is computed and are not applied here."""
_CHANGES_BASE = ("pissa", "olora", "corda", "loftq", "lora_ga")
"""Initializations that take something out of the base weights."""
MAX_STRENGTH = 4.0
"""Maximum absolute strength: beyond it texts fall apart."""


class AdapterChoice(NamedTuple):
    """An adapter and its strength."""

    path: str
    """A folder with adapter_config.json, a GGUF file, or a hub id in the local cache."""
    strength: float = 1.0
    """0 is the base model, 1 is the adapter as it was trained; other values multiply its effect."""

    @property
    def name(self) -> str:
        """A short name: that of the folder or the file."""
        return adapter_name(self.path)


AdapterSource: TypeAlias = AdapterChoice | str | os.PathLike[str] | tuple[str | os.PathLike[str], float]
"""An adapter as callers write it: a path, or a path and a strength."""


def adapter_name(path: str) -> str:
    """Return a short name of an adapter: of its folder, its file, or its hub id."""
    name = Path(path).name
    return name.removesuffix(SUFFIX) or path


def adapter_location(path: str) -> Path:
    """Return the folder or file that a path names, with the home folder in place of `~`. Never raises."""
    return Path(os.path.expanduser(path))


def check_adapters(value: object) -> tuple[AdapterChoice, ...]:
    """Return the choices, with plain numbers. Raises ParameterError unless each is a path with a strength."""
    if isinstance(value, (str, os.PathLike)) or not isinstance(value, Sequence):
        raise _invalid(value)
    found = tuple(map(_checked, value))
    if len({one.path for one in found}) != len(found):
        raise ParameterError(
            tr("The same adapter is there twice."), tr("Give each adapter once, with the strength wanted."), "adapters"
        )
    return found


def _checked(value: object) -> AdapterChoice:
    path, strength = (value, 1.0) if isinstance(value, (str, os.PathLike)) else _pair(value)
    strength = to_plain_value(strength)
    if not isinstance(path, (str, os.PathLike)) or not os.fspath(path):
        raise _invalid(value)
    if isinstance(strength, bool) or not isinstance(strength, (int, float)):
        raise _invalid(value)
    if not abs(strength) <= MAX_STRENGTH:  # also if it is not a number (NaN)
        raise ParameterError(
            tr("The strength of the adapter {name} is {strength}.").format(
                name=adapter_name(str(path)), strength=short_repr(strength)
            ),
            tr("Use a number from −{most:g} to {most:g}; 1 is the adapter as it was trained.").format(
                most=MAX_STRENGTH
            ),
            "adapters",
        )
    return AdapterChoice(str(path), float(strength))


def _pair(value: object) -> tuple[object, object]:
    if not isinstance(value, Sequence) or len(value) != 2:
        raise _invalid(value)
    return value[0], value[1]


def _invalid(value: object) -> ParameterError:
    return ParameterError(
        tr("{value} does not name adapters.").format(value=short_repr(value)),
        tr("Pass a list of paths, or of pairs of a path and a strength."),
        "adapters",
    )


def parse_choice(text: str) -> AdapterChoice:
    """Return the adapter of `PATH` or `PATH=STRENGTH`. Raises ParameterError."""
    path, sign, number = text.rpartition("=")
    if not sign or os.path.exists(text):
        return check_adapters([text])[0]
    with suppress(ValueError):
        strength = float(number)
        if path:
            return check_adapters([(path, strength)])[0]
    raise ParameterError(
        tr("{value} does not name adapters.").format(value=short_repr(text)),
        tr("Write PATH or PATH=STRENGTH, for example my-adapter=0.5."),
        "adapters",
    )


def is_adapter_folder(path: Path) -> bool:
    """Return whether a folder contains an adapter. Never raises."""
    return os.path.isfile(path / CONFIG_FILE)


def read_adapter_config(folder: Path) -> JsonObject:
    """Return the content of a folder's adapter_config.json. Raises AdapterError, ModelFileError."""
    from decodescope.core.models.model_files import read_json

    try:
        return read_json(folder / CONFIG_FILE)
    except FileNotFoundError:
        raise not_an_adapter(str(folder)) from None


def not_an_adapter(path: str) -> AdapterError:
    """Return the error for a folder without an adapter."""
    return AdapterError(
        tr("{path} is not an adapter: it contains no {file}.").format(path=path, file=CONFIG_FILE),
        tr("Choose a folder that PEFT has saved, or a GGUF adapter."),
    )


def missing_weights(name: str) -> AdapterError:
    """Return the error for a folder with a configuration but no weights."""
    return AdapterError(
        tr("The adapter {name} has no weights: the file {file} is missing.").format(name=name, file=WEIGHTS_FILE),
        tr("Copy or download the complete adapter again."),
    )


def check_supported(name: str, config: Mapping[str, object]) -> None:
    """Raise AdapterError for a kind of adapter that is not applied here."""
    kind = str(config.get("peft_type"))
    remedy = tr("Merge it into its model with PEFT (merge_and_unload) and open the result.")
    if kind != "LORA":
        raise AdapterError(
            tr("The adapter {name} is of the kind {kind}; LoRA and DoRA are applied here.").format(
                name=name, kind=cut_short(kind, 40)
            ),
            remedy,
        )
    init = config.get("init_lora_weights")
    reason = next((words for key, words in _UNSUPPORTED.items() if config.get(key)), None)
    if reason is None and isinstance(init, str) and init.startswith(_CHANGES_BASE):
        reason = mark("it changes the weights of the model when it is created")
    if reason is not None:
        raise AdapterError(
            tr("The adapter {name} cannot be applied: {reason}.").format(name=name, reason=tr(reason)), remedy
        )


def adapter_problem(name: str) -> tuple[str, str] | None:
    """Return why a folder or file is no adapter that can be applied, as cause and remedy, judged by its first bytes;
    None if it may be one. Never raises.
    """
    from decodescope.core.models.gguf.file_summary import unsupported_adapter_reason
    from decodescope.core.models.gguf.gguf_file import read_summary
    from decodescope.core.models.model_files import is_file

    path = adapter_location(name)
    try:
        if is_gguf(path):
            reason = unsupported_adapter_reason(read_summary(path))
            if reason is None:
                return None
            cause = tr("The adapter {name} cannot be applied: {reason}.").format(name=adapter_name(name), reason=reason)
            return cause, tr("Choose a folder that PEFT has saved, or a GGUF adapter.")
        check_supported(adapter_name(name), read_adapter_config(path))
        if not any(is_file(path / file) for file in (WEIGHTS_FILE, PICKLED_FILE)):
            raise missing_weights(adapter_name(name))
    except DecodescopeError as error:
        return error.cause, error.remedy
    return None
