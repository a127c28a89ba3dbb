"""Read-only settings formats of other programs, each recognized by names unique to its files.

Formats, from each program's documentation or its own files: SillyTavern (default/content/presets), Ollama
(docs/modelfile.md, docs/api.md), LM Studio (preset.json), text-generation-webui (user_data/presets), request bodies of
OpenAI and vLLM.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from decodescope.app.storage.programs.settings_io import (
    OFF_VALUES,
    ForeignProgram,
    ForeignSettingsReader,
    ForeignSettingsWriter,
    count_penalty_note,
)
from decodescope.resources.language import mark, tr

Data = Mapping[str, Any]
_NUMBER_NAMES: Mapping[str, str] = {
    name: ours
    for ours, names in {
        "temperature": ("temperature", "temp"),
        "top_k": ("top_k", "topk", "topksampling"),
        "top_p": ("top_p", "topp", "toppsampling"),
        "min_p": ("min_p", "minp", "minpsampling"),
        "typical_p": ("typical_p", "typicalp", "typical", "typ_p"),
        "top_n_sigma": ("top_n_sigma", "topnsigma", "nsigma"),
        "repetition_penalty": ("repetition_penalty", "repetitionpenalty", "repeat_penalty", "repeatpenalty", "rep_pen"),
        "frequency_penalty": ("frequency_penalty", "frequencypenalty", "freq_pen"),
        "presence_penalty": ("presence_penalty", "presencepenalty", "presence_pen"),
        "no_repeat_ngram_size": ("no_repeat_ngram_size",),
        "min_new_tokens": ("min_tokens", "min_length"),
        "epsilon_cutoff": ("epsilon_cutoff",),
        "eta_cutoff": ("eta_cutoff",),
        "dry_multiplier": ("dry_multiplier", "drymultiplier"),
        "dry_base": ("dry_base", "drybase"),
        "dry_allowed_length": ("dry_allowed_length", "dryallowedlength"),
        "dry_range": ("dry_penalty_last_n", "drypenaltyrange"),
        "xtc_probability": ("xtc_probability", "xtcprobability"),
        "xtc_threshold": ("xtc_threshold", "xtcthreshold"),
        "dynatemp_low": ("dynatemp_low", "min_temp"),
        "dynatemp_high": ("dynatemp_high", "max_temp"),
        "dynatemp_exponent": ("dynatemp_exponent", "dynatempexponent", "dynatemp_exp"),
        "mirostat_tau": ("mirostat_tau", "mirostattau"),
        "mirostat_eta": ("mirostat_eta", "mirostateta"),
        "max_new_tokens": (
            "max_new_tokens", "max_tokens", "max_completion_tokens", "max_output_tokens", "num_predict", "n_predict",
            "npredict", "maxpredictedtokens", "openai_max_tokens", "genamt",
        ),
    }.items()
    for name in names
}  # fmt: skip
"""Maps foreign names of numbers (lowercase, without the section before a dot) to the names here."""
_STOP_STRING_NAMES = frozenset({"stop", "stopstrings", "stop_strings", "stopping_strings", "custom_stopping_strings",
                    "stop_sequence", "stop_sequences", "stopsequences", "stoppingstrings"})  # fmt: skip
_MIROSTAT_NAMES = frozenset({"mirostat", "mirostat_mode", "mirostatmode"})
_DYNAMIC_TEMPERATURE_NAMES = frozenset({"dynamic_temperature", "dynatemp"})
_NEUTRAL_VALUES: Mapping[str, tuple[object, ...]] = {
    "tfs": (1,), "tfs_z": (1,), "tfsz": (1,), "top_a": (0,),
    "smoothing_factor": (0,), "smoothing_curve": (1,), "rep_pen_slope": (0, 1), "rep_pen_decay": (0,),
    "encoder_repetition_penalty": (1,), "encoder_rep_pen": (1,), "penalty_alpha": (0,), "guidance_scale": (1,),
    "length_penalty": (1,), "num_beams": (1,), "n": (1,), "best_of": (1,), "seed": (-1,), "logit_bias": ({}, []),
    "skew": (0,), "stop_token_ids": ([],), "ignore_eos": (False,), "add_bos_token": (True,),
    "ban_eos_token": (False,), "grammar_string": ("",), "grammar": ("",), "negative_prompt": ("",),
    "temperature_last": (False,), "dynatemprange": (0,), "repetition_penalty_range": (0,), "rep_pen_range": (0,),
    "repeat_last_n": (-1,), "repeatlastn": (-1,), "repeat_penalty_tokens": (-1,), "do_sample": (True,),
    "drysequencebreakers": ([],), "early_stopping": (False,), "adaptive_target": (-1, 0),
}  # fmt: skip
"""Settings without a counterpart, with the values at which each has no effect."""
_MEANINGS: Mapping[str, str] = {
    "num_ctx": mark("context length"), "contextlength": mark("context length"),
    "openai_max_context": mark("context length"),
    "max_length": mark("context length"), "max_context_length": mark("context length"),
    "truncation_length": mark("context length"),
    "repeat_last_n": mark("range of the repetition penalty; here it covers the whole text"),
    "repeatlastn": mark("range of the repetition penalty; here it covers the whole text"),
    "rep_pen_range": mark("range of the repetition penalty; here it covers the whole text"),
    "repetition_penalty_range": mark("range of the repetition penalty; here it covers the whole text"),
    "repeatpenaltytokens": mark("range of the repetition penalty; here it covers the whole text"),
    "tfs": mark("tail-free sampling"), "tfs_z": mark("tail-free sampling"), "top_a": mark("top-a sampling"),
    "seed": mark("random seed; set it next to Run"), "stream": mark("streaming; always on here"),
    "stream_openai": mark("streaming; always on here"), "model": mark("the model; choose it above"),
    "from": mark("the model; choose it above"), "system": mark("system prompt"),
    "systemprompt": mark("system prompt"), "prompt": mark("the prompt"), "messages": mark("the chat"),
    "template": mark("chat template"), "logit_bias": mark("logit bias"),
    "response_format": mark("response format"), "n": mark("number of answers"),
    "sampler_order": mark("sampler order"), "sampler_priority": mark("sampler order"),
    "samplers": mark("sampler order"),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class SettingsFormat:
    """The file format of one program: how to recognize a file and where its settings are."""

    name: str
    matches: Callable[[Data], bool]
    source: str
    settings: Callable[[Data], Data] = field(default=lambda data: data)
    defaults: Mapping[str, Any] = field(default_factory=dict)
    """The program's defaults for settings missing from a file."""
    unit_factors: Mapping[str, float] = field(default_factory=dict)
    """Settings stored in another unit, with the factor to convert them."""
    penalizes_prompt: bool = True
    """Whether its frequency and presence penalties also count the tokens of the prompt."""

    def as_program(self) -> ForeignProgram:
        """Return the format as a read-only program."""
        return ForeignProgram(self.name, frozenset(), self.read, _never_written, self.source, "")

    def read(self, data: Data) -> ForeignSettingsReader:
        """Convert every setting, or report it with its meaning if there is no counterpart."""
        found = ForeignSettingsReader({}, {})
        settings = dict(_flat_settings(self.settings(data)))
        names: dict[str, str] = {}
        for name, value in settings.items():
            self._convert_setting(found, name, value, names)
        found.values = {**OFF_VALUES, "temperature": 1.0, **self.defaults, **found.values}
        _normalize_off_values(found, {name.lower(): value for name, value in settings.items()})
        return found

    def _convert_setting(self, reader: ForeignSettingsReader, name: str, value: object, names: dict[str, str]) -> None:
        """Convert one setting, or report it."""
        key = name.rpartition(".")[2].lower()
        if key in _MIROSTAT_NAMES | _DYNAMIC_TEMPERATURE_NAMES:
            return
        if key in _STOP_STRING_NAMES:
            reader.data = {key: value}
            if stops := reader.texts(key):
                reader.values["stop_strings"] = stops
            return
        ours = _NUMBER_NAMES.get(key)
        if ours is None:
            if value not in (None, "", [], {}) and value not in _NEUTRAL_VALUES.get(key, ()):
                meaning = _MEANINGS.get(key)
                named = f"{name} ({tr(meaning)})" if meaning else name
                reader.unsupported.append(tr("{name} has no counterpart here.").format(name=named))
            return
        if not isinstance(value, (int, float)) or isinstance(value, bool) or not abs(value) <= sys.float_info.max:
            if value is not None:
                reader.unsupported.append(tr("{name} is not a number and was ignored.").format(name=name))
            return
        if ours in names and reader.values[ours] != value:
            reader.unsupported.append(
                tr("{name} conflicts with {other}, which was used.").format(name=name, other=names[ours])
            )
            return
        names[ours] = name
        if ours in ("frequency_penalty", "presence_penalty") and value and self.penalizes_prompt:
            reader.unsupported.append(count_penalty_note(name))
        reader.values[ours] = round(value * self.unit_factors[ours], 12) if ours in self.unit_factors else value


