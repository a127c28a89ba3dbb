"""Settings of KoboldCpp, as in its /api/v1/generate.

Names and defaults: koboldcpp.py, `generate`; the order: `SampleLogits` of gpttype_adapter.cpp, where DRY comes first,
min-p goes with top-p, top-nσ with the temperature, and XTC is always last. https://github.com/LostRuins/koboldcpp
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from decodescope.app.storage.programs import settings_io
from decodescope.app.storage.programs.settings_io import (
    UNLIMITED_RANGE,
    ForeignProgram,
    ForeignSettingsReader,
    ForeignSettingsWriter,
)
from decodescope.resources.language import join_names, mark, tr

DEFAULTS: dict[str, Any] = {
    "temperature": 0.75, "dynatemp_range": 0.0, "dynatemp_exponent": 1.0, "top_k": 100, "top_p": 0.92, "min_p": 0.0,
    "typical": 1.0, "nsigma": 0.0, "xtc_probability": 0.0, "xtc_threshold": 0.2, "rep_pen": 1.0, "rep_pen_range": 320,
    "dry_multiplier": 0.0, "dry_base": 1.75, "dry_allowed_length": 2, "dry_penalty_last_n": 320, "mirostat": 0,
    "mirostat_tau": 5.0, "mirostat_eta": 0.1, "max_length": 0,
}  # fmt: skip
"""The program's defaults."""
ORDER = (6, 0, 1, 3, 4, 2, 5)
"""Default `sampler_order`: repetition, top-k, top-a, tail-free, typical, top-p, temperature."""
STAGES: dict[int, tuple[str, ...]] = {
    0: ("top_k",), 1: (), 2: ("top_p", "min_p"), 3: (), 4: ("typical_p",), 5: ("temperature", "top_n_sigma"),
    6: ("repetition_penalty", "presence_penalty"),
}  # fmt: skip
_TEMPERATURE_SAMPLER = 5
_UNSUPPORTED: tuple[tuple[str, object], ...] = (
    ("tfs", 1), ("top_a", 0), ("smoothing_factor", 0), ("smoothing_curve", 1),
    ("rep_pen_slope", 1), ("adaptive_target", -1), ("adaptive_decay", 0.9), ("grammar", ""), ("logit_bias", {}),
    ("banned_tokens", []), ("ban_eos_token", False), ("sampler_seed", -1), ("guidance_scale", 1),
)  # fmt: skip
"""Settings without a counterpart here, with the value that switches each off."""
_MIROSTAT_NOTE = mark(
    "With mirostat, KoboldCpp always ignores XTC, all other cuts and dynamic temperature; DRY and the "
    "repetition penalty still apply."
)
_IGNORED_WITH_MIROSTAT = frozenset({
    "top_k", "top_p", "min_p", "typical", "nsigma", "tfs", "top_a", "xtc_probability", "xtc_threshold",
    "dynatemp_range", "dynatemp_exponent", "sampler_order",
})  # fmt: skip
"""Settings ignored while mirostat is on: `SampleLogits` then applies only DRY, the penalty, the fixed temperature and
mirostat.
"""


