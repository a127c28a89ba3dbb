"""Files of settings that are not JSON: Ollama's Modelfile, YAML presets, GPT4All's INI."""

from __future__ import annotations

import configparser
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from resources.language import tr

SUFFIXES = (".yaml", ".yml", ".ini", ".modelfile")
_MAX_BYTES = 2**20
_PARAMETER = re.compile(r"^\s*PARAMETER\s+(\w+)\s+(.+?)\s*$", re.IGNORECASE | re.MULTILINE)


class TextSettingsError(ValueError):
    """A file that is not what its name says."""


def is_text_settings(path: Path) -> bool:
    """Return whether a file holds settings in another form than JSON, by its name."""
    return path.suffix.lower() in SUFFIXES or path.name.lower().startswith("modelfile")


def read_text_settings(path: Path) -> dict[str, Any]:
    """Return the names and values of a file. Raises OSError, TextSettingsError."""
    with path.open("rb") as file:
        data = file.read(_MAX_BYTES + 1)
    if len(data) > _MAX_BYTES:
        raise TextSettingsError(tr("it is longer than any file of settings"))
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise TextSettingsError(tr("it is not text")) from None
    suffix = path.suffix.lower()
    if suffix in (".yaml", ".yml"):
        return _parse_yaml(text)
    return _parse_ini(text) if suffix == ".ini" else _parse_modelfile(text)


def _parse_yaml(text: str) -> dict[str, Any]:
    import yaml  # type: ignore[import-untyped]  # transformers brings it

    try:
        found = yaml.safe_load(text)
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise TextSettingsError(str(error).replace("\n", " ")) from None
    if not isinstance(found, Mapping):
        raise TextSettingsError(tr("it holds no names and values"))
    values = {str(name): value for name, value in found.items()}
    is_jan = bool({"ctx_len", "ngl"} & values.keys())
    return values if is_jan else {"temperature_last": False, **values}  # a mark of text-generation-webui's presets


def _parse_modelfile(text: str) -> dict[str, Any]:
    """Return the lines `PARAMETER name value`; `stop` may stand several times."""
    found: dict[str, Any] = {"num_predict": None}  # a mark of Ollama's files, without effect
    for name, value in _PARAMETER.findall(text):
        if name.lower() == "stop":
            found.setdefault("stop", []).append(value.strip('"'))
        else:
            found[name.lower()] = _parse_value(value)
    for name in ("FROM", "SYSTEM", "TEMPLATE"):
        if (said := re.search(rf"^\s*{name}\s+(\S.*)$", text, re.IGNORECASE | re.MULTILINE)) is not None:
            found[name.lower()] = said[1]
    return found


def _parse_ini(text: str) -> dict[str, Any]:
    parser = configparser.ConfigParser(interpolation=None, strict=False)
    parser.optionxform = str  # type: ignore[assignment,method-assign]  # as configparser's documentation says
    try:
        parser.read_string(text if text.lstrip().startswith("[") else f"[settings]\n{text}")
    except configparser.Error as error:
        raise TextSettingsError(str(error).replace("\n", " ")) from None
    return {name: _parse_value(value) for section in parser.sections() for name, value in parser.items(section)}


def _parse_value(text: str) -> object:
    try:
        number = float(text)
    except ValueError:
        return {"true": True, "false": False}.get(text.lower(), text.strip('"'))
    return int(number) if number.is_integer() and "." not in text and "e" not in text.lower() else number