def _normalize_off_values(reader: ForeignSettingsReader, settings: Data) -> None:
    """Convert the program's "off" values to those used here."""
    values = reader.values
    for name in ("top_k", "max_new_tokens", "min_new_tokens", "no_repeat_ngram_size", "dry_range"):
        if name in values:
            values[name] = max(0, int(values[name]))
    for name in ("max_new_tokens", "min_new_tokens", "no_repeat_ngram_size", "epsilon_cutoff", "eta_cutoff"):
        if not values.get(name, 1):
            del values[name]
    for name in ("min_p", "top_n_sigma"):
        if values.get(name) is not None and values[name] <= 0:
            values[name] = None
    for name in ("typical_p", "top_p"):
        if values[name] == 0:
            values[name] = 1.0
    if values.get("xtc_threshold", 0) > 0.5:
        values["xtc_probability"] = 0.0
    _normalize_mirostat(reader, settings)
    if not any(settings.get(name) for name in _DYNAMIC_TEMPERATURE_NAMES):
        for name in ("dynatemp_low", "dynatemp_high", "dynatemp_exponent"):
            values.pop(name, None)
    elif "dynatemp_high" in values:
        values["temperature"] = 1.0
    if values["temperature"] <= 0 or settings.get("do_sample") is False:
        values["do_sample"] = False
        values.pop("temperature")
    values["stages"] = []


