"""Settings of llama.cpp, as its server accepts them at /completion and reports them at /props.

Names, defaults and the order of its samplers: https://github.com/ggml-org/llama.cpp/blob/master/tools/server/README.md
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from decodescope.app.storage.programs import settings_io
from decodescope.app.storage.programs.settings_io import ForeignProgram, ForeignSettingsReader, ForeignSettingsWriter
from decodescope.resources.language import join_names, mark, tr

DEFAULTS: dict[str, Any] = {
    "temperature": 0.8, "dynatemp_range": 0.0, "dynatemp_exponent": 1.0, "top_k": 40, "top_p": 0.95, "min_p": 0.05,
    "typical_p": 1.0, "top_n_sigma": -1.0, "xtc_probability": 0.0, "xtc_threshold": 0.1, "repeat_penalty": 1.0,
    "repeat_last_n": 64, "dry_multiplier": 0.0, "dry_base": 1.75, "dry_allowed_length": 2, "dry_penalty_last_n": 64,
    "mirostat": 0, "mirostat_tau": 5.0, "mirostat_eta": 0.1, "n_predict": -1, "seed": -1,
}  # fmt: skip
"""The server's defaults."""
PENALTIES = ("repetition_penalty", "frequency_penalty", "presence_penalty")
STAGES: Mapping[str, tuple[str, ...]] = {
    "penalties": PENALTIES, "dry": ("dry_multiplier",), "top_n_sigma": ("top_n_sigma",), "top_k": ("top_k",),
    "typ_p": ("typical_p",), "typical_p": ("typical_p",), "top_p": ("top_p",), "min_p": ("min_p",),
    "xtc": ("xtc_probability",), "temperature": ("temperature",),
}  # fmt: skip
"""Its samplers in their default order, with the settings that switch on the same stages here."""
_ORDER = tuple(name for name in STAGES if name != "typical_p")
_MIROSTAT_NOTE = mark("With mirostat, llama.cpp always ignores penalties, DRY, XTC, all cuts and dynamic temperature.")
_IGNORED_WITH_MIROSTAT = frozenset({
    "repeat_penalty", "repeat_last_n", "presence_penalty", "frequency_penalty", "dry_multiplier", "dry_base",
    "dry_allowed_length", "dry_penalty_last_n", "dry_sequence_breakers", "top_n_sigma", "top_k", "typical_p", "top_p",
    "min_p", "xtc_probability", "xtc_threshold", "dynatemp_range", "dynatemp_exponent", "samplers", "min_keep",
})  # fmt: skip
"""Settings ignored while mirostat 1 or 2 is on: the chain is then a fixed temperature and mirostat
(`common_sampler_init` of common/sampling.cpp).
"""


def _read(data: Mapping[str, Any]) -> ForeignSettingsReader:
    found = ForeignSettingsReader(_settings(data), DEFAULTS)
    mirostat = settings_io.read_mirostat(found, _IGNORED_WITH_MIROSTAT, {"samplers": ["temperature"]}, _MIROSTAT_NOTE)
    settings_io.read_penalty(found, "repeat_penalty", "repeat_last_n")
    for name in ("frequency_penalty", "presence_penalty"):
        settings_io.read_count_penalty(found, name)
    settings_io.read_dry(found)
    threshold = found.number("xtc_threshold")
    found.values |= {
        "top_k": max(0, found.integer("top_k")),
        "top_p": found.number("top_p"),
        "min_p": settings_io.positive_or_none(found.number("min_p")),
        "typical_p": found.number("typical_p"),
        "top_n_sigma": settings_io.positive_or_none(found.number("top_n_sigma")),
        "xtc_probability": found.number("xtc_probability") if threshold <= 0.5 else 0.0,
        "xtc_threshold": threshold,
    }
    order = _stage_order(found)
    found.values |= {name: value for name, value in settings_io.OFF_VALUES.items() if name not in order}
    heat = found.number("temperature") if "temperature" in order else 1.0
    order = settings_io.read_temperature(found, heat, order)
    settings_io.set_stage_order(found, [*order, *["mirostat_tau"] * mirostat])
    _read_length(found)
    for name, usual in (("grammar", ""), ("logit_bias", []), ("ignore_eos", False), ("min_keep", 0), ("seed", -1)):
        found.report_unsupported(name, usual)
    found.report_unread()
    return found


def _settings(data: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the settings themselves, also from inside a response of /props or /completion."""
    for name in ("default_generation_settings", "generation_settings", "params"):
        inside = data.get(name)
        if isinstance(inside, dict):
            return _settings(inside)
    other = {"typ_p": "typical_p", "temp": "temperature", "max_tokens": "n_predict"}
    return {other.get(name, name): value for name, value in data.items()}


def _stage_order(reader: ForeignSettingsReader) -> list[str]:
    """Convert llama.cpp's order of samplers to settings of this program; samplers missing from the file are off."""
    value = reader.raw_value("samplers")
    names = value.split(";") if isinstance(value, str) else value if isinstance(value, list) else list(_ORDER)
    known = [name for name in names if isinstance(name, str) and name in STAGES]
    unknown = [str(name) for name in names if name not in known]
    if unknown:
        reader.unsupported.append(tr("Unsupported samplers: {names}.").format(names=join_names(unknown)))
    return [stage for name in known for stage in STAGES[name] if settings_io.has_place(reader, stage)]


def _read_length(reader: ForeignSettingsReader) -> None:
    tokens = reader.integer("n_predict")
    if tokens > 0:
        reader.values["max_new_tokens"] = tokens
    if stops := reader.texts("stop"):
        reader.values["stop_strings"] = stops


def _write(out: ForeignSettingsWriter) -> None:
    settings_io.write_temperature(out)
    out.data |= {
        "top_k": out.read("top_k", 0), "top_p": out.read("top_p", 1.0), "min_p": out.read("min_p", 0.0),
        "typical_p": out.read("typical_p", 1.0), "top_n_sigma": out.read("top_n_sigma", -1.0),
        "xtc_probability": out.read("xtc_probability", 0.0), "xtc_threshold": out.read("xtc_threshold", 0.1),
        "repeat_penalty": out.read("repetition_penalty", 1.0), "repeat_last_n": settings_io.UNLIMITED_RANGE,
    }  # fmt: skip
    for name in ("frequency_penalty", "presence_penalty"):
        settings_io.write_count_penalty(out, name)
    settings_io.write_dry(out, unlimited=settings_io.UNLIMITED_RANGE)
    settings_io.write_mirostat(out)
    out.data |= {"n_predict": out.read("max_new_tokens", -1), "stop": list(out.read("stop_strings", []))}
    names = {stage: name for name, stages in STAGES.items() if name != "typical_p" for stage in stages}
    del names["temperature"]
    names[settings_io.temperature_stage(out)] = "temperature"
    order = [names[stage] for stage in out.read("stages", ()) if stage in names]
    out.data["samplers"] = list(dict.fromkeys(order))


PROGRAM = ForeignProgram(
    name="llama.cpp",
    marks=frozenset({"repeat_penalty", "repeat_last_n", "n_predict", "samplers", "typ_p", "dry_penalty_last_n",
                     "dynatemp_range", "mirostat", "default_generation_settings", "generation_settings",
                     "dry_sequence_breakers", "n_probs", "n_keep"}),
    read=_read,
    write=_write,
    source="https://github.com/ggml-org/llama.cpp/blob/master/tools/server/README.md",
    mirostat_note=_MIROSTAT_NOTE,
    count_penalties=("frequency_penalty", "presence_penalty"),
)  # fmt: skip
