"""Which adapters a run uses, and how strongly: plain data. Importing this module does not import torch."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple, TypeAlias

from core.common.setting_values import to_plain_value
from core.errors import ParameterError
from core.models.gguf.gguf_file import SUFFIX
from core.parameter import short_repr
from resources.language import tr

CONFIG_FILE = "adapter_config.json"
WEIGHTS_FILE = "adapter_model.safetensors"
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


Choice: TypeAlias = "AdapterChoice | str | os.PathLike[str] | tuple[str | os.PathLike[str], float]"
"""What is accepted as an adapter: a path, or a path and a strength."""


def adapter_name(path: str) -> str:
    """Return a short name of an adapter: of its folder, its file, or its hub id."""
    name = Path(path).name
    return name.removesuffix(SUFFIX) or path


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
    if isinstance(strength, bool) or not isinstance(strength, (int, float)) or not math.isfinite(strength):
        raise _invalid(value)
    if abs(strength) > MAX_STRENGTH:
        raise ParameterError(
            tr("The strength of the adapter {name} is {strength:g}.").format(
                name=adapter_name(str(path)), strength=strength
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
    if sign and not os.path.exists(text):
        try:
            return check_adapters([(path, float(number))])[0]
        except ValueError:
            raise ParameterError(
                tr("{value} does not name adapters.").format(value=short_repr(text)),
                tr("Write PATH or PATH=STRENGTH, for example my-adapter=0.5."),
                "adapters",
            ) from None
    return check_adapters([text])[0]


def is_adapter_folder(path: Path) -> bool:
    """Return whether a folder contains an adapter. Never raises."""
    return os.path.isfile(path / CONFIG_FILE)