def _normalize_mirostat(reader: ForeignSettingsReader, settings: Data) -> None:
    """Keep mirostat's settings only if it is on: 0 means off in every program."""
    mode = next((settings[name] for name in _MIROSTAT_NAMES if settings.get(name) is not None), 0)
    if mode in (1, 2) and not isinstance(mode, bool):
        reader.values.setdefault("mirostat_tau", 5.0)
        reader.unsupported += [tr("mirostat 1 is not supported; mirostat 2 is used instead.")] if mode == 1 else []
        return
    reader.unsupported += [tr("mirostat {mode} is not supported.").format(mode=mode)] if mode else []
    for name in ("mirostat_tau", "mirostat_eta"):
        reader.values.pop(name, None)


def _never_written(out: ForeignSettingsWriter) -> None:
    raise NotImplementedError(out)


def _flat_settings(data: Data) -> Iterator[tuple[str, Any]]:
    for name, value in data.items():
        if isinstance(value, Mapping) and {"checked", "value"} <= value.keys():  # LM Studio's optional settings
            if value["checked"]:
                yield str(name), value["value"]
        else:
            yield str(name), value


def _value_at(*path: str) -> Callable[[Data], Data]:
    def settings(data: Data) -> Data:
        for name in path:
            data = data[name]
        return data

    return settings