def _settings(data: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the settings themselves: those inside a story, or with SillyTavern's names translated."""
    if isinstance(inside := data.get("savedsettings"), Mapping):
        return _settings(inside)
    names = {"temp": "temperature"} if "temperature" not in data else {}
    if "genamt" in data or "temp" in data:  # SillyTavern uses max_length for the context length
        names |= {"max_length": "max_context_length", "genamt": "max_length"}
    return {names.get(name, name): value for name, value in data.items()}


def _read(data: Mapping[str, Any]) -> ForeignSettingsReader:
    found = ForeignSettingsReader(_settings(data), DEFAULTS)
    instead = {"top_k": 0, "top_p": 1.0, "sampler_order": [6, _TEMPERATURE_SAMPLER]}
    mirostat = settings_io.read_mirostat(found, _IGNORED_WITH_MIROSTAT, instead, _MIROSTAT_NOTE)
    settings_io.read_penalty(found, "rep_pen", "rep_pen_range")
    settings_io.read_count_penalty(found, "presence_penalty")
    settings_io.read_dry(found)
    found.values |= {
        "top_k": max(0, found.integer("top_k")), "top_p": found.number("top_p"),
        "min_p": settings_io.positive_or_none(found.number("min_p")),
        "typical_p": found.number("typical"), "top_n_sigma": settings_io.positive_or_none(found.number("nsigma")),
        "xtc_probability": found.number("xtc_probability"), "xtc_threshold": found.number("xtc_threshold"),
    }  # fmt: skip
    order = settings_io.read_temperature(found, found.number("temperature"), list(_stage_order(found)))
    settings_io.set_stage_order(found, [*order, *["mirostat_tau"] * mirostat])
    if (tokens := found.integer("max_length")) > 0:
        found.values["max_new_tokens"] = tokens
    if stops := found.texts("stop_sequence"):
        found.values["stop_strings"] = stops
    for name, usual in _UNSUPPORTED:
        found.report_unsupported(name, usual)
    found.report_unread()
    return found


def _stage_order(reader: ForeignSettingsReader) -> Iterator[str]:
    value = reader.raw_value("sampler_order")
    places = value if isinstance(value, list) and value else list(ORDER)
    unknown = [str(place) for place in places if not isinstance(place, int) or place not in STAGES]
    if unknown:
        reader.unsupported.append(tr("Unsupported samplers: {names}.").format(names=join_names(unknown)))
    yield "dry_multiplier"
    for place in places:
        stages = STAGES.get(place, ()) if isinstance(place, int) else ()
        yield from (stage for stage in stages if settings_io.has_place(reader, stage))
    yield "xtc_probability"


def _write(out: ForeignSettingsWriter) -> None:
    settings_io.write_temperature(out)
    out.data |= {
        "top_k": out.read("top_k", 0), "top_p": out.read("top_p", 1.0), "min_p": out.read("min_p", 0.0),
        "typical": out.read("typical_p", 1.0), "nsigma": out.read("top_n_sigma", 0.0),
        "xtc_probability": out.read("xtc_probability", 0.0), "xtc_threshold": out.read("xtc_threshold", 0.1),
        "rep_pen": out.read("repetition_penalty", 1.0), "rep_pen_range": UNLIMITED_RANGE,
    }  # fmt: skip
    settings_io.write_count_penalty(out, "presence_penalty")
    settings_io.write_dry(out, unlimited=UNLIMITED_RANGE)
    settings_io.write_mirostat(out)
    if (tokens := out.read("max_new_tokens", 0)) > 0:
        out.data["max_length"] = tokens
    out.data["stop_sequence"] = list(out.read("stop_strings", []))
    out.data["sampler_order"] = _sampler_order(out.read("stages", ()), settings_io.temperature_stage(out))


def _sampler_order(stages: Sequence[str], temperature_order: str) -> list[int]:
    """Return the program's sampler numbers in the order of our stages; samplers without a counterpart come last, where
    they have no effect.
    """
    named = {stages[0]: place for place, stages in STAGES.items() if stages and place != _TEMPERATURE_SAMPLER} | {
        temperature_order: _TEMPERATURE_SAMPLER
    }
    found = list(dict.fromkeys(named[stage] for stage in stages if stage in named))
    return [*found, *(place for place in ORDER if place not in found)]


PROGRAM = ForeignProgram(
    name="KoboldCpp",
    marks=frozenset({"rep_pen", "rep_pen_range", "rep_pen_slope", "sampler_order", "tfs", "top_a", "typical", "nsigma",
                     "smoothing_factor", "max_context_length", "stop_sequence", "sampler_seed"}),
    read=_read,
    write=_write,
    source="https://github.com/LostRuins/koboldcpp/blob/concedo/koboldcpp.py",
    mirostat_note=_MIROSTAT_NOTE,
    count_penalties=("presence_penalty",),
)  # fmt: skip