def _has_mapping_at(*path: str) -> Callable[[Data], bool]:
    def is_of(data: Any) -> bool:
        for name in path:
            data = data.get(name) if isinstance(data, Mapping) else None
        return isinstance(data, Mapping)

    return is_of


def _lm_studio_fields(data: Data) -> Data:
    parts = [part.get("fields") for name in ("operation", "load") if isinstance(part := data.get(name), Mapping)]
    fields = [one for part in parts if isinstance(part, list) for one in part]
    return {str(one["key"]): one.get("value") for one in fields if isinstance(one, Mapping) and "key" in one}


def _is_lm_studio(data: Data) -> bool:
    return any(isinstance(part, Mapping) and isinstance(part.get("fields"), list)
               for part in (data.get("operation"), data.get("load")))  # fmt: skip


def _is_web_ui_preset(data: Data) -> bool:
    marks = {"dynatemp_low", "repetition_penalty_range", "sampler_priority", "temperature_last", "dynamic_temperature",
             "mirostat_mode", "encoder_repetition_penalty", "custom_stopping_strings"}  # fmt: skip
    return bool(marks & data.keys()) and not {"transformers_version", "rep_pen", "temp"} & data.keys()


def _is_openai(data: Data) -> bool:
    limits = {"max_tokens", "max_completion_tokens", "max_output_tokens"}
    return (
        "model" in data and bool({"messages", "prompt", "input", "temperature", "top_p", *limits} & data.keys())
    ) or ("messages" in data and bool({"temperature", "top_p", *limits} & data.keys()))


def _is_tavern_text(data: Data) -> bool:
    marks = {"mirostat_mode", "typical_p", "freq_pen", "min_temp", "dynatemp", "epsilon_cutoff", "sampler_priority"}
    return "temp" in data and bool(marks & data.keys())


_OLLAMA: dict[str, Any] = {"temperature": 0.8, "top_k": 40, "top_p": 0.9, "repetition_penalty": 1.1}
_LM_STUDIO: dict[str, Any] = {"temperature": 0.8, "top_k": 40, "top_p": 0.95, "min_p": 0.05, "repetition_penalty": 1.1}
_PER_10_000 = {"epsilon_cutoff": 1e-4, "eta_cutoff": 1e-4}
FORMATS: tuple[SettingsFormat, ...] = (
    SettingsFormat("LM Studio", _is_lm_studio, "https://lmstudio.ai/docs", _lm_studio_fields, _LM_STUDIO),
    SettingsFormat(
        "LM Studio",
        _has_mapping_at("inference_params"),
        "https://lmstudio.ai/docs",
        _value_at("inference_params"),
        _LM_STUDIO,
    ),
    SettingsFormat(
        "SillyTavern (chat completion)",
        lambda data: any(str(name).startswith("openai_max_") for name in data),
        "https://github.com/SillyTavern/SillyTavern",
        penalizes_prompt=False,
    ),
    SettingsFormat(
        "SillyTavern (text completion)",
        _is_tavern_text,
        "https://github.com/SillyTavern/SillyTavern",
        unit_factors=_PER_10_000,
    ),
    SettingsFormat(
        "Ollama", _has_mapping_at("options"), "https://github.com/ollama/ollama", _value_at("options"), _OLLAMA
    ),
    SettingsFormat(
        "Ollama",
        lambda data: bool({"num_predict", "num_ctx", "tfs_z", "num_keep"} & data.keys()),
        "https://github.com/ollama/ollama",
        defaults=_OLLAMA,
    ),
    SettingsFormat(
        "text-generation-webui",
        _is_web_ui_preset,
        "https://github.com/oobabooga/text-generation-webui",
        unit_factors=_PER_10_000,
    ),
    SettingsFormat(
        "vLLM",
        lambda data: bool(
            {
                "stop_token_ids",
                "skip_special_tokens",
                "prompt_logprobs",
                "min_tokens",
                "include_stop_str_in_output",
                "detokenize",
            }
            & data.keys()
        ),
        "https://docs.vllm.ai",
        penalizes_prompt=False,
    ),
    SettingsFormat("OpenAI", _is_openai, "https://platform.openai.com/docs/api-reference", penalizes_prompt=False),
    SettingsFormat(
        "OpenAI",
        lambda data: (
            bool({"max_tokens", "max_completion_tokens"} & data.keys())
            and not {"repeat_penalty", "n_predict", "samplers"} & data.keys()
        ),
        "https://platform.openai.com/docs/api-reference",
        penalizes_prompt=False,
    ),
)
"""Checked in this order: the first match wins."""


def foreign_program(data: Data) -> ForeignProgram | None:
    """Return the read-only program that these settings belong to, or None."""
    return next((one.as_program() for one in FORMATS if one.matches(data)), None)


SUFFIXES = (".yaml", ".yml", ".modelfile")
_MAX_BYTES = 2**18
_PARAMETER = re.compile(r"^[ \t]*PARAMETER[ \t]+(\w+)[ \t]+(\S.*)$", re.IGNORECASE | re.MULTILINE)
"""Space within a line only: across lines, the time would grow with the square of their number."""


class TextSettingsError(ValueError):
    """A file's content does not match its name."""


def is_text_settings(path: Path) -> bool:
    """Return whether a file's name marks it as settings in a format other than JSON."""
    return path.suffix.lower() in SUFFIXES or path.name.lower().startswith("modelfile")


def read_text_settings(path: Path) -> dict[str, Any]:
    """Return the names and values of a file. Raises OSError, TextSettingsError."""
    if path.exists() and not path.is_file():  # opening a pipe would wait for a writer
        raise TextSettingsError(tr("it is a folder, a pipe or a device"))
    with path.open("rb") as file:
        data = file.read(_MAX_BYTES + 1)
    if len(data) > _MAX_BYTES:
        raise TextSettingsError(tr("it is too large for a settings file"))
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise TextSettingsError(tr("it is not text")) from None
    return _parse_yaml(text) if path.suffix.lower() in (".yaml", ".yml") else _parse_modelfile(text)


def _parse_yaml(text: str) -> dict[str, Any]:
    import yaml  # type: ignore[import-untyped]  # transformers brings it

    try:
        # An alias makes a short file stand for a list of any length, or for one that contains itself.
        if any(isinstance(event, yaml.AliasEvent) for event in yaml.parse(text)):
            raise TextSettingsError(tr("it contains an alias (*name)"))
        found = yaml.safe_load(text)
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise TextSettingsError(str(error).replace("\n", " ")) from None
    if not isinstance(found, Mapping):
        raise TextSettingsError(tr("it contains no names and values"))
    marks = {"temperature_last": False}  # marks the preset as text-generation-webui's
    return {**marks, **{str(name): value for name, value in found.items()}}


def _parse_modelfile(text: str) -> dict[str, Any]:
    """Parse the lines `PARAMETER name value`; `stop` may occur several times."""
    found: dict[str, Any] = {"num_predict": None}  # marks the file as Ollama's, without effect
    for name, value in _PARAMETER.findall(text):
        if name.lower() == "stop":
            found.setdefault("stop", []).append(value.strip().strip('"'))
        else:
            found[name.lower()] = _parse_value(value.strip())
    for name in ("FROM", "SYSTEM", "TEMPLATE"):
        if (match := re.search(rf"^[ \t]*{name}[ \t]+(\S.*)$", text, re.IGNORECASE | re.MULTILINE)) is not None:
            found[name.lower()] = match[1].strip()
    return found


def _parse_value(text: str) -> object:
    try:
        number = float(text)
    except ValueError:
        return {"true": True, "false": False}.get(text.lower(), text.strip('"'))
    return int(number) if number.is_integer() and "." not in text and "e" not in text.lower() else number
